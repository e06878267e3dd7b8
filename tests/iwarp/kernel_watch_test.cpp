// The kernel cannot watch one more socket (the number of watches is limited): the connecting
// program gets the error at once.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "engine/engine.h"
#include "port/memory_port.h"

namespace urnic::iwarp {
namespace {

struct Told : Hooks {
  void on_cm_event(CmEvent e) override { events.push_back(std::move(e)); }
  void on_completion(verbs::CompletionQueue*) override {}
  std::vector<CmEvent> events;
};

// While it exists, the poller's descriptor refers to an object that watches nothing.
class Blind {
 public:
  explicit Blind(int fd) : fd_(fd), kept_(dup(fd)), other_(eventfd(0, 0)) {
    EXPECT_EQ(dup2(other_, fd_), fd_);
  }
  ~Blind() {
    dup2(kept_, fd_);
    close(kept_);
    close(other_);
  }
  Blind(const Blind&) = delete;
  Blind& operator=(const Blind&) = delete;

 private:
  int fd_, kept_, other_;
};

// proves: E-50
TEST(KernelWatch, AnUnwatchableConnectionFailsAtOnce) {
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  ASSERT_EQ(bind(listening, reinterpret_cast<sockaddr*>(&at), size), 0);
  ASSERT_EQ(listen(listening, 4), 0);
  ASSERT_EQ(getsockname(listening, reinterpret_cast<sockaddr*>(&at), &size), 0);

  auto poller = kernel_tcp::Poller::make();
  ASSERT_TRUE(poller.ok());
  auto kernel = std::make_shared<KernelTcp>();
  kernel->poller = std::move(*poller);
  auto [port, far_end] = port::make_memory_pair({});
  engine::Options o;
  o.addresses = {"127.0.0.1/8"};
  Told told;
  engine::Engine engine(o, &port, 0, &told, kernel);
  verbs::CompletionQueue cq(16);
  const SocketAddress to{IpAddress::v4(127, 0, 0, 1), ntohs(at.sin_port)};
  const Instant now = Instant::from_ns(1'000'000'000);
  verbs::QueuePair* const unwatched = engine.iwarp_control().create_qp({}, &cq, &cq);
  {
    const Blind blind(kernel->poller->wait_fd());
    EXPECT_TRUE(engine.iwarp().connect(*unwatched, to, engine.iwarp().default_params(), now).ok());
  }
  ASSERT_EQ(told.events.size(), 1u);
  EXPECT_EQ(told.events[0].kind, CmEvent::Kind::ConnectFailed);
  EXPECT_EQ(told.events[0].qp, unwatched);
  EXPECT_EQ(told.events[0].message, "cannot poll the connection to 127.0.0.1: Invalid argument");
  EXPECT_EQ(unwatched->connection, 0u);
  EXPECT_EQ(unwatched->state, verbs::QpState::Error);
  engine.poll(now);
  EXPECT_EQ(engine.tables().connections, 0u);
  // The next connection works as usual.
  verbs::QueuePair* const watched = engine.iwarp_control().create_qp({}, &cq, &cq);
  ASSERT_TRUE(engine.iwarp().connect(*watched, to, engine.iwarp().default_params(), now).ok());
  engine.poll(now);
  EXPECT_EQ(told.events.size(), 1u);
  EXPECT_NE(watched->connection, 0u);
  close(listening);
}

}  // namespace
}  // namespace urnic::iwarp
