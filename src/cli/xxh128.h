// XXH3 with 128 bits, as `xxhsum -H128` computes it; see docs/decisions/hash.md. It detects
// accidental differences. It is no protection against somebody who chooses the bytes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/cpu.h"

namespace urnic::cli {

using Digest = std::array<std::uint8_t, 16>;  // big-endian, XXH128's canonical form

class Xxh128 {
 public:
  // `wide`: with 512-bit registers, which the processor must have; three times as fast.
  explicit Xxh128(bool wide);
  Xxh128() : Xxh128(cpu_features().avx512) {}
  ~Xxh128();
  Xxh128(Xxh128&&) noexcept;
  Xxh128& operator=(Xxh128&&) noexcept;

  void add(std::span<const std::uint8_t> bytes);
  // A copy of the state: it has hashed the same bytes.
  Xxh128 copy() const;
  // Ends the message and returns its digest; the object then begins a new message.
  Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
  bool wide_;
};

std::string to_hex(const Digest& digest);

}  // namespace urnic::cli
