// Ids of RDMA_PS_UDP of the drop-in librdmacm: datagrams of RoCE by address and port. Both ends use
// one device, which sends to its own address.
#include <errno.h>

#include <thread>

#include "dropin/roce_ids.h"

namespace {

using cm::any;
using cm::next;
using cm::pass;
using roce::at;
using roce::padded;

constexpr std::uint8_t kRequestBytes = 180, kReplyBytes = 136;
constexpr int kNoSuchService = 1, kRejected = 2;  // status of a peer, as the kernel reports it

std::string data_of(const rdma_cm_event& e) {
  return {static_cast<const char*>(e.param.ud.private_data), e.param.ud.private_data_len};
}
ibv_qp_init_attr datagrams() {
  ibv_qp_init_attr a = cm::small_qp();
  a.qp_type = IBV_QPT_UD;
  return a;
}
rdma_conn_param saying(const char* text) {
  rdma_conn_param p{};
  p.private_data = text;
  p.private_data_len = static_cast<std::uint8_t>(std::strlen(text));
  return p;
}

class RoceDatagramsTest : public roce::RoceIdsTest {
 protected:
  RoceDatagramsTest() : RoceIdsTest(RDMA_PS_UDP) {}
  void request() {
    ASSERT_EQ(rdma_listen(listener_, 4), 0);
    resolve(port());
    rdma_conn_param p = saying("hello");
    ASSERT_EQ(rdma_connect(client_, &p), 0);
    auto* e = next(listeners_, RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(e, nullptr);
    server_ = e->id;
    EXPECT_EQ(e->listen_id, listener_);
    EXPECT_EQ(server_->context, this);
    EXPECT_EQ(listener_->qp_type, IBV_QPT_UD);
    EXPECT_EQ(server_->qp_type, IBV_QPT_UD);
    EXPECT_EQ(server_->verbs, client_->verbs);
    EXPECT_EQ(data_of(*e), padded("hello", kRequestBytes));
    EXPECT_EQ(rdma_ack_cm_event(e), 0);
  }
};

// udaddy does this.
// proves: DI-23
TEST_F(RoceDatagramsTest, AClientLearnsTheDestinationAndTheServerAnswersByTheHeader) {
  if (!within()) return;
  request();
  auto attr = datagrams();
  ASSERT_EQ(rdma_create_qp(server_, nullptr, &attr), 0);
  attr = datagrams();
  ASSERT_EQ(rdma_create_qp(client_, nullptr, &attr), 0);
  EXPECT_EQ(client_->qp->state, IBV_QPS_RTS);
  ibv_qp_attr has{};
  ibv_qp_init_attr made{};
  ASSERT_EQ(ibv_query_qp(client_->qp, &has, IBV_QP_QKEY, &made), 0);
  EXPECT_EQ(has.qkey, std::uint32_t{RDMA_UDP_QKEY});
  rdma_conn_param p = saying("welcome");
  p.qp_num = server_->qp->qp_num;
  ASSERT_EQ(rdma_accept(server_, &p), 0);
  auto* e = next(clients_, RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_NE(e, nullptr);
  const rdma_ud_param ud = e->param.ud;
  EXPECT_EQ(data_of(*e), padded("welcome", kReplyBytes));
  EXPECT_EQ(ud.qp_num, server_->qp->qp_num);
  EXPECT_EQ(ud.qkey, std::uint32_t{RDMA_UDP_QKEY});
  EXPECT_EQ(ud.ah_attr.is_global, 1);
  EXPECT_EQ(ud.ah_attr.port_num, 1);
  EXPECT_EQ(std::memcmp(ud.ah_attr.grh.dgid.raw, gid_.raw, 16), 0);
  EXPECT_NE(rdma_get_src_port(client_), 0);
  EXPECT_EQ(rdma_ack_cm_event(e), 0);
  EXPECT_TRUE(cm::silent(listeners_, 20)) << "who accepts hears no more";

  ibv_ah_attr way = ud.ah_attr;
  ibv_ah* to = ibv_create_ah(client_->pd, &way);
  ASSERT_NE(to, nullptr);
  char from[64] = "a datagram", into[128] = {};
  ibv_mr* out = ibv_reg_mr(client_->pd, from, sizeof from, IBV_ACCESS_LOCAL_WRITE);
  ibv_mr* in = ibv_reg_mr(server_->pd, into, sizeof into, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_EQ(rdma_post_recv(server_, nullptr, into, sizeof into, in), 0);
  ASSERT_EQ(rdma_post_ud_send(client_, nullptr, from, 32, out, IBV_SEND_SIGNALED, to, ud.qp_num),
            0);
  EXPECT_EQ(cm::wait_for(client_->send_cq).status, IBV_WC_SUCCESS);
  ibv_wc came = cm::wait_for(server_->recv_cq);
  EXPECT_EQ(came.byte_len, 72u);
  EXPECT_EQ(came.src_qp, client_->qp->qp_num);
  EXPECT_STREQ(into + 40, "a datagram");
  ibv_ah* back = ibv_create_ah_from_wc(server_->pd, &came, reinterpret_cast<ibv_grh*>(into), 1);
  ASSERT_NE(back, nullptr);
  ASSERT_EQ(rdma_post_recv(client_, nullptr, from, sizeof from, out), 0);
  ASSERT_EQ(rdma_post_ud_send(server_, nullptr, into, 16, in, IBV_SEND_SIGNALED, back, came.src_qp),
            0);
  EXPECT_EQ(cm::wait_for(client_->recv_cq).byte_len, 56u);
  EXPECT_EQ(ibv_destroy_ah(to), 0);
  EXPECT_EQ(ibv_destroy_ah(back), 0);
  EXPECT_EQ(rdma_disconnect(client_), 0);
  EXPECT_EQ(client_->qp->state, IBV_QPS_ERR);
  EXPECT_TRUE(cm::silent(clients_, 20));
  rdma_destroy_qp(client_);
  rdma_destroy_qp(server_);
  EXPECT_EQ(ibv_dereg_mr(out), 0);
  EXPECT_EQ(ibv_dereg_mr(in), 0);
}

// proves: DI-23
TEST_F(RoceDatagramsTest, ARefusalIsUnreachableWithTheStatusAndTheDataOfThePeer) {
  if (!within()) return;
  request();
  ASSERT_EQ(rdma_reject(server_, "no", 2), 0);
  auto* e = next(clients_, RDMA_CM_EVENT_UNREACHABLE);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->status, kRejected);
  EXPECT_EQ(data_of(*e), padded("no", kReplyBytes));
  EXPECT_EQ(rdma_ack_cm_event(e), 0);
  EXPECT_EQ(rdma_accept(server_, nullptr), -1) << "answered";

  EXPECT_EQ(rdma_destroy_id(client_), 0);
  ASSERT_EQ(rdma_create_id(clients_, &client_, nullptr, RDMA_PS_UDP), 0);
  resolve(9);
  rdma_conn_param p = saying("hello");
  ASSERT_EQ(rdma_connect(client_, &p), 0);
  e = next(clients_, RDMA_CM_EVENT_UNREACHABLE);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->status, kNoSuchService);
  EXPECT_EQ(rdma_ack_cm_event(e), 0);
}

// Connections have a port space of their own: neither kind of client finds a listener at the
// other's port.
TEST_F(RoceDatagramsTest, ConnectionsAndDatagramsRefuseEachOthersRequests) {
  if (!within()) return;
  ASSERT_EQ(rdma_listen(listener_, 4), 0);
  rdma_cm_id *connections = nullptr, *reliable = nullptr;
  ASSERT_EQ(rdma_create_id(listeners_, &connections, nullptr, RDMA_PS_TCP), 0);
  sockaddr_in any_port = at(0);
  ASSERT_EQ(rdma_bind_addr(connections, any(any_port)), 0);
  ASSERT_EQ(rdma_listen(connections, 4), 0);
  ASSERT_EQ(rdma_create_id(clients_, &reliable, nullptr, RDMA_PS_TCP), 0);
  sockaddr_in to = at(port());
  ASSERT_EQ(rdma_resolve_addr(reliable, nullptr, any(to), 1000), 0);
  pass(clients_, RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_EQ(rdma_resolve_route(reliable, 1000), 0);
  pass(clients_, RDMA_CM_EVENT_ROUTE_RESOLVED);
  auto attr = cm::small_qp();
  ASSERT_EQ(rdma_create_qp(reliable, nullptr, &attr), 0);
  rdma_conn_param p = saying("hello");
  ASSERT_EQ(rdma_connect(reliable, &p), 0);
  pass(clients_, RDMA_CM_EVENT_REJECTED);
  resolve(ntohs(rdma_get_src_port(connections)));
  ASSERT_EQ(rdma_connect(client_, &p), 0);
  pass(clients_, RDMA_CM_EVENT_UNREACHABLE);
  EXPECT_TRUE(cm::silent(listeners_, 20));
  rdma_destroy_qp(reliable);
  EXPECT_EQ(rdma_destroy_id(reliable), 0);
  EXPECT_EQ(rdma_destroy_id(connections), 0);
}

TEST_F(RoceDatagramsTest, AnIdMayBeDestroyedDuringARequestAtEitherEnd) {
  if (!within()) return;
  request();
  EXPECT_EQ(rdma_destroy_id(client_), 0);
  client_ = nullptr;
  auto attr = datagrams();
  ASSERT_EQ(rdma_create_qp(server_, nullptr, &attr), 0);
  EXPECT_EQ(rdma_accept(server_, nullptr), 0);
  EXPECT_TRUE(cm::silent(clients_, 50));
  rdma_destroy_qp(server_);
  EXPECT_EQ(rdma_destroy_id(server_), 0);
  server_ = nullptr;
  // A request that was not fetched is refused when the listening id is destroyed, a fetched one
  // with its own id.
  for (const bool looked_at : {false, true}) {
    ASSERT_EQ(rdma_create_id(clients_, &client_, nullptr, RDMA_PS_UDP), 0);
    resolve(port());
    rdma_conn_param p = saying("hello");
    ASSERT_EQ(rdma_connect(client_, &p), 0);
    if (looked_at) {
      auto* e = next(listeners_, RDMA_CM_EVENT_CONNECT_REQUEST);
      ASSERT_NE(e, nullptr);
      rdma_cm_id* asked = e->id;
      EXPECT_EQ(rdma_ack_cm_event(e), 0);
      EXPECT_EQ(rdma_destroy_id(asked), 0);
    } else {
      EXPECT_FALSE(cm::silent(listeners_, 5000));
      EXPECT_EQ(rdma_destroy_id(listener_), 0);
      ASSERT_EQ(rdma_create_id(listeners_, &listener_, this, RDMA_PS_UDP), 0);
      sockaddr_in a = at(0);
      ASSERT_EQ(rdma_bind_addr(listener_, any(a)), 0);
      ASSERT_EQ(rdma_listen(listener_, 4), 0);
    }
    auto* e = next(clients_, RDMA_CM_EVENT_UNREACHABLE);
    ASSERT_NE(e, nullptr);
    EXPECT_EQ(e->status, kRejected);
    EXPECT_EQ(rdma_ack_cm_event(e), 0);
    EXPECT_EQ(rdma_destroy_id(client_), 0);
    client_ = nullptr;
  }
}

// proves: DI-23
TEST_F(RoceDatagramsTest, UnsupportedCallsOnIdsAreRefused) {
  if (!within()) return;
  rdma_cm_id* other = nullptr;
  for (const auto space : {RDMA_PS_IPOIB, RDMA_PS_IB}) {
    EXPECT_EQ(rdma_create_id(clients_, &other, nullptr, space), -1);
    EXPECT_EQ(errno, EOPNOTSUPP);
  }
  rdma_conn_param p = saying("hello");
  EXPECT_EQ(rdma_connect(client_, &p), -1) << "nothing is resolved";
  EXPECT_EQ(errno, EINVAL);
  request();
  auto attr = cm::small_qp();
  EXPECT_EQ(rdma_create_qp(server_, nullptr, &attr), -1) << "RC";
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(rdma_accept(server_, nullptr), -1) << "without a queue pair";
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_disconnect(server_), -1);
  EXPECT_EQ(errno, EINVAL);
  attr = datagrams();
  ASSERT_EQ(rdma_create_qp(server_, nullptr, &attr), 0);
  const std::string long_words(kReplyBytes + 1, 'x');
  p = saying(long_words.c_str());
  EXPECT_EQ(rdma_accept(server_, &p), -1);
  EXPECT_EQ(errno, EINVAL);
  sockaddr_in group = at(0);
  inet_pton(AF_INET, "239.1.1.1", &group.sin_addr);
  EXPECT_EQ(rdma_join_multicast(client_, any(group), nullptr), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  ASSERT_EQ(rdma_accept(server_, nullptr), 0) << "nothing of that was an answer";
  pass(clients_, RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(rdma_accept(server_, nullptr), -1);
}

// Private data that is too long is refused before anything is sent.
TEST_F(RoceDatagramsTest, TooLongPrivateDataLeavesTheIdUnchanged) {
  if (!within()) return;
  ASSERT_EQ(rdma_listen(listener_, 4), 0);
  resolve(port());
  const std::string long_words(kRequestBytes + 1, 'x');
  rdma_conn_param p = saying(long_words.c_str());
  EXPECT_EQ(rdma_connect(client_, &p), -1);
  EXPECT_EQ(errno, EINVAL);
  p = saying("hello");
  ASSERT_EQ(rdma_connect(client_, &p), 0);
  auto* e = next(listeners_, RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(e, nullptr);
  server_ = e->id;
  EXPECT_EQ(rdma_ack_cm_event(e), 0);
  EXPECT_EQ(rdma_connect(client_, &p), -1) << "it asks already";
}

// A program that moves its queue pair with the attributes of rdma_init_qp_attr.
TEST_F(RoceDatagramsTest, AProgramMayMoveItsQueuePairItself) {
  if (!within()) return;
  ASSERT_EQ(rdma_listen(listener_, 4), 0);
  resolve(port());
  ibv_cq* cq = ibv_create_cq(client_->verbs, 8, nullptr, nullptr, 0);
  auto attr = datagrams();
  attr.send_cq = attr.recv_cq = cq;
  ibv_qp* qp = ibv_create_qp(client_->pd, &attr);
  ASSERT_NE(qp, nullptr);
  for (const ibv_qp_state to : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    ibv_qp_attr a{};
    int mask = 0;
    a.qp_state = to;
    ASSERT_EQ(rdma_init_qp_attr(client_, &a, &mask), 0);
    EXPECT_EQ(ibv_modify_qp(qp, &a, mask), 0) << to;
  }
  EXPECT_EQ(qp->state, IBV_QPS_RTS);
  ibv_qp_attr a{};
  int mask = 0;
  a.qp_state = IBV_QPS_SQD;
  EXPECT_EQ(rdma_init_qp_attr(client_, &a, &mask), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

// Ids without a channel: each call waits for its operation. The result of rdma_getaddrinfo for
// datagrams makes an endpoint for them.
// proves: DI-23
TEST_F(RoceDatagramsTest, EndpointsWaitForTheAnswer) {
  if (!within()) return;
  request();
  auto attr = datagrams();
  ASSERT_EQ(rdma_create_qp(server_, nullptr, &attr), 0);
  rdma_addrinfo hints{}, *found = nullptr;
  hints.ai_port_space = RDMA_PS_UDP;
  const std::string service = std::to_string(port());
  ASSERT_EQ(rdma_getaddrinfo(roce::address().c_str(), service.c_str(), &hints, &found), 0);
  EXPECT_EQ(found->ai_qp_type, IBV_QPT_UD);
  rdma_cm_id* end = nullptr;
  attr = datagrams();
  ASSERT_EQ(rdma_create_ep(&end, found, nullptr, &attr), 0) << strerror(errno);
  EXPECT_EQ(end->qp->state, IBV_QPS_RTS);
  std::thread answers([&] {
    auto* e = next(listeners_, RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(e, nullptr);
    rdma_conn_param p = saying("welcome");
    p.qp_num = server_->qp->qp_num;
    rdma_cm_id* asked = e->id;
    EXPECT_EQ(rdma_accept(asked, &p), 0);
    EXPECT_EQ(rdma_ack_cm_event(e), 0);
    EXPECT_EQ(rdma_destroy_id(asked), 0);
  });
  rdma_conn_param p = saying("hello");
  EXPECT_EQ(rdma_connect(end, &p), 0) << strerror(errno);
  answers.join();
  ASSERT_NE(end->event, nullptr);
  EXPECT_EQ(end->event->event, RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(end->event->param.ud.qp_num, server_->qp->qp_num);
  rdma_destroy_ep(end);
  rdma_freeaddrinfo(found);
}

}  // namespace
