// The drop-in librdmacm over RoCE: the contents of each event, and the result of ibv_query_qp for a
// queue pair that rdma_cm has connected. All values differ, so that a mix-up is detected.
#include <errno.h>

#include "dropin/roce_ids.h"

namespace {

using cm::next;
using cm::pass;

class RoceEventsTest : public roce::RoceIdsTest {
 protected:
  RoceEventsTest() : RoceIdsTest(RDMA_PS_TCP) {}
  void TearDown() override {
    for (rdma_cm_id* id : {client_, server_}) {
      if (id != nullptr) rdma_destroy_qp(id);
    }
    for (rdma_cm_id* id : {client_, server_}) {
      if (id != nullptr) rdma_destroy_srq(id);
    }
    RoceIdsTest::TearDown();
  }
  static rdma_conn_param asked() {
    rdma_conn_param p{};
    p.responder_resources = 6;
    p.initiator_depth = 5;
    p.retry_count = 2;
    p.rnr_retry_count = 4;
    return p;
  }
  static rdma_conn_param answered() {
    rdma_conn_param p{};
    p.responder_resources = 3;
    p.initiator_depth = 1;
    p.retry_count = 6;  // ignored by accept
    p.rnr_retry_count = 5;
    return p;
  }
  static void make_qp(rdma_cm_id* id, bool srq) {
    if (srq) {
      ibv_srq_init_attr a{};
      a.attr.max_wr = 8;
      a.attr.max_sge = 1;
      ASSERT_EQ(rdma_create_srq(id, nullptr, &a), 0);
    }
    auto attr = cm::small_qp();
    ASSERT_EQ(rdma_create_qp(id, nullptr, &attr), 0);
  }
  void request(rdma_conn_param p, bool srq = false) {
    ASSERT_EQ(rdma_listen(listener_, 1), 0);
    resolve(port());
    make_qp(client_, srq);
    ASSERT_EQ(rdma_connect(client_, &p), 0);
    event_ = next(listeners_, RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(event_, nullptr);
    server_ = event_->id;
    said_ = event_->param.conn;
    EXPECT_EQ(rdma_ack_cm_event(event_), 0);
  }
  // The parameters of the client's ESTABLISHED are in `said_`, those of the server's in `passive_`.
  void accept(rdma_conn_param p, bool srq = false) {
    make_qp(server_, srq);
    answer(&p);
  }
  void answer(rdma_conn_param* p) {
    ASSERT_EQ(rdma_accept(server_, p), 0);
    rdma_cm_event* e = next(clients_, RDMA_CM_EVENT_ESTABLISHED);
    ASSERT_NE(e, nullptr);
    said_ = e->param.conn;
    EXPECT_EQ(rdma_ack_cm_event(e), 0);
    e = next(listeners_, RDMA_CM_EVENT_ESTABLISHED);
    ASSERT_NE(e, nullptr);
    passive_ = e->param.conn;
    EXPECT_EQ(rdma_ack_cm_event(e), 0);
  }
  static ibv_qp_attr query(const rdma_cm_id* id) {
    ibv_qp_attr a{};
    ibv_qp_init_attr i{};
    EXPECT_EQ(ibv_query_qp(id->qp, &a, IBV_QP_STATE | IBV_QP_AV, &i), 0);
    return a;
  }

  rdma_cm_event* event_ = nullptr;
  rdma_conn_param said_{}, passive_{};
};

// proves: DI-8, DI-23
TEST_F(RoceEventsTest, RequestAndAnswerReportThePeersValues) {
  if (!within()) return;
  rdma_conn_param p = asked();
  p.flow_control = 1;
  request(p);
  EXPECT_EQ(said_.responder_resources, 5);
  EXPECT_EQ(said_.initiator_depth, 6);
  EXPECT_EQ(said_.retry_count, 2);
  EXPECT_EQ(said_.rnr_retry_count, 4);
  EXPECT_EQ(said_.flow_control, 1);
  EXPECT_EQ(said_.srq, 0);
  EXPECT_EQ(said_.qp_num, client_->qp->qp_num);
  accept(answered(), true);
  EXPECT_EQ(said_.responder_resources, 1);
  EXPECT_EQ(said_.initiator_depth, 3);
  EXPECT_EQ(said_.retry_count, 0) << "the answer has none";
  EXPECT_EQ(said_.rnr_retry_count, 5);
  EXPECT_EQ(said_.flow_control, 0);
  EXPECT_EQ(said_.srq, 1);
  EXPECT_EQ(said_.qp_num, server_->qp->qp_num);
  EXPECT_EQ(passive_.responder_resources + passive_.initiator_depth + passive_.qp_num +
                passive_.rnr_retry_count + passive_.retry_count + passive_.private_data_len,
            0u)
      << "its last message says nothing";
}

TEST_F(RoceEventsTest, AcceptWithoutParametersRetriesRnrWithoutLimit) {
  if (!within()) return;
  request(asked());
  make_qp(server_, false);
  answer(nullptr);
  EXPECT_EQ(said_.rnr_retry_count, 7);
  EXPECT_EQ(said_.responder_resources, 6) << "all that was asked for";
  EXPECT_EQ(said_.initiator_depth, 5);
}

// The other two values with the ends exchanged.
TEST_F(RoceEventsTest, TheOtherEndMayHaveASharedQueueAndFlowControl) {
  if (!within()) return;
  request(asked(), true);
  EXPECT_EQ(said_.flow_control, 0);
  EXPECT_EQ(said_.srq, 1);
  rdma_conn_param p = answered();
  p.flow_control = 1;
  accept(p);
  EXPECT_EQ(said_.flow_control, 1);
  EXPECT_EQ(said_.srq, 0);
}

// Other events carry no parameters of a connection.
TEST_F(RoceEventsTest, DisconnectedCarriesNoConnectionParameters) {
  if (!within()) return;
  request(asked());
  accept(answered());
  ASSERT_EQ(rdma_disconnect(client_), 0);
  rdma_cm_event* e = next(listeners_, RDMA_CM_EVENT_DISCONNECTED);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->status, 0);
  EXPECT_EQ(e->param.conn.qp_num, 0u);
  EXPECT_EQ(e->param.conn.responder_resources, 0);
  EXPECT_EQ(e->param.conn.initiator_depth, 0);
  EXPECT_EQ(rdma_ack_cm_event(e), 0);
}

// proves: DI-8
TEST_F(RoceEventsTest, BothEndsShowTheirChosenPorts) {
  if (!within()) return;
  request(asked());
  const __be16 from = rdma_get_src_port(client_);
  EXPECT_NE(from, 0);
  EXPECT_EQ(rdma_get_dst_port(server_), from);
  accept(answered());
  EXPECT_EQ(rdma_get_src_port(client_), from);
  EXPECT_EQ(rdma_get_dst_port(client_), htons(port()));
  EXPECT_EQ(rdma_get_src_port(server_), htons(port()));
  EXPECT_EQ(rdma_get_dst_port(server_), from);
}

// A kernel reserves the port when the address is resolved.
TEST_F(RoceEventsTest, TheSourcePortIsReservedWhenTheAddressIsResolved) {
  if (!within()) return;
  resolve(9);
  const __be16 from = rdma_get_src_port(client_);
  EXPECT_NE(from, 0);
  rdma_cm_id* other = nullptr;
  ASSERT_EQ(rdma_create_id(clients_, &other, nullptr, RDMA_PS_TCP), 0);
  sockaddr_in taken = roce::at(ntohs(from));
  EXPECT_EQ(rdma_bind_addr(other, cm::any(taken)), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  EXPECT_EQ(rdma_destroy_id(other), 0);
}

// It used to wait for ten seconds for an answer that could not arrive.
TEST_F(RoceEventsTest, AnAddressWithoutARouteIsNotResolved) {
  if (!within()) return;
  sockaddr_in nowhere = roce::at(9);
  inet_pton(AF_INET, "192.0.2.1", &nowhere.sin_addr);
  ASSERT_EQ(rdma_resolve_addr(client_, nullptr, cm::any(nowhere), 1000), 0);
  rdma_cm_event* e = next(clients_, RDMA_CM_EVENT_ADDR_ERROR);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->status, -ENETUNREACH);
  EXPECT_EQ(rdma_ack_cm_event(e), 0);
  resolve(port());
}

// proves: DI-23
TEST_F(RoceEventsTest, AQueuePairShowsTheValuesOfItsConnection) {
  if (!within()) return;
  std::uint8_t tos = 104, timeout = 13;
  ASSERT_EQ(rdma_set_option(client_, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1), 0);
  ASSERT_EQ(rdma_set_option(client_, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1), 0);
  request(asked());
  timeout = 11;
  ASSERT_EQ(rdma_set_option(server_, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1), 0);
  accept(answered());
  const ibv_qp_attr a = query(client_), b = query(server_);
  EXPECT_EQ(a.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(b.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(a.dest_qp_num, server_->qp->qp_num);
  EXPECT_EQ(b.dest_qp_num, client_->qp->qp_num);
  EXPECT_EQ(a.rq_psn, b.sq_psn);
  EXPECT_EQ(b.rq_psn, a.sq_psn);
  EXPECT_NE(a.sq_psn, b.sq_psn);
  EXPECT_EQ(a.max_rd_atomic, 3);
  EXPECT_EQ(b.max_rd_atomic, 1);
  EXPECT_EQ(a.max_dest_rd_atomic, 1);
  EXPECT_EQ(b.max_dest_rd_atomic, 3);
  EXPECT_EQ(a.retry_cnt, 2);
  EXPECT_EQ(b.retry_cnt, 2);
  EXPECT_EQ(a.rnr_retry, 5) << "as the peer says";
  EXPECT_EQ(b.rnr_retry, 4) << "as the peer says";
  EXPECT_EQ(a.timeout, 13);
  EXPECT_EQ(b.timeout, 11);
  ibv_port_attr port_now{};
  ASSERT_EQ(ibv_query_port(client_->verbs, 1, &port_now), 0);
  for (const ibv_qp_attr& q : {a, b}) {
    EXPECT_EQ(q.path_mtu, port_now.active_mtu);
    EXPECT_EQ(q.min_rnr_timer, 0) << "655 ms, as Linux's rdma_cm has it";
    EXPECT_NE(q.qp_access_flags & IBV_ACCESS_REMOTE_READ, 0u);
    EXPECT_EQ(q.ah_attr.is_global, 1);
    EXPECT_EQ(q.ah_attr.port_num, 1);
    EXPECT_EQ(std::memcmp(&q.ah_attr.grh.dgid, &gid_, sizeof gid_), 0);
    EXPECT_EQ(q.ah_attr.grh.sgid_index, 0);
    EXPECT_EQ(q.ah_attr.grh.hop_limit, 64);
    EXPECT_EQ(q.ah_attr.grh.traffic_class, 104) << "as the client has asked for";
  }
}

// proves: DI-23
TEST_F(RoceEventsTest, AServerMayChooseATrafficClassForWhatItSends) {
  if (!within()) return;
  request(asked());
  std::uint8_t tos = 72;
  ASSERT_EQ(rdma_set_option(server_, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1), 0);
  accept(answered());
  EXPECT_EQ(query(client_).ah_attr.grh.traffic_class, 0);
  EXPECT_EQ(query(server_).ah_attr.grh.traffic_class, 72);
}

// Ceph's monitor, and other servers that send first.
TEST_F(RoceEventsTest, AServerThatHasAcceptedMaySendAtOnce) {
  if (!within()) return;
  request(asked());
  char into[16] = {}, from[16] = "at once";
  ibv_mr* const in = rdma_reg_msgs(client_, into, sizeof into);
  ibv_mr* const out = rdma_reg_msgs(server_, from, sizeof from);
  ASSERT_EQ(rdma_post_recv(client_, nullptr, into, sizeof into, in), 0);
  make_qp(server_, false);
  rdma_conn_param p = answered();
  ASSERT_EQ(rdma_accept(server_, &p), 0);
  EXPECT_EQ(cm::shown(*server_->qp), IBV_QPS_RTS);
  ASSERT_EQ(rdma_post_send(server_, nullptr, from, sizeof from, out, IBV_SEND_SIGNALED), 0);
  EXPECT_EQ(cm::wait_for(client_->recv_cq).status, IBV_WC_SUCCESS);
  EXPECT_STREQ(into, "at once");
  pass(clients_, RDMA_CM_EVENT_ESTABLISHED);
  pass(listeners_, RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(ibv_dereg_mr(in), 0);
  EXPECT_EQ(ibv_dereg_mr(out), 0);
}

// proves: DI-23
TEST_F(RoceEventsTest, AnEndThatServesNoReadsDoesNotAllowThem) {
  if (!within()) return;
  constexpr unsigned kReads = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  rdma_conn_param p = asked();
  p.responder_resources = 0;
  request(p);
  EXPECT_EQ(said_.initiator_depth, 0);
  EXPECT_EQ(query(client_).qp_access_flags & kReads, 0u);
  p = answered();
  p.responder_resources = 0;
  accept(p);
  EXPECT_EQ(query(client_).qp_access_flags & kReads, 0u);
  EXPECT_EQ(query(server_).qp_access_flags & kReads, 0u);
  for (rdma_cm_id* id : {client_, server_}) {
    EXPECT_NE(query(id).qp_access_flags & IBV_ACCESS_REMOTE_WRITE, 0u);
  }
}

// The id keeps nothing of a queue pair that it could not connect.
TEST_F(RoceEventsTest, AfterAFailedConnectAnIdMayConnectAnotherQueuePair) {
  if (!within()) return;
  ASSERT_EQ(rdma_listen(listener_, 1), 0);
  resolve(port());
  make_qp(client_, false);
  const std::string long_words(57, 'x');
  rdma_conn_param p = asked();
  p.private_data = long_words.data();
  p.private_data_len = 57;
  EXPECT_EQ(rdma_connect(client_, &p), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_notify(client_, IBV_EVENT_COMM_EST), -1) << "there is no connection";
  rdma_destroy_qp(client_);
  make_qp(client_, false);
  p = asked();
  ASSERT_EQ(rdma_connect(client_, &p), 0);
  event_ = next(listeners_, RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(event_, nullptr);
  server_ = event_->id;
  EXPECT_EQ(event_->param.conn.qp_num, client_->qp->qp_num);
  EXPECT_EQ(rdma_ack_cm_event(event_), 0);
  accept(answered());
}

}  // namespace
