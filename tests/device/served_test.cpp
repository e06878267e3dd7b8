// urnic's own thread serves arrivals whatever the application does meanwhile, over memif and over
// the kernel's TCP. (hand_over_test.cpp shows the reasons, step by step.)
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/support/wired_ends.h"

namespace urnic {
namespace {

class Served : public test::WiredEnds {
 protected:
  // The client Reads the server's memory, with different contents each time, and reports the end.
  // The server's application polls once before each Read, and drives its engine for that moment.
  template <class Elsewhere>
  void serve(Elsewhere spend) {
    const MemoryRegion source = server.add(test::kAllRights);
    const MemoryRegion sink = client.add(access_local_write);
    std::atomic<int> rounds{0}, read{0};
    std::thread reader([&] {
      for (int i = 0; i < kRounds; ++i) {
        while (rounds.load() <= i) std::this_thread::yield();
        const Sge into{reinterpret_cast<std::uintptr_t>(client.memory.data()), 4000, sink.lkey()};
        EXPECT_EQ(client.done(Opcode::read, into, source.remote_address(), source.rkey()),
                  WcStatus::success);
        EXPECT_EQ(client.memory[0], static_cast<std::uint8_t>(i));
        read.store(i + 1);
      }
    });
    for (int i = 0; i < kRounds; ++i) {
      server.fill(static_cast<std::uint8_t>(i));
      Completion none[1];
      EXPECT_EQ(server.cq.poll(none), 0u);
      rounds.store(i + 1);
      spend(read, i + 1);
    }
    reader.join();
  }
  static constexpr int kRounds = 40;
};

TEST_P(Served, WhileItSleepsInAPollOfItsOwn) {
  serve([](const std::atomic<int>& read, int until) {
    while (read.load() < until) ::poll(nullptr, 0, 1);
  });
}

TEST_P(Served, WhileItSpinsOnMemory) {
  serve([](const std::atomic<int>& read, int until) {
    while (read.load(std::memory_order_relaxed) < until) {
    }
  });
}

TEST_P(Served, WhileItBlocksInASocketOfItsOwn) {
  serve([](const std::atomic<int>& read, int until) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    std::thread other([&] {
      while (read.load() < until) std::this_thread::yield();
      EXPECT_EQ(write(ends[1], "x", 1), 1);
    });
    char c;
    EXPECT_EQ(::read(ends[0], &c, 1), 1);
    other.join();
    close(ends[0]);
    close(ends[1]);
  });
}

TEST_P(Served, WhileItComputes) {
  serve([](const std::atomic<int>& read, int until) {
    volatile double x = 1;
    while (read.load() < until) {
      for (int i = 0; i < 10000; ++i) x = x * 1.0000001;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Wires, Served, ::testing::Values("memif", "tcp"),
                         [](const auto& wire) { return std::string(wire.param); });

}  // namespace
}  // namespace urnic
