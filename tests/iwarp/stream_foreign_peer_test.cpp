// Connections over the kernel's TCP to a peer that is not urnic: a plain socket that sends whatever
// the test wants.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ddp_rdma/header.h"
#include "iwarp/bare_peer.h"
#include "mpa/builder.h"
#include "mpa/fpdu.h"
#include "mpa/startup.h"
#include "support/quiet_fork.h"

namespace urnic {
namespace {

using namespace stream_test;

// A device that only the test drives, and a bare peer that asks it for a connection.
struct Polled {
  Result<ConnectRequest> next() {
    peer.request();
    return listener.next(60000);
  }
  template <class F>
  bool poll_until(const F& f) {
    return test::soon([&] {
      Completion none[1];
      s.cq.poll(none);
      return f();
    });
  }
  Device device = open({{"progress", "poll"}});
  End s{device};
  Listener listener = *device.listen(0);
  Bare peer{listener.port()};
};

struct BareTest : ::testing::Test {
  void SetUp() override {
    server = open();
    auto l = server.listen(0);
    ASSERT_TRUE(l.ok());
    listener = std::move(*l);
  }
  // Brings a connection of `peer` on `s` to full operation.
  void establish(Bare& peer, End& s) {
    peer.request();
    auto request = listener.next(60000);
    ASSERT_TRUE(request.ok());
    ASSERT_TRUE(request->accept(s.qp).ok());
    ASSERT_EQ(peer.read(24), 24u);  // the Reply
  }
  Device server;
  Listener listener;
};

TEST_F(BareTest, NonsenseInsteadOfARequestClosesAndTheListenerGoesOn) {
  {
    Bare peer(listener.port());
    peer.send(std::vector<std::uint8_t>(100, 0x47));
    EXPECT_EQ(peer.read(1), 0u);
  }
  Bare peer(listener.port());
  End s(server);
  establish(peer, s);
}

TEST_F(BareTest, ARequestByteByByteIsUnderstood) {
  Bare peer(listener.port());
  mpa::StartupOptions o;
  o.peer_to_peer = false;
  std::vector<std::uint8_t> frame(mpa::kFrameHeader + mpa::kMaxPrivateData);
  frame.resize(mpa::emit_frame(mpa::make_request(o, {}), frame.data()));
  for (const std::uint8_t byte : frame) {
    peer.send({byte});
    usleep(1000);
  }
  EXPECT_TRUE(listener.next(60000).ok());
}

TEST_F(BareTest, AcceptReturnsClosedIfThePeerGaveUpFirst) {
  auto peer = std::make_unique<Bare>(listener.port());
  peer->request();
  auto request = listener.next(60000);
  ASSERT_TRUE(request.ok());
  peer.reset();
  EXPECT_TRUE(test::soon([&] { return server.stats().connections.empty(); }));
  End s(server);
  EXPECT_EQ(request->accept(s.qp).error().code, Errc::closed);
  EXPECT_EQ(s.qp.state(), QpState::init);
}

TEST_F(BareTest, FinWithNothingOutstandingIsAnOrderlyEnd) {
  Bare peer(listener.port());
  End s(server);
  establish(peer, s);
  shutdown(peer.fd, SHUT_WR);
  EXPECT_EQ(s.ending().kind, EventKind::disconnected);
  EXPECT_EQ(peer.read(1), 0u);  // and our FIN is sent back
}

TEST_F(BareTest, AFinInsideAnFpduIsNotAnOrderlyEnd) {
  Bare peer(listener.port());
  End s(server);
  establish(peer, s);
  peer.send({0x40, 0x00, 0xc1, 0x40});  // begins an FPDU of 16 KiB
  shutdown(peer.fd, SHUT_WR);
  const Event e = s.ending();
  EXPECT_EQ(e.kind, EventKind::failed);
  EXPECT_EQ(e.error.code, Errc::reset) << e.error.message;
}

// FPDUs before the consumer has answered: some are read, the rest waits in the kernel, and all of
// it counts once the connection is accepted.
// proves: E-1
TEST_F(BareTest, DataBeforeTheAcceptWaitsAndIsThenReceived) {
  Bare peer(listener.port());
  peer.request();
  constexpr std::size_t kWrites = 50000;
  std::vector<std::uint8_t> all;
  const std::uint8_t write[14] = {0xc1, 0x40};  // zero-length: STag and offset have no meaning
  std::uint8_t fpdu[32];
  const std::uint32_t n = mpa::build_fpdu(fpdu, write, {}, true).len;
  for (std::size_t i = 0; i < kWrites; ++i) all.insert(all.end(), fpdu, fpdu + n);
  std::thread sending([&] {
    peer.send(all);
    shutdown(peer.fd, SHUT_WR);
  });
  auto request = listener.next(60000);
  ASSERT_TRUE(request.ok());
  usleep(100000);
  EXPECT_LT(server.stats().port.rx_bytes, 400000u);  // of a million
  End s(server);
  EXPECT_TRUE(request->accept(s.qp).ok());
  EXPECT_EQ(s.ending().kind, EventKind::disconnected);
  EXPECT_EQ(s.qp.stats().iwarp.bytes_slow, all.size());
  sending.join();
}

// A Read Request that waited in the kernel is answered even if no new data arrives that would give
// the connection a turn to send.
// proves: E-51
TEST_F(BareTest, AReadRequestThatWaitedForTheConsumerIsAnswered) {
  Device polled = open({{"progress", "poll"}});
  End s(polled);
  auto waiting = polled.listen(0);
  ASSERT_TRUE(waiting.ok());
  Bare peer(waiting->port());
  // Polls until nothing more arrives: sent data was read, or waits in the kernel for `fd`.
  std::size_t sent = 0;
  const auto settle = [&](int fd) {
    return test::soon([&] {
      Completion none[1];
      s.cq.poll(none);
      int left = 0;
      EXPECT_EQ(ioctl(fd, FIONREAD, &left), 0);
      return !polled.progress() &&
             polled.stats().port.rx_bytes + static_cast<std::size_t>(left) >= sent;
    });
  };
  peer.request();
  auto request = waiting->next(60000);
  ASSERT_TRUE(request.ok());
  std::uint8_t fpdu[64];
  const std::uint8_t write[14] = {0xc1, 0x40};  // zero-length: STag and offset have no meaning
  const std::uint32_t n = mpa::build_fpdu(fpdu, write, {}, true).len;
  std::vector<std::uint8_t> all;
  while (all.size() < 80000) all.insert(all.end(), fpdu, fpdu + n);
  const int fd = other_end(peer);
  ASSERT_GE(fd, 0);
  sent = polled.stats().port.rx_bytes + all.size();
  peer.send(all);
  ASSERT_TRUE(settle(fd));  // as much as is accepted before the consumer has answered
  ddp::SegmentHeader h;
  h.op = ddp::Opcode::ReadRequest;
  h.last = true;
  h.qn = ddp::kQnReadRequest;
  h.msn = 1;
  std::uint8_t ulpdu[ddp::kMaxHeader];
  const std::uint32_t bytes = ddp::emit_header(h, ulpdu);
  const std::uint32_t m = mpa::build_fpdu(fpdu, {ulpdu, bytes}, {}, true).len;
  sent += m;
  peer.send({fpdu, fpdu + m});
  ASSERT_TRUE(settle(fd));
  EXPECT_LT(polled.stats().port.rx_bytes, sent) << "the Read Request waits in the kernel";
  ASSERT_TRUE(request->accept(s.qp).ok());
  EXPECT_TRUE(test::soon([&] {
    Completion none[1];
    s.cq.poll(none);
    return peer.readable() >= 24 + 20;
  })) << "the Reply and the Read Response";
}

// Sending fails, and there is no received data that would show it.
// proves: E-50, E-51
TEST_F(BareTest, AFailedSendEndsTheConnectionWithoutReceivedData) {
  Bare peer(listener.port());
  End s(server);
  establish(peer, s);
  const std::uint8_t write[14] = {0xc1, 0x40};  // zero-length: STag and offset have no meaning
  std::uint8_t fpdu[32];
  const std::uint32_t n = mpa::build_fpdu(fpdu, write, {}, true).len;
  peer.send({fpdu, fpdu + n});  // now the server may send
  ASSERT_TRUE(test::soon([&] { return s.qp.state() == QpState::rts; }));
  const int fd = other_end(peer);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(shutdown(fd, SHUT_WR), 0);
  usleep(50000);  // usually the kernel has reported it by now; the connection ends in any case
  const Sge data = s.sge(0, 64);
  ASSERT_TRUE(s.qp.post_send(small_send(data)).ok());
  EXPECT_EQ(s.ending().kind, EventKind::failed);
}

// A reset that is first noticed while sending is a reset, even while we close. No later event would
// report it, and posted data is lost.
// proves: E-50
TEST_F(BareTest, AResetFoundWhileSendingEndsAClosingConnection) {
  Polled own;
  End& s = own.s;
  Bare& peer = own.peer;
  auto request = own.next();
  ASSERT_TRUE(request.ok());
  ASSERT_TRUE(request->accept(s.qp).ok());
  const std::uint8_t write[14] = {0xc1, 0x40};
  std::uint8_t fpdu[32];
  const std::uint32_t n = mpa::build_fpdu(fpdu, write, {}, true).len;
  peer.send({fpdu, fpdu + n});
  ASSERT_TRUE(own.poll_until([&] { return s.qp.state() == QpState::rts; }));
  const int fd = other_end(peer);
  ASSERT_GE(fd, 0);
  const linger hard{1, 0};
  setsockopt(peer.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  close(peer.fd);
  peer.fd = -1;
  ASSERT_TRUE(test::soon([&] { return has(fd, POLLERR); })) << "the reset";
  const Sge data = s.sge(0, 64);
  ASSERT_TRUE(s.qp.post_send(small_send(data)).ok());
  s.qp.disconnect();
  Event e;
  ASSERT_TRUE(
      own.poll_until([&] { return s.events.poll(&e) && e.kind != EventKind::established; }));
  EXPECT_EQ(e.kind, EventKind::failed);
  EXPECT_EQ(e.error.code, Errc::reset) << e.error.message;
  EXPECT_NE(e.error.message.find("reset"), std::string::npos) << e.error.message;
}

// A rejected peer that continues to send is read to its end, and then no state is left.
// proves: E-50
TEST_F(BareTest, DataAfterARejectedRequestIsReadAndDiscarded) {
  Bare peer(listener.port());
  peer.request();
  auto request = listener.next(60000);
  ASSERT_TRUE(request.ok());
  request->reject({});
  EXPECT_EQ(peer.read(1000), 24u) << "the Reply, and the end";
  const std::vector<std::uint8_t> much(3 << 20, 1);
  peer.send(much);
  const std::uint64_t before = much.size();
  EXPECT_TRUE(test::soon([&] { return server.stats().port.rx_bytes >= before; }));
  shutdown(peer.fd, SHUT_WR);
  EXPECT_TRUE(test::soon([&] { return server.stats().connections.empty(); }));
}

// A rejected peer has more data in the kernel than one turn reads, and nothing new arrives. The
// rest must still be read.
// proves: E-51
TEST_F(BareTest, DataLeftInTheKernelByOneTurnIsReadInTheNext) {
  Polled own;
  Bare& peer = own.peer;
  auto request = own.next();
  ASSERT_TRUE(request.ok());
  request->reject({});
  ASSERT_TRUE(own.poll_until([&] { return peer.readable() >= 24; })) << "the Reply";
  const int fd = other_end(peer);
  ASSERT_GE(fd, 0);
  const int large = 16 << 20;
  if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &large, sizeof large) != 0) {
    GTEST_SKIP() << "needs the right to a large receive buffer (CAP_NET_ADMIN)";
  }
  const std::vector<std::uint8_t> all(5u << 18, 1);
  std::size_t sent = 0;
  int waiting_there = 0;
  // If the kernel takes nothing for 5 s, it is full.
  for (auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(5);
       waiting_there < static_cast<int>(all.size()) &&
       std::chrono::steady_clock::now() < give_up;) {
    const ssize_t k =
        ::send(peer.fd, all.data() + sent, all.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (k > 0) {
      sent += static_cast<std::size_t>(k);
      give_up = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    }
    if (sent == all.size() || k <= 0) usleep(1000);
    ASSERT_EQ(ioctl(fd, FIONREAD, &waiting_there), 0);
  }
  if (waiting_there < static_cast<int>(all.size())) {
    GTEST_SKIP() << "the kernel takes no more than " << waiting_there << " bytes at once";
  }
  EXPECT_TRUE(own.poll_until([&] { return own.device.stats().port.rx_bytes >= all.size(); }));
}

TEST_F(BareTest, ABadCrcIsAnsweredByTerminateAndFin) {
  Bare peer(listener.port());
  End s(server);
  establish(peer, s);
  std::vector<std::uint8_t> fpdu(mpa::fpdu_size(14), 0);
  fpdu[1] = 14;
  fpdu[2] = 0xc1;
  fpdu[3] = 0x40;
  peer.send(fpdu);
  const Event e = s.ending();
  EXPECT_EQ(e.error.code, Errc::protocol);
  EXPECT_NE(e.error.message.find("Terminate"), std::string::npos) << e.error.message;
  EXPECT_GE(peer.read(1000), 20u);  // the Terminate, then the end
}

TEST_F(BareTest, AKilledPeerIsDetected) {
  End s(server);
  const pid_t pid = test::quiet_fork();
  if (pid == 0) {  // holds a connection, then dies
    Bare peer(listener.port());
    peer.request();
    pause();
    _exit(0);
  }
  auto request = listener.next(60000);
  ASSERT_TRUE(request.ok());
  ASSERT_TRUE(request->accept(s.qp).ok());
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  const Event e = s.ending();  // with unread bytes it is a reset, without any a FIN
  EXPECT_TRUE(e.kind == EventKind::failed || e.kind == EventKind::disconnected);
  EXPECT_EQ(s.qp.state(), QpState::error);
}

// A responder made of a plain socket: answers the Request, and never reads again.
struct Deaf {
  Deaf() : listening(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(listening, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(::listen(listening, 4), 0);
    socklen_t n = sizeof at;
    getsockname(listening, reinterpret_cast<sockaddr*>(&at), &n);
    port = ntohs(at.sin_port);
  }
  ~Deaf() {
    close(listening);
    if (fd >= 0) close(fd);
  }
  void answer() {
    fd = ::accept(listening, nullptr, nullptr);
    ASSERT_GE(fd, 0);
    std::vector<std::uint8_t> in(24);
    ASSERT_EQ(::recv(fd, in.data(), in.size(), MSG_WAITALL), 24);
    const auto request = mpa::parse_frame(in, false);
    ASSERT_TRUE(request.ok());
    mpa::StartupOptions o;
    o.peer_to_peer = false;
    std::vector<std::uint8_t> out(mpa::kFrameHeader + mpa::kMaxPrivateData);
    out.resize(mpa::emit_frame(mpa::answer_request(*request, o, {}).reply, out.data()));
    ASSERT_EQ(::send(fd, out.data(), out.size(), 0), static_cast<ssize_t>(out.size()));
  }
  int listening, fd = -1;
  std::uint16_t port = 0;
};

TEST(StreamTransport, APeerThatDoesNotReadBlocksNoOtherAndMemoryIsBounded) {
  Device client = open({{"progress", "thread"}, {"peer_to_peer", "off"}}), server = open();
  Deaf deaf;
  End stuck(client, 4 << 20), c(client), s(server);
  std::thread answering([&] { deaf.answer(); });
  const auto connected = stuck.qp.connect("127.0.0.1:" + std::to_string(deaf.port));
  answering.join();
  ASSERT_TRUE(connected.ok()) << connected.error().message;
  const Sge all = stuck.sge(0, 4 << 20);
  int posted = 0;
  for (; posted < 1000; ++posted) {  // 4 GB, if the peer read them
    SendRequest w = stuck.request(Opcode::write, all, 1);
    w.rkey = 0x100;
    if (!stuck.qp.post_send(w).ok()) break;
  }
  EXPECT_LT(posted, 1000);  // the send queue is full, and nothing else grows
  usleep(200000);
  const std::uint64_t sent = client.stats().port.tx_bytes;
  EXPECT_LT(sent, std::uint64_t{64} << 20);
  join(server, s, c);
  if (HasFailure()) return;
  exchange(c, s);
  // When the peer dies, the blocked requests end.
  close(deaf.fd);
  deaf.fd = -1;
  EXPECT_EQ(stuck.ending().error.code, Errc::reset);
  EXPECT_NE(stuck.wait().status, WcStatus::success);
}

}  // namespace
}  // namespace urnic
