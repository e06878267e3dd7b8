// Carries RD packets between two hosts in virtual time: whole frames over a memory port with a
// faulty line in each direction, as in a Pair (pair.h), but without engines.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/time.h"
#include "fault/fault_port.h"
#include "ib/packet.h"
#include "roce/frame.h"
#include "sim/scenario.h"

namespace urnic::sim {

class RdWire {
 public:
  // `clock` must outlive the wire.
  RdWire(const Setup& setup, std::uint64_t seed, const Instant& clock);

  // The address of end 0 (left) or 1.
  static IpAddress address_of(int which);
  // Copies the payload. False: the packet is lost because there is no room.
  bool send(int from, const ib::PacketHeader& header, std::span<const ByteView> pieces,
            std::uint32_t payload);
  // Passes the packets that arrived at end `at`, without damaged ones. True if there were any.
  bool receive(int at, const std::function<void(const ib::ParsedPacket&)>& take);

  Instant next_release() const;
  // The faults of the line for packets that end `from` sent.
  fault::FaultCounters counters(int from) const;
  std::uint64_t bad_icrc() const { return bad_icrc_; }

 private:
  struct End {
    fault::FaultyPort line;
    roce::FrameHeaders headers;
  };
  End make_end(port::Port inner, const Setup& setup, int which, std::uint64_t seed);

  const Instant& clock_;
  End ends_[2];
  std::uint64_t bad_icrc_ = 0;
};

}  // namespace urnic::sim
