// Connections without rdma_cm (docs/decisions/dropin.md): each of two programs gives the other's
// address and queue pair number to ibv_modify_qp, and expects a connection. This file has the ports
// behind the numbers, and the queue pairs that wait for each other. Everything needs Process::cm.
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

// The receiver of a connection's events. Called with Process::cm held.
class ConnectionManager {
 public:
  virtual ~ConnectionManager() = default;
  virtual void on_connection(Event& event) = 0;
};

// The peer, as a program names it in ibv_modify_qp.
struct Peer {
  Address own{}, address{};  // own: not set if the index names no address
  std::uint32_t number = 0;
  std::uint16_t ird = 0;
};

// A queue pair with a number by which a peer can find it.
class PeerMatch : public ConnectionManager {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Phase : std::uint8_t {
    Apart,       // the program has not named the peer
    Expecting,   // the other end connects
    Connecting,  // this end connects, or has accepted the peer's request
    Connected,
    Lost,
  };

  explicit PeerMatch(std::shared_ptr<Endpoint> e) : end(std::move(e)) {}
  void on_connection(Event& event) override;

  const std::shared_ptr<Endpoint> end;
  Phase phase = Phase::Apart;
  // number of its connection; later events of earlier connections may still arrive
  std::uint32_t connection = 0;
  Peer peer;
  std::chrono::milliseconds patience{};  // 0: without limit
  Clock::time_point until = Clock::time_point::max();
  Binding source;  // used if the address to connect from is not the route's
  // Requests that arrived before the program named the peer, of its first or a later connection.
  std::vector<std::pair<std::uint32_t, ConnectRequest>> early;
};

// One per device.
class PeerMatcher {
 public:
  explicit PeerMatcher(Adapter& adapter) : adapter_(adapter) {}

  // A number for a new queue pair: its lower 16 bits are a port of this process, where requests for
  // it arrive. 0: no port is available.
  std::uint32_t take_number();
  void give_back(std::uint32_t number);

  void add(std::shared_ptr<Endpoint> end);
  // The queue pair is destroyed: peers cannot find it any more.
  void remove(std::uint32_t number);

  // Move to RTR: sets the peer. Returns 0 or errno; on an error nothing has changed.
  int meet(std::uint32_t number, const Peer& peer);
  // Move to RTS: sets how long a send may wait for the connection.
  void set_patience(std::uint32_t number, std::chrono::milliseconds patience);
  // A send was posted before there is a connection.
  void posted(std::uint32_t number);
  // The program moves the queue pair back, or to error: it has no peer any more.
  void leave(std::uint32_t number);
  // True if a queue pair connected here has a connection, or is getting one: the connection may
  // exist before its event has arrived.
  bool has_connection(std::uint32_t number) const;

  // Time in ms until expire() must be called; -1: no time-out is running.
  int next_ms() const;
  void expire();

  void on_request(ConnectRequest& request);
  // Stops the time-out of a queue pair.
  void stop_clock(PeerMatch& m);

 private:
  // One listener serves 256 queue pairs.
  struct Port {
    Listener listener;
    std::uint64_t subject = 0;
    std::bitset<256> used;
    unsigned next = 0;  // the next slot to try, so that numbers are reused late
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
