// How connections over the kernel's TCP end if the kernel has no room, or has more data than one
// turn processes, and what a closed listener leaves there. Only the test polls the device.
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "iwarp/bare_peer.h"
#include "mpa/fpdu.h"

namespace urnic {
namespace {

using namespace stream_test;

struct StreamEnd : ::testing::Test {
  void SetUp() override {
    auto l = device.listen(0);
    ASSERT_TRUE(l.ok());
    listener = std::move(*l);
  }
  void poll(int times) {
    for (int i = 0; i < times; ++i) {
      device.progress();
      usleep(100);
    }
  }
  // Polls until `f` returns true.
  template <class F>
  bool poll_until(F&& f) {
    return test::soon([&] {
      device.progress();
      return f();
    });
  }
  // Reaches full operation, where both ends may send.
  void establish(const Bare& peer, End& end) {
    peer.request();
    auto request = listener.next(60000);
    ASSERT_TRUE(request.ok());
    ASSERT_TRUE(request->accept(end.qp).ok());
    ASSERT_EQ(peer.read(24), 24u) << "the Reply";
    peer.send(empty_write());
    ASSERT_TRUE(poll_until([&] { return end.qp.state() == QpState::rts; }));
  }
  // Fills the socket until it accepts no more bytes. Returns how many it accepted.
  static std::size_t fill(int fd) {
    const std::vector<std::uint8_t> junk(65536, 0x5a);
    std::size_t sent = 0;
    for (int quiet = 0; quiet < 50; ++quiet) {
      for (std::size_t n = junk.size(); n != 0; n /= 2) {
        for (ssize_t k = 0; (k = ::send(fd, junk.data(), n, MSG_DONTWAIT | MSG_NOSIGNAL)) > 0;) {
          sent += static_cast<std::size_t>(k);
          quiet = 0;
        }
      }
      usleep(1000);
    }
    return sent;
  }
  // Reads until the end of the stream.
  std::size_t read_all(const Bare& peer) {
    std::vector<std::uint8_t> in(65536);
    std::size_t got = 0;
    EXPECT_TRUE(poll_until([&] {
      ssize_t n = 0;
      while ((n = ::recv(peer.fd, in.data(), in.size(), MSG_DONTWAIT)) > 0) {
        got += static_cast<std::size_t>(n);
      }
      return n == 0;
    })) << "no end of the stream";
    return got;
  }
  // The first event other than `established`.
  EventKind next_event(End& end) {
    Event e;
    e.kind = EventKind::established;
    poll_until([&] { return end.events.poll(&e) && e.kind != EventKind::established; });
    return e.kind;
  }
  Device device = open({{"progress", "poll"}});
  Listener listener;
};

// A segment was cut for the kernel, which had no room for it. Nothing is left to cut, but our FIN
// is not due yet.
// proves: E-50
TEST_F(StreamEnd, TheFinComesAfterDataTheKernelHadNoRoomFor) {
  constexpr std::uint32_t kUntagged = 18;
  // The kernel may find room after the last check: then try again with another connection.
  bool full = false;
  for (int tries = 0; tries < 20 && !full; ++tries) {
    Bare peer(listener.port());
    // Sizes that the kernel does not enlarge by itself.
    const int size = 65536;
    setsockopt(peer.fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    End end(device);
    establish(peer, end);
    if (HasFatalFailure()) return;
    const int fd = other_end(peer);
    ASSERT_GE(fd, 0);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    const std::size_t junk = fill(fd);
    const Sge data = end.sge(0, 64);
    const std::uint64_t before = device.stats().port.tx_bytes;
    ASSERT_TRUE(end.qp.post_send(small_send(data)).ok());
    end.qp.disconnect();
    poll(10);
    full = device.stats().port.tx_bytes == before;
    EXPECT_EQ(read_all(peer) - junk, mpa::fpdu_size(kUntagged + 64));
    shutdown(peer.fd, SHUT_WR);
    EXPECT_EQ(next_event(end), EventKind::disconnected);
    if (HasFailure()) return;
  }
  EXPECT_TRUE(full) << "the kernel always had room";
}

// Our FIN was sent. The peer's FIN comes after more data than one turn reads, and was reported with
// it.
// proves: E-50
TEST_F(StreamEnd, AFinAfterMoreThanOneTurnOfDataEndsAClosingConnection) {
  Bare peer(listener.port());
  End end(device);
  establish(peer, end);
  if (HasFatalFailure()) return;
  const int fd = other_end(peer);
  ASSERT_GE(fd, 0);
  end.qp.disconnect();
  ASSERT_TRUE(poll_until([&] { return has(peer.fd, POLLRDHUP); }));
  ASSERT_EQ(peer.read(1), 0u) << "our FIN";
  const int large = 16 << 20;
  if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &large, sizeof large) != 0) {
    GTEST_SKIP() << "needs the right to a large receive buffer (CAP_NET_ADMIN)";
  }
  std::vector<std::uint8_t> all;
  const std::vector<std::uint8_t> one = empty_write();
  while (all.size() < 5u << 18) all.insert(all.end(), one.begin(), one.end());
  std::size_t sent = 0;
  int there = 0;
  // If the kernel takes nothing for 5 s, it is full.
  for (auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(5);
       there < static_cast<int>(all.size()) && std::chrono::steady_clock::now() < give_up;) {
    const ssize_t k =
        ::send(peer.fd, all.data() + sent, all.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (k > 0) {
      sent += static_cast<std::size_t>(k);
      give_up = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    }
    if (sent == all.size()) shutdown(peer.fd, SHUT_WR);
    if (sent == all.size() || k <= 0) usleep(1000);
    ASSERT_EQ(ioctl(fd, FIONREAD, &there), 0);
  }
  if (there < static_cast<int>(all.size())) {
    GTEST_SKIP() << "the kernel takes no more than " << there << " bytes at once";
  }
  ASSERT_TRUE(test::soon([&] { return has(fd, POLLRDHUP); })) << "its FIN";
  EXPECT_EQ(next_event(end), EventKind::disconnected);
  EXPECT_TRUE(poll_until([&] { return device.stats().connections.empty(); }));
}

// Finds the descriptor that listens at `port`.
int listening_at(std::uint16_t port) {
  for (int fd = 3; fd < 1024; ++fd) {
    int listens = 0;
    socklen_t n = sizeof listens;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) != 0 || listens == 0) continue;
    sockaddr_in6 at{};  // the port is at the same place as for IPv4
    n = sizeof at;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&at), &n) == 0 && ntohs(at.sin6_port) == port) {
      return fd;
    }
  }
  return -1;
}

// Another process may have inherited the socket. Connections to it do not concern us.
// proves: E-39
TEST_F(StreamEnd, AClosedListenerCausesNoWakeUpsEvenIfItsSocketWasInherited) {
  const int fd = listening_at(listener.port());
  ASSERT_GE(fd, 0);
  const int inherited = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  ASSERT_GE(inherited, 0);
  const std::uint16_t port = listener.port();
  listener = Listener();
  ASSERT_TRUE(test::soon([&] { return !device.progress(); }));
  Bare peer(port);
  ASSERT_TRUE(test::soon([&] { return has(inherited, POLLIN); })) << "who connects is there";
  EXPECT_FALSE(device.progress());
  close(inherited);
}

}  // namespace
}  // namespace urnic
