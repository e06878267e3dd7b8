// The ways out of an engine: those of its address handles, and how any of them is found.
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
  // `wire` outlives it.
  explicit Paths(net::Wire* wire) : wire_(*wire) {}

  // False: asked for, and whoever waits is woken by forget().
  bool find(Path* way, const ib::AddressVector& av, Instant now);

  // A packet of the peer's, past all checks, has come from `mac`, while the way to it is asked for:
  // what answers it goes there. Else a peer that knows us and loses our question, or its answer,
  // would repeat in vain until its retries are used up, in less time than passes between two
  // questions. It holds until the neighbour answers, or is given up.
  void heard(Path* way, const ib::AddressVector& av, const IpAddress& from,
             const MacAddress& mac) const;

  // ---- address handles
  struct Opened {
    Modified verdict = Modified::BadValue;
    std::uint32_t handle = 0;
  };
  // The way that requests of UD name (ib::DatagramTo); it is asked for at once. Refused like the
  // address of a move: not ours, of two versions, of more than one. 0: no more can be.
  Opened open(const ib::AddressVector& av, Instant now);
  // Requests that still name it are lost.
  void close(std::uint32_t handle) noexcept { handles_.close(handle); }
  // Null: not open. Holds until the next call of open().
  AddressHandles::Handle* of(std::uint32_t handle) { return handles_.find(handle); }
  // The way over `next_hop`, or any if null, has changed, or nobody answers there.
  void forget(const IpAddress* next_hop, bool failed);

 private:
  FrameHeaders headers_to(const MacAddress&, const ib::AddressVector&, bool marked) const;

  net::Wire& wire_;
  AddressHandles handles_;
};

}  // namespace urnic::roce
