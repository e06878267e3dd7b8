#include "fault/pump.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <thread>

#include "fault/fault_port.h"
#include "port/memory_port.h"
#include "tcp_frames.h"

namespace urnic::fault {
namespace {

using namespace urnic::test;

std::uint64_t monotonic(void*) {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
}

bool send(port::Port& p, const Bytes& b, unsigned q = 0) {
  port::Frame f;
  if (p.tx_reserve(q, static_cast<std::uint32_t>(b.size()), &f, 1) != 1) return false;
  std::memcpy(f.data[0], b.data(), b.size());
  p.tx_commit(q, &f, 1);
  return true;
}
std::vector<Bytes> receive(port::Port& p, unsigned q = 0) {
  std::vector<Bytes> out;
  std::array<port::Frame, 32> f;
  while (const unsigned n = p.rx_burst(q, f.data(), 32)) {
    for (unsigned i = 0; i < n; ++i) out.emplace_back(f[i].data[0], f[i].data[0] + f[i].len[0]);
    p.rx_release(q, f.data(), n);
  }
  return out;
}
Bytes segment(std::uint32_t i, std::size_t size = 100) {
  return tcp_frame({.seq = 1 + i * static_cast<std::uint32_t>(size), .payload = size});
}

// left == a ~~pump~~ b == right
struct PumpTest : ::testing::Test {
  void open(port::MemoryPairOptions l = {}, port::MemoryPairOptions r = {}) {
    std::tie(left, a) = port::make_memory_pair(l);
    std::tie(b, right) = port::make_memory_pair(r);
  }
  port::Port left, a, b, right;
};

TEST_F(PumpTest, ForwardsBothWays) {
  open();
  Pump pump(a, b);
  EXPECT_FALSE(pump.run_once());
  for (std::uint32_t i = 0; i < 300; ++i) {
    ASSERT_TRUE(send(left, segment(i)));
    ASSERT_TRUE(send(right, segment(1000 + i)));
  }
  while (pump.run_once()) {
  }
  const auto to_right = receive(right), to_left = receive(left);
  ASSERT_EQ(to_right.size(), 300u);
  ASSERT_EQ(to_left.size(), 300u);
  for (std::uint32_t i = 0; i < 300; ++i) {
    EXPECT_EQ(to_right[i], segment(i));
    EXPECT_EQ(to_left[i], segment(1000 + i));
  }
  EXPECT_EQ(pump.a_to_b().frames, 300u);
  EXPECT_EQ(pump.b_to_a().frames, 300u);
}

TEST_F(PumpTest, ASlowReceiverHoldsTheSenderBackAndLosesNothing) {
  open({.ring = 64}, {.ring = 4});
  Pump pump(a, b);
  std::uint32_t sent = 0;
  std::vector<Bytes> got;
  for (int turn = 0; turn < 3000; ++turn) {
    while (sent < 1000 && send(left, segment(sent))) ++sent;
    pump.run_once();
    if (turn % 3 == 0) {
      for (Bytes& x : receive(right)) got.push_back(std::move(x));
    }
  }
  ASSERT_EQ(got.size(), 1000u);
  for (std::uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(got[i], segment(i));
}

TEST_F(PumpTest, FramesTooLargeForTheOtherSideAreCutWhenTcpElseLost) {
  open({.max_frame = 9014}, {.max_frame = 1514});
  Pump pump(a, b);
  ASSERT_TRUE(send(left, segment(0, 8000)));
  Bytes other(3000);
  store_be16(&other[12], 0x88b5);
  ASSERT_TRUE(send(left, other));
  Bytes broken = segment(1, 8000);
  broken.back() ^= 1;  // a wrong checksum must not be mended
  ASSERT_TRUE(send(left, broken));
  pump.run_once();
  const auto got = receive(right);
  ASSERT_EQ(got.size(), 6u);
  std::uint32_t seq = 1;
  for (const Bytes& g : got) {
    const Frame f = frame_of(g);
    expect_sound(f);
    EXPECT_LE(g.size(), 1514u);
    EXPECT_EQ(view(f).seq, seq);
    seq += view(f).payload_len;
  }
  EXPECT_EQ(seq, 8001u);
  EXPECT_EQ(pump.a_to_b().split, 1u);
  EXPECT_EQ(pump.a_to_b().too_long, 2u);
}

TEST_F(PumpTest, AWireWithNobodyAtItsEndLosesFrames) {
  open();
  right = {};
  Pump pump(a, b);
  ASSERT_TRUE(send(left, segment(0)));
  pump.run_once();
  EXPECT_EQ(pump.a_to_b().no_link, 1u);
}

TEST_F(PumpTest, EveryQueueIsServed) {
  const port::MemoryPairOptions two{.max_frame = 2000, .ring = 16, .queues = 2};
  open(two, two);
  Pump pump(a, b);
  send(left, segment(0), 0);
  send(left, segment(1), 1);
  pump.run_once();
  EXPECT_EQ(receive(right, 0), std::vector<Bytes>{segment(0)});
  EXPECT_EQ(receive(right, 1), std::vector<Bytes>{segment(1)});
}

struct PumpThread {
  PumpThread(port::Port& a, port::Port& b) : pump(a, b), wake(eventfd(0, EFD_CLOEXEC)) {
    thread = std::thread([this] {
      slept_well = pump.run(stop, wake);
      rusage use{};
      getrusage(RUSAGE_THREAD, &use);
      switches = use.ru_nvcsw;
    });
  }
  ~PumpThread() { end(); }
  void end() {
    if (!thread.joinable()) return;
    stop = true;
    const std::uint64_t one = 1;
    EXPECT_EQ(write(wake, &one, 8), 8);
    thread.join();
    close(wake);
  }
  Pump pump;
  std::atomic<bool> stop{false};
  int wake;
  bool slept_well = false;
  long switches = 0;
  std::thread thread;
};

bool wait_for(port::Port& p, std::size_t n, std::vector<Bytes>& got) {
  const std::uint64_t end = monotonic(nullptr) + 5000000000u;
  while (got.size() < n && monotonic(nullptr) < end) {
    for (Bytes& x : receive(p)) got.push_back(std::move(x));
    std::this_thread::yield();
  }
  return got.size() == n;
}

// proves: E-39
TEST_F(PumpTest, SleepsWhenIdleAndWakesForFrames) {
  open();
  PumpThread t(a, b);
  std::vector<Bytes> got;
  for (std::uint32_t i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ASSERT_TRUE(send(left, segment(i)));
    ASSERT_TRUE(wait_for(right, i + 1, got));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  t.end();
  EXPECT_TRUE(t.slept_well);
  EXPECT_LT(t.switches, 100);
}

TEST_F(PumpTest, SleepingPumpDeliversWhatAFaultyWireDelays) {
  open();
  FaultOptions o;
  o.rx = *FaultPlan::parse("delay=20ms");
  o.tx = *FaultPlan::parse("delay=20ms");
  o.clock = {monotonic, nullptr, true};
  auto faulty = wrap_faults(std::move(a), o);
  PumpThread t(faulty.port, b);
  std::vector<Bytes> got, back;
  const std::uint64_t start = monotonic(nullptr);
  ASSERT_TRUE(send(left, segment(0)));
  ASSERT_TRUE(send(right, segment(1)));
  EXPECT_TRUE(wait_for(right, 1, got));
  EXPECT_TRUE(wait_for(left, 1, back));
  EXPECT_GE(monotonic(nullptr) - start, 20000000u);
  t.end();
  EXPECT_LT(t.switches, 200);
}

TEST_F(PumpTest, AStuckDirectionDoesNotSpin) {
  open({.ring = 64}, {.ring = 4});
  PumpThread t(a, b);
  for (std::uint32_t i = 0; i < 40; ++i) ASSERT_TRUE(send(left, segment(i)));
  timespec before{}, after{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  const double used = static_cast<double>(after.tv_sec - before.tv_sec) +
                      static_cast<double>(after.tv_nsec - before.tv_nsec) * 1e-9;
  EXPECT_LT(used, 0.1);
  std::vector<Bytes> got;
  EXPECT_TRUE(wait_for(right, 40, got));
}

}  // namespace
}  // namespace urnic::fault
