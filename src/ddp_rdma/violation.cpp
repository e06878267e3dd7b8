#include "ddp_rdma/violation.h"

#include <array>
#include <cstddef>

namespace urnic::ddp {
namespace {

constexpr std::size_t kRows = static_cast<std::size_t>(Violation::kCount);

// The part of the offending segment that is copied into the Terminate (RFC 5040, 4.8).
enum class Copy : std::uint8_t { Nothing, Ddp, DdpAndRdmap };

struct Entry {
  Violation id;
  ViolationRow row;
};

constexpr Entry row(Violation id, std::uint8_t layer, std::uint8_t etype, std::uint8_t code,
                    Copy copy, std::string_view name, std::string_view why) {
  return {id, {layer, etype, code, copy != Copy::Nothing, copy == Copy::DdpAndRdmap, name, why}};
}

using enum Violation;

// In the order of the enumeration; checked below.
constexpr std::array<Entry, kRows> kTable{{
    row(None, 0, 0, 0, Copy::Nothing, "none", "not a violation"),

    row(TaggedInvalidStag, 1, 1, 0x00, Copy::Ddp, "tagged: invalid STag",
        "RFC 5041 7.1: index unknown, key differs, or the STag was invalidated; also a Read "
        "Response for a sink that no outstanding Read owns"),
    row(TaggedBounds, 1, 1, 0x01, Copy::Ddp, "tagged: base or bounds",
        "RFC 5041 7.1: [TO, TO+length) is not inside the region"),
    row(TaggedStagNotAssociated, 1, 1, 0x02, Copy::Ddp, "tagged: STag not of this stream",
        "RFC 5041 7.1: the region belongs to another protection domain or stream"),
    row(TaggedToWrap, 1, 1, 0x03, Copy::Ddp, "tagged: TO wrap",
        "RFC 5041 7.1: TO+length exceeds 2^64"),
    row(TaggedVersion, 1, 1, 0x04, Copy::Ddp, "tagged: DDP version",
        "RFC 5041 7.1: DV is not 1; checked first, because another version may have another "
        "header"),

    row(UntaggedQn, 1, 2, 0x01, Copy::Ddp, "untagged: invalid QN",
        "RFC 5041 7.1: a queue other than 0, 1, 2 and 3; an opcode on the wrong one of these "
        "is an unexpected opcode instead, since the queue itself exists"),
    row(UntaggedNoBuffer, 1, 2, 0x02, Copy::Ddp, "untagged: no buffer",
        "RFC 5041 7.1: no receive posted for the MSN, on a SLOW connection or after the wait for "
        "one has ended"),
    row(UntaggedMsnRange, 1, 2, 0x03, Copy::Ddp, "untagged: MSN out of range",
        "RFC 5041 7.1: the MSN is not one that can come next on this queue"),
    row(UntaggedMo, 1, 2, 0x04, Copy::Ddp, "untagged: invalid MO",
        "RFC 5041 7.1: MO does not continue the message, or is not 0 in a Read Request or "
        "Terminate, which always fit in one segment"),
    row(UntaggedTooLong, 1, 2, 0x05, Copy::Ddp, "untagged: message too long",
        "RFC 5041 7.1: MO+length exceeds the posted receive, the 28 bytes of a Read Request, or "
        "2^32-1; siw sends 1/2/02 here, which hides the cause"),
    row(UntaggedVersion, 1, 2, 0x06, Copy::Ddp, "untagged: DDP version",
        "RFC 5041 7.1: DV is not 1"),

    row(ReadInvalidStag, 0, 1, 0x00, Copy::DdpAndRdmap, "read source: invalid STag",
        "RFC 5040 7.2: the source STag of a Read Request is unknown or not valid"),
    row(ReadBounds, 0, 1, 0x01, Copy::DdpAndRdmap, "read source: base or bounds",
        "RFC 5040 7.2: [source TO, +size) is not inside the region"),
    row(ReadAccess, 0, 1, 0x02, Copy::DdpAndRdmap, "read source: access rights",
        "RFC 5040 7.2: the region does not allow remote reads"),
    row(ReadStagNotAssociated, 0, 1, 0x03, Copy::DdpAndRdmap,
        "read source: STag not of this stream",
        "RFC 5040 7.2: the region belongs to another protection domain or stream"),
    row(ReadToWrap, 0, 1, 0x04, Copy::DdpAndRdmap, "read source: TO wrap",
        "RFC 5040 7.2: source TO+size exceeds 2^64"),
    row(WriteAccess, 0, 1, 0x02, Copy::Ddp, "write: access rights",
        "choice: RFC 5041 has no code for rights. RFC 5040 has this one, the only code that names "
        "the cause, and Chelsio RNICs send it; siw sends 1/1/00, which reads as an unknown STag"),
    row(InvalidateOther, 0, 1, 0x09, Copy::Ddp, "invalidate: STag of another stream",
        "choice: RFC 5040 4.8 lists the code as protection (0/1/09) and as operation (0/2/09) "
        "error. urnic and siw treat an STag of another protection domain or stream as a protection "
        "error"),

    row(RdmapVersion, 0, 2, 0x05, Copy::Ddp, "RDMAP version", "RFC 5040 7.2: RV is not 1"),
    row(UnexpectedOpcode, 0, 2, 0x06, Copy::Ddp, "unexpected opcode",
        "RFC 5040 7.2: an opcode unknown to RFC 5040 and RFC 7306, an atomic operation unknown to "
        "RFC 7306, a tagged opcode in an untagged segment or the reverse, or an opcode on the "
        "wrong queue"),
    row(ReadQueueFull, 0, 2, 0x07, Copy::Ddp, "more Read Requests than IRD",
        "choice: no RFC names a code for exceeding IRD. RFC 5040's catastrophic error of one "
        "stream is the nearest, as in siw"),
    row(InvalidateUnknown, 0, 2, 0x09, Copy::Ddp, "invalidate: unknown STag",
        "choice: RFC 5040 4.8 lists the code twice. An unknown STag is an operation error, as in "
        "siw, because no region was in danger"),

    row(StreamCatastrophic, 0, 2, 0x07, Copy::Ddp, "malformed segment",
        "choice: no RFC names a code for a ULPDU shorter than its own header; the stream cannot "
        "be followed any further"),
    row(AtomicMisaligned, 0, 2, 0x07, Copy::Ddp, "atomic: target not aligned",
        "RFC 7306 8.2: the address in an Atomic Request is not a multiple of eight bytes"),

    row(LocalCatastrophic, 0, 0, 0x00, Copy::Nothing, "local error",
        "RFC 5040 4.8: this end failed; no segment of the peer is at fault, so none is copied"),

    row(MpaTcpLost, 2, 0, 0x01, Copy::Nothing, "MPA: TCP connection lost",
        "RFC 5044 8: reported to the consumer; there is no stream left to send a Terminate on"),
    row(MpaCrc, 2, 0, 0x02, Copy::Nothing, "MPA: CRC error",
        "RFC 5044 8: in-order FPDU with a wrong CRC on a SLOW connection; the FPDU cannot be "
        "trusted, so nothing is copied"),
    row(MpaMarker, 2, 0, 0x03, Copy::Nothing, "MPA: marker and length disagree",
        "RFC 5044 8: CRC good, but a marker does not point at the FPDU it lies in"),
    row(MpaStartup, 2, 0, 0x04, Copy::Nothing, "MPA: invalid Request or Reply",
        "RFC 5044 8: the TCP connection is closed at once; before full operation there is no "
        "stream for a Terminate"),
    row(MpaLocalCatastrophic, 2, 0, 0x05, Copy::Nothing, "MPA: local error in the start-up",
        "RFC 6581 8: this end failed between Reply and first FPDU"),
    row(MpaInsufficientIrd, 2, 0, 0x06, Copy::Nothing, "MPA: insufficient IRD",
        "RFC 6581 8: the Reply asks for more inbound Reads than this end can hold"),
    row(MpaNoRtr, 2, 0, 0x07, Copy::Nothing, "MPA: no matching RTR",
        "RFC 6581 8: the Reply takes none of the ready-to-receive kinds offered"),
}};

constexpr bool complete() {
  for (std::size_t i = 0; i < kRows; ++i) {
    const Entry& e = kTable[i];
    if (static_cast<std::size_t>(e.id) != i) return false;
    if (e.row.name.empty() || e.row.why.empty()) return false;
    if (e.row.with_rdmap && !e.row.with_ddp) return false;
  }
  return true;
}
static_assert(complete(), "every Violation has its row, in the order of the enumeration");

// Checks that all layers, types and codes are in the ranges of the registries (RFC 6580).
constexpr bool registered() {
  for (std::size_t i = 1; i < kRows; ++i) {
    const ViolationRow& r = kTable[i].row;
    const bool rdmap =
        r.layer == 0 && (r.etype == 0 || (r.etype == 1 && (r.code <= 4 || r.code == 9)) ||
                         (r.etype == 2 && r.code >= 5 && r.code <= 9));
    const bool ddp = r.layer == 1 && ((r.etype == 1 && r.code <= 4) ||
                                      (r.etype == 2 && r.code >= 1 && r.code <= 6));
    const bool mpa = r.layer == 2 && r.etype == 0 && r.code >= 1 && r.code <= 7;
    if (!rdmap && !ddp && !mpa) return false;
  }
  return true;
}
static_assert(registered(), "every row uses a registered layer, type and code");

}  // namespace

const ViolationRow& violation_row(Violation v) {
  const auto i = static_cast<std::size_t>(v);
  return kTable[i < kRows ? i : 0].row;
}

}  // namespace urnic::ddp
