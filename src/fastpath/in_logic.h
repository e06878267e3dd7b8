// InLogic 32: the decision about one segment that TCP found acceptable (Figs 3, 9 and 10 with the
// limited recovery of Figs 4A/4B, the upgrade of Fig 6). decide() is pure; apply() changes the
// context accordingly (D2).
#pragma once

#include <cstdint>
#include <string_view>

#include "fastpath/connection_context.h"
#include "fastpath/fig3.h"
#include "fastpath/validation_unit.h"
#include "tcp/seq.h"
#include "tcp/tcb.h"

namespace urnic::fastpath {

enum class PathAction : std::uint8_t {
  Fast,       // S7/S159: cut through: admit, place, commit
  Store,      // S3/S153 on a SLOW connection: reassembly buffer, ack
  Keep,       // E-41: stored in the reassembly buffer and SACKed, placed once in order; FAST
  Downgrade,  // S3/S153/4A.S105 on a FAST connection: forget the holes, become SLOW, store, ack
  Drop,       // S9/S156: neither accepted nor acknowledged (except by a duplicate ACK, section 7)
};

// The reason: one row per reason, counted and shown (D10).
enum class Reason : std::uint8_t {
  Slow,               // T1: SLOW connection
  Aligned,            // Fig 9 case 1 / case 4 all valid: T3, T7
  CrcFirst,           // case 2: F0 == P or several frames, first invalid; T6, T8 in Cases C, D, E
  CrcLater,           // case 4: a middle or last frame invalid: T9
  TooLong,            // case 3: first frame too long: T2
  TooLongLast,        // case 4: last frame too long: T10
  Seam,               // Q-11, E-12: partly new and the seam is not on a frame boundary
  OutOfOrderStore,    // E-12 "store": out of order where placing is not allowed, kept
  RecoveryExhausted,  // 4A.S103: the limit is reached
  SameSegment,        // E-8: the segment at RCV.NXT was refused max_same_segment times in a row
  Upgrade,            // Fig 6: S35, this segment goes fast
  CrcCaseA,           // Fig 3: first invalid where a validated frame ends: T4, T8
  CrcCaseB,           // Fig 3: first invalid, and a marker points at its start: T5, T8
  MarkerElsewhere,    // Fig 3: CRC correct, but a marker shows that this is not a frame: T6
  CutFrames,          // max_cut_frames FPDUs arrived cut in two segments
  kCount
};
std::string_view reason_name(Reason);

// True if an FPDU lies where it should but its CRC is wrong: corruption, not a cut FPDU (E-42).
constexpr bool tells_of_crc(Reason r) {
  return r == Reason::CrcFirst || r == Reason::CrcLater || r == Reason::CrcCaseA ||
         r == Reason::CrcCaseB;
}

struct SegmentFacts {
  tcp::Arrival arrival = tcp::Arrival::InOrder;  // InOrder, OutOfOrder or Overlap
  tcp::Seq sn;                                   // sequence number of the first payload byte (4.3)
  // The segment begins at RCV.NXT. InOrder implies it; an Overlap may begin there as well.
  bool at_rcv_nxt = false;
  bool seam_on_boundary = false;  // Overlap: the new part is whole frames of this segment
  bool frame_at_rcv_nxt = false;  // Overlap: one of its frames begins at RCV.NXT
  bool reassembly_empty = true;   // Fig 6 S31: no bytes stored, no partial frame pending
  const Validation* validation = nullptr;
  std::uint32_t payload = 0;  // bytes of the segment (Fig 3: P)
  // Fig 3, used only if the first frame failed.
  HeaderCase header = HeaderCase::E;
  Instant now;
};

struct PathDecision {
  PathAction action = PathAction::Drop;
  Reason reason = Reason::Slow;    // the row that applied
  Reason error = Reason::Aligned;  // for Downgrade by a limit: the error that reached the limit
  Row row = Row::None;             // the row of Fig 3, if that decided
  bool upgraded = false;           // Fig 6 S35: the context becomes FAST with this segment
  bool reset_recovery = false;     // 4B.S106 / S158
  bool counts = false;             // 4A.S102 / S156: one more recovery attempt
  bool cut = false;                // the second half of a cut FPDU
  bool aligned = false;            // E-9: SLOW, in order and aligned: one more towards the upgrade
};

// R-86, E-12: true if an aligned segment may be placed before the bytes missing in front of it.
bool places_out_of_order(const ConnectionContext&);

// Pure. Never called during start-up, for segments without payload, or with a bad TCP checksum.
// facts.validation must not be null. Reasons are only for the counters; the action of a row never
// depends on them.
PathDecision decide(const ConnectionContext&, const SegmentFacts&);

// Applies a decision: counters, type, upgrade bookkeeping. Call it only if the segment was really
// accepted, dropped or stored as decided. If InLogic chose FAST and admit() rejected the segment
// (empty receive queue, violation out of order), it is not a recovery attempt and the context must
// not change.
void apply(ConnectionContext&, const PathDecision&, const SegmentFacts&);

// Only the downgrade, for an error in kept bytes instead of in a segment (E-41).
void become_slow(ConnectionContext&, Reason, Instant now);

// True for nearly every segment: decide() would return Fast by row Aligned (T3, T7; S159) and
// apply() would change nothing, so neither needs to be called. `arrival` and `validation` as in
// SegmentFacts.
inline bool plainly_fast(const ConnectionContext& c, tcp::Arrival arrival,
                         const Validation& validation) {
  return c.type == ConnectionType::Fast && arrival == tcp::Arrival::InOrder &&
         validation.passed() && c.recovery_attempts == 0 && c.same_count == 0;
}

}  // namespace urnic::fastpath
