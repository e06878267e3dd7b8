// The tests of the rooms over the mutated sources: URNIC_MUTANT names the one that is at work
// (tests/mutants/*.toml), and URNIC_TEST_MUTANT to this program started again by one of its tests.
// Driven by tools/mutants.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/mutants/mutant_switch.h"

namespace urnic {

std::uint64_t active_mutant = 0;

namespace {

constexpr std::string_view kNames[] = {
#include "names.inc"
};

bool choose(std::string_view chosen) {
  for (const std::string_view name : kNames) {
    if (name != chosen) continue;
    active_mutant = mutant_number(name);
    return true;
  }
  return false;
}

}  // namespace
}  // namespace urnic

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const char* name = std::getenv("URNIC_MUTANT");
  if (name != nullptr) setenv("URNIC_TEST_MUTANT", name, 1);
  name = std::getenv("URNIC_TEST_MUTANT");
  if (name != nullptr && !urnic::choose(name)) {
    std::fprintf(stderr, "test_mutants: no mutant %s\n", name);
    return 2;
  }
  unsetenv("URNIC_MUTANT");  // to the configuration it would be a setting nobody knows
  return RUN_ALL_TESTS();
}
