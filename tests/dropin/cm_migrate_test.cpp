// rdma_migrate_id: which events and descriptors follow an id to another channel, and whether its
// calls wait afterwards.
#include <errno.h>
#include <fcntl.h>

#include "dropin/cm_ends.h"

namespace cm {
namespace {

bool is_open(int fd) {
  return fcntl(fd, F_GETFD) != -1 || errno != EBADF;
}

class MigrateTest : public CmTest {
 protected:
  void SetUp() override {
    CmTest::SetUp();
    target_ = rdma_create_event_channel();
    ASSERT_NE(target_, nullptr);
  }
  void TearDown() override {
    // After a failure an event may be anywhere, and rdma_destroy_id would wait for it.
    for (rdma_event_channel* c : {peers_, target_}) {
      rdma_cm_event* event = nullptr;
      while (!silent(c, 0) && rdma_get_cm_event(c, &event) == 0) rdma_ack_cm_event(event);
    }
    if (other_ != nullptr) {
      EXPECT_EQ(rdma_destroy_id(other_), 0);
    }
    CmTest::TearDown();
    rdma_destroy_event_channel(target_);
  }
  void resolve_address(rdma_cm_id* id, std::uint16_t port) {
    sockaddr_in to = loopback(port);
    ASSERT_EQ(rdma_resolve_addr(id, nullptr, any(to), urnic::test::kSoonMs), 0);
  }

  rdma_event_channel* target_ = nullptr;
  rdma_cm_id* other_ = nullptr;
};

// proves: DI-9
TEST_F(MigrateTest, PendingEventsFollowTheirIdAndEventsOfOtherIdsStay) {
  ASSERT_EQ(rdma_create_id(peers_, &other_, nullptr, RDMA_PS_TCP), 0);
  resolve_address(other_, 9);
  resolve_address(client_, 9);
  ASSERT_EQ(rdma_resolve_route(client_, 1000), 0);
  ASSERT_EQ(rdma_migrate_id(client_, target_), 0);
  EXPECT_EQ(client_->channel, target_);
  for (const auto type : {RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ROUTE_RESOLVED}) {
    ASSERT_FALSE(silent(target_, 0));
    auto* event = next(target_, type);
    ASSERT_NE(event, nullptr);
    EXPECT_EQ(event->id, client_);
    EXPECT_EQ(rdma_ack_cm_event(event), 0);
  }
  EXPECT_TRUE(silent(target_, 0));
  ASSERT_FALSE(silent(peers_, 0));
  auto* event = next(peers_, RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->id, other_);
  EXPECT_EQ(rdma_ack_cm_event(event), 0);
  EXPECT_TRUE(silent(peers_, 0));
}

TEST_F(MigrateTest, ASynchronousIdGivesItsChannelBackAndNoLongerWaits) {
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP), 0);
  resolve_address(id, 9);
  ASSERT_NE(id->event, nullptr);
  const int own = id->channel->fd;
  errno = 0;
  EXPECT_EQ(rdma_migrate_id(id, nullptr), -1);
  EXPECT_EQ(errno, EINVAL) << "it has a channel of its own";
  EXPECT_TRUE(is_open(own));
  ASSERT_EQ(rdma_migrate_id(id, target_), 0);
  EXPECT_EQ(id->event, nullptr) << "the event of the last call is acknowledged";
  EXPECT_FALSE(is_open(own));
  ASSERT_EQ(rdma_resolve_route(id, 1000), 0);
  EXPECT_EQ(id->event, nullptr);
  pass(target_, RDMA_CM_EVENT_ROUTE_RESOLVED);
  EXPECT_EQ(rdma_destroy_id(id), 0);
  EXPECT_TRUE(is_open(target_->fd)) << "the channel is the program's";
}

TEST_F(MigrateTest, AnIdWithoutAChannelOfTheProgramWaitsForItsEvents) {
  resolve(1);
  ASSERT_EQ(rdma_migrate_id(client_, nullptr), 0);
  EXPECT_NE(client_->channel, peers_);
  const int own = client_->channel->fd;
  EXPECT_TRUE(is_open(own));
  rdma_conn_param p{};
  errno = 0;
  EXPECT_EQ(rdma_connect(client_, &p), -1) << "no listener";
  EXPECT_EQ(errno, ECONNREFUSED);
  ASSERT_NE(client_->event, nullptr);
  EXPECT_EQ(client_->event->event, RDMA_CM_EVENT_REJECTED);
  EXPECT_TRUE(silent(peers_, 0));
  rdma_destroy_qp(client_);
  ASSERT_EQ(rdma_destroy_id(client_), 0);
  EXPECT_FALSE(is_open(own)) << "it goes with its id";
  ASSERT_EQ(rdma_create_id(peers_, &client_, this, RDMA_PS_TCP), 0);
}

// A request that nobody has fetched is an event of its listener.
TEST_F(MigrateTest, TheIdOfAPendingRequestIsOfTheChannelOfItsListener) {
  resolve(ntohs(rdma_get_src_port(listener_)));
  rdma_conn_param p{};
  ASSERT_EQ(rdma_connect(client_, &p), 0);
  ASSERT_FALSE(silent(channel_, urnic::test::kSoonMs));
  ASSERT_EQ(rdma_migrate_id(listener_, target_), 0);
  auto* request = next(target_, RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request, nullptr);
  server_ = request->id;
  EXPECT_EQ(rdma_ack_cm_event(request), 0);
  EXPECT_EQ(server_->channel, target_);
  auto attr = small_qp();
  ASSERT_EQ(rdma_create_qp(server_, nullptr, &attr), 0);
  ASSERT_EQ(rdma_accept(server_, nullptr), 0);
  pass(target_, RDMA_CM_EVENT_ESTABLISHED);
  pass(peers_, RDMA_CM_EVENT_ESTABLISHED);
}

// Such a listener makes a channel for each request.
TEST_F(MigrateTest, TheIdOfAPendingRequestNoLongerWaitsIfItsListenerDoesNot) {
  rdma_cm_id* listener = nullptr;
  ASSERT_EQ(rdma_create_id(nullptr, &listener, nullptr, RDMA_PS_TCP), 0);
  sockaddr_in a = loopback(0);
  ASSERT_EQ(rdma_bind_addr(listener, any(a)), 0);
  ASSERT_EQ(rdma_listen(listener, 1), 0);
  resolve(ntohs(rdma_get_src_port(listener)));
  rdma_conn_param p{};
  ASSERT_EQ(rdma_connect(client_, &p), 0);
  ASSERT_FALSE(silent(listener->channel, urnic::test::kSoonMs));
  ASSERT_EQ(rdma_migrate_id(listener, target_), 0);
  auto* request = next(target_, RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request, nullptr);
  server_ = request->id;
  EXPECT_EQ(rdma_ack_cm_event(request), 0);
  EXPECT_EQ(server_->channel, target_);
  auto attr = small_qp();
  ASSERT_EQ(rdma_create_qp(server_, nullptr, &attr), 0);
  ASSERT_EQ(rdma_accept(server_, nullptr), 0);
  EXPECT_EQ(server_->event, nullptr);
  pass(target_, RDMA_CM_EVENT_ESTABLISHED);
  pass(peers_, RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(rdma_destroy_id(listener), 0);
}

}  // namespace
}  // namespace cm
