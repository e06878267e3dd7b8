// The one table of violations (E-36). Each row has the layer, error type and code of its Terminate
// (RFC 5040 4.8, RFC 5041, RFC 5044 8, RFC 6581), and the offending headers to copy.
#pragma once

#include <cstdint>
#include <string_view>

namespace urnic::ddp {

enum class Violation : std::uint8_t {
  None,
  // DDP tagged (1/1/x)
  TaggedInvalidStag,
  TaggedBounds,
  TaggedStagNotAssociated,
  TaggedToWrap,
  TaggedVersion,
  // DDP untagged (1/2/x)
  UntaggedQn,
  UntaggedNoBuffer,
  UntaggedMsnRange,
  UntaggedMo,
  UntaggedTooLong,
  UntaggedVersion,
  // RDMAP remote protection (0/1/x)
  ReadInvalidStag,
  ReadBounds,
  ReadAccess,
  ReadStagNotAssociated,
  ReadToWrap,
  WriteAccess,      // Write to a region without remote write: see the table for the choice
  InvalidateOther,  // STag cannot be invalidated (other PD/QP)
  // RDMAP remote operation (0/2/x)
  RdmapVersion,
  UnexpectedOpcode,
  ReadQueueFull,  // more Read Requests than IRD
  InvalidateUnknown,
  StreamCatastrophic,
  AtomicMisaligned,  // the target of an Atomic Request
  // local
  LocalCatastrophic,
  // MPA (2/0/x)
  MpaTcpLost,
  MpaCrc,
  MpaMarker,
  MpaStartup,
  MpaLocalCatastrophic,
  MpaInsufficientIrd,
  MpaNoRtr,
  kCount
};

struct ViolationRow {
  std::uint8_t layer, etype, code;
  bool with_ddp;          // M and D: DDP segment length and header are copied
  bool with_rdmap;        // R as well: the Read Request header
  std::string_view name;  // for people
  std::string_view why;   // the rule, and the choice if RFCs leave one
};

// Row of a violation; valid for every enumerator but None and kCount.
const ViolationRow& violation_row(Violation);

}  // namespace urnic::ddp
