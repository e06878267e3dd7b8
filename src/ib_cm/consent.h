// How two urnic ends detect each other by their REQ and REP (S-7). The REQ contains our vendor id
// and, as the attribute modifier of its MAD, an offer; other implementations ignore both. Linux
// answers any vendor id with the same one, so an echo proves nothing: consent is the attribute
// modifier of the REP, which differs from that of the offer.
//
// Pure; any thread.
#pragma once

#include <cstdint>

namespace urnic::ib_cm {

// Locally administered, not that of a manufacturer.
inline constexpr std::uint32_t kVendorId = 0x02756e;
// The capabilities of an end as bits; 0 is none.
inline constexpr std::uint8_t kExtensionSelective = 1;  // selective repeat (S-6)
inline constexpr std::uint8_t kExtensionParts = 2;  // parts of READs may be requested at once (S-2)

inline constexpr std::uint32_t kOffer = 0x756e0000, kConsent = 0x756e8000;

constexpr std::uint32_t offer_of(std::uint8_t extensions) {
  return extensions == 0 ? 0 : kOffer | extensions;
}
constexpr std::uint32_t consent_of(std::uint8_t extensions) {
  return extensions == 0 ? 0 : kConsent | extensions;
}
// The offer in a REQ; the part of `offered` that a REP agrees to.
constexpr std::uint8_t offered_by(std::uint32_t vendor, std::uint32_t modifier) {
  const bool ours = vendor == kVendorId && (modifier & ~0xffu) == kOffer;
  return ours ? static_cast<std::uint8_t>(modifier) : std::uint8_t{0};
}
constexpr std::uint8_t agreed_by(std::uint32_t vendor, std::uint32_t modifier,
                                 std::uint8_t offered) {
  const bool ours = vendor == kVendorId && (modifier & ~0xffu) == kConsent;
  return ours ? static_cast<std::uint8_t>(modifier & offered) : std::uint8_t{0};
}

}  // namespace urnic::ib_cm
