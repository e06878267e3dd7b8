#include "ib/packet.h"

#include <cstring>

namespace urnic::ib {
namespace {

std::uint32_t load_be24(const std::uint8_t* p) {
  return std::uint32_t{p[0]} << 16 | std::uint32_t{p[1]} << 8 | p[2];
}

// BTH.
constexpr std::uint8_t kSolicitedBit = 0x80, kMigratedBit = 0x40;  // byte 1
constexpr unsigned kPadShift = 4;
constexpr std::uint8_t kFecnBit = 0x80, kBecnBit = 0x40;  // byte 4
constexpr std::uint8_t kAckRequestBit = 0x80;             // byte 8

Bth read_bth(const std::uint8_t* p) {
  Bth h;
  h.opcode = Opcode(p[0]);
  h.solicited = (p[1] & kSolicitedBit) != 0;
  h.migrated = (p[1] & kMigratedBit) != 0;
  h.pad = p[1] >> kPadShift & 3;
  h.version = p[1] & 15;
  h.pkey = load_be16(p + 2);
  h.fecn = (p[4] & kFecnBit) != 0;
  h.becn = (p[4] & kBecnBit) != 0;
  h.dest_qp = load_be24(p + 5);
  h.ack_request = (p[8] & kAckRequestBit) != 0;
  h.psn = Psn(load_be24(p + 9));
  return h;
}

std::uint64_t first_bytes_of(const Bth& h, std::uint8_t pad) {
  const std::uint32_t flags = (h.solicited ? kSolicitedBit : 0u) |
                              (h.migrated ? kMigratedBit : 0u) | std::uint32_t{pad} << kPadShift |
                              (h.version & 15u);
  const std::uint32_t marks = (h.fecn ? kFecnBit : 0u) | (h.becn ? kBecnBit : 0u);
  return std::uint64_t{h.opcode.byte} << 56 | std::uint64_t{flags} << 48 |
         std::uint64_t{h.pkey} << 32 | marks << 24 | (h.dest_qp & kMask24);
}

// In words, as the ICRC reads them (crc32_update_words).
void write_bth(const Bth& h, std::uint8_t pad, std::uint8_t* p) {
  store_be64(p, first_bytes_of(h, pad));
  store_be32(p + 8, (h.ack_request ? kAckRequestBit : 0u) << 24 | h.psn.value());
}

// Reads the headers after the BTH; their bytes are present.
void read_extensions(const OpcodeRow& r, const std::uint8_t* p, PacketHeader* h) {
  if (r.has(kXrcEth)) {
    h->srq = load_be24(p + 1);
    p += kXrcEthBytes;
  }
  if (r.has(kRdeth)) {
    h->ee_context = load_be24(p + 1);
    p += 4;
  }
  if (r.has(kDeth)) {
    h->deth = {load_be32(p), load_be24(p + 5)};
    p += 8;
  }
  if (r.has(kReth)) {
    h->reth = {load_be64(p), load_be32(p + 8), load_be32(p + 12)};
    p += 16;
  }
  if (r.has(kAtomicEth)) {
    h->atomic = {load_be64(p), load_be32(p + 8), load_be64(p + 12), load_be64(p + 20)};
    p += 28;
  }
  if (r.has(kAeth)) {
    h->aeth = {Syndrome{p[0]}, Msn(load_be24(p + 1))};
    p += 4;
  }
  if (r.has(kAtomicAckEth)) {
    h->original = load_be64(p);
    p += 8;
  }
  if (r.has(kImmDt)) {
    h->immediate = load_be32(p);
    p += 4;
  }
  if (r.has(kIeth)) h->inv_rkey = load_be32(p);
}

void write_extensions(const OpcodeRow& r, const PacketHeader& h, std::uint8_t* p) {
  if (r.has(kXrcEth)) {
    store_be32(p, h.srq & kMask24);
    p += kXrcEthBytes;
  }
  if (r.has(kRdeth)) {
    store_be32(p, h.ee_context & kMask24);
    p += 4;
  }
  if (r.has(kDeth)) {
    store_be32(p, h.deth.qkey);
    store_be32(p + 4, h.deth.source_qp & kMask24);
    p += 8;
  }
  if (r.has(kReth)) {
    store_be64(p, h.reth.address);
    store_be32(p + 8, h.reth.rkey);
    store_be32(p + 12, h.reth.length);
    p += 16;
  }
  if (r.has(kAtomicEth)) {
    store_be64(p, h.atomic.address);
    store_be32(p + 8, h.atomic.rkey);
    store_be64(p + 12, h.atomic.swap_or_add);
    store_be64(p + 20, h.atomic.compare);
    p += 28;
  }
  if (r.has(kAeth)) {
    store_be32(p, (h.aeth.syndrome.byte & 0x7fu) << 24 | h.aeth.msn.value());
    p += 4;
  }
  if (r.has(kAtomicAckEth)) {
    store_be64(p, h.original);
    p += 8;
  }
  if (r.has(kImmDt)) {
    store_be32(p, h.immediate);
    p += 4;
  }
  if (r.has(kIeth)) store_be32(p, h.inv_rkey);
}

}  // namespace

Outcome<ParsedPacket, Malformed> parse_packet(ByteView datagram) {
  const std::size_t n = datagram.size();
  if (n < kBthBytes + kIcrcBytes) return fail(Malformed::Short);
  if (n % 4 != 0) return fail(Malformed::Uneven);
  ParsedPacket packet;
  PacketHeader& h = packet.header;
  h.bth = read_bth(datagram.data());
  const OpcodeRow& r = h.row();
  const std::size_t headers = kBthBytes + r.header_bytes;
  if (n < headers + kIcrcBytes) return fail(Malformed::Headers);
  const std::size_t behind = n - headers - kIcrcBytes;
  if (behind < h.bth.pad) return fail(Malformed::Pad);
  if (r.headers != 0) read_extensions(r, datagram.data() + kBthBytes, &h);
  packet.payload = datagram.subspan(headers, behind - h.bth.pad);
  return packet;
}

std::uint32_t emit_headers(const PacketHeader& h, std::size_t payload, std::uint8_t* dst) {
  const OpcodeRow& r = h.row();
  write_bth(h.bth, pad_of(payload), dst);
  // most packets of a long message have none
  if (r.headers != 0) write_extensions(r, h, dst + kBthBytes);
  return kBthBytes + r.header_bytes;
}

std::uint64_t bth_front(const PacketHeader& h, std::size_t payload) {
  return first_bytes_of(h.bth, pad_of(payload));
}

std::size_t emit_packet(const PacketHeader& h, ByteView payload, std::uint8_t* dst) {
  const std::size_t n = payload.size();
  std::uint8_t* const at = dst + emit_headers(h, n, dst);
  if (n != 0 && at != payload.data()) std::memmove(at, payload.data(), n);
  std::memset(at + n, 0, pad_of(n));
  return packet_bytes(h.bth.opcode, n);
}

}  // namespace urnic::ib
