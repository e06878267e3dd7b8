// The gate of a listener (unit 30 of the specification): it determines which addresses may connect,
// how many connections may exist at a time, and how many may begin per second (AC-1 to AC-5). A
// refused connection leaves no state here.
//
// A function of (state, address, now). Memory: one node for each address with connections if
// connections are counted by address; otherwise none.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/access_list.h"
#include "base/time.h"
#include "base/token_bucket.h"

namespace urnic {

// 0 means no limit.
struct GateRules {
  AccessList access;
  // bound: connections of a listener; setting: listener_connections; beyond: refused like a port
  // without a listener, counted (`peers_over_limit`); test:
  // Gate.ConnectionsAreLimitedAndAPlaceIsReused,
  // OwnTcpGate.ConnectionsAreLimitedAndOneMoreFitsWhenOneEnds,
  // RoceGate.LimitsApplyAndAPlaceIsFreeWhenItsConnectionHasEnded
  std::uint32_t most = 0;  // connections at a time
  // bound: connections of a listener from one address; setting: peer_connections; beyond: refused
  // like a port without a listener, counted (`peers_over_limit`); test:
  // RoceGate.LimitsApplyAndAPlaceIsFreeWhenItsConnectionHasEnded
  std::uint32_t most_of_peer = 0;  // connections at a time from one address
  // bound: new connections of a listener each second; setting: accept_rate; beyond: refused like a
  // port without a listener, counted (`peers_over_limit`); test:
  // Gate.ConnectionsPerSecondAreLimited, OwnTcpGate.ConnectionsPerSecondAreLimited,
  // KernelTcpGate.ConnectionsPerSecondAreLimited
  std::uint32_t rate = 0;  // new connections per second

  bool any() const { return !access.empty() || most != 0 || most_of_peer != 0 || rate != 0; }
};

enum class GateVerdict : std::uint8_t { Admitted, Denied, Full, PeerFull, TooFast };
// For a log: "its address is denied", or the name of the setting with the limit.
const char* name(GateVerdict);

class Gate {
 public:
  explicit Gate(GateRules rules);

  // The verdict on a connection from `peer` now; changes nothing.
  GateVerdict judge(const IpAddress& peer, Instant now) const;
  // On Admitted, counts one more connection until leave(). Throws without a change if there is no
  // memory.
  GateVerdict enter(const IpAddress& peer, Instant now);
  void leave(const IpAddress& peer);

  std::uint32_t inside() const { return inside_; }

 private:
  GateRules rules_;
  std::optional<TokenBucket> rate_;
  std::uint32_t inside_ = 0;
  std::map<IpAddress, std::uint32_t> by_peer_;  // a tree: bounded cost for any peers
};

// The place of one connection behind a gate. It keeps the gate alive and is released at
// destruction.
class Admission {
 public:
  Admission() = default;
  // `gate` must have admitted `peer`.
  Admission(std::shared_ptr<Gate> gate, const IpAddress& peer)
      : gate_(std::move(gate)), peer_(peer) {}
  Admission(Admission&& o) noexcept : gate_(std::move(o.gate_)), peer_(o.peer_) {}
  Admission& operator=(Admission&& o) noexcept {
    give_back();
    gate_ = std::move(o.gate_);
    peer_ = o.peer_;
    return *this;
  }
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;
  ~Admission() { give_back(); }
  void give_back() {
    if (const auto gate = std::move(gate_)) gate->leave(peer_);
  }

 private:
  std::shared_ptr<Gate> gate_;
  IpAddress peer_;
};

// Rules with `places` connections in total, and at most a quarter of them for one address.
GateRules quarters_of(std::uint32_t places);
// Rules with `places` connections for one address, which are a quarter of the total.
GateRules quarters_of_four_times(std::uint32_t places);

// Null if there is no limit or rule.
std::shared_ptr<Gate> make_gate(const GateRules& rules);

}  // namespace urnic
