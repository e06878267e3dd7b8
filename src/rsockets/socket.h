// An rsocket, which a program uses through a descriptor. Any thread of the program, and the
// service's thread, may call every function; no call waits, except close() for sent data.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "rsockets/mirror.h"
#include "rsockets/settings.h"
#include "rsockets/stream.h"

namespace urnic::rsockets {

// Detects a program that polls for data again and again without sleeping. A program that sleeps in
// the kernel polls once without result, is woken, and then finds data.
class Looks {
 public:
  void in_vain();
  void found() { vain_.store(0, std::memory_order_relaxed); }
  bool are_many() const;

 private:
  std::atomic<unsigned> vain_{0};
  std::atomic<std::int64_t> last_us_{0};
};

class Socket : public std::enable_shared_from_this<Socket> {
 public:
  enum class State : std::uint8_t {
    fresh,
    bound,
    listening,
    connecting,  // or accepted and not established yet
    connected,   // or was connected once
    failed,      // the connection was never established
    closed,
  };

  explicit Socket(int family) : family_(family) {}
  ~Socket();
  // Creates its descriptor and registers it with the service. Returns 0 or errno.
  int open();

  // ---- calls of the program; they return 0 or errno, EAGAIN when waiting for the descriptor helps

  int bind(const sockaddr*, socklen_t);
  int listen(int backlog);
  int accept(std::shared_ptr<Socket>* out);
  // EINPROGRESS: started.
  int connect(const sockaddr*, socklen_t);
  // The outcome; EALREADY while it is unknown.
  int connect_result();

  // Take bytes from `from` until it is empty; EAGAIN if bytes are left.
  int send(Source& from);
  int send_to_mapping(Source& from, std::uint64_t offset);
  // `*got` bytes; 0 at the end of input.
  int receive(std::uint8_t* to, std::size_t size, bool look, std::size_t* got);
  int shutdown(int how);
  // The program closes this number. Closing the last one ends the connection after all sent data,
  // and waits for that.
  void give_up(int fd);
  void also_known_as(int fd);
  // The program has closed this number outside of our calls, and something else uses it now.
  void number_lost(int fd);
  // Called when the process ends: notifies the peer, and waits no longer than this.
  void leave(int quiet_ms);

  int map(void*, std::size_t, bool written, std::uint64_t offset);
  int unmap(void*, std::size_t);

  // The address in the form of getsockname and getpeername.
  int address(bool of_peer, sockaddr*, socklen_t*);
  // Processes arrivals, and shows whether there is room to send. `sleeps`: the caller will sleep,
  // so later arrivals must wake it.
  void look(bool for_output, bool sleeps);
  // The error of the failed or broken connection. `taken`: the error of a failed connection is
  // cleared.
  int error(bool taken);
  std::uint64_t readable();

  // Calls `f` with the settings and the state.
  template <class F>
  int with_settings(F&& f) {
    const std::lock_guard guard(mutex_);
    return f(settings_, stage_);
  }
  int family() const { return family_; }
  int fd() const { return mirror_.fd(); }
  std::atomic<bool> non_blocking{false};  // as set by F_SETFL

  // ---- calls of the service

  void on_request(rdma_cm_id*, std::string_view private_data);
  void on_established(std::string_view private_data);
  void on_failed(int error);
  void on_disconnected();
  // False: the program polls by itself all the time and processes the arrivals; try again soon.
  bool on_completion();

 private:
  int make_id();
  int prepare_connection(const sockaddr* to);
  int open_request(std::string_view private_data);
  int state_error(bool sending) const;
  void queue(std::shared_ptr<Socket>);
  void forget(const Socket*);
  int sent(const Source&);
  void settle();
  void show();
  void finish(std::unique_lock<std::mutex>&, int quiet_ms);  // releases the lock while it waits

  std::mutex mutex_;
  std::condition_variable served_;
  const int family_;
  State stage_ = State::fresh;
  Settings settings_;
  void* cookie_ = nullptr;  // the service's cookie
  Mirror mirror_;
  rdma_cm_id* id_ = nullptr;  // until the stream owns it
  Stream stream_;
  Looks looks_;
  bool wants_output_ = false;  // a thread waits for room to send
  int error_ = 0;
  // Only for a listener.
  std::size_t backlog_ = 0;
  std::deque<std::shared_ptr<Socket>> accepted_;
  std::vector<std::shared_ptr<Socket>> making_;  // answered, not established yet
  std::weak_ptr<Socket> listener_;               // while this one is being accepted
};

}  // namespace urnic::rsockets
