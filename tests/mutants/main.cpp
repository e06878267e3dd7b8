// The tests of the rooms with one rule broken: URNIC_MUTANT names which (src/base/mutants.def).
// Driven by tools/mutants.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/mutant.h"

namespace urnic {

Mutant active_mutant = Mutant::None;

namespace {

constexpr std::string_view kNames[] = {
    "None",
#define URNIC_MUTANT(name, items, test, text) #name,
#include "base/mutants.def"
#undef URNIC_MUTANT
};

bool choose(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] != name) continue;
    active_mutant = static_cast<Mutant>(i);
    return true;
  }
  return false;
}

}  // namespace
}  // namespace urnic

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const char* name = std::getenv("URNIC_MUTANT");
  if (name != nullptr && !urnic::choose(name)) {
    std::fprintf(stderr, "test_mutants: no mutant %s\n", name);
    return 2;
  }
  return RUN_ALL_TESTS();
}
