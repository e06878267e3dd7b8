#include "ib/check.h"

#include "ib/icrc.h"

namespace urnic::ib {

std::string_view name(Drop d) {
  static constexpr std::array<std::string_view, kDrops> kNames = {
      "malformed",     "bad_icrc", "bad_version",   "no_queue_pair", "wrong_state",
      "wrong_service", "bad_pkey", "wrong_address", "bad_qkey"};
  return kNames[static_cast<std::size_t>(d)];
}

Outcome<ParsedPacket, Drop> open_packet(ByteView ip_udp, ByteView datagram, Headers headers) {
  auto packet = parse_packet(datagram);
  if (!packet.ok()) return fail(Drop::Malformed);
  const bool good = headers == Headers::FromSocket
                        ? icrc_good_for_some_identification(ip_udp, datagram)
                        : icrc_good(ip_udp, datagram);
  if (!good) return fail(Drop::BadIcrc);
  if (packet->header.bth.version != 0) return fail(Drop::BadVersion);
  return *packet;
}

bool pkeys_match(std::uint16_t a, std::uint16_t b) {
  constexpr unsigned kMember = 0x8000, kKey = 0x7fff;
  return (a & kKey) == (b & kKey) && (a & kKey) != 0 && ((a | b) & kMember) != 0;
}

namespace {

// Each end of XRC has only one half. Packets for the other half are dropped, except those that
// urnic ends exchange (o9-79.a1).
bool has_half(const QpAttributes& qp, Half half) {
  return half == (qp.xrc.receives ? Half::Responder : Half::Requester);
}

// Packets that belong to no service: CNPs, and urnic's own (S-6, S-7).
bool of_no_service(const OpcodeRow& row, const QpAttributes& qp) {
  return qp.reliable() && (row.family == Family::Cnp || (row.ours() && qp.selective));
}

}  // namespace

Outcome<Half, Drop> check(const PacketHeader& h, const IpAddress& source, const QpAttributes* qp,
                          verbs::QpState state) {
  if (qp == nullptr) return fail(Drop::NoQueuePair);
  const Half half = h.row().response() ? Half::Requester : Half::Responder;
  const verbs::QpRights& rights = verbs::rights(state);
  if (!(half == Half::Requester ? rights.takes_responses : rights.takes_requests)) {
    return fail(Drop::WrongState);
  }
  if (h.bth.opcode.service() != qp->service) {
    if (!of_no_service(h.row(), *qp)) return fail(Drop::WrongService);
  } else if (qp->service == ServiceType::Xrc && !has_half(*qp, half)) {
    return fail(Drop::WrongService);
  }
  if (!pkeys_match(h.bth.pkey, qp->pkey)) return fail(Drop::BadPkey);
  if (qp->service != ServiceType::Ud) {
    if (source != qp->av.remote) return fail(Drop::WrongAddress);
  } else if (h.row().known() && h.deth.qkey != qp->qkey) {
    return fail(Drop::BadQkey);
  }
  return half;
}

}  // namespace urnic::ib
