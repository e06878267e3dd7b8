// Which thread drives the engine, and posting meanwhile (E-28). Run under ThreadSanitizer too.
#include "device/driver.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <sys/resource.h>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/engine_options.h"
#include "port/memory_port.h"
#include "tests/support/soon.h"
#include "urnic/config.h"

namespace urnic::device {

using engine::Options;
using verbs::CmEvent;
using verbs::Hooks;
namespace {

struct NoHooks : Hooks {
  void on_cm_event(CmEvent) override {}
  void on_completion(verbs::CompletionQueue*) override {}
};

// One engine whose queue pair is in state Error: a posted request completes as flushed as soon as
// its doorbell is answered, and not before.
struct DriverTest : ::testing::Test {
  DriverTest() {
    auto [a, b] = port::make_memory_pair();
    port = std::move(a);
    peer = std::move(b);
    engine = std::make_unique<Engine>(device::options_from(Config(), "mem"), &port, 0, &hooks);
    qp = make_qp();
  }
  verbs::QueuePair* make_qp() {
    ddp::StreamConfig config;
    config.max_send_wr = 1024;
    verbs::QueuePair* made = engine->iwarp_control().create_qp(config, &cq, &cq);
    made->state.modify(verbs::QpState::Error);
    return made;
  }
  std::unique_ptr<Driver> drive(Progress progress) {
    DriverOptions options;
    options.progress = progress;
    auto driver = std::make_unique<Driver>(options, engine.get(), &port, 0);
    EXPECT_TRUE(driver->start().ok());
    return driver;
  }
  static void post(verbs::QueuePair& to) {
    verbs::SendWr wr;
    wr.flags = verbs::kSignaled;
    ASSERT_EQ(to.sq.post(wr), verbs::Post::Ok);
  }
  int polled() {
    verbs::Cqe out[64];
    return cq.poll(out);
  }
  NoHooks hooks;
  port::Port port, peer;
  verbs::CompletionQueue cq{16384};
  std::unique_ptr<Engine> engine;
  verbs::QueuePair* qp;
};

// proves: E-28
TEST_F(DriverTest, RingingNeverWaitsForABurst) {
  auto driver = drive(Progress::Poll);
  std::promise<void> inside, leave;
  std::thread burst([&] {
    driver->own([&](Instant) {
      inside.set_value();
      leave.get_future().wait();
      return 0;
    });
  });
  inside.get_future().wait();
  post(*qp);
  auto rang = std::async(std::launch::async, [&] { driver->ring(*qp, verbs::kPostedSends); });
  EXPECT_EQ(rang.wait_for(test::kSoon), std::future_status::ready);
  EXPECT_EQ(polled(), 0);  // the owner is still inside
  leave.set_value();
  burst.join();
  rang.wait();
  EXPECT_EQ(polled(), 1);  // the owner answered it before it left
  EXPECT_EQ(qp->rung.load(), 0u) << "what is posted from now on rings again";
}

// proves: E-28
TEST_F(DriverTest, DoorbellAtTheEndOfABurstIsNotLost) {
  auto driver = drive(Progress::Poll);
  constexpr int kRounds = 3000;
  std::atomic<int> round{0}, left{0};
  const auto reaches = [](const std::atomic<int>& counter, int value) {
    for (int i = 1; counter.load() < value; ++i) {
      if (i % 256 == 0) std::this_thread::yield();
    }
  };
  std::thread owner([&] {
    for (int i = 1; i <= kRounds; ++i) {
      reaches(round, i);
      driver->own([](Instant) { return 0; });
      left = i;
    }
  });
  for (int i = 1; i <= kRounds; ++i) {
    post(*qp);
    round = i;
    driver->ring(*qp, verbs::kPostedSends);
    reaches(left, i);
    // Both threads have left and neither polls: one of them must have answered.
    if (polled() == 1) continue;
    ADD_FAILURE() << "round " << i;
    round = kRounds;
    break;
  }
  owner.join();
}

// proves: E-28
TEST_F(DriverTest, SleepingThreadAnswersDoorbells) {
  auto driver = drive(Progress::Thread);
  for (int i = 0; i < 50; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(i % 3));
    post(*qp);
    driver->ring(*qp, verbs::kPostedSends);
    ASSERT_TRUE(test::soon([&] { return !cq.looks_empty(); }));
    ASSERT_EQ(polled(), 1);
  }
}

// proves: E-28
TEST_F(DriverTest, ManyThreadsPostToAndDestroyTheirQueuePairs) {
  auto driver = drive(Progress::Thread);
  constexpr int kThreads = 4, kPosts = 2000;
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int life = 0; life < 5; ++life) {
        verbs::QueuePair* mine = driver->own([&](Instant) { return make_qp(); });
        for (int i = 0; i < kPosts / 5; ++i) {
          post(*mine);
          driver->ring(*mine, verbs::kPostedSends);
        }
        driver->own_last(*mine, [&](Instant now) {
          engine->iwarp_control().destroy(mine, now);
          return 0;
        });
      }
      ++done;
    });
  }
  int got = 0;
  while (done < kThreads) {
    const int n = polled();
    if (n == 0) std::this_thread::yield();
    got += n;
  }
  for (std::thread& t : threads) t.join();
  for (int n; (n = polled()) > 0;) got += n;
  EXPECT_FALSE(cq.overrun());
  EXPECT_EQ(got, kThreads * kPosts);
}

