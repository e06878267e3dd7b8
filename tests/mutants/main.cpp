// The tests of all folders over the mutated sources, with one active mutant (tests/mutants/*.toml,
// chosen.cpp). Driven by tools/mutants.
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
