// A faulty wire with the real clock, and one that another thread controls.
#include <poll.h>
#include <time.h>

#include <thread>

#include "faulty_port.h"

namespace urnic::fault {
namespace {

std::uint64_t monotonic(void*) {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
}

// With a real clock, a sleeping thread is woken when a delayed frame is due, in either direction.
TEST_F(FaultPortTest, SleepersAreWokenForDelayedFrames) {
  for (const bool out : {false, true}) {
    auto [inner, other] = port::make_memory_pair();
    FaultOptions o;
    (out ? o.tx : o.rx) = plan("delay=30ms");
    o.clock = {monotonic, nullptr, true};
    auto made = wrap_faults(std::move(inner), o);
    port::Port &from = out ? made.port : other, &to = out ? other : made.port;
    send(from, segment(0));
    EXPECT_TRUE(receive(to).empty());
    int fds[4];
    const unsigned n = made.port.wait_fds(0, fds, 4);
    ASSERT_EQ(n, 2u);
    ASSERT_FALSE(made.port.arm(0));
    pollfd p[2] = {{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}};
    const std::uint64_t before = monotonic(nullptr);
    ASSERT_EQ(poll(p, 2, 20'000), 1) << (out ? "out" : "in");
    EXPECT_GE(monotonic(nullptr) - before, 20000000u);
    made.port.disarm(0);
    EXPECT_EQ(poll(p, 2, 0), 0);  // disarm clears
    if (out) receive(made.port);  // any call moves due frames
    EXPECT_EQ(receive(to).size(), 1u);
  }
}

// Another thread may read counters and set plans (for the thread sanitizer); each frame is counted
// for the plan that applied to it.
TEST_F(FaultPortTest, ControlIsThreadSafe) {
  open("loss=0.1", "");
  std::thread watcher([&] {
    std::uint64_t lost = 0;
    for (int i = 0; i < 300; ++i) {
      const auto until = control->set_plan(Direction::Rx, plan(i % 2 == 0 ? "loss=0.2" : ""));
      if (i != 0 && i % 2 == 0) {
        EXPECT_EQ(until.of(FaultKind::Loss), lost) << "by a clean plan";
      }
      lost = until.of(FaultKind::Loss);
      control->counters(Direction::Rx);
      control->records();
      control->next_release();
      std::this_thread::yield();
    }
  });
  std::size_t got = 0;
  for (std::uint32_t i = 0; i < 5000; ++i) {
    send(b, segment(i % 50));
    if (i % 8 == 0) got += receive(a).size();
  }
  watcher.join();
  got += receive(a).size();
  const auto c = control->counters(Direction::Rx);
  EXPECT_EQ(c.frames, 5000u);
  EXPECT_EQ(got + c.of(FaultKind::Loss), 5000u);
}

}  // namespace
}  // namespace urnic::fault
