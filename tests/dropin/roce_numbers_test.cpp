// The drop-in librdmacm over RoCE with identifiers without a queue pair: the connection only
// carries the number in rdma_conn_param, and the program moves its queue pair itself.
#include <errno.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "dropin/roce_ids.h"

namespace {

using cm::next;
using cm::pass;

constexpr std::uint32_t kMine = 0xabcdef, kTheirs = 0x123456;  // not queue pairs of this process

class RoceNumbersTest : public roce::RoceIdsTest {
 protected:
  RoceNumbersTest() : RoceIdsTest(RDMA_PS_TCP) {}
  static rdma_conn_param saying(const char* text, std::uint32_t number) {
    rdma_conn_param p{};
    p.private_data = text;
    p.private_data_len = static_cast<std::uint8_t>(std::string(text).size());
    p.retry_count = 5;
    p.rnr_retry_count = 4;
    p.responder_resources = 3;
    p.initiator_depth = 2;
    p.qp_num = number;
    p.srq = 1;
    return p;
  }
  static std::string text_of(const rdma_conn_param& p) {
    return static_cast<const char*>(p.private_data);
  }
  void request() {
    ASSERT_EQ(rdma_listen(listener_, 4), 0);
    resolve(port());
    request_from_resolved();
  }
  void request_from_resolved() {
    rdma_conn_param p = saying("hello", kMine);
    ASSERT_EQ(rdma_connect(client_, &p), 0);
    rdma_cm_event* e = next(listeners_, RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(e, nullptr);
    server_ = e->id;
    EXPECT_EQ(e->param.conn.qp_num, kMine);
    EXPECT_EQ(e->param.conn.srq, 1);
    EXPECT_EQ(text_of(e->param.conn), "hello");
    EXPECT_EQ(rdma_ack_cm_event(e), 0);
  }
  void answer() {
    rdma_conn_param p = saying("welcome", kTheirs);
    p.initiator_depth = 1;
    ASSERT_EQ(rdma_accept(server_, &p), 0);
    rdma_cm_event* e = next(clients_, RDMA_CM_EVENT_CONNECT_RESPONSE);
    ASSERT_NE(e, nullptr);
    EXPECT_EQ(e->status, 0);
    EXPECT_EQ(e->param.conn.qp_num, kTheirs);
    EXPECT_EQ(e->param.conn.srq, 1);
    EXPECT_EQ(e->param.conn.rnr_retry_count, 4);
    EXPECT_EQ(e->param.conn.responder_resources, 1);
    EXPECT_EQ(e->param.conn.initiator_depth, 2);
    EXPECT_EQ(text_of(e->param.conn), "welcome");
    EXPECT_EQ(rdma_ack_cm_event(e), 0);
  }
  void establish() {
    request();
    answer();
    ASSERT_EQ(rdma_establish(client_), 0);
    pass(listeners_, RDMA_CM_EVENT_ESTABLISHED);
  }
  // Returns the mask, or -1 with errno.
  static int mask_for(rdma_cm_id* id, ibv_qp_state state, ibv_qp_attr* a) {
    int mask = -1;
    std::memset(a, 0xa5, sizeof *a);
    a->qp_state = state;
    return rdma_init_qp_attr(id, a, &mask) == 0 ? mask : -1;
  }
};

constexpr int kInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kRtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kRts = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                     IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
constexpr unsigned kRights =
    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

// proves: DI-23
TEST_F(RoceNumbersTest, TheClientEstablishesWhatTheServerHasAnswered) {
  if (!within()) return;
  request();
  EXPECT_EQ(rdma_establish(client_), -1) << "there is no answer";
  EXPECT_EQ(errno, EINVAL);
  answer();
  EXPECT_EQ(rdma_establish(server_), -1) << "the server has nothing to establish";
  EXPECT_EQ(rdma_establish(client_), 0);
  pass(listeners_, RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(rdma_establish(client_), -1) << "it is established";
}

// At every step, both ends have each other's attributes.
TEST_F(RoceNumbersTest, AttributesComeFromThePathAndTheMessages) {
  if (!within()) return;
  ibv_qp_attr a, b;
  ASSERT_EQ(rdma_listen(listener_, 4), 0);
  resolve(port());
  EXPECT_EQ(mask_for(client_, IBV_QPS_INIT, &a), kInit);
  EXPECT_EQ(a.qp_access_flags, 0u) << "Linux names no rights before there is a connection";
  EXPECT_EQ(a.port_num, 1);
  request_from_resolved();
  EXPECT_EQ(mask_for(client_, IBV_QPS_INIT, &a), kInit);
  EXPECT_EQ(a.qp_access_flags, kRights);
  EXPECT_EQ(mask_for(client_, IBV_QPS_RTR, &a), -1) << "the server has not said anything yet";
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(mask_for(client_, IBV_QPS_ERR, &a), -1);
  ASSERT_EQ(mask_for(server_, IBV_QPS_INIT, &b), kInit);
  EXPECT_EQ(b.qp_access_flags, kRights);
  ASSERT_EQ(mask_for(server_, IBV_QPS_RTR, &b), kRtr);
  EXPECT_EQ(b.dest_qp_num, kMine);
  EXPECT_EQ(b.max_dest_rd_atomic, 2);
  EXPECT_EQ(b.min_rnr_timer, 0);
  EXPECT_EQ(b.ah_attr.is_global, 1);
  EXPECT_EQ(b.ah_attr.port_num, 1);
  const std::uint32_t server_psn = b.rq_psn;
  ASSERT_EQ(mask_for(server_, IBV_QPS_RTS, &b), kRts);
  EXPECT_EQ(b.retry_cnt, 5);
  EXPECT_EQ(b.rnr_retry, 4);
  EXPECT_EQ(b.max_rd_atomic, 3);
  const std::uint32_t client_psn = b.sq_psn;
  answer();
  ASSERT_EQ(mask_for(client_, IBV_QPS_RTR, &a), kRtr);
  EXPECT_EQ(a.dest_qp_num, kTheirs);
  EXPECT_EQ(a.rq_psn, client_psn);
  EXPECT_EQ(a.max_dest_rd_atomic, 1);
  ASSERT_EQ(mask_for(server_, IBV_QPS_RTR, &b), kRtr);
  EXPECT_EQ(b.rq_psn, server_psn) << "as before the answer";
  EXPECT_EQ(a.path_mtu, b.path_mtu);
  ibv_gid own{};
  ASSERT_EQ(ibv_query_gid(client_->verbs, 1, a.ah_attr.grh.sgid_index, &own), 0);
  EXPECT_EQ(std::memcmp(&own, &b.ah_attr.grh.dgid, sizeof own), 0);
  ASSERT_EQ(mask_for(client_, IBV_QPS_RTS, &a), kRts);
  EXPECT_EQ(a.sq_psn, server_psn);
  EXPECT_EQ(a.max_rd_atomic, 2);
  EXPECT_GT(a.timeout, 0);
  ASSERT_EQ(rdma_establish(client_), 0);
  pass(listeners_, RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(mask_for(server_, IBV_QPS_RTS, &b), kRts);
  ASSERT_EQ(rdma_disconnect(client_), 0);
  pass(clients_, RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(mask_for(client_, IBV_QPS_RTR, &a), -1);
}

TEST_F(RoceNumbersTest, EitherEndDisconnects) {
  if (!within()) return;
  establish();
  ASSERT_EQ(rdma_disconnect(server_), 0);
  pass(clients_, RDMA_CM_EVENT_DISCONNECTED);
  pass(listeners_, RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(rdma_disconnect(client_), 0) << "as a program does that answers the event";
  pass(clients_, RDMA_CM_EVENT_TIMEWAIT_EXIT);
  pass(listeners_, RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

TEST_F(RoceNumbersTest, DestroyingAnIdEndsTheConnection) {
  if (!within()) return;
  establish();
  EXPECT_EQ(rdma_destroy_id(client_), 0);
  client_ = nullptr;
  pass(listeners_, RDMA_CM_EVENT_DISCONNECTED);
}

TEST_F(RoceNumbersTest, TheServerRejects) {
  if (!within()) return;
  request();
  ASSERT_EQ(rdma_reject(server_, "no", 3), 0);
  rdma_cm_event* e = next(clients_, RDMA_CM_EVENT_REJECTED);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->status, 28);
  EXPECT_EQ(text_of(e->param.conn), "no");
  EXPECT_EQ(rdma_ack_cm_event(e), 0);
}

TEST_F(RoceNumbersTest, TheClientRejectsTheAnswer) {
  if (!within()) return;
  request();
  answer();
  ASSERT_EQ(rdma_reject(client_, "no", 3), 0);
  rdma_cm_event* e = next(listeners_, RDMA_CM_EVENT_REJECTED);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->status, 28);
  EXPECT_EQ(text_of(e->param.conn), "no");
  EXPECT_EQ(rdma_ack_cm_event(e), 0);
  EXPECT_EQ(rdma_establish(client_), -1);
}

TEST_F(RoceNumbersTest, APortWithoutAListenerRejects) {
  if (!within()) return;
  resolve(1);
  rdma_conn_param p = saying("hello", kMine);
  ASSERT_EQ(rdma_connect(client_, &p), 0);
  rdma_cm_event* e = next(clients_, RDMA_CM_EVENT_REJECTED);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->status, 8);
  EXPECT_EQ(rdma_ack_cm_event(e), 0);
}

// IBV_EVENT_COMM_EST of the program's queue pair replaces the RTU.
TEST_F(RoceNumbersTest, NotifyOfAFirstRequestEstablishesTheServer) {
  if (!within()) return;
  request();
  answer();
  EXPECT_EQ(rdma_notify(server_, IBV_EVENT_QP_FATAL), -1);
  EXPECT_EQ(errno, EINVAL);
  ASSERT_EQ(rdma_notify(server_, IBV_EVENT_COMM_EST), 0);
  pass(listeners_, RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(rdma_notify(server_, IBV_EVENT_COMM_EST), -1);
  EXPECT_EQ(errno, EISCONN);
  EXPECT_EQ(rdma_establish(client_), 0);
}

TEST_F(RoceNumbersTest, ConnectsToAnIdThatHasAQueuePair) {
  if (!within()) return;
  request();
  auto attr = cm::small_qp();
  ASSERT_EQ(rdma_create_qp(server_, nullptr, &attr), 0);
  rdma_conn_param p{};
  ASSERT_EQ(rdma_accept(server_, &p), 0);
  pass(clients_, RDMA_CM_EVENT_CONNECT_RESPONSE);
  ASSERT_EQ(rdma_establish(client_), 0);
  pass(listeners_, RDMA_CM_EVENT_ESTABLISHED);
  ibv_qp_attr a;
  ibv_qp_init_attr init;
  ASSERT_EQ(ibv_query_qp(server_->qp, &a, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(a.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(a.dest_qp_num, kMine);
}

TEST_F(RoceNumbersTest, AFailedCallLeavesTheIdUnchanged) {
  if (!within()) return;
  ASSERT_EQ(rdma_listen(listener_, 4), 0);
  resolve(port());
  const std::string long_words(57, 'x');
  rdma_conn_param p = saying(long_words.c_str(), kMine);
  EXPECT_EQ(rdma_connect(client_, &p), -1);
  EXPECT_EQ(errno, EINVAL);
  p = saying("hello", kMine);
  EXPECT_EQ(rdma_connect(client_, &p), 0);
  rdma_cm_event* e = next(listeners_, RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(e, nullptr);
  server_ = e->id;
  EXPECT_EQ(rdma_ack_cm_event(e), 0);
}

TEST_F(RoceNumbersTest, ARequestWhoseAnswerIsTooLongCanBeAnsweredAgain) {
  if (!within()) return;
  request();
  const std::string long_words(197, 'x');
  rdma_conn_param p = saying(long_words.c_str(), kTheirs);
  EXPECT_EQ(rdma_accept(server_, &p), -1);
  EXPECT_EQ(errno, EINVAL);
  answer();
  EXPECT_EQ(rdma_accept(server_, &p), -1) << "it is answered";
  EXPECT_EQ(errno, EINVAL);
  ASSERT_EQ(rdma_establish(client_), 0);
  pass(listeners_, RDMA_CM_EVENT_ESTABLISHED);
}

TEST_F(RoceNumbersTest, DisconnectDoesNothingBeforeTheConnectionIsEstablished) {
  if (!within()) return;
  request();
  EXPECT_EQ(rdma_disconnect(client_), 0);
  EXPECT_EQ(rdma_disconnect(server_), -1) << "a request has no connection";
  EXPECT_EQ(errno, EINVAL);
  answer();
  EXPECT_EQ(rdma_disconnect(client_), 0);
  EXPECT_EQ(rdma_disconnect(server_), 0);
  ASSERT_EQ(rdma_establish(client_), 0);
  pass(listeners_, RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_TRUE(cm::silent(clients_, 50));
  ASSERT_EQ(rdma_disconnect(client_), 0);
  pass(listeners_, RDMA_CM_EVENT_DISCONNECTED);
}

// No event would come of it.
TEST_F(RoceNumbersTest, ASynchronousIdDoesNotWaitForTheEndOfWhatIsNotEstablished) {
  if (!within()) return;
  request();
  answer();
  ASSERT_EQ(rdma_migrate_id(client_, nullptr), 0);
  std::atomic<int> result{1};
  std::thread disconnecting([&] { result = rdma_disconnect(client_); });
  EXPECT_TRUE(urnic::test::soon([&] { return result != 1; }));
  if (result == 1) {  // an event ends the wait
    EXPECT_EQ(rdma_destroy_id(std::exchange(server_, nullptr)), 0);
  }
  disconnecting.join();
  EXPECT_EQ(result, 0);
  ASSERT_EQ(rdma_establish(client_), 0);
  pass(listeners_, RDMA_CM_EVENT_ESTABLISHED);
}

TEST_F(RoceNumbersTest, TheAttributesOfARequestHaveTheOptionsOfItsId) {
  if (!within()) return;
  request();
  ibv_qp_attr a;
  std::uint8_t tos = 104, timeout = 13;
  ASSERT_EQ(mask_for(server_, IBV_QPS_RTR, &a), kRtr);
  EXPECT_EQ(a.ah_attr.grh.traffic_class, 0);
  ASSERT_EQ(mask_for(server_, IBV_QPS_RTS, &a), kRts);
  EXPECT_NE(a.timeout, timeout);
  ASSERT_EQ(rdma_set_option(server_, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1), 0);
  ASSERT_EQ(rdma_set_option(server_, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1), 0);
  // Before the answer and after it.
  for (const bool is_answered : {false, true}) {
    SCOPED_TRACE(is_answered);
    if (is_answered) answer();
    ASSERT_EQ(mask_for(server_, IBV_QPS_RTR, &a), kRtr);
    EXPECT_EQ(a.ah_attr.grh.traffic_class, tos);
    ASSERT_EQ(mask_for(server_, IBV_QPS_RTS, &a), kRts);
    EXPECT_EQ(a.timeout, timeout);
  }
}

// As Linux's rdma_cm, which has made the queue pair itself.
TEST_F(RoceNumbersTest, TheAttributesForInitHaveRightsBeforeAConnectionOnlyWithAQueuePair) {
  if (!within()) return;
  resolve(port());
  ibv_qp_attr a;
  ASSERT_EQ(mask_for(client_, IBV_QPS_INIT, &a), kInit);
  EXPECT_EQ(a.qp_access_flags, 0u);
  auto attr = cm::small_qp();
  ASSERT_EQ(rdma_create_qp(client_, nullptr, &attr), 0);
  ASSERT_EQ(mask_for(client_, IBV_QPS_INIT, &a), kInit);
  EXPECT_EQ(a.qp_access_flags, kRights);
  EXPECT_EQ(a.port_num, 1);
  EXPECT_EQ(a.pkey_index, 0);
}

TEST_F(RoceNumbersTest, TheNumberOfAQueuePairIsItsLower24Bits) {
  if (!within()) return;
  ASSERT_EQ(rdma_listen(listener_, 4), 0);
  resolve(port());
  rdma_conn_param p = saying("hello", 0x5a000000 | kMine);
  ASSERT_EQ(rdma_connect(client_, &p), 0);
  rdma_cm_event* e = next(listeners_, RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(e, nullptr);
  server_ = e->id;
  EXPECT_EQ(e->param.conn.qp_num, kMine);
  EXPECT_EQ(rdma_ack_cm_event(e), 0);
  p = saying("welcome", 0x5a000000 | kTheirs);
  ASSERT_EQ(rdma_accept(server_, &p), 0);
  e = next(clients_, RDMA_CM_EVENT_CONNECT_RESPONSE);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->param.conn.qp_num, kTheirs);
  EXPECT_EQ(rdma_ack_cm_event(e), 0);
}

}  // namespace
