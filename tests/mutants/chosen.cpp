// Selects the active mutant of this process: URNIC_MUTANT names it for the program that a tool
// starts, URNIC_TEST_MUTANT for the programs that this one starts.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/mutants/mutant_switch.h"

namespace urnic {
namespace {

constexpr std::string_view kNames[] = {
#include "names.inc"
};

std::uint64_t chosen() {
  if (const char* name = std::getenv("URNIC_MUTANT")) setenv("URNIC_TEST_MUTANT", name, 1);
  unsetenv("URNIC_MUTANT");  // otherwise the configuration would reject it as an unknown setting
  const char* wanted = std::getenv("URNIC_TEST_MUTANT");
  if (wanted == nullptr) return 0;
  for (const std::string_view name : kNames) {
    if (name == wanted) return mutant_number(name);
  }
  std::fprintf(stderr, "no mutant %s\n", wanted);
  std::_Exit(2);
}

}  // namespace

std::uint64_t active_mutant = chosen();

}  // namespace urnic
