// The outgoing paths of an engine: resolves any path, and keeps those of address handles.
//
// Owned by one engine.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "net/wire.h"
#include "roce/address_handles.h"
#include "roce/modify.h"
#include "roce/path.h"

namespace urnic::roce {

class Paths {
 public:
  // `wire` must outlive it.
  explicit Paths(net::Wire* wire) : wire_(*wire) {}

  // False: resolution is pending; forget() marks the path when it ends, and the sender tries again.
  bool find(Path* path, const ib::AddressVector& av, Instant now);

  // A packet of the peer that passed all checks has come from `mac` while the path to it is being
  // resolved: sends responses to that MAC address until the neighbor answers or is given up.
  // Otherwise, if our ARP or ND request or its answer is lost, the peer would use up all its
  // retries before the request is repeated.
  void heard(Path* path, const ib::AddressVector& av, const IpAddress& from,
             const MacAddress& mac) const;

  // ---- address handles
  struct Opened {
    Modified verdict = Modified::BadValue;
    std::uint32_t handle = 0;
  };
  // Opens an address handle for UD requests (ib::DatagramTo) and starts to resolve its path. An
  // address is refused as in Modify QP: not ours, mixed IP versions, or multicast. handle 0: the
  // limit is reached.
  Opened open(const ib::AddressVector& av, Instant now);
  // Requests that still name the handle are dropped.
  void close(std::uint32_t handle) noexcept { handles_.close(handle); }
  // Null if not open. Holds until the next call of open().
  AddressHandles::Handle* of(std::uint32_t handle) { return handles_.find(handle); }
  // The path over `next_hop`, or every path if null, has changed or (`failed`) is unreachable.
  void forget(const IpAddress* next_hop, bool failed);

 private:
  FrameHeaders headers_to(const MacAddress&, const ib::AddressVector&, bool marked) const;

  net::Wire& wire_;
  AddressHandles handles_;
};

}  // namespace urnic::roce
