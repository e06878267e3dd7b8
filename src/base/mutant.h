// Deliberately wrong variants of the rules, one at a time (docs/proof.md). They exist only in the
// program the mutants are tried in: everywhere else mutant() is the constant false and nothing of a
// hook is left.
#pragma once

#include <cstdint>

namespace urnic {

enum class Mutant : std::uint16_t {
  None,
#define URNIC_MUTANT(name, items, test, text) name,
#include "base/mutants.def"
#undef URNIC_MUTANT
};

#ifdef URNIC_MUTANTS
extern Mutant active_mutant;  // set once, before the first test
inline bool mutant(Mutant which) {
  return active_mutant == which;
}
inline bool any_mutant() {
  return active_mutant != Mutant::None;
}
#else
constexpr bool mutant(Mutant) {
  return false;
}
constexpr bool any_mutant() {
  return false;
}
#endif

}  // namespace urnic
