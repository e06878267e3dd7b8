// The listeners that a child of a fork takes over when its parent has ended.
#include <sys/wait.h>

#include "dropin/cm_ends.h"
#include "dropin/own_process.h"
#include "support/quiet_fork.h"

namespace cm {
namespace {

// A listening process that has forked and ended. Its child lives as long as this end of a pipe.
struct Daemon {
  std::uint16_t port = 0;
  int said = -1;
};

class DaemonTest : public own_process::Test {
 protected:
  void TearDown() override {
    if (client_ == nullptr) return;
    rdma_destroy_qp(client_);
    EXPECT_EQ(rdma_destroy_id(client_), 0);
  }

  // `then` runs in the child, after `deep` forks of the listening process, with its channel and id.
  template <class Then>
  void become(Daemon* out, int deep, Then&& then) {
    int says[2];
    ASSERT_EQ(pipe(says), 0);
    const pid_t first = urnic::test::quiet_fork();
    ASSERT_GE(first, 0);
    if (first == 0) {
      alarm(300);
      listen(says[1]);
      for (; deep > 0; --deep) {
        if (urnic::test::quiet_fork() != 0) _exit(0);
      }
      alarm(300);
      _exit(then(says[1]));
    }
    close(says[1]);
    int status = 0;
    ASSERT_EQ(waitpid(first, &status, 0), first);
    ASSERT_EQ(status, 0);
    ASSERT_EQ(read(says[0], &out->port, sizeof out->port), sizeof out->port);
    out->said = says[0];
  }

  void listen(int says) {
    channel_ = rdma_create_event_channel();
    sockaddr_in a = loopback(0);
    if (rdma_create_id(channel_, &listener_, nullptr, RDMA_PS_TCP) != 0) _exit(10);
    if (rdma_bind_addr(listener_, any(a)) != 0 || rdma_listen(listener_, 4) != 0) _exit(11);
    const std::uint16_t port = ntohs(rdma_get_src_port(listener_));
    if (write(says, &port, sizeof port) != sizeof port) _exit(12);
  }

