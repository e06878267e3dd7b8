#include "engine/keys.h"

namespace urnic::engine {

SipKey device_key(std::uint64_t seed, KeyOf of) {
  constexpr SipKey kOurs{0x75726e69632d6476, 0x6963652d6b657973};
  const auto what = static_cast<std::uint64_t>(of);
  return {siphash24(kOurs, {seed, what, 0}), siphash24(kOurs, {seed, what, 1})};
}

}  // namespace urnic::engine
