#include "port/dgram_port.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "port/memif_check.h"

namespace urnic::port {
namespace {

using check::Bytes;
using check::Folder;
using check::must_open;
using check::receive_one;
using check::send_one;
using ::testing::HasSubstr;

std::string error_of(const std::string& spec) {
  auto p = Port::open(spec);
  return p.ok() ? "(opened)" : p.error();
}

struct Linked {
  explicit Linked(const std::string& more = "") {
    const std::string x = folder.file("x"), y = folder.file("y");
    a = must_open("dgram:path=" + x + ",peer=" + y + more);
    b = must_open("dgram:path=" + y + ",peer=" + x + more);
    EXPECT_TRUE(check::turn_until([&] { return a.info().link_up == 1; }, {&a, &b}));
  }
  Folder folder;
  Port a, b;
};

TEST(DgramPort, OneDatagramIsOneFrame) {
  Linked w(",mtu=65521");
  EXPECT_EQ(w.a.info().max_frame, 65535u);
  for (std::uint32_t len : {14u, 60u, 1514u, 9014u, 65535u}) {
    ASSERT_TRUE(send_one(w.a, 0, check::pattern(len, len)));
    EXPECT_EQ(receive_one(w.b, 0), check::pattern(len, len));
    ASSERT_TRUE(send_one(w.b, 0, check::pattern(len, len + 1)));
    EXPECT_EQ(receive_one(w.a, 0), check::pattern(len, len + 1));
  }
}

// QEMU's end is a plain datagram socket.
TEST(DgramPort, APlainSocketIsAPeer) {
  Folder f;
  const auto at = UnixAddress::parse(f.file("qemu"), "peer");
  auto qemu = BoundSocket::open(at.value(), SOCK_DGRAM, "taken");
  ASSERT_TRUE(qemu.ok());
  Port p = must_open("dgram:path=" + f.file("p") + ",peer=" + f.file("qemu"));
  EXPECT_EQ(p.info().link_up, 1);
  ASSERT_TRUE(send_one(p, 0, check::pattern(100, 1)));
  Bytes got(2000);
  got.resize(static_cast<std::size_t>(recv(qemu->fd(), got.data(), got.size(), 0)));
  EXPECT_EQ(got, check::pattern(100, 1));
  const auto ours = UnixAddress::parse(f.file("p"), "path");
  // Too short, too long, then a valid frame.
  for (std::size_t len : {5u, 3000u, 200u}) {
    const Bytes b = check::pattern(len, 2);
    ASSERT_EQ(sendto(qemu->fd(), b.data(), len, 0, ours->get(), ours->size()),
              static_cast<ssize_t>(len));
  }
  EXPECT_EQ(receive_one(p, 0), check::pattern(200, 2));
  EXPECT_EQ(p.stats().rx_bad, 2u);
}

// QEMU with two datagram sockets on one hub and no guest: a frame that enters at one leaves at the
// other.
TEST(DgramPort, WorksWithQemu) {
  if (system("command -v qemu-system-x86_64 >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "qemu-system-x86_64 is not installed";
  }
  Folder f;
  const auto netdev = [&](const std::string& n) {
    return "dgram,id=d" + n + ",local.type=unix,local.path=" + f.file("q" + n) +
           ",remote.type=unix,remote.path=" + f.file("p" + n);
  };
  check::Child qemu([&] {
    const int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
    execlp("qemu-system-x86_64", "qemu-system-x86_64", "-machine", "none", "-nodefaults",
           "-display", "none", "-netdev", netdev("1").c_str(), "-netdev",
           "hubport,id=h1,hubid=0,netdev=d1", "-netdev", netdev("2").c_str(), "-netdev",
           "hubport,id=h2,hubid=0,netdev=d2", static_cast<char*>(nullptr));
    return 1;
  });
  Port a = must_open("dgram:path=" + f.file("p1") + ",peer=" + f.file("q1"));
  Port b = must_open("dgram:path=" + f.file("p2") + ",peer=" + f.file("q2"));
  ASSERT_TRUE(
      check::turn_until([&] { return a.info().link_up && b.info().link_up; }, {&a, &b}, 15'000))
      << "QEMU did not open its sockets (too old for -netdev dgram?)";
  for (std::uint32_t len : {60u, 61u, 1000u, 1514u}) {
    for (auto [from, to] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
      ASSERT_TRUE(send_one(*from, 0, check::pattern(len, len)));
      EXPECT_EQ(receive_one(*to, 0), check::pattern(len, len));
    }
  }
}

TEST(DgramPort, FramesBeyondThePeersQueueAreNotLost) {
  Linked w;
  std::string result = "?";
  std::thread receiver([&] { result = check::receive_numbered(w.b, 0, 20000, 500); });
  EXPECT_TRUE(check::send_numbered(w.a, 0, 20000, 500));
  // The last ones may still wait for room.
  EXPECT_TRUE(check::turn_until([&] { return w.a.stats().tx_frames >= 20000; }, {&w.a}));
  receiver.join();
  EXPECT_EQ(result, "");
  EXPECT_EQ(w.a.stats().tx_dropped, 0u);
}

TEST(DgramPort, FramesReturnedUnsentLeaveNoGap) {
  Linked w;
  Frame f[5];
  ASSERT_EQ(w.a.tx_reserve(0, 64, f, 5), 5u);
  for (unsigned i = 0; i < 5; ++i) {
    std::memset(f[i].data[0], static_cast<int>(i), 64);
    if (i == 0 || i == 2) f[i].len[0] = 0;
  }
  Bytes payload(100, 9);
  f[4].data[1] = payload.data();
  f[4].len[1] = 100;
  w.a.tx_commit(0, f, 5);
  EXPECT_EQ(receive_one(w.b, 0), Bytes(64, 1));
  EXPECT_EQ(receive_one(w.b, 0), Bytes(64, 3));
  Bytes last(64, 4);
  last.insert(last.end(), 100, 9);
  EXPECT_EQ(receive_one(w.b, 0), last);
}

TEST(DgramPort, ThePeerMayDisappearAndReturn) {
  Folder f;
  const std::string x = f.file("x"), y = f.file("y");
  Port a = must_open("dgram:path=" + x + ",peer=" + y);
  EXPECT_EQ(a.info().link_up, 0);
  ASSERT_TRUE(send_one(a, 0, check::pattern(64, 1)));  // lost: there is no peer
  EXPECT_EQ(a.stats().tx_dropped, 1u);
  for (std::uint32_t round = 1; round <= 3; ++round) {
    Port b = must_open("dgram:path=" + y + ",peer=" + x);
    ASSERT_TRUE(check::turn_until([&] { return a.info().link_up == 1; }, {&a}));
    EXPECT_EQ(a.info().link_epoch, round);
    ASSERT_TRUE(send_one(a, 0, check::pattern(64, 1)));
    EXPECT_EQ(receive_one(b, 0), check::pattern(64, 1));
    b = Port();
    ASSERT_TRUE(send_one(a, 0, check::pattern(64, 1)));
    EXPECT_EQ(a.info().link_up, 0);
  }
}

// proves: E-32
TEST(DgramPort, ASleeperIsWokenByAFrame) {
  Linked w;
  ASSERT_FALSE(w.b.arm(0));
  int fds[4];
  const unsigned n = w.b.wait_fds(0, fds, 4);
  pollfd p[4];
  for (unsigned i = 0; i < n; ++i) p[i] = {fds[i], POLLIN, 0};
  EXPECT_EQ(poll(p, n, 0), 0);
  ASSERT_TRUE(send_one(w.a, 0, check::pattern(64, 1)));
  EXPECT_EQ(poll(p, n, 0), 1);
  w.b.disarm(0);
  EXPECT_EQ(receive_one(w.b, 0), check::pattern(64, 1));
  EXPECT_EQ(w.b.stats().wakeups, 1u);
}

TEST(DgramPort, AddressesAreChecked) {
  Folder f;
  EXPECT_THAT(error_of("dgram:"), HasSubstr("path="));
  EXPECT_THAT(error_of("dgram:path=/tmp/x"), HasSubstr("peer="));
  EXPECT_THAT(error_of("dgram:path=/tmp/x,peer=/tmp/x"), HasSubstr("must differ"));
  const std::string spec = "dgram:path=" + f.file("x") + ",peer=" + f.file("y");
  Port live = must_open(spec);
  EXPECT_THAT(error_of(spec), HasSubstr("in use by another program"));
  live = Port();
  EXPECT_NE(access(f.file("x").c_str(), F_OK), 0) << "an orderly end removes the file";
  {
    check::Child child([&] {
      auto p = Port::open(spec);
      if (!p.ok()) return 1;
      for (;;) pause();
    });
    ASSERT_TRUE(check::appears(f.file("x")));
  }
  ASSERT_EQ(access(f.file("x").c_str(), F_OK), 0);
  EXPECT_TRUE(must_open(spec)) << "a dead owner's file is replaced";
}

}  // namespace
}  // namespace urnic::port
