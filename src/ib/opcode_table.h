// Opcodes of the transport as one table: the meaning of each, the headers that follow its BTH, the
// allowed payload, and the half it is for. The upper three bits of the byte name the service, the
// lower five the operation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace urnic::ib {

// Bits 7:5 of the opcode.
enum class ServiceType : std::uint8_t {
  Rc = 0,   // reliable connection
  Uc = 1,   // unreliable connection
  Rd = 2,   // reliable datagram: only the simulation implements it (sim/rd)
  Ud = 3,   // unreliable datagram
  Cnp = 4,  // congestion notification: only 0x81
  Xrc = 5,  // extended reliable connection: like RC, but requests name a shared receive queue
  Manufacturer6 = 6,
  Manufacturer7 = 7,
};

// Bits 4:0 of the opcode. Values without a name are reserved.
enum class Operation : std::uint8_t {
  SendFirst = 0x00,
  SendMiddle = 0x01,
  SendLast = 0x02,
  SendLastImm = 0x03,
  SendOnly = 0x04,
  SendOnlyImm = 0x05,
  WriteFirst = 0x06,
  WriteMiddle = 0x07,
  WriteLast = 0x08,
  WriteLastImm = 0x09,
  WriteOnly = 0x0a,
  WriteOnlyImm = 0x0b,
  ReadRequest = 0x0c,
  ReadResponseFirst = 0x0d,
  ReadResponseMiddle = 0x0e,
  ReadResponseLast = 0x0f,
  ReadResponseOnly = 0x10,
  Acknowledge = 0x11,
  AtomicAcknowledge = 0x12,
  CmpSwap = 0x13,
  FetchAdd = 0x14,
  Resync = 0x15,  // RD only
  SendLastInv = 0x16,
  SendOnlyInv = 0x17,
};

// The byte of the BTH.
struct Opcode {
  std::uint8_t byte = 0;

  constexpr Opcode() = default;
  constexpr explicit Opcode(std::uint8_t o) : byte(o) {}
  constexpr Opcode(ServiceType s, Operation o)
      : byte(static_cast<std::uint8_t>(static_cast<unsigned>(s) << 5 | static_cast<unsigned>(o))) {}
  constexpr ServiceType service() const { return static_cast<ServiceType>(byte >> 5); }
  constexpr Operation operation() const { return static_cast<Operation>(byte & 0x1f); }
  constexpr bool operator==(const Opcode&) const = default;
};

// To the sender of a packet that arrived with a CE mark (annex A17, S-10).
inline constexpr Opcode kCnpOpcode{0x81};

// In the manufacturers' range: only between urnic ends (S-6, S-7).
inline constexpr Opcode kSackOpcode{0xc0}, kHelloOpcode{0xc1};

// The kind of message that a packet belongs to.
enum class Family : std::uint8_t {
  Reserved,  // no such operation with this service
  Send,
  Write,
  Read,          // the request
  Atomic,        // the request
  Hello,         // urnic only: asks whether the other end is urnic as well (sack.h)
  Resync,        // RD: a message was given up
  ReadResponse,  // from here on responses
  Acknowledge,   // ACK, NAK and RNR NAK
  AtomicAcknowledge,
  Sack,  // urnic only (sack.h)
  Cnp,   // of connected queue pairs, independent of the service (marks.h)
};

// The position of a packet in its message; a single packet is an Only.
enum class Place : std::uint8_t { First, Middle, Last, Only };

// True if packet `k` of a message, or of a READ's responses, may have that place. `begins`: a First
// or Only is allowed here, as at 0; `last`: it is the last; `ends`: a Last or Only is allowed here.
constexpr bool place_fits(Place place, std::uint32_t k, bool begins, bool last, bool ends) {
  switch (place) {
    case Place::First:
      return begins && !last;
    case Place::Middle:
      return k != 0 && !last;
    case Place::Last:
      return k != 0 && ends;
    case Place::Only:
      return begins && ends;
  }
  return false;
}

// The allowed bytes of payload.
enum class PayloadRule : std::uint8_t {
  None,      // 0
  Full,      // the path MTU
  Nonempty,  // 1 .. path MTU
  Any,       // 0 .. path MTU
};

