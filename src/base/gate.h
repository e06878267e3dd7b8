// The gate in front of a listener (unit 30 of the specification): who may have a connection of it,
// and how many at a time and in a second (AC-1 to AC-5). What it refuses leaves no trace in it.
//
// A function of (state, address, now). Memory: a node for each address that has connections, where
// they are counted by address; none else.
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

// 0 is no limit.
struct GateRules {
  AccessList access;
  // bound: connections of a listener; setting: listener_connections; beyond: refused like a port
  // without a listener, counted (`peers_over_limit`); test:
  // Gate.AsManyAsMayAndOneMoreWhenOneHasGone,
  // OwnTcpGate.ConnectionsAreLimitedAndOneMoreFitsWhenOneEnds,
  // RoceGate.LimitsApplyAndAPlaceIsFreeWhenItsConnectionHasEnded
  std::uint32_t most = 0;  // connections at a time
  // bound: connections of a listener from one address; setting: peer_connections; beyond: refused
  // like a port without a listener, counted (`peers_over_limit`); test:
  // RoceGate.LimitsApplyAndAPlaceIsFreeWhenItsConnectionHasEnded
  std::uint32_t most_of_peer = 0;  // ... with one address
  // bound: new connections of a listener each second; setting: accept_rate; beyond: refused like a
  // port without a listener, counted (`peers_over_limit`); test: Gate.SoManyInASecond,
  // OwnTcpGate.ConnectionsPerSecondAreLimited, KernelTcpGate.ConnectionsPerSecondAreLimited
  std::uint32_t rate = 0;  // new ones in a second

  bool any() const { return !access.empty() || most != 0 || most_of_peer != 0 || rate != 0; }
};

enum class GateVerdict : std::uint8_t { Admitted, Denied, Full, PeerFull, TooFast };
// For a log: "its address is denied", or the setting whose limit it is.
const char* name(GateVerdict);

class Gate {
 public:
  explicit Gate(GateRules rules);

  // Whether one from there could have a connection now; nothing changes.
  GateVerdict judge(const IpAddress& peer, Instant now) const;
  // Admitted: one connection more, until leave(). Without memory throws, and nothing has changed.
  GateVerdict enter(const IpAddress& peer, Instant now);
  void leave(const IpAddress& peer);

  std::uint32_t inside() const { return inside_; }

 private:
  GateRules rules_;
  std::optional<TokenBucket> rate_;
  std::uint32_t inside_ = 0;
  std::map<IpAddress, std::uint32_t> by_peer_;  // a tree: its cost is bounded whoever comes
};

// One connection's place behind a gate, which it keeps alive; given back when this goes.
class Admission {
 public:
  Admission() = default;
  // `gate` has admitted `peer`.
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

// So many places, and for one address at most a quarter of them.
GateRules quarters_of(std::uint32_t places);
// So many places for one address, which are a quarter of all.
GateRules quarters_of_four_times(std::uint32_t places);

// Null where everybody may come.
std::shared_ptr<Gate> make_gate(const GateRules& rules);

}  // namespace urnic
