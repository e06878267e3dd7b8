// The tests of the rooms over the mutated sources, one of which is at work (tests/mutants/*.toml,
// chosen.cpp). Driven by tools/mutants.
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