// Headers after the BTH, on the wire in this order except for the RDETH.
enum HeaderBit : std::uint16_t {
  kDeth = 1,
  kReth = 2,
  kAtomicEth = 4,
  kAeth = 8,
  kAtomicAckEth = 16,
  kImmDt = 32,
  kIeth = 64,
  kXrcEth = 128,
  kRdeth = 256,  // before all others
};

struct OpcodeRow {
  Family family = Family::Reserved;
  Place place = Place::Only;
  PayloadRule payload = PayloadRule::Any;
  std::uint16_t headers = 0;      // HeaderBit
  std::uint8_t header_bytes = 0;  // of all headers after the BTH

  constexpr bool known() const { return family != Family::Reserved; }
  // For the requester half; all others, including reserved ones, are for the responder half.
  constexpr bool response() const { return family >= Family::ReadResponse; }
  constexpr bool has(HeaderBit h) const { return (headers & h) != 0; }
  constexpr bool begins() const { return place == Place::First || place == Place::Only; }
  constexpr bool ends() const { return place == Place::Last || place == Place::Only; }
  // Has a response of its own instead of an ACK.
  constexpr bool awaits_answer() const {
    return family == Family::Read || family == Family::Atomic;
  }
  // Neither a request nor a response of the specification: only between urnic ends.
  constexpr bool ours() const { return family == Family::Sack || family == Family::Hello; }
  // Needs a receive at the responder, and completes it.
  constexpr bool completes_receive() const {
    return ends() && (family == Family::Send || (family == Family::Write && has(kImmDt)));
  }
};

