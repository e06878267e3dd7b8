// How often the engine asks the kernel which sockets are ready.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <utility>

#include "engine/engine.h"
#include "port/memory_port.h"
#include "port/port.h"

namespace urnic::iwarp {
namespace {

struct NoHooks : Hooks {
  void on_cm_event(CmEvent) override {}
  void on_completion(verbs::CompletionQueue*) override {}
};

// A descriptor that becomes ready and belongs to no connection.
class Ready {
 public:
  explicit Ready(kernel_tcp::Poller* poller) : fd_(eventfd(0, EFD_NONBLOCK)) {
    constexpr std::uint64_t kNobody = 4711;
    EXPECT_EQ(poller->add(fd_, kNobody), 0);
  }
  ~Ready() { close(fd_); }
  void now() const { EXPECT_EQ(eventfd_write(fd_, 1), 0); }

 private:
  int fd_;
};

class KernelRounds : public ::testing::Test {
 protected:
  void SetUp() override {
    auto poller = kernel_tcp::Poller::make();
    ASSERT_TRUE(poller.ok());
    kernel->poller = std::move(*poller);
    engine.emplace(options, &ports.first, 0, &hooks, kernel);
    ready.emplace(kernel->poller.get());
    // An eventfd is writable from the beginning, and the device has its own events first.
    while (engine->poll(t, false)) t = t + Duration::ms(1);
    ready->now();
    EXPECT_TRUE(engine->poll(t, false));
  }
  // A descriptor is ready this long after it last was, with no event in between.
  void ready_after(Duration d) {
    ready->now();
    EXPECT_TRUE(engine->poll(t, false));
    EXPECT_FALSE(engine->poll(t + d, true)) << "it asks, and is told that nothing is";
    ready->now();
    t = t + d;
  }

  static engine::Options options_for() {
    engine::Options o;
    o.addresses = {"127.0.0.1/8"};
    return o;
  }
  std::shared_ptr<KernelTcp> kernel = std::make_shared<KernelTcp>();
  std::pair<port::Port, port::Port> ports = port::make_memory_pair({});
  NoHooks hooks;
  engine::Options options = options_for();
  std::optional<engine::Engine> engine;
  std::optional<Ready> ready;
  Instant t = Instant::from_ns(1'000'000'000);
};

TEST_F(KernelRounds, ABusyPollAsksAgainAfterASixteenthOfTheSilence) {
  ready_after(Duration::us(8));
  EXPECT_FALSE(engine->poll(t + Duration::ns(499), true));
  EXPECT_TRUE(engine->poll(t + Duration::ns(500), true));
}

TEST_F(KernelRounds, ABusyPollAsksAgainAfterAtMostTwoMicroseconds) {
  ready_after(Duration::ms(1));
  EXPECT_FALSE(engine->poll(t + Duration::ns(1999), true));
  EXPECT_TRUE(engine->poll(t + Duration::us(2), true));
}

TEST_F(KernelRounds, TheNextPollAsksAfterASocketWasReady) {
  for (int i = 0; i < 3; ++i) {
    ready->now();
    EXPECT_TRUE(engine->poll(t, true));
  }
}

TEST_F(KernelRounds, ACallerThatMayNotPollAgainAsksAtOnce) {
  ready_after(Duration::ms(1));
  EXPECT_FALSE(engine->poll(t, true));
  EXPECT_TRUE(engine->poll(t, false));
}

}  // namespace
}  // namespace urnic::iwarp