// ---- other descriptors that it watches, and the signals that it leaves alone

// A frame for no one, which is only counted.
void arrive_at(port::Port* from) {
  port::Frame f{};
  ASSERT_EQ(from->tx_reserve(0, 64, &f, 1), 1u);
  f.len[0] = 64;
  from->tx_commit(0, &f, 1);
}

// proves: E-51
TEST_F(DriverTest, AThreadThatPostsWithoutAPauseServesArrivals) {
  auto driver = drive(Progress::Poll);  // no other thread drives
  for (std::uint64_t round = 1; round <= 3; ++round) {
    arrive_at(&peer);
    ASSERT_TRUE(test::soon([&] {
      post(*qp);
      driver->ring(*qp, verbs::kPostedSends);
      EXPECT_EQ(polled(), 1);
      return engine->counters().rx_frames >= round;
    }));
    ASSERT_EQ(engine->counters().rx_frames, round);
  }
}

TEST_F(DriverTest, TheSleeperIsWokenAfterAPosterServed) {
  auto driver = drive(Progress::Auto);
  std::uint64_t seen = 0;
  const auto served = [&](std::uint64_t n) {
    return driver->own([&](Instant) { return engine->counters().rx_frames >= n; });
  };
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    arrive_at(&peer);
    for (int i = 0; i < 50; ++i) {
      post(*qp);
      driver->ring(*qp, verbs::kPostedSends);
      int done = 0;  // by the thread, if it owns the engine at this moment
      ASSERT_TRUE(test::soon([&] { return (done = polled()) != 0; }));
      ASSERT_EQ(done, 1);
    }
    arrive_at(&peer);
    seen += 2;
    ASSERT_TRUE(test::soon([&] { return served(seen); })) << round;
  }
}

struct Watched : DriverTest {
  Watched() { EXPECT_EQ(pipe(ends), 0); }
  ~Watched() override {
    driver.reset();
    close(ends[0]);
    close(ends[1]);
  }
  void start(Progress progress, Duration spin) {
    DriverOptions options;
    options.progress = progress;
    options.spin = spin;
    driver = std::make_unique<Driver>(options, engine.get(), &port, 0);
    driver->watched().watch(ends[0], [this] {
      char c;
      if (read(ends[0], &c, 1) == 1) ++served;
    });
    ASSERT_TRUE(driver->start().ok());
  }
  // Writes to the watched descriptor; true once it was served. `meanwhile`: calls of the
  // application.
  template <class F>
  bool ask(F&& meanwhile) {
    const int before = served;
    EXPECT_EQ(write(ends[1], "x", 1), 1);
    return test::soon([&] {
      meanwhile();
      return served != before;
    });
  }
  int ends[2];
  std::atomic<int> served{0};
  std::unique_ptr<Driver> driver;
};

// A service that follows activity is called once after it, and by nothing else.
struct AfterActivity : DriverTest {
  AfterActivity() {
    DriverOptions options;
    options.progress = Progress::Poll;
    driver = std::make_unique<Driver>(options, engine.get(), &port, 0);
    driver->watched().watch_activity(Duration::ms(1), [this] {
      ++served;
      return Duration::ms(1);
    });
    EXPECT_TRUE(driver->start().ok());
    settle();
  }
  // The initial packets of the interface are over.
  void settle() {
    EXPECT_TRUE(test::soon([&] {
      const int before = served;
      for (int i = 0; i < 20; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        driver->app_poll();
      }
      return served == before;
    }));
  }
  bool is_served() {
    const int before = served;
    const bool called = test::soon([&] { return driver->app_poll(), served != before; });
    settle();
    return called && served == before + 1;
  }
  int served = 0;
  std::unique_ptr<Driver> driver;
};

TEST_F(AfterActivity, IsCalledAfterAPost) {
  for (int i = 0; i < 3; ++i) {
    post(*qp);
    driver->ring(*qp, verbs::kPostedSends);
    EXPECT_TRUE(is_served()) << i;
  }
}

TEST_F(AfterActivity, IsCalledAfterAnArrival) {
  for (int i = 0; i < 3; ++i) {
    arrive_at(&peer);
    EXPECT_TRUE(is_served()) << i;
  }
}

