#include "ib_cm/gsi.h"

namespace urnic::ib_cm {
namespace {

constexpr ib::Opcode kSendOnly(ib::ServiceType::Ud, ib::Operation::SendOnly);
constexpr std::uint16_t kPartition = 0x7fff;  // the default one, with full or limited members

}  // namespace

Outcome<ByteView, GsiFault> open_gsi(const ib::ParsedPacket& p) {
  const ib::PacketHeader& h = p.header;
  if (h.bth.opcode != kSendOnly) return fail(GsiFault::Opcode);
  if ((h.bth.pkey & kPartition) != kPartition) return fail(GsiFault::Pkey);
  if (h.deth.qkey != kGsiQkey) return fail(GsiFault::Qkey);
  if (h.deth.source_qp != kGsiQpn) return fail(GsiFault::SourceQp);
  if (p.payload.size() != kMadBytes) return fail(GsiFault::Length);
  return p.payload;
}

ib::PacketHeader gsi_header(ib::Psn psn) {
  ib::PacketHeader h;
  h.bth.opcode = kSendOnly;
  h.bth.migrated = false;
  h.bth.ack_request = true;
  h.bth.dest_qp = kGsiQpn;
  h.bth.psn = psn;
  h.deth = {kGsiQkey, kGsiQpn};
  return h;
}

}  // namespace urnic::ib_cm
