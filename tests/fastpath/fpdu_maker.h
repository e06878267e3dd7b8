// FPDUs for tests, made by the plain definition (RFC 5044, 4.1) and not by the code under test.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/rng.h"

namespace urnic::testing {

using Octets = std::vector<std::uint8_t>;

inline Octets random_octets(Rng& rng, std::size_t n) {
  Octets v(n);
  for (auto& b : v) b = static_cast<std::uint8_t>(rng.next());
  return v;
}

inline void append(Octets& to, ByteView more) {
  to.insert(to.end(), more.begin(), more.end());
}

inline Octets make_fpdu(ByteView ulpdu, bool crc = true) {
  Octets f(2 + ulpdu.size());
  store_be16(f.data(), static_cast<std::uint16_t>(ulpdu.size()));
  std::copy(ulpdu.begin(), ulpdu.end(), f.begin() + 2);
  while (f.size() % 4 != 0) f.push_back(0);
  std::uint8_t field[4] = {0, 0, 0, 0};
  if (crc) store_le32(field, crc32c_finish(crc32c_update_portable(kCrc32cInit, f)));
  f.insert(f.end(), field, field + 4);
  return f;
}

inline Octets random_fpdu(Rng& rng, std::size_t ulpdu) {
  return make_fpdu(random_octets(rng, ulpdu));
}

}  // namespace urnic::testing
