// Sends posted one after the other leave together, on every port and over both transports; a lone
// one leaves at once, and none is left unsent.
#include "device/gathering.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "device/polling_habit.h"
#include "tests/support/wired_ends.h"

namespace urnic {
namespace {

using Clock = std::chrono::steady_clock;
using device::Gathering;
using device::PollingHabit;
const Instant kStart = Instant() + Duration::ms(7);

TEST(Gathering, TheFirstAfterAPollGoesAtOnceAndLaterOnesAreKept) {
  Gathering g;
  EXPECT_FALSE(g.keeps(1, 64, kStart));
  g.sent(1);
  EXPECT_FALSE(g.any());
  EXPECT_TRUE(g.keeps(1, 64, kStart));
  EXPECT_TRUE(g.any());
  EXPECT_TRUE(g.keeps(2, 64, kStart));
  g.sent(1);
  EXPECT_FALSE(g.any());
  for (int i = 0; i < 2; ++i) g.polled();
  EXPECT_FALSE(g.keeps(1, 64, kStart));
}

TEST(Gathering, NowAndThenAPostLooksAtWhatIsKept) {
  unsigned looks = 0;
  for (std::uint32_t i = 0; i < 4 * Gathering::kLookEvery; ++i) looks += Gathering::looks(i, 64);
  EXPECT_EQ(looks, 4u);
  EXPECT_TRUE(Gathering::looks(1, Gathering::kLarge));
  EXPECT_FALSE(Gathering::looks(1, Gathering::kLarge - 1));
}

TEST(Gathering, TheFirstIsKeptTooAfterSeveralBetweenTwoPolls) {
  Gathering g;
  g.sent(2);
  g.polled();
  EXPECT_TRUE(g.keeps(1, 64, kStart));
  g.sent(1);
  g.polled();
  EXPECT_FALSE(g.keeps(1, 64, kStart)) << "a single one";
  g.sent(1);
  EXPECT_TRUE(g.keeps(1, 64, kStart));
  g.sent(1);
  g.polled();
  EXPECT_TRUE(g.keeps(1, 64, kStart)) << "one at once and one that was kept";
  g.sent(3);
  g.polled();
  g.polled();
  EXPECT_FALSE(g.keeps(1, 64, kStart)) << "none between the last two polls";
}

TEST(Gathering, ALargeOneIsNotKept) {
  Gathering g;
  g.sent(1);
  EXPECT_TRUE(g.keeps(1, Gathering::kLarge - 1, kStart));
  EXPECT_FALSE(g.keeps(2, Gathering::kLarge, kStart));
}

TEST(Gathering, ManyAreNotKept) {
  Gathering g;
  g.sent(1);
  EXPECT_TRUE(g.keeps(Gathering::kMost - 1, 64, kStart));
  EXPECT_FALSE(g.keeps(Gathering::kMost, 64, kStart));
  for (unsigned i = 1; i < Gathering::kDoorbells; ++i) EXPECT_TRUE(g.keeps(1, 64, kStart)) << i;
  EXPECT_FALSE(g.keeps(1, 64, kStart));  // for other queue pairs
}

TEST(Gathering, NoneIsKeptForLong) {
  Gathering g;
  g.sent(1);
  EXPECT_TRUE(g.keeps(1, 64, kStart));
  EXPECT_TRUE(g.keeps(2, 64, kStart + Gathering::kLongest));
  EXPECT_FALSE(g.keeps(3, 64, kStart + Gathering::kLongest + Duration::ns(1)));
  g.sent(1);
  EXPECT_TRUE(g.keeps(1, 64, kStart + Duration::ms(5)));
}

class Gathered : public test::WiredEnds {
 protected:
  explicit Gathered(const char* progress = "auto") : WiredEnds(true, progress) {}
  void SetUp() override {
    WiredEnds::SetUp();
    sink_ = server.add(test::kAllRights);
    source_ = client.add(access_local_write);
  }
  // Polls long enough for the habit to count. False: there was a pause, as on a busy machine.
  bool poll_all_the_time() {
    Completion none[1];
    auto longest = Clock::duration::zero();
    auto last = Clock::now();
    for (const auto end = last + std::chrono::milliseconds(3); last < end; ++polls_) {
      EXPECT_EQ(client.cq.poll(none), 0u);
      const auto now = Clock::now();
      longest = std::max(longest, now - last);
      last = now;
    }
    return longest < nanoseconds(PollingHabit::kPause);
  }
  void post(Opcode op, std::uint64_t at) {
    const Sge from{reinterpret_cast<std::uintptr_t>(client.memory.data()) + at, 8, source_.lkey()};
    SendRequest r;
    r.opcode = op;
    r.sges = {&from, 1};
    r.remote_address = sink_.remote_address() + at;
    r.rkey = sink_.rkey();
    ASSERT_TRUE(client.qp.post_send(r).ok());
  }
  void collect(unsigned n) {
    while (n-- != 0) ASSERT_EQ(client.wait().status, WcStatus::success);
  }
  // Only polls, and never hands over to the thread.
  void poll_for(unsigned n) {
    const auto begin = Clock::now();
    Completion c[16];
    for (unsigned got = 0; got < n; got += client.cq.poll(c)) {
      ASSERT_LT(Clock::now() - begin, std::chrono::seconds(5));
    }
  }
  // The same with both ends driven here.
  void both_poll(unsigned n) {
    Completion c[16];
    unsigned got = 0;
    ASSERT_TRUE(test::soon([&] {
      server.cq.poll(c);
      got += static_cast<unsigned>(client.cq.poll(c));
      return got >= n;
    }));
  }
  static std::chrono::nanoseconds nanoseconds(Duration d) {
    return std::chrono::nanoseconds(d.count_ns());
  }

