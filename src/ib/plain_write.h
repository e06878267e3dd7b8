// A fast path for bulk data over RC: packets of Writes without Immediate Data that arrive in order
// while nothing is missing, refused or kept. It parses, checks, places and commits them inline, by
// the rules of judge_request.cpp and responder.cpp; all other packets, and all refusals, are left
// to those.
//
//   read      checks the headers: is it such a packet?
//   admit     changes nothing: would it be accepted, and at which address?
//   (the caller does the other checks of check.h, and the ICRC)
//   take      places the payload and counts the packet
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/bytes.h"
#include "ib/packet.h"
#include "ib/placement.h"
#include "ib/responder.h"

namespace urnic::ib {

struct PlainWrite {
  const OpcodeRow* row = nullptr;
  std::uint16_t pkey = 0;
  std::uint32_t dest_qp = 0;
  Psn psn;
  bool ack_request = false;
  Reth reth;                   // of a First or Only
  std::uint32_t headers = 0;   // bytes of BTH and RETH
  std::uint32_t payload = 0;   // bytes, not 0
  std::uint8_t* to = nullptr;  // once admitted: destination of the payload
};

// `head`: the beginning of a packet of `packet` bytes, read only once (E-19). False for any other
// packet.
[[gnu::always_inline]] inline bool read_plain_write(ByteView head, std::uint32_t packet,
                                                    PlainWrite* w) {
  constexpr std::uint8_t kVersion = 0x0f;
  const std::uint8_t* const p = head.data();
  if (head.size() < kBthBytes || p[0] > Opcode(ServiceType::Rc, Operation::WriteOnly).byte) {
    return false;
  }
  const OpcodeRow& row = ib::row(Opcode(p[0]));
  if (row.family != Family::Write || row.has(kImmDt) || (p[1] & kVersion) != 0) return false;
  const std::uint32_t to = load_be32(p + 4);
  if (to > kMask24) return false;  // a FECN, BECN or reserved bit is set
  const std::uint32_t pad = p[1] >> 4 & 3;
  w->headers = kBthBytes + row.header_bytes;
  if (head.size() < w->headers || packet % 4 != 0) return false;
  if (packet <= w->headers + pad + kIcrcBytes) return false;
  w->row = &row;
  w->payload = packet - w->headers - pad - kIcrcBytes;
  w->pkey = load_be16(p + 2);
  w->dest_qp = to;
  const std::uint32_t last = load_be32(p + 8);
  w->ack_request = last >> 31 != 0;
  w->psn = Psn(last & kMask24);
  if (row.begins()) w->reth = {load_be64(p + 12), load_be32(p + 20), load_be32(p + 24)};
  return true;
}

[[gnu::always_inline]] inline bool admit_plain_write(const ResponderState& s, PlainWrite* w) {
  const OpcodeRow& row = *w->row;
  const IncomingMessage& m = s.message;
  if (w->psn != s.expected || s.watch || s.nak.owed() || is_fatal(s.failure)) return false;
  // In sequence, and Writes are allowed.
  if (row.begins() ? m.open() : m.family != Family::Write) return false;
  if ((s.qp->access & verbs::kRemoteWrite) == 0) return false;
  // Lengths; with a pad, no length fits a First or Middle.
  if (!payload_fits(row.payload, w->payload, s.qp->pmtu())) return false;
  const std::uint32_t length = row.begins() ? w->reth.length : m.length;
  const std::uint64_t bytes = (row.begins() ? 0 : std::uint64_t{m.bytes}) + w->payload;
  if (length > kMaxMessageBytes || bytes > length || (row.ends() && bytes != length)) {
    return false;
  }
  // Access rights, range and protection domain.
  const std::uint64_t at = row.begins() ? w->reth.address : m.address;
  const verbs::Region* const r = s.memory->find(row.begins() ? w->reth.rkey : m.rkey);
  if (r == nullptr || !r->may_write(s.qp->peer(), at, w->payload)) return false;
  w->to = r->base + (at - r->address);
  return true;
}

// For a packet that has just been admitted, with nothing in between. `payload`: its bytes.
inline bool Responder::take_plain(const PlainWrite& w, const std::uint8_t* payload) {
  ResponderState& s = s_;
  const OpcodeRow& row = *w.row;
  IncomingMessage& m = s.message;
  if (!place(w.to, {payload, w.payload})) [[unlikely]]
    return false;
  if (row.ends()) {
    s.messages.write_bytes += m.bytes + w.payload;
    m = {};
    ++s.msn;
  } else {
    if (row.begins()) m = {Family::Write, 0, w.reth.address, w.reth.rkey, w.reth.length};
    m.bytes += w.payload;
    m.address += w.payload;
  }
  ++s.counters.requests;
  s.silent = false;
  ++s.expected;
  s.ack_due = s.ack_due || w.ack_request;
  return true;
}

// Prediction of the next packet of a Write, valid while only plain Writes arrive: the results of
// read and admit if it is another middle packet.
struct NextMiddle {
  std::uint64_t front = 0;    // of its BTH, without AckReq and PSN
  std::uint32_t payload = 0;  // bytes; 0: no prediction
  std::uint64_t left = 0;     // bytes that middle packets may still bring
  std::uint8_t* to = nullptr;
};
// For the packet after `w`, which was taken; `front` is that of its BTH.
[[gnu::always_inline]] inline NextMiddle next_middle(const ResponderState& s, const PlainWrite& w,
                                                     std::uint64_t front) {
  const OpcodeRow& row = *w.row;
  const IncomingMessage& m = s.message;
  if (row.ends() || w.payload != s.qp->pmtu()) return {};
  constexpr std::uint64_t kOpcode = 0xff;
  const std::uint64_t middle = Opcode(ServiceType::Rc, Operation::WriteMiddle).byte;
  const verbs::Region* const r = s.memory->find(m.rkey);
  const std::uint64_t in_region = r->address + r->length - m.address;
  const std::uint64_t in_message = m.length - m.bytes;
  return {(front & ~(kOpcode << 56)) | middle << 56, w.payload, std::min(in_region, in_message),
          w.to + w.payload};
}

inline bool Responder::take_middle(NextMiddle* next, const std::uint8_t* payload,
                                   bool ack_request) {
  ResponderState& s = s_;
  const std::uint32_t bytes = next->payload;
  if (!place(next->to, {payload, bytes})) [[unlikely]]
    return false;
  next->to += bytes;
  next->left -= bytes;
  s.message.bytes += bytes;
  s.message.address += bytes;
  ++s.counters.requests;
  s.silent = false;
  ++s.expected;
  s.ack_due = s.ack_due || ack_request;
  return true;
}

}  // namespace urnic::ib