// proves: E-51
TEST_F(Watched, IsServedWhileTheThreadSleeps) {
  start(Progress::Thread, {});
  // The interface's initial packets are over, and the thread sleeps: nothing else wakes it.
  ASSERT_TRUE(test::soon([&] {
    return driver->own([&](Instant now) {
      return engine->next_deadline() > now + Duration::s(1000) && !engine->has_more_to_send();
    });
  }));
  ASSERT_TRUE(test::soon([&] {
    const std::uint64_t before = driver->sleeps();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return driver->sleeps() == before && before != 0;
  }));
  EXPECT_TRUE(ask([] {}));
}

// proves: E-51
TEST_F(Watched, IsServedByAThreadThatNeverSleeps) {
  start(Progress::Thread, Duration::s(1000));
  EXPECT_TRUE(ask([] {}));
}

// proves: E-51
TEST_F(Watched, IsServedByAnApplicationThatPollsAlone) {
  start(Progress::Poll, {});
  EXPECT_TRUE(ask([&] { driver->app_poll(); }));
}

// The nice value of this process' thread of that name; none: it does not exist (yet).
std::optional<int> nice_of(const std::string& name) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string comm;
    std::getline(std::ifstream(task.path() / "comm"), comm);
    if (comm != name) continue;
    const auto id = static_cast<id_t>(std::stoul(task.path().filename().string()));
    return getpriority(PRIO_PROCESS, id);
  }
  return std::nullopt;
}

// Where the process has no right to that, the priority is that of the process.
TEST_F(DriverTest, TheThreadHasAHigherPriorityThanTheApplication) {
  int may_have = 0;
  std::thread([&may_have] {
    const auto me = static_cast<id_t>(gettid());
    setpriority(PRIO_PROCESS, me, Driver::kNice);
    may_have = getpriority(PRIO_PROCESS, me);
  }).join();
  auto driver = drive(Progress::Auto);
  EXPECT_TRUE(test::soon([&] { return nice_of("urnic") == may_have; })) << may_have;
  EXPECT_NE(nice_of("urnic").value_or(99), 99);
}

std::atomic<int> signals{0};

// The caller handles the signals of the process; they are never delivered to our thread.
// proves: E-28
TEST_F(DriverTest, TheCallersSignalsAreNotDeliveredToTheThread) {
  auto driver = drive(Progress::Thread);
  struct sigaction count {
  }, old;
  count.sa_handler = [](int) { ++signals; };
  ASSERT_EQ(sigaction(SIGUSR1, &count, &old), 0);
  sigset_t mine, before;
  sigemptyset(&mine);
  sigaddset(&mine, SIGUSR1);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &mine, &before), 0);
  ASSERT_EQ(kill(getpid(), SIGUSR1), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(signals, 0);
  const timespec now{};
  EXPECT_EQ(sigtimedwait(&mine, nullptr, &now), SIGUSR1) << "it waits for the caller";
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  sigaction(SIGUSR1, &old, nullptr);
}

// A program may post as soon as it gets the established event, while the engine is still inside the
// call that reported it.
// proves: E-28
TEST(Events, WorkMayBePostedWhenEstablishedIsReported) {
  struct Watch : NoHooks {
    void on_cm_event(CmEvent e) override {
      if (e.kind == CmEvent::Kind::ConnectRequest) request = e.request.id;
      if (e.kind == CmEvent::Kind::Established) told.push_back(e.qp->state);
    }
    std::uint32_t request = 0;
    std::vector<verbs::QpState> told;
  };
  Watch left_hooks, right_hooks;
  auto [a, b] = port::make_memory_pair();
  Config c;
  ASSERT_TRUE(c.set("address", "10.77.0.1/24").ok());
  Engine left(device::options_from(c, "mem"), &a, 0, &left_hooks);
  ASSERT_TRUE(c.set("address", "10.77.0.2/24").ok());
  Engine right(device::options_from(c, "mem"), &b, 0, &right_hooks);
  verbs::CompletionQueue cq(16);
  verbs::QueuePair* here = left.iwarp_control().create_qp({}, &cq, &cq);
  verbs::QueuePair* there = right.iwarp_control().create_qp({}, &cq, &cq);
  Instant now = Instant::from_ns(1'000'000'000);
  ASSERT_TRUE(left.iwarp().listen(7, 1));
  const auto to = SocketAddress::parse("10.77.0.1:7");
  ASSERT_TRUE(right.iwarp().connect(*there, *to, right.iwarp().default_params(), now).ok());
  for (int i = 0; i < 1000 && (left_hooks.told.empty() || right_hooks.told.empty()); ++i) {
    now = now + Duration::ms(1);
    left.poll(now);
    right.poll(now);
    if (left_hooks.request != 0) {
      ASSERT_TRUE(left.iwarp()
                      .accept(std::exchange(left_hooks.request, 0), *here,
                              left.iwarp().default_params(), now)
                      .ok());
    }
  }
  EXPECT_EQ(left_hooks.told, std::vector{verbs::QpState::Rts});
  EXPECT_EQ(right_hooks.told, std::vector{verbs::QpState::Rts});
}

}  // namespace
}  // namespace urnic::device
