// Time and chance of a program whose devices live in it: while it is on, clocks stand still but for
// what is slept, and a little for each look; random numbers come from a seed. So a run of whole
// devices repeats from its input, and minutes pass in no time. One thread alone.
#pragma once

#include <cstdint>
#include <functional>

namespace urnic::test {

class VirtualTime {
 public:
  explicit VirtualTime(std::uint64_t seed);
  ~VirtualTime();
  VirtualTime(const VirtualTime&) = delete;
  VirtualTime& operator=(const VirtualTime&) = delete;

  static std::int64_t now_ns();
  static void pass(std::int64_t ns);
  // What else goes on while the thread sleeps, asked every millisecond of that; until the time
  // ends.
  static void meanwhile(std::function<void()> others);
};

}  // namespace urnic::test
