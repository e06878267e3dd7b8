// Start-up frames for tests: the golden ones, and frames of two simulated ends.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "mpa/startup.h"
#include "support/golden.h"

namespace urnic::mpa {

using test::Bytes;
using test::golden;
using test::to_hex;

inline Bytes emit(const StartupFrame& f) {
  Bytes b(kFrameHeader + kMaxPrivateData);
  b.resize(emit_frame(f, b.data()));
  return b;
}

inline Bytes frame(const std::string& name) {
  return golden("startup.txt", name).bytes;
}

inline StartupFrame parsed(const Bytes& b, bool reply) {
  auto f = parse_frame(b, reply);
  EXPECT_TRUE(f.ok());
  return f ? *f : StartupFrame{};
}

inline StartupOptions depths(std::uint16_t ird, std::uint16_t ord) {
  StartupOptions o;
  o.ird = ird;
  o.ord = ord;
  return o;
}

}  // namespace urnic::mpa
