// Virtual time and random numbers for a program with devices in it. While it is active, clocks
// advance only by sleeping, and a little with each read; random numbers derive from a seed. So runs
// of whole devices are reproducible, and minutes pass at once. For a single thread only.
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
  // Called every millisecond while the thread sleeps, until the time is over, to run everything
  // else.
  static void meanwhile(std::function<void()> others);
};

}  // namespace urnic::test
