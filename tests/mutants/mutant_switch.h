// The active mutant; the mutated copies of the sources read it (docs/proof.md).
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace urnic {

// FNV-1a: a mutant's number is derived from its name, so that a new one recompiles only its own
// file.
constexpr std::uint64_t mutant_number(std::string_view name) {
  std::uint64_t h = 0xcbf29ce484222325;
  for (const char c : name) h = (h ^ static_cast<std::uint8_t>(c)) * 0x100000001b3;
  return h;
}

extern std::uint64_t active_mutant;  // set once, before the first test; 0: none

template <std::size_t N>
constexpr bool mutant_is(const char (&name)[N]) {
  if (std::is_constant_evaluated()) return false;
  return active_mutant == mutant_number({name, N - 1});
}

}  // namespace urnic
