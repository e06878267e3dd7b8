// After a failed call an id is unchanged.
#include <errno.h>

#include <utility>

#include "dropin/cm_ends.h"

namespace cm {
namespace {

sockaddr_in at(const char* ip, std::uint16_t port) {
  sockaddr_in a = loopback(port);
  inet_pton(AF_INET, ip, &a.sin_addr);
  return a;
}

int error_of(int result) {
  return result == 0 ? 0 : errno;
}

// proves: DI-9
TEST_F(CmTest, AForeignAddressIsNotAvailable) {
  for (const char* nobodys : {"192.0.2.1", "224.0.0.5", "255.255.255.255"}) {
    sockaddr_in from = at(nobodys, 0), to = loopback(9);
    EXPECT_EQ(error_of(rdma_bind_addr(client_, any(from))), EADDRNOTAVAIL) << nobodys;
    EXPECT_EQ(error_of(rdma_resolve_addr(client_, any(from), any(to), 1000)), EADDRNOTAVAIL)
        << nobodys;
  }
  sockaddr_in fine = loopback(0);
  EXPECT_EQ(rdma_bind_addr(client_, any(fine)), 0);
}

// proves: DI-9
TEST_F(CmTest, BothAddressesMustBeOfOneIpVersion) {
  sockaddr_in v4 = loopback(0);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_addr = in6addr_loopback;
  v6.sin6_port = htons(9);
  auto* const other = reinterpret_cast<sockaddr*>(&v6);
  EXPECT_EQ(error_of(rdma_resolve_addr(client_, any(v4), other, 1000)), EINVAL);
  EXPECT_EQ(error_of(rdma_resolve_addr(client_, other, any(v4), 1000)), EINVAL);
  ASSERT_EQ(rdma_bind_addr(client_, any(v4)), 0);
  EXPECT_EQ(error_of(rdma_resolve_addr(client_, nullptr, other, 1000)), EINVAL);
  // A v4-mapped IPv6 address is an IPv4 address.
  v6.sin6_addr = {};
  v6.sin6_addr.s6_addr[10] = v6.sin6_addr.s6_addr[11] = 0xff;
  v6.sin6_addr.s6_addr[12] = 127;
  v6.sin6_addr.s6_addr[15] = 1;
  EXPECT_EQ(error_of(rdma_resolve_addr(client_, nullptr, other, 1000)), 0);
  pass(peers_, RDMA_CM_EVENT_ADDR_RESOLVED);
}

// No local address has a route there, whatever routes the machine has.
constexpr const char* kNowhere = "255.255.255.255";

// proves: DI-9
TEST_F(CmTest, AFailedResolveLeavesTheIdBound) {
  sockaddr_in from = loopback(0), nowhere = at(kNowhere, 9);
  ASSERT_EQ(rdma_bind_addr(client_, any(from)), 0);
  const __be16 port = rdma_get_src_port(client_);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(rdma_resolve_addr(client_, nullptr, any(nowhere), 1000), 0);
    pass(peers_, RDMA_CM_EVENT_ADDR_ERROR);
  }
  ASSERT_EQ(rdma_listen(client_, 1), 0);
  EXPECT_EQ(rdma_get_src_port(client_), port);
}

// proves: DI-9
TEST_F(CmTest, AFailedCallMayBeRepeated) {
  sockaddr_in from = loopback(0), nowhere = at(kNowhere, 9);
  {
    rdma_cm_id* chooses = nullptr;  // chooses a port
    ASSERT_EQ(rdma_create_id(channel_, &chooses, nullptr, RDMA_PS_TCP), 0);
    ASSERT_EQ(rdma_bind_addr(chooses, any(from)), 0);
    from.sin_port = rdma_get_src_port(chooses);
    ASSERT_EQ(rdma_destroy_id(chooses), 0);
  }
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(error_of(rdma_resolve_addr(client_, any(from), any(nowhere), 1000)), 0) << i;
    pass(peers_, RDMA_CM_EVENT_ADDR_ERROR);
  }
  sockaddr_in to = loopback(ntohs(rdma_get_src_port(listener_)));
  ASSERT_EQ(rdma_resolve_addr(client_, any(from), any(to), 1000), 0);
  pass(peers_, RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(rdma_get_src_port(client_), from.sin_port);
}

// proves: DI-9
TEST_F(CmTest, ARefusedOptionLeavesTheIdBound) {
  // Two ids share a port, which neither can then have exclusively.
  int on = 1, off = 0;
  rdma_cm_id* other = nullptr;
  ASSERT_EQ(rdma_create_id(channel_, &other, nullptr, RDMA_PS_TCP), 0);
  sockaddr_in a = loopback(0);
  for (rdma_cm_id* id : {other, client_}) {
    ASSERT_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on), 0);
    ASSERT_EQ(rdma_bind_addr(id, any(a)), 0);
    a.sin_port = rdma_get_src_port(id);
  }
  EXPECT_EQ(error_of(rdma_set_option(client_, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &off,
                                     sizeof off)),
            EADDRINUSE);
  EXPECT_EQ(rdma_destroy_id(other), 0);
  ASSERT_EQ(rdma_listen(client_, 1), 0);
  EXPECT_EQ(rdma_get_src_port(client_), a.sin_port);
}

