// Packets of RD between two hosts in virtual time: whole frames over a port of memory with a faulty
// line each way, as a Pair has it (pair.h), without engines.
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
  // `clock` outlives it.
  RdWire(const Setup& setup, std::uint64_t seed, const Instant& clock);

  // Of end 0 (left) or 1.
  static IpAddress address_of(int which);
  // The payload is copied. False: it is lost, for there is no room.
  bool send(int from, const ib::PacketHeader& header, std::span<const ByteView> pieces,
            std::uint32_t payload);
  // Gives what has come to end `at`, damaged packets left out. True if anything has.
  bool receive(int at, const std::function<void(const ib::ParsedPacket&)>& take);

  Instant next_release() const;
  // What the line did to what end `from` sent.
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