  // Serves one client through the channel.
  static bool serve(rdma_event_channel* channel) {
    auto* request = next(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    if (request == nullptr) return false;
    rdma_cm_id* id = request->id;
    rdma_ack_cm_event(request);
    auto attr = small_qp();
    if (rdma_create_qp(id, nullptr, &attr) != 0 || rdma_accept(id, nullptr) != 0) return false;
    pass(channel, RDMA_CM_EVENT_ESTABLISHED);
    pass(channel, RDMA_CM_EVENT_DISCONNECTED);
    return !testing::Test::HasFailure();
  }

  // Waits until the child listens there; the time between the two listeners is short.
  bool is_served(std::uint16_t port) {
    channel_ = rdma_create_event_channel();
    const bool served = urnic::test::soon([&] { return connects(port); });
    EXPECT_EQ(served ? rdma_disconnect(client_) : 0, 0);
    return served;
  }
  bool connects(std::uint16_t port) {
    if (client_ != nullptr) {
      rdma_destroy_qp(client_);
      EXPECT_EQ(rdma_destroy_id(client_), 0);
      client_ = nullptr;
    }
    sockaddr_in to = loopback(port);
    EXPECT_EQ(rdma_create_id(channel_, &client_, nullptr, RDMA_PS_TCP), 0);
    EXPECT_EQ(rdma_resolve_addr(client_, nullptr, any(to), urnic::test::kSoonMs), 0);
    pass(channel_, RDMA_CM_EVENT_ADDR_RESOLVED);
    EXPECT_EQ(rdma_resolve_route(client_, urnic::test::kSoonMs), 0);
    pass(channel_, RDMA_CM_EVENT_ROUTE_RESOLVED);
    auto attr = small_qp();
    EXPECT_EQ(rdma_create_qp(client_, nullptr, &attr), 0);
    EXPECT_EQ(rdma_connect(client_, nullptr), 0);
    pollfd p{channel_->fd, POLLIN, 0};
    if (poll(&p, 1, urnic::test::kSoonMs) != 1) return false;
    rdma_cm_event* event = nullptr;
    EXPECT_EQ(rdma_get_cm_event(channel_, &event), 0);
    const bool established = event->event == RDMA_CM_EVENT_ESTABLISHED;
    EXPECT_EQ(rdma_ack_cm_event(event), 0);
    return established;
  }

  rdma_event_channel* channel_ = nullptr;
  rdma_cm_id *listener_ = nullptr, *client_ = nullptr;
};

char said_by(const Daemon& daemon) {
  char verdict = '-';
  EXPECT_EQ(read(daemon.said, &verdict, 1), 1);
  return verdict;
}

#ifdef __SANITIZE_THREAD__
#define SKIP_UNDER_TSAN() \
  GTEST_SKIP() << "the sanitizer knows no threads behind a fork of a process that had some"
#else
#define SKIP_UNDER_TSAN() (void)0
#endif

// daemon(3) forks once, many daemons twice.
// proves: DI-11
TEST_F(DaemonTest, AChildTakesOverTheListenersOfAParentThatHasEnded) {
  SKIP_UNDER_TSAN();
  if (!within()) return;
  for (const int deep : {1, 2}) {
    Daemon daemon;
    become(&daemon, deep, [&](int says) {
      const char verdict = serve(channel_) && rdma_destroy_id(listener_) == 0 ? 'y' : 'n';
      return write(says, &verdict, 1) == 1 ? 0 : 1;
    });
    ASSERT_NE(daemon.port, 0);
    EXPECT_TRUE(is_served(daemon.port)) << deep;
    EXPECT_EQ(said_by(daemon), 'y') << deep;
  }
}

// proves: DI-11
TEST_F(DaemonTest, AListenerDestroyedByTheChildFreesItsPort) {
  SKIP_UNDER_TSAN();
  if (!within()) return;
  Daemon daemon;
  become(&daemon, 1, [&](int says) {
    const bool destroyed = rdma_destroy_id(listener_) == 0;
    // The port is free for another listener of this process, which the client finds.
    rdma_event_channel* own = rdma_create_event_channel();
    rdma_cm_id* id = nullptr;
    sockaddr_in a = loopback(ntohs(rdma_get_src_port(listener_)));
    rdma_create_id(own, &id, nullptr, RDMA_PS_TCP);
    const bool bound = urnic::test::soon([&] { return rdma_bind_addr(id, any(a)) == 0; });
    const bool served = destroyed && bound && rdma_listen(id, 4) == 0 && serve(own);
    const char verdict = served ? 'y' : 'n';
    return write(says, &verdict, 1) == 1 ? 0 : 1;
  });
  ASSERT_NE(daemon.port, 0);
  EXPECT_TRUE(is_served(daemon.port));
  EXPECT_EQ(said_by(daemon), 'y');
}

// The program has forgotten the inherited listener, which gives its port to the new one.
// proves: DI-11
TEST_F(DaemonTest, ANewListenerOfTheChildGetsThePortOfTheInheritedOne) {
  SKIP_UNDER_TSAN();
  if (!within()) return;
  Daemon daemon;
  become(&daemon, 1, [&](int says) {
    const std::uint16_t port = ntohs(rdma_get_src_port(listener_));
    const auto is_taken_over = [&] {  // true if the port is taken
      const int fd = socket(AF_INET, SOCK_STREAM, 0);
      sockaddr_in a = loopback(port);
      const bool taken = bind(fd, any(a), sizeof a) != 0 && getppid() != 0;
      close(fd);
      return taken;
    };
    const bool taken = urnic::test::soon(is_taken_over);
    rdma_event_channel* own = rdma_create_event_channel();
    rdma_cm_id* id = nullptr;
    sockaddr_in a = loopback(port);
    rdma_create_id(own, &id, nullptr, RDMA_PS_TCP);
    const bool bound = urnic::test::soon([&] { return rdma_bind_addr(id, any(a)) == 0; });
    const char verdict = taken && bound && rdma_listen(id, 4) == 0 && serve(own) ? 'y' : 'n';
    return write(says, &verdict, 1) == 1 ? 0 : 1;
  });
  ASSERT_NE(daemon.port, 0);
  EXPECT_TRUE(is_served(daemon.port));
  EXPECT_EQ(said_by(daemon), 'y');
}

}  // namespace
}  // namespace cm
