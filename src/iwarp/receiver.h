// The steps of receiving a segment of our own TCP, which carry out InLogic's decision: a segment is
// cut through, kept, refused or stored, or the connection is downgraded (Figs 3, 5, 9, 10; E-5).
// None of them ends a connection (found.h).
#pragma once

#include <cstdint>
#include <vector>

#include "fastpath/in_logic.h"
#include "fastpath/validation_unit.h"
#include "iwarp/rx_commit.h"
#include "iwarp/slow_path.h"

namespace urnic::iwarp {

class Receiver {
 public:
  Receiver(SideState* s, RxCommit* rx_commit, SlowPath* slow, Transmitter* transmitter)
      : s_(*s), rx_commit_(*rx_commit), slow_(*slow), transmitter_(*transmitter) {
    scratch_.admissions.resize(64);
  }

  // Computes checksum and CRC in one pass, before the connection type is checked. Returns
  // nullptr if only the checksum is needed. The result is valid until the next segment.
  fastpath::Validation* validate(const Connection& c, const tcp::Segment& seg);
  // Processes the most common segment in one step: the next one of a FAST connection (T3, T7;
  // S159), one FPDU, a Write that may be placed. Its check is that of check_predicted(). For any
  // other, returns false and changes nothing: take_payload() decides.
  bool cut_through_plain(Connection& c, const InHand& in);
  // The same for a connection that was initiated SLOW and has an empty reassembly buffer: the data
  // passes through the buffer like all its data (T1).
  bool reassemble_plain(Connection& c, const InHand& in, Instant now);
  void take_payload(Connection& c, const InHand& in, Instant now, Found* found);

 private:
  // Memory that the steps reuse, so that no segment allocates. Nothing in it is used for a later
  // segment.
  struct Scratch {
    fastpath::Validation validation;
    // Internal data buffer 38 of streams with markers: ULPDUs in one piece.
    std::vector<std::uint8_t> internal;
    std::vector<ddp::Admission> admissions;
  };
  enum class FastResult : std::uint8_t { Taken, NoReceive, Refused };

  void in_logic(Connection& c, const InHand& in, Instant now, Found* found);
  void carry_out(Connection& c, const InHand& in, const fastpath::SegmentFacts& facts,
                 const fastpath::PathDecision& verdict, Instant now, Found* found);
  void refuse_fast(Connection& c, FastResult why, const tcp::Check& check, Instant now);
  void note_starved(Connection& c, StreamOffset at, Instant now);
  FastResult cut_through(Connection& c, const InHand& in, Instant now, Found* found);
  FastResult cut_through_run(Connection& c, const InHand& in, std::size_t first, std::size_t last,
                             Instant now, Found* found);
  bool lacks_receive(Connection& c, const InHand& in, std::size_t from, std::size_t to);
  bool ulpdu_of(Connection& c, const InHand& in, const fastpath::FrameResult& frame,
                ByteView* ulpdu);

  // detour.cpp
  void keep(Connection& c, const InHand& in, Instant now, Found* found);
  FastResult admit_to_keep(Connection& c, const InHand& in, std::size_t frames);
  std::uint64_t commit_around_kept(Connection& c, StreamOffset begin, StreamOffset end, bool fin,
                                   bool psh, const ddp::MessageCounts& counts, Instant now,
                                   Found* found);
  void take_kept(Connection& c, StreamOffset placed_to, Instant now, Found* found);

  // receive_markers.cpp: streams with markers, separate from those without
  void validate_framed(const Connection& c, const tcp::Segment& seg);
  bool strip_markers(Connection& c, const InHand& in, const fastpath::FrameResult& frame,
                     ByteView* ulpdu);

  SideState& s_;
  RxCommit& rx_commit_;
  SlowPath& slow_;
  Transmitter& transmitter_;
  Scratch scratch_;
};

// receive_markers.cpp
void judge_markers(const Connection& c, const InHand& in);
fastpath::HeaderCase header_case(const Connection& c, const InHand& in);

}  // namespace urnic::iwarp
