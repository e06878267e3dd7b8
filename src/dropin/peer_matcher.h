// Connections without rdma_cm (docs/decisions/dropin.md): each of two programs tells ibv_modify_qp
// the other's address and queue pair number, and expects that to be a connection. Here are the
// ports behind the numbers, and the queue pairs that wait for each other. All under Process::cm.
#pragma once

#include <array>
#include <bitset>
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dropin/cm_address.h"
#include "dropin/exported.h"
#include "urnic/verbs.h"

namespace urnic::dropin {

class Adapter;
class Endpoint;

// Who is told of what becomes of a connection. Called with Process::cm.
class ConnectionManager {
 public:
  virtual ~ConnectionManager() = default;
  virtual void on_connection(Event& event) = 0;
};

// What a program says of a connection in ibv_modify_qp.
struct Peer {
  Address own{}, address{};  // own: unset where the index names none
  std::uint32_t number = 0;
  std::uint16_t ird = 0;
};

// One queue pair that has a number by which it is found.
class PeerMatch : public ConnectionManager {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Phase : std::uint8_t {
    Apart,       // nobody has said with whom
    Expecting,   // the other end connects
    Connecting,  // or this one, or it has come
    Connected,
    Lost,
  };

  explicit PeerMatch(std::shared_ptr<Endpoint> e) : end(std::move(e)) {}
  void on_connection(Event& event) override;

  const std::shared_ptr<Endpoint> end;
  Phase phase = Phase::Apart;
  std::uint32_t connection = 0;  // of those of its queue pair; events may still come of others
  Peer peer;
  std::chrono::milliseconds patience{};  // 0: for ever
  Clock::time_point until = Clock::time_point::max();
  Binding source;  // where the address to connect from is not the one the route has
  // Who came before the program said with whom, be it again.
  std::vector<std::pair<std::uint32_t, ConnectRequest>> early;
};

// Of one device.
class PeerMatcher {
 public:
  explicit PeerMatcher(Adapter& adapter) : adapter_(adapter) {}

  // For a new queue pair: its lower 16 bits are a port of this process, where its requests arrive.
  // 0: there is none to be had.
  std::uint32_t take_number();
  void give_back(std::uint32_t number);

  void add(std::shared_ptr<Endpoint> end);
  // Of a queue pair that is destroyed: nobody finds it any more.
  void remove(std::uint32_t number);

  // RTR, with whom. 0 or errno, and nothing has changed then.
  int meet(std::uint32_t number, const Peer& peer);
  // RTS: how long a send may wait for the connection.
  void set_patience(std::uint32_t number, std::chrono::milliseconds patience);
  // A send was posted before there is a connection.
  void posted(std::uint32_t number);
  // The program moves it back, or to error: with nobody any more.
  void leave(std::uint32_t number);
  // Whether a queue pair whose connection is made here has one now, or will: it may be there before
  // its event has come.
  bool has_connection(std::uint32_t number) const;

  // How long until expire() has to do something, ms; -1: for ever.
  int next_ms() const;
  void expire();

  void on_request(ConnectRequest& request);
  // The clock of a meeting no longer matters.
  void stop_clock(PeerMatch& m);

 private:
  // One listener is for 256 queue pairs.
  struct Port {
    Listener listener;
    std::uint64_t subject = 0;
    std::bitset<256> used;
    unsigned next = 0;  // numbers come again late
  };
  Port* open_port();
  PeerMatch* find(std::uint32_t number);
  int connect(PeerMatch& m);
  static bool accept(PeerMatch& m, ConnectRequest& request);
  void give_up(PeerMatch& m);

  Adapter& adapter_;
  std::unordered_map<std::uint16_t, std::unique_ptr<Port>> ports_;
  std::unordered_map<std::uint32_t, std::unique_ptr<PeerMatch>> meetings_;
  std::set<std::pair<PeerMatch::Clock::time_point, std::uint32_t>> clocks_;
};

}  // namespace urnic::dropin