// The queues that were created for it are not given to the program.
TEST_F(CmTest, AFailedCreateQpLeavesTheAttributesUnchanged) {
  resolve(ntohs(rdma_get_src_port(listener_)));
  rdma_destroy_qp(client_);
  ibv_qp_init_attr_ex wanted{};
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap.max_send_wr = 1u << 30;
  wanted.cap.max_recv_wr = wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
  EXPECT_EQ(error_of(rdma_create_qp_ex(client_, &wanted)), EINVAL);
  EXPECT_EQ(wanted.send_cq, nullptr);
  EXPECT_EQ(wanted.recv_cq, nullptr);
  EXPECT_EQ(wanted.comp_mask, 0u);
  EXPECT_EQ(client_->send_cq, nullptr);
  wanted.cap.max_send_wr = 4;
  EXPECT_EQ(rdma_create_qp_ex(client_, &wanted), 0);
}

// proves: DI-8
TEST_F(CmTest, IwarpEventsCarryNoQueuePairNumber) {
  resolve(ntohs(rdma_get_src_port(listener_)));
  auto attr = small_qp();
  rdma_conn_param p{};
  p.retry_count = 2;
  p.rnr_retry_count = 3;
  p.flow_control = p.srq = 1;
  ASSERT_EQ(rdma_connect(client_, &p), 0);
  const auto expect_none = [](const rdma_cm_event* e) {
    ASSERT_NE(e, nullptr);
    const rdma_conn_param& c = e->param.conn;
    EXPECT_EQ(c.qp_num + c.retry_count + c.rnr_retry_count + c.flow_control + c.srq, 0u);
  };
  auto* e = next(channel_, RDMA_CM_EVENT_CONNECT_REQUEST);
  expect_none(e);
  server_ = e->id;
  EXPECT_EQ(rdma_ack_cm_event(e), 0);
  ASSERT_EQ(rdma_create_qp(server_, nullptr, &attr), 0);
  ASSERT_EQ(rdma_accept(server_, &p), 0);
  for (rdma_event_channel* channel : {channel_, peers_}) {
    e = next(channel, RDMA_CM_EVENT_ESTABLISHED);
    expect_none(e);
    EXPECT_EQ(rdma_ack_cm_event(e), 0);
  }
}

// The id's own shared queue and domain take the place of what the program has left open, but not
// in its attributes if that fails.
TEST_F(CmTest, AQueuePairThatCannotBeMadeLeavesTheDomainAndTheSharedQueueOfTheAttributesOpen) {
  resolve(ntohs(rdma_get_src_port(listener_)));
  rdma_destroy_qp(client_);
  ibv_srq_init_attr s{};
  s.attr.max_wr = 8;
  s.attr.max_sge = 1;
  ASSERT_EQ(rdma_create_srq(client_, nullptr, &s), 0);
  ibv_qp_init_attr_ex wanted{};
  wanted.qp_type = IBV_QPT_RC;
  wanted.comp_mask = IBV_QP_INIT_ATTR_PD;
  wanted.cap.max_send_wr = 4;
  wanted.cap.max_send_sge = 1000;
  EXPECT_EQ(error_of(rdma_create_qp_ex(client_, &wanted)), EINVAL);
  EXPECT_EQ(wanted.comp_mask, unsigned{IBV_QP_INIT_ATTR_PD});
  EXPECT_EQ(wanted.pd, nullptr);
  EXPECT_EQ(wanted.srq, nullptr);
  wanted.cap.max_send_sge = 1;
  ASSERT_EQ(rdma_create_qp_ex(client_, &wanted), 0);
  EXPECT_EQ(wanted.pd, client_->pd);
  EXPECT_EQ(wanted.srq, client_->srq);
  EXPECT_EQ(client_->qp->srq, client_->srq);
  rdma_destroy_qp(client_);
  rdma_destroy_srq(client_);
}

TEST_F(CmTest, AnIdWithAQueuePairOfItsOwnIsNotEstablishedByTheProgram) {
  connect();
  EXPECT_EQ(error_of(rdma_establish(client_)), EINVAL);
  accept();
  EXPECT_EQ(error_of(rdma_establish(client_)), EINVAL);
  EXPECT_EQ(error_of(rdma_establish(server_)), EINVAL);
  // Without one there is nothing left to do, which is no error.
  ibv_qp* const qp = std::exchange(client_->qp, nullptr);
  EXPECT_EQ(error_of(rdma_establish(client_)), 0);
  client_->qp = qp;
}

}  // namespace
}  // namespace cm
