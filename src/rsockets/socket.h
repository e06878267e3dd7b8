// An rsocket: what a program has by a descriptor. Everything here may be called by any thread of
// the program and by the service's; no call waits, but close() for what was sent.
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

// Whether the program looks for data again and again without sleeping. Who sleeps in the kernel
// looks once in vain, is woken, and finds something.
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
    connecting,  // or accepted and not yet established
    connected,   // or once connected
    failed,      // its connection was never made
    closed,
  };

  explicit Socket(int family) : family_(family) {}
  ~Socket();
  // Its descriptor, and the service knows it. 0 or errno.
  int open();

  // ---- the program's calls: 0 or errno, EAGAIN when waiting for the descriptor helps

  int bind(const sockaddr*, socklen_t);
  int listen(int backlog);
  int accept(std::shared_ptr<Socket>* out);
  // EINPROGRESS: begun.
  int connect(const sockaddr*, socklen_t);
  // What became of it: EALREADY while that is not known.
  int connect_result();

  // `from` is taken from until it is empty; EAGAIN with something left.
  int send(Source& from);
  int send_to_mapping(Source& from, std::uint64_t offset);
  // `*got` bytes; 0 of them at the end of input.
  int receive(std::uint8_t* to, std::size_t size, bool look, std::size_t* got);
  int shutdown(int how);
  // The program has given up this number for it. The last one ends the connection behind what was
  // sent; that is waited for.
  void give_up(int fd);
  void also_known_as(int fd);
  // The program has closed this number without a word, and something else has it by now.
  void number_lost(int fd);
  // At the end of the process: the other end is told, and waited for no longer than that.
  void leave(int quiet_ms);

  int map(void*, std::size_t, bool written, std::uint64_t offset);
  int unmap(void*, std::size_t);

  // As getsockname and getpeername tell it.
  int address(bool of_peer, sockaddr*, socklen_t*);
  // Serves what has come, and shows whether there is room to send. Whoever sleeps next is woken.
  void look(bool for_output, bool sleeps);
  // Why its connection failed or broke. It is taken once when it failed.
  int error(bool taken);
  std::uint64_t readable();

  // Calls `f` with what can be set, and the stage.
  template <class F>
  int with_settings(F&& f) {
    const std::lock_guard guard(mutex_);
    return f(settings_, stage_);
  }
  int family() const { return family_; }
  int fd() const { return mirror_.fd(); }
  std::atomic<bool> non_blocking{false};  // as F_SETFL left it

  // ---- what the service brings

  void on_request(rdma_cm_id*, std::string_view private_data);
  void on_established(std::string_view private_data);
  void on_failed(int error);
  void on_disconnected();
  // False: the program looks by itself all the time, and is left to it; to be asked again soon.
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
  void finish(std::unique_lock<std::mutex>&, int quiet_ms);  // it goes on with what has moved

  std::mutex mutex_;
  std::condition_variable served_;
  const int family_;
  State stage_ = State::fresh;
  Settings settings_;
  void* cookie_ = nullptr;  // by which the service knows it
  Mirror mirror_;
  rdma_cm_id* id_ = nullptr;  // until the stream has it
  Stream stream_;
  Looks looks_;
  bool wants_output_ = false;  // somebody waits for room to send
  int error_ = 0;
  // Listening.
  std::size_t backlog_ = 0;
  std::deque<std::shared_ptr<Socket>> accepted_;
  std::vector<std::shared_ptr<Socket>> making_;  // answered, not yet established
  std::weak_ptr<Socket> listener_;               // of one that is being accepted
};

}  // namespace urnic::rsockets
