#include "ib_cm/mad.h"

namespace urnic::ib_cm {
namespace {

constexpr std::uint8_t kBaseVersion = 1, kClass = 0x07, kClassVersion = 2, kSend = 0x03;
constexpr std::size_t kTransactionAt = 8, kAttributeAt = 16, kModifierAt = 20;

bool known(std::uint16_t attribute) {
  return attribute >= static_cast<std::uint16_t>(Attribute::Req) &&
         attribute <= static_cast<std::uint16_t>(Attribute::Apr);
}

}  // namespace

Outcome<MadHeader, MadFault> read_header(ByteView mad) {
  if (mad.size() != kMadBytes) return fail(MadFault::Length);
  if (mad[0] != kBaseVersion) return fail(MadFault::BaseVersion);
  if (mad[1] != kClass) return fail(MadFault::Class);
  if (mad[2] != kClassVersion) return fail(MadFault::ClassVersion);
  if (mad[3] != kSend) return fail(MadFault::Method);
  const std::uint16_t attribute = load_be16(mad.data() + kAttributeAt);
  if (!known(attribute)) return fail(MadFault::Attribute);
  MadHeader h;
  h.transaction = load_be64(mad.data() + kTransactionAt);
  h.attribute = static_cast<Attribute>(attribute);
  h.modifier = load_be32(mad.data() + kModifierAt);
  return h;
}

Mad make_mad(const MadHeader& h) {
  Mad mad{};
  mad[0] = kBaseVersion;
  mad[1] = kClass;
  mad[2] = kClassVersion;
  mad[3] = kSend;
  store_be64(mad.data() + kTransactionAt, h.transaction);
  store_be16(mad.data() + kAttributeAt, static_cast<std::uint16_t>(h.attribute));
  store_be32(mad.data() + kModifierAt, h.modifier);
  return mad;
}

}  // namespace urnic::ib_cm
