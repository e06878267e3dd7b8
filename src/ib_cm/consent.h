// How two urnic ends learn from their REQ and REP that both are (S-7). The REQ has our vendor id
// and, as the attribute modifier of its MAD, an offer; others ignore both. Linux answers any
// vendor id with the same one, so that an echo says nothing: consent is the attribute modifier of
// the REP, which is another than that of the offer.
//
// Pure; any thread.
#pragma once

#include <cstdint>

namespace urnic::ib_cm {

// Of no manufacturer: locally administered.
inline constexpr std::uint32_t kVendorId = 0x02756e;
// Bit by bit what an end can do; 0 is nothing.
inline constexpr std::uint8_t kExtensionSelective = 1;  // repeat (S-6)
inline constexpr std::uint8_t kExtensionParts = 2;      // of READs, asked for at once (S-2)

inline constexpr std::uint32_t kOffer = 0x756e0000, kConsent = 0x756e8000;

constexpr std::uint32_t offer_of(std::uint8_t extensions) {
  return extensions == 0 ? 0 : kOffer | extensions;
}
constexpr std::uint32_t consent_of(std::uint8_t extensions) {
  return extensions == 0 ? 0 : kConsent | extensions;
}
// What a REQ offers, what a REP agrees to of what was `offered`.
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
