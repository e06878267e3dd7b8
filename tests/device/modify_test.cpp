// A queue pair moved through the public API: what may be posted in each state, and using it again.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>

#include "urnic/urnic.h"

namespace urnic {
namespace {

struct Modify : ::testing::Test {
  void SetUp() override {
    char name[] = "/tmp/urnic-modify-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory = name;
    server = open("server");
    client = open("client");
  }
  void TearDown() override {
    server = client = Device();
    std::filesystem::remove_all(directory);
  }
  Device open(const char* role) {
    Config c;
    EXPECT_TRUE(c.set("port", "memif:socket=" + directory + "/wire.sock,role=" + role).ok());
    EXPECT_TRUE(c.set("stat", "off").ok());
    auto d = Device::open(c);
    EXPECT_TRUE(d.ok());
    return d.ok() ? *d : Device();
  }
  struct End {
    explicit End(Device& d) {
      pd = *d.alloc_pd();
      cq = *d.create_cq(64);
      QpOptions o;
      o.send_cq = o.receive_cq = cq;
      qp = *d.create_qp(pd, o);
    }
    // "rs": what is taken of a receive and of a send; '-' for what is refused as wrong_state.
    std::string takes() {
      std::string out;
      const auto receive = qp.post_receive({1, {}});
      out += receive.ok() ? 'r' : receive.error().code == Errc::wrong_state ? '-' : '?';
      const auto send = qp.post_send(SendRequest{});
      out += send.ok() ? 's' : send.error().code == Errc::wrong_state ? '-' : '?';
      return out;
    }
    std::string statuses(int n) {
      std::string out;
      Completion c[1];
      for (int i = 0; i < 1000 && static_cast<int>(out.size()) < n; ++i) {
        if (cq.poll(c) == 1) {
          out += c[0].status == WcStatus::flushed   ? 'f'
                 : c[0].status == WcStatus::success ? 'o'
                                                    : '?';
        } else {
          cq.wait(10);
        }
      }
      return out;
    }
    ProtectionDomain pd;
    CompletionQueue cq;
    QueuePair qp;
  };
  std::string directory;
  Device server, client;
};

TEST_F(Modify, IB105_IB117_WhatIsTakenInEachState) {
  End e(client);
  EXPECT_EQ(e.qp.state(), QpState::init);
  EXPECT_EQ(e.takes(), "r-");
  ASSERT_TRUE(e.qp.modify(QpState::reset).ok());
  EXPECT_EQ(e.takes(), "--");
  EXPECT_EQ(e.statuses(0), "");
  ASSERT_TRUE(e.qp.modify(QpState::init).ok());
  EXPECT_EQ(e.takes(), "r-");
  EXPECT_EQ(e.takes(), "r-");
  ASSERT_TRUE(e.qp.modify(QpState::error).ok());
  EXPECT_EQ(e.takes(), "rs");
  EXPECT_EQ(e.statuses(4), "ffff") << "outstanding and later ones, both queues";
}

TEST_F(Modify, IB109_IB118_ARefusedMoveSaysWrongStateAndChangesNothing) {
  End e(client);
  for (const QpState to : {QpState::rtr, QpState::rts, QpState::sqd, QpState::sqe}) {
    const auto moved = e.qp.modify(to);
    ASSERT_FALSE(moved.ok());
    EXPECT_EQ(moved.error().code, Errc::wrong_state);
    EXPECT_EQ(e.qp.state(), QpState::init);
  }
  ASSERT_TRUE(e.qp.modify(QpState::error).ok());
  EXPECT_FALSE(e.qp.modify(QpState::init).ok());
  EXPECT_EQ(e.qp.state(), QpState::error);
}

TEST_F(Modify, AQueuePairIsConnectedAgainAfterReset) {
  ASSERT_TRUE(server.wait_link(10000) && client.wait_link(10000));
  End s(server), c(client);
  auto listener = server.listen(4000);
  ASSERT_TRUE(listener.ok());
  for (int life = 0; life < 3; ++life) {
    SCOPED_TRACE(life);
    std::thread accepting([&] {
      auto request = listener->next(10000);
      ASSERT_TRUE(request.ok());
      EXPECT_TRUE(request->accept(s.qp).ok());
    });
    const auto up = c.qp.connect("10.77.0.1:4000");
    accepting.join();
    ASSERT_TRUE(up.ok()) << up.error().message;
    EXPECT_EQ(c.qp.state(), QpState::rts);
    ASSERT_TRUE(s.qp.post_receive({7, {}}).ok());
    ASSERT_TRUE(c.qp.post_send(SendRequest{}).ok());
    EXPECT_EQ(s.statuses(1), "o");
    EXPECT_EQ(c.statuses(1), "o");
    for (QueuePair* qp : {&c.qp, &s.qp}) {
      ASSERT_TRUE(qp->modify(QpState::error).ok());
      ASSERT_TRUE(qp->modify(QpState::reset).ok());
      ASSERT_TRUE(qp->modify(QpState::init).ok());
    }
  }
}

}  // namespace
}  // namespace urnic