  MemoryRegion sink_, source_;
  std::uint64_t polls_ = 0;  // requested by poll_all_the_time
};

// iWARP: the end of a connection waits for the requests posted before it, and a segment has many.
class GatheredInAStream : public Gathered {};

// Only the data shows that a Write has arrived.
#ifdef __SANITIZE_THREAD__
#define SKIP_WITH_THREADS() \
  GTEST_SKIP() << "the sanitizer takes memory that a peer writes, and is looked at, for a race"
#else
#define SKIP_WITH_THREADS() static_cast<void>(0)
#endif

// proves: E-51, if undisturbed
TEST_P(GatheredInAStream, ManyLeaveTogether) {
  SKIP_WITH_THREADS();
  constexpr unsigned kSends = 32, kEnough = 4, kMany = 400;
  static_assert(kSends < Gathering::kMost);
  // Rounds without a pause: all of them; those in which few frames or system calls carried them;
  // and, of those with quick posts, those in which the polls after the posts sent the requests
  // (good), or did not (bad).
  unsigned rounds = 0, few = 0, good = 0, bad = 0;
  const auto end = Clock::now() + std::chrono::seconds(40);
  while (good < kEnough && bad < kEnough && (few != 0 || rounds < kMany) && Clock::now() < end) {
    const EngineStats before = client.device.stats();
    polls_ = 0;
    const bool steady = poll_all_the_time();
    const auto first = Clock::now();
    auto last = first;
    auto longest = Clock::duration::zero();
    for (unsigned i = 0; i < kSends; ++i) {
      post(Opcode::write, i * 8);
      longest = std::max(longest, Clock::now() - last);
      last = Clock::now();
    }
    // Otherwise the last post may have sent them, because they were old, and not the polls.
    const bool quick = last - first < nanoseconds(Gathering::kLongest);
    // The poll sends what was kept; it does not wait for the thread, which may take long.
    Completion c[kSends];
    const unsigned at_once = client.cq.poll(c) + client.cq.poll(c) + client.cq.poll(c);
    const bool paused = std::max(longest, Clock::now() - last) > nanoseconds(PollingHabit::kPause);
    const EngineStats after = client.device.stats();
    if (at_once < kSends) poll_for(kSends - at_once);
    if (!steady || paused) continue;
    ++rounds;
    // On a busy machine the thread may not be watching yet, and then each request leaves by itself;
    // or the thread owns the engine, so that polls do not.
    const std::uint64_t served = after.polls - before.polls;
    // Over memif an FPDU has no frame of its own.
    const bool gathered = is("tcp") ? after.port.syscalls - before.port.syscalls <= kSends / 8
                                    : after.port.tx_frames - before.port.tx_frames <= kSends / 4;
    if (gathered && at_once == kSends) {
      ++few;
      good += quick ? 1 : 0;
    } else if (gathered && quick && served >= polls_ + 2) {
      ++bad;
    }
  }
#ifdef __SANITIZE_ADDRESS__
  if (good < kEnough) GTEST_SKIP() << "a poll takes longer than what counts as back to back";
#endif
  EXPECT_LT(bad, kEnough) << "what is kept stays behind a poll";
  // In any case some requests leave together; that the polls send them can only be seen in quick
  // rounds.
  if (few == 0 && bad < kEnough) {
    EXPECT_LT(rounds, kMany) << "each leaves by itself";
  }
  if (good < kEnough && !HasFailure()) {
    GTEST_SKIP() << "a busy machine: in 40 s " << rounds << " rounds without a pause, " << few
                 << " of few system calls, " << good << " of them quick";
  }
}

// No poll follows the posts: the thread sends what was kept.
// proves: E-51, if undisturbed
TEST_P(Gathered, KeptSendsLeaveWithoutAPoll) {
  SKIP_WITH_THREADS();
  constexpr unsigned kSends = 7;
  // Rounds in which requests were kept: after constant polling, and posted without a pause.
  unsigned kept = 0;
  const auto end = Clock::now() + std::chrono::seconds(40);
  for (unsigned round = 0; kept < 50 && Clock::now() < end; ++round) {
    client.fill(static_cast<std::uint8_t>(round));
    const bool steady = poll_all_the_time();
    const auto begin = Clock::now();
    for (unsigned i = 0; i < kSends; ++i) post(Opcode::write, i * 8);
    kept += steady && Clock::now() - begin < nanoseconds(Gathering::kLongest) ? 1 : 0;
    while (std::atomic_ref(server.memory[kSends * 8 - 1]).load() != client.memory[kSends * 8 - 1]) {
      ASSERT_LT(Clock::now() - begin, std::chrono::seconds(5)) << round;
    }
    collect(kSends);
  }
  if (kept == 0) GTEST_SKIP() << "a busy machine: nothing was kept in 40 s";
}

// The end of the connection does not overtake them either.
TEST_P(GatheredInAStream, TheEndComesAfterKeptSends) {
  constexpr unsigned kSends = 7;
  for (int round = 0; round < 10; ++round) {
    std::vector<Sge> rooms;
    for (unsigned i = 0; i < kSends; ++i) {
      rooms.push_back(
          {reinterpret_cast<std::uintptr_t>(server.memory.data()) + i * 8, 8, sink_.lkey()});
      ReceiveRequest r;
      r.sges = {&rooms.back(), 1};
      ASSERT_TRUE(server.qp.post_receive(r).ok());
    }
    poll_all_the_time();
    for (unsigned i = 0; i < kSends; ++i) post(Opcode::send, i * 8);
    client.qp.disconnect();
    for (unsigned i = 0; i < kSends; ++i) EXPECT_EQ(server.wait().status, WcStatus::success) << i;
    collect(kSends);
    server.qp = server.another();
    client.qp = client.another();
    join(server.qp, client.qp);
  }
}

// Every other call on the device comes after them.
TEST_P(GatheredInAStream, OtherCallsOnTheDeviceComeAfterKeptSends) {
  constexpr unsigned kSends = 7;
  for (unsigned round = 1; round <= 30; ++round) {
    poll_all_the_time();
    for (unsigned i = 0; i < kSends; ++i) post(Opcode::write, i * 8);
    const EngineStats s = client.device.stats();
    ASSERT_EQ(s.connections.size(), 1u);
    ASSERT_EQ(s.connections[0].verbs.writes_sent, round * kSends);
    collect(kSends);
  }
}

// When the application polls, every queue pair's requests are sent.
TEST_P(Gathered, KeptSendsOfSeveralQueuePairsAllLeave) {
  QueuePair there = server.another(), here = client.another();
  join(there, here);
  for (int round = 0; round < 50; ++round) {
    poll_all_the_time();
    for (unsigned i = 0; i < 10; ++i) {
      post(Opcode::write, i * 8);
      std::swap(here, client.qp);
    }
    poll_for(10);
  }
}

// The client's device has no thread: only its own calls send.
class AloneAtTheClient : public Gathered {
 protected:
  AloneAtTheClient() : Gathered("poll") {}
  // True if the data of Write `i` is in the server's memory.
  bool is_there(unsigned i) {
    return std::atomic_ref(server.memory[i * 8]).load() == client.memory[i * 8];
  }
  // The server polls until then.
  bool arrives(unsigned i) {
    return test::soon([&] {
      Completion none[1];
      server.cq.poll(none);
      return is_there(i);
    });
  }
};

// proves: E-51
TEST_P(AloneAtTheClient, ALonePostLeavesAtOnce) {
  SKIP_WITH_THREADS();
  for (unsigned round = 0; round < 20; ++round) {
    client.fill(static_cast<std::uint8_t>(round + 1));
    poll_all_the_time();
    post(Opcode::write, 0);
    ASSERT_TRUE(arrives(0)) << round;
    both_poll(1);
  }
}

// Without a thread the next calls send what has been kept for long: here other posts.
// proves: E-51
TEST_P(AloneAtTheClient, LaterPostsSendWhatIsKept) {
  SKIP_WITH_THREADS();
  constexpr unsigned kSends = 7, kMost = 8 * Gathering::kLookEvery;
  for (unsigned round = 0; round < 20; ++round) {
    client.fill(static_cast<std::uint8_t>(round + 1));
    poll_all_the_time();
    unsigned posted = 0;
    for (; posted < kSends; ++posted) post(Opcode::write, posted * 8);
    // More than one look, because RoCE may have begun to repeat, and then waits for an ACK.
    for (; posted < kMost && !is_there(kSends - 1); ++posted) {
      std::this_thread::sleep_for(std::chrono::microseconds(250));
      post(Opcode::write, 0);
      Completion none[1];
      server.cq.poll(none);
    }
    ASSERT_TRUE(is_there(kSends - 1)) << round;
    both_poll(posted);
  }
}

const auto kEveryWire = ::testing::Values("tcp", "memif", "roce", "udp");
const auto kName = [](const auto& wire) { return std::string(wire.param); };
INSTANTIATE_TEST_SUITE_P(Wires, Gathered, kEveryWire, kName);
INSTANTIATE_TEST_SUITE_P(Wires, GatheredInAStream, ::testing::Values("tcp", "memif"), kName);
INSTANTIATE_TEST_SUITE_P(Wires, AloneAtTheClient, kEveryWire, kName);

}  // namespace
}  // namespace urnic
