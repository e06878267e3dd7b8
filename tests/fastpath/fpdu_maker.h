// FPDUs for tests, built from the definition (RFC 5044, 4.1), not by the code under test.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/rng.h"

namespace urnic::testing {

using Bytes = std::vector<std::uint8_t>;

inline Bytes random_bytes(Rng& rng, std::size_t n) {
  Bytes v(n);
  for (auto& b : v) b = static_cast<std::uint8_t>(rng.next());
  return v;
}

inline void append(Bytes& to, ByteView more) {
  to.insert(to.end(), more.begin(), more.end());
}

inline Bytes make_fpdu(ByteView ulpdu, bool crc = true) {
  Bytes f(2 + ulpdu.size());
  store_be16(f.data(), static_cast<std::uint16_t>(ulpdu.size()));
  std::copy(ulpdu.begin(), ulpdu.end(), f.begin() + 2);
  while (f.size() % 4 != 0) f.push_back(0);
  std::uint8_t field[4] = {0, 0, 0, 0};
  if (crc) store_le32(field, crc32c_finish(crc32c_update_portable(kCrc32cInit, f)));
  f.insert(f.end(), field, field + 4);
  return f;
}

inline Bytes random_fpdu(Rng& rng, std::size_t ulpdu) {
  return make_fpdu(random_bytes(rng, ulpdu));
}

}  // namespace urnic::testing
