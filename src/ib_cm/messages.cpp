#include "ib_cm/messages.h"

#include <algorithm>
#include <cstring>

namespace urnic::ib_cm {
namespace {

// Offsets of private data and additional information.
constexpr std::size_t kPrimaryAt = 52, kAlternateAt = 96;
constexpr std::size_t kReqDataAt = 140, kMraDataAt = 10, kRejDataAt = 84, kRepDataAt = 36;
constexpr std::size_t kRtuDataAt = 8, kDreqDataAt = 12, kSidrReqDataAt = 16, kSidrRepDataAt = 96;
constexpr std::size_t kRejInformationAt = 12, kSidrInformationAt = 24;

static_assert(kReqDataAt + kReqPrivate == kBodyBytes);
static_assert(kMraDataAt + kMraPrivate == kBodyBytes);
static_assert(kRejDataAt + kRejPrivate == kBodyBytes);
static_assert(kRepDataAt + kRepPrivate == kBodyBytes);
static_assert(kRtuDataAt + kRtuPrivate == kBodyBytes);
static_assert(kDreqDataAt + kDreqPrivate == kBodyBytes);
static_assert(kSidrReqDataAt + kSidrReqPrivate == kBodyBytes);
static_assert(kSidrRepDataAt + kSidrRepPrivate == kBodyBytes);

std::uint32_t load_be24(const std::uint8_t* p) {
  return std::uint32_t{p[0]} << 16 | std::uint32_t{p[1]} << 8 | p[2];
}
void store_be24(std::uint8_t* p, std::uint32_t v) {
  p[0] = static_cast<std::uint8_t>(v >> 16);
  p[1] = static_cast<std::uint8_t>(v >> 8);
  p[2] = static_cast<std::uint8_t>(v);
}
// The `bits` bits of a byte that end `shift` bits before its end.
std::uint8_t field(std::uint8_t byte, unsigned shift, unsigned bits) {
  return static_cast<std::uint8_t>(byte >> shift & ((1u << bits) - 1));
}
std::uint8_t placed(unsigned value, unsigned shift, unsigned bits) {
  return static_cast<std::uint8_t>((value & ((1u << bits) - 1)) << shift);
}
std::uint8_t joined(unsigned a, unsigned b, unsigned c = 0) {
  return static_cast<std::uint8_t>(a | b | c);
}

const std::uint8_t* body(ByteView mad) {
  return mad.data() + kMadHeaderBytes;
}
std::uint8_t* body(Mad* mad) {
  return mad->data() + kMadHeaderBytes;
}
ByteView part(ByteView mad, std::size_t at, std::size_t bytes) {
  return mad.subspan(kMadHeaderBytes + at, bytes);
}
// Additional information, with the length given by the peer.
ByteView information(ByteView mad, std::size_t at, std::size_t bytes) {
  return part(mad, at, std::min(bytes, kMostInformation));
}
void put(ByteView bytes, std::size_t room, std::uint8_t* to) {
  if (!bytes.empty()) std::memcpy(to, bytes.data(), std::min(bytes.size(), room));
}
std::uint8_t length_of(ByteView bytes) {
  return static_cast<std::uint8_t>(std::min(bytes.size(), kMostInformation));
}

PathRecord read_path(const std::uint8_t* p) {
  PathRecord r;
  r.local_lid = load_be16(p);
  r.remote_lid = load_be16(p + 2);
  std::memcpy(r.local.data(), p + 4, r.local.size());
  std::memcpy(r.remote.data(), p + 20, r.remote.size());
  r.flow_label = load_be32(p + 36) >> 12;
  r.rate = field(p[39], 0, 6);
  r.traffic_class = p[40];
  r.hop_limit = p[41];
  r.service_level = field(p[42], 4, 4);
  r.subnet_local = field(p[42], 3, 1) != 0;
  r.ack_timeout = field(p[43], 3, 5);
  return r;
}

void write_path(const PathRecord& r, std::uint8_t* p) {
  store_be16(p, r.local_lid);
  store_be16(p + 2, r.remote_lid);
  std::memcpy(p + 4, r.local.data(), r.local.size());
  std::memcpy(p + 20, r.remote.data(), r.remote.size());
  store_be32(p + 36, (r.flow_label & 0xfffff) << 12 | (r.rate & 0x3fu));
  p[40] = r.traffic_class;
  p[41] = r.hop_limit;
  p[42] = joined(placed(r.service_level, 4, 4), placed(r.subnet_local, 3, 1));
  p[43] = placed(r.ack_timeout, 3, 5);
}

Mad pair_of_ids(std::uint64_t transaction, Attribute attribute, std::uint32_t local,
                std::uint32_t remote) {
  Mad mad = make_mad({transaction, attribute, 0});
  store_be32(body(&mad), local);
  store_be32(body(&mad) + 4, remote);
  return mad;
}

}  // namespace

// ---- REQ

Req read_req(ByteView mad) {
  const std::uint8_t* const p = body(mad);
  Req r;
  r.local_id = load_be32(p);
  r.vendor_id = load_be24(p + 5);
  r.service = load_be64(p + 8);
  r.ca_guid = load_be64(p + 16);
  r.qkey = load_be32(p + 28);
  r.qpn = load_be24(p + 32);
  r.responder_resources = p[35];
  r.eecn = load_be24(p + 36);
  r.initiator_depth = p[39];
  r.remote_eecn = load_be24(p + 40);
  r.remote_timeout = field(p[43], 3, 5);
  r.transport = static_cast<Transport>(field(p[43], 1, 2));
  r.credits = field(p[43], 0, 1) != 0;
  r.psn = ib::Psn(load_be24(p + 44));
  r.local_timeout = field(p[47], 3, 5);
  r.retry_count = field(p[47], 0, 3);
  r.pkey = load_be16(p + 48);
  r.path_mtu = field(p[50], 4, 4);
  r.rdc = field(p[50], 3, 1) != 0;
  r.rnr_retry = field(p[50], 0, 3);
  r.max_cm_retries = field(p[51], 4, 4);
  r.srq = field(p[51], 3, 1) != 0;
  r.extended = field(p[51], 0, 3);
  r.primary = read_path(p + kPrimaryAt);
  r.alternate = read_path(p + kAlternateAt);
  r.private_data = part(mad, kReqDataAt, kReqPrivate);
  return r;
}

Mad write(std::uint64_t transaction, const Req& r, std::uint32_t modifier) {
  Mad mad = make_mad({transaction, Attribute::Req, modifier});
  std::uint8_t* const p = body(&mad);
  store_be32(p, r.local_id);
  store_be24(p + 5, r.vendor_id);
  store_be64(p + 8, r.service);
  store_be64(p + 16, r.ca_guid);
  store_be32(p + 28, r.qkey);
  store_be24(p + 32, r.qpn);
  p[35] = r.responder_resources;
  store_be24(p + 36, r.eecn);
  p[39] = r.initiator_depth;
  store_be24(p + 40, r.remote_eecn);
  p[43] = joined(placed(r.remote_timeout, 3, 5), placed(static_cast<unsigned>(r.transport), 1, 2),
                 placed(r.credits, 0, 1));
  store_be24(p + 44, r.psn.value());
  p[47] = joined(placed(r.local_timeout, 3, 5), placed(r.retry_count, 0, 3));
  store_be16(p + 48, r.pkey);
  p[50] = joined(placed(r.path_mtu, 4, 4), placed(r.rdc, 3, 1), placed(r.rnr_retry, 0, 3));
  p[51] = joined(placed(r.max_cm_retries, 4, 4), placed(r.srq, 3, 1), placed(r.extended, 0, 3));
  write_path(r.primary, p + kPrimaryAt);
  write_path(r.alternate, p + kAlternateAt);
  put(r.private_data, kReqPrivate, p + kReqDataAt);
  return mad;
}

// ---- REP, RTU

Rep read_rep(ByteView mad) {
  const std::uint8_t* const p = body(mad);
  Rep r;
  r.local_id = load_be32(p);
  r.remote_id = load_be32(p + 4);
  r.qkey = load_be32(p + 8);
  r.qpn = load_be24(p + 12);
  r.vendor_id = std::uint32_t{p[15]} << 16 | std::uint32_t{p[19]} << 8 | p[23];
  r.eecn = load_be24(p + 16);
  r.psn = ib::Psn(load_be24(p + 20));
  r.responder_resources = p[24];
  r.initiator_depth = p[25];
  r.ack_delay = field(p[26], 3, 5);
  r.failover = field(p[26], 1, 2);
  r.credits = field(p[26], 0, 1) != 0;
  r.rnr_retry = field(p[27], 5, 3);
  r.srq = field(p[27], 4, 1) != 0;
  r.ca_guid = load_be64(p + 28);
  r.private_data = part(mad, kRepDataAt, kRepPrivate);
  return r;
}

Mad write(std::uint64_t transaction, const Rep& r, std::uint32_t modifier) {
  Mad mad = make_mad({transaction, Attribute::Rep, modifier});
  std::uint8_t* const p = body(&mad);
  store_be32(p, r.local_id);
  store_be32(p + 4, r.remote_id);
  store_be32(p + 8, r.qkey);
  store_be24(p + 12, r.qpn);
  p[15] = static_cast<std::uint8_t>(r.vendor_id >> 16);
  store_be24(p + 16, r.eecn);
  p[19] = static_cast<std::uint8_t>(r.vendor_id >> 8);
  store_be24(p + 20, r.psn.value());
  p[23] = static_cast<std::uint8_t>(r.vendor_id);
  p[24] = r.responder_resources;
  p[25] = r.initiator_depth;
  p[26] = joined(placed(r.ack_delay, 3, 5), placed(r.failover, 1, 2), placed(r.credits, 0, 1));
  p[27] = joined(placed(r.rnr_retry, 5, 3), placed(r.srq, 4, 1));
  store_be64(p + 28, r.ca_guid);
  put(r.private_data, kRepPrivate, p + kRepDataAt);
  return mad;
}

Rtu read_rtu(ByteView mad) {
  return {load_be32(body(mad)), load_be32(body(mad) + 4), part(mad, kRtuDataAt, kRtuPrivate)};
}

Mad write_rtu(std::uint64_t transaction, const Rtu& r) {
  Mad mad = pair_of_ids(transaction, Attribute::Rtu, r.local_id, r.remote_id);
  put(r.private_data, kRtuPrivate, body(&mad) + kRtuDataAt);
  return mad;
}

// ---- MRA, REJ

Mra read_mra(ByteView mad) {
  const std::uint8_t* const p = body(mad);
  return {load_be32(p), load_be32(p + 4), static_cast<Which>(field(p[8], 6, 2)), field(p[9], 3, 5),
          part(mad, kMraDataAt, kMraPrivate)};
}

Mad write(std::uint64_t transaction, const Mra& m) {
  Mad mad = pair_of_ids(transaction, Attribute::Mra, m.local_id, m.remote_id);
  std::uint8_t* const p = body(&mad);
  p[8] = placed(static_cast<unsigned>(m.which), 6, 2);
  p[9] = placed(m.service_timeout, 3, 5);
  put(m.private_data, kMraPrivate, p + kMraDataAt);
  return mad;
}

Rej read_rej(ByteView mad) {
  const std::uint8_t* const p = body(mad);
  Rej r;
  r.local_id = load_be32(p);
  r.remote_id = load_be32(p + 4);
  r.which = static_cast<Which>(field(p[8], 6, 2));
  r.reason = static_cast<Reason>(load_be16(p + 10));
  r.information = information(mad, kRejInformationAt, field(p[9], 1, 7));
  r.private_data = part(mad, kRejDataAt, kRejPrivate);
  return r;
}

Mad write(std::uint64_t transaction, const Rej& r) {
  Mad mad = pair_of_ids(transaction, Attribute::Rej, r.local_id, r.remote_id);
  std::uint8_t* const p = body(&mad);
  p[8] = placed(static_cast<unsigned>(r.which), 6, 2);
  p[9] = placed(length_of(r.information), 1, 7);
  store_be16(p + 10, static_cast<std::uint16_t>(r.reason));
  put(r.information, kMostInformation, p + kRejInformationAt);
  put(r.private_data, kRejPrivate, p + kRejDataAt);
  return mad;
}

// ---- DREQ, DREP

Dreq read_dreq(ByteView mad) {
  const std::uint8_t* const p = body(mad);
  return {load_be32(p), load_be32(p + 4), load_be24(p + 8), part(mad, kDreqDataAt, kDreqPrivate)};
}

Mad write(std::uint64_t transaction, const Dreq& d) {
  Mad mad = pair_of_ids(transaction, Attribute::Dreq, d.local_id, d.remote_id);
  store_be24(body(&mad) + 8, d.remote_qpn);
  put(d.private_data, kDreqPrivate, body(&mad) + kDreqDataAt);
  return mad;
}

Mad write_drep(std::uint64_t transaction, const Drep& d) {
  Mad mad = pair_of_ids(transaction, Attribute::Drep, d.local_id, d.remote_id);
  put(d.private_data, kDrepPrivate, body(&mad) + kRtuDataAt);
  return mad;
}

// ---- SIDR

SidrReq read_sidr_req(ByteView mad) {
  const std::uint8_t* const p = body(mad);
  return {load_be32(p), load_be16(p + 4), load_be64(p + 8),
          part(mad, kSidrReqDataAt, kSidrReqPrivate)};
}

Mad write(std::uint64_t transaction, const SidrReq& r) {
  Mad mad = make_mad({transaction, Attribute::SidrReq, 0});
  std::uint8_t* const p = body(&mad);
  store_be32(p, r.request_id);
  store_be16(p + 4, r.pkey);
  store_be64(p + 8, r.service);
  put(r.private_data, kSidrReqPrivate, p + kSidrReqDataAt);
  return mad;
}

SidrRep read_sidr_rep(ByteView mad) {
  const std::uint8_t* const p = body(mad);
  SidrRep r;
  r.request_id = load_be32(p);
  r.status = static_cast<SidrStatus>(p[4]);
  r.qpn = load_be24(p + 8);
  r.service = load_be64(p + 12);
  r.qkey = load_be32(p + 20);
  r.information = information(mad, kSidrInformationAt, p[5]);
  r.private_data = part(mad, kSidrRepDataAt, kSidrRepPrivate);
  return r;
}

Mad write(std::uint64_t transaction, const SidrRep& r) {
  Mad mad = make_mad({transaction, Attribute::SidrRep, 0});
  std::uint8_t* const p = body(&mad);
  store_be32(p, r.request_id);
  p[4] = static_cast<std::uint8_t>(r.status);
  p[5] = length_of(r.information);
  store_be24(p + 8, r.qpn);
  store_be64(p + 12, r.service);
  store_be32(p + 20, r.qkey);
  put(r.information, kMostInformation, p + kSidrInformationAt);
  put(r.private_data, kSidrRepPrivate, p + kSidrRepDataAt);
  return mad;
}

// ---- path migration

Lap read_lap(ByteView mad) {
  return {load_be32(body(mad)), load_be32(body(mad) + 4)};
}

Mad write(std::uint64_t transaction, const Apr& a) {
  Mad mad = pair_of_ids(transaction, Attribute::Apr, a.local_id, a.remote_id);
  body(&mad)[9] = a.status;
  return mad;
}

}  // namespace urnic::ib_cm