namespace opcode_detail {

constexpr std::uint8_t bytes_of(std::uint16_t headers) {
  constexpr std::array<std::uint8_t, 9> kBytes = {8, 16, 28, 4, 8, 4, 4, 4, 4};  // by HeaderBit
  unsigned sum = 0;
  for (std::size_t bit = 0; bit < kBytes.size(); ++bit) {
    if ((headers >> bit & 1) != 0) sum += kBytes[bit];
  }
  return static_cast<std::uint8_t>(sum);
}

struct Entry {
  Operation operation;
  bool rc, uc, ud;
  Family family;
  Place place;
  PayloadRule payload;
  std::uint16_t headers;
};

// The table of wire formats. UD has a DETH before these headers; requests of XRC, which is
// otherwise like RC, an XRCETH.
inline constexpr Entry kEntries[] = {
    {Operation::SendFirst, true, true, false, Family::Send, Place::First, PayloadRule::Full, 0},
    {Operation::SendMiddle, true, true, false, Family::Send, Place::Middle, PayloadRule::Full, 0},
    {Operation::SendLast, true, true, false, Family::Send, Place::Last, PayloadRule::Nonempty, 0},
    {Operation::SendLastImm, true, true, false, Family::Send, Place::Last, PayloadRule::Nonempty,
     kImmDt},
    {Operation::SendOnly, true, true, true, Family::Send, Place::Only, PayloadRule::Any, 0},
    {Operation::SendOnlyImm, true, true, true, Family::Send, Place::Only, PayloadRule::Any, kImmDt},
    {Operation::WriteFirst, true, true, false, Family::Write, Place::First, PayloadRule::Full,
     kReth},
    {Operation::WriteMiddle, true, true, false, Family::Write, Place::Middle, PayloadRule::Full, 0},
    {Operation::WriteLast, true, true, false, Family::Write, Place::Last, PayloadRule::Nonempty, 0},
    {Operation::WriteLastImm, true, true, false, Family::Write, Place::Last, PayloadRule::Nonempty,
     kImmDt},
    {Operation::WriteOnly, true, true, false, Family::Write, Place::Only, PayloadRule::Any, kReth},
    {Operation::WriteOnlyImm, true, true, false, Family::Write, Place::Only, PayloadRule::Any,
     kReth | kImmDt},
    {Operation::ReadRequest, true, false, false, Family::Read, Place::Only, PayloadRule::None,
     kReth},
    {Operation::ReadResponseFirst, true, false, false, Family::ReadResponse, Place::First,
     PayloadRule::Full, kAeth},
    {Operation::ReadResponseMiddle, true, false, false, Family::ReadResponse, Place::Middle,
     PayloadRule::Full, 0},
    {Operation::ReadResponseLast, true, false, false, Family::ReadResponse, Place::Last,
     PayloadRule::Nonempty, kAeth},
    {Operation::ReadResponseOnly, true, false, false, Family::ReadResponse, Place::Only,
     PayloadRule::Any, kAeth},
    {Operation::Acknowledge, true, false, false, Family::Acknowledge, Place::Only,
     PayloadRule::None, kAeth},
    {Operation::AtomicAcknowledge, true, false, false, Family::AtomicAcknowledge, Place::Only,
     PayloadRule::None, kAeth | kAtomicAckEth},
    {Operation::CmpSwap, true, false, false, Family::Atomic, Place::Only, PayloadRule::None,
     kAtomicEth},
    {Operation::FetchAdd, true, false, false, Family::Atomic, Place::Only, PayloadRule::None,
     kAtomicEth},
    {Operation::SendLastInv, true, false, false, Family::Send, Place::Last, PayloadRule::Nonempty,
     kIeth},
    {Operation::SendOnlyInv, true, false, false, Family::Send, Place::Only, PayloadRule::Any,
     kIeth},
};

// RD has the operations of RC except SENDs that invalidate. All packets name an EE context, and
// requests also the queue pair they come from.
constexpr bool in_rd(const Entry& e) {
  return e.rc && (e.headers & kIeth) == 0;
}
constexpr unsigned rd_headers(const Entry& e) {
  return e.family >= Family::ReadResponse ? unsigned{kRdeth} : unsigned{kRdeth} | kDeth;
}

constexpr std::array<OpcodeRow, 256> make_rows() {
  std::array<OpcodeRow, 256> rows{};
  const auto put = [&rows](const Entry& e, ServiceType s, unsigned more) {
    OpcodeRow& r = rows[Opcode(s, e.operation).byte];
    r = {e.family, e.place, e.payload, static_cast<std::uint16_t>(e.headers | more), 0};
    r.header_bytes = bytes_of(r.headers);
  };
  for (const Entry& e : kEntries) {
    const bool response = e.family >= Family::ReadResponse;
    if (e.rc) put(e, ServiceType::Rc, 0);
    if (e.rc) put(e, ServiceType::Xrc, response ? 0 : kXrcEth);
    if (e.uc) put(e, ServiceType::Uc, 0);
    if (e.ud) put(e, ServiceType::Ud, kDeth);
    if (in_rd(e)) put(e, ServiceType::Rd, rd_headers(e));
  }
  put({Operation::Resync, false, false, false, Family::Resync, Place::Only, PayloadRule::None, 0},
      ServiceType::Rd, kRdeth | kDeth);
  rows[kSackOpcode.byte] = {Family::Sack, Place::Only, PayloadRule::Any, kAeth, bytes_of(kAeth)};
  rows[kCnpOpcode.byte] = {Family::Cnp, Place::Only, PayloadRule::Any, 0, 0};
  rows[kHelloOpcode.byte] = {Family::Hello, Place::Only, PayloadRule::Any, 0, 0};
  return rows;
}

inline constexpr std::array<OpcodeRow, 256> kRows = make_rows();

}  // namespace opcode_detail

constexpr const OpcodeRow& row(Opcode o) {
  return opcode_detail::kRows[o.byte];
}

// True if that many bytes of payload are allowed.
constexpr bool payload_fits(PayloadRule rule, std::uint32_t bytes, std::uint32_t pmtu) {
  switch (rule) {
    case PayloadRule::None:
      return bytes == 0;
    case PayloadRule::Full:
      return bytes == pmtu;
    case PayloadRule::Nonempty:
      return bytes != 0 && bytes <= pmtu;
    case PayloadRule::Any:
      break;
  }
  return bytes <= pmtu;
}

}  // namespace urnic::ib
