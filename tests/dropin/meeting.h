// Queue pairs that connect without rdma_cm, both ends in one process, over the kernel's TCP on
// loopback.
#pragma once

#include <errno.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "support/soon.h"

namespace meeting {

inline constexpr std::uint8_t kLoopback[16] = {0, 0, 0,    0,    0,   0, 0, 0,
                                               0, 0, 0xff, 0xff, 127, 0, 0, 1};

// A queue pair with queues and memory of its own.
struct End {
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  ibv_qp* qp = nullptr;
  char memory[64] = {};

  void make(ibv_context* context, ibv_pd* pd) {
    cq = ibv_create_cq(context, 32, nullptr, nullptr, 0);
    ASSERT_NE(cq, nullptr);
    mr = ibv_reg_mr(pd, memory, sizeof memory,
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    ASSERT_NE(mr, nullptr);
    ibv_qp_init_attr a{};
    a.send_cq = a.recv_cq = cq;
    a.qp_type = IBV_QPT_RC;
    a.cap.max_send_wr = a.cap.max_recv_wr = 8;
    a.cap.max_send_sge = a.cap.max_recv_sge = 1;
    qp = ibv_create_qp(pd, &a);
    ASSERT_NE(qp, nullptr);
    init();
  }
  void init(unsigned rights = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ) const {
    ibv_qp_attr a{};
    a.qp_access_flags = rights;
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    ASSERT_EQ(
        ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
  }
  void destroy_qp() {
    if (qp != nullptr) {
      EXPECT_EQ(ibv_destroy_qp(qp), 0);
    }
    qp = nullptr;
  }
  void destroy() {
    destroy_qp();
    if (mr != nullptr) {
      EXPECT_EQ(ibv_dereg_mr(mr), 0);
    }
    if (cq != nullptr) {
      EXPECT_EQ(ibv_destroy_cq(cq), 0);
    }
  }
  int receive(std::uint64_t id) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(memory) + 32, 32, mr->lkey};
    ibv_recv_wr wr{}, *bad;
    wr.wr_id = id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    return ibv_post_recv(qp, &wr, &bad);
  }
  int send(std::uint64_t id, ibv_wr_opcode opcode = IBV_WR_SEND, const End* to = nullptr) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(memory), 16, mr->lkey};
    ibv_send_wr wr{}, *bad;
    wr.wr_id = id;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    if (to != nullptr) {
      wr.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(to->memory) + 32;
      wr.wr.rdma.rkey = to->mr->rkey;
    }
    return ibv_post_send(qp, &wr, &bad);
  }
  // The next completion.
  ibv_wc next() const {
    ibv_wc wc{};
    const bool came = urnic::test::soon([&] { return ibv_poll_cq(cq, 1, &wc) != 0; });
    EXPECT_TRUE(came) << "no completion";
    return wc;
  }
  bool is_silent(int ms) const {
    ibv_wc wc{};
    return !urnic::test::soon([&] { return ibv_poll_cq(cq, 1, &wc) != 0; },
                              std::chrono::milliseconds(ms));
  }
  void reset() const {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_RESET;
    ASSERT_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
    EXPECT_EQ(state(), IBV_QPS_RESET);
  }
  // The state that the library shows, written by a thread of its own.
  ibv_qp_state shown() const { return __atomic_load_n(&qp->state, __ATOMIC_RELAXED); }
  ibv_qp_state state() const {
    ibv_qp_attr a;
    ibv_qp_init_attr i;
    EXPECT_EQ(ibv_query_qp(qp, &a, IBV_QP_STATE, &i), 0);
    return a.qp_state;
  }
};

// Names the peer to this end, at the loopback address, and makes it ready to send.
inline void ready(const End& end, const End& with) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_RTR;
  a.dest_qp_num = with.qp->qp_num;
  a.max_dest_rd_atomic = a.max_rd_atomic = 1;
  a.ah_attr.is_global = 1;
  std::memcpy(a.ah_attr.grh.dgid.raw, kLoopback, 16);
  a.ah_attr.port_num = 1;
  ASSERT_EQ(ibv_modify_qp(end.qp, &a,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                              IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
            0);
  a.qp_state = IBV_QPS_RTS;
  ASSERT_EQ(ibv_modify_qp(end.qp, &a,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
            0);
}

class MeetingTest : public testing::Test {
 protected:
  void SetUp() override {
    unsetenv("URNIC_CONFIG");
    list_ = ibv_get_device_list(nullptr);
    ASSERT_NE(list_[0], nullptr);
    context_ = ibv_open_device(list_[0]);
    ASSERT_NE(context_, nullptr);
    pd_ = ibv_alloc_pd(context_);
    ASSERT_NE(pd_, nullptr);
    ibv_port_attr port;
    ASSERT_EQ(ibv_query_port(context_, 1, &port), 0);
    for (int i = 0; i < port.gid_tbl_len; ++i) {
      ASSERT_EQ(ibv_query_gid(context_, 1, i, &gid_), 0);
      gid_index_ = static_cast<std::uint8_t>(i);
      if (std::memcmp(gid_.raw, kLoopback, 16) == 0) break;
    }
    ASSERT_EQ(std::memcmp(gid_.raw, kLoopback, 16), 0);
    a_.make(context_, pd_);
    b_.make(context_, pd_);
  }
  void TearDown() override {
    a_.destroy();
    b_.destroy();
    c_.destroy();
    EXPECT_EQ(ibv_dealloc_pd(pd_), 0);
    EXPECT_EQ(ibv_close_device(context_), 0);
    ibv_free_device_list(list_);
  }
  int to_rtr(const End& end, std::uint32_t number) const {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = IBV_MTU_1024;
    a.dest_qp_num = number;
    a.max_dest_rd_atomic = 1;
    a.min_rnr_timer = 12;
    a.ah_attr.is_global = 1;
    a.ah_attr.grh.dgid = gid_;
    a.ah_attr.grh.sgid_index = gid_index_;
    a.ah_attr.port_num = 1;
    return ibv_modify_qp(end.qp, &a,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  }
  // Uses the shortest time-out; 0: waits for a peer without limit.
  static int to_rts(const End& end, std::uint8_t timeout = 1) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_RTS;
    a.timeout = timeout;
    a.max_rd_atomic = 1;
    return ibv_modify_qp(end.qp, &a,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  }
  void ready(const End& end, const End& with) const {
    ASSERT_EQ(to_rtr(end, with.qp->qp_num), 0);
    EXPECT_EQ(end.state(), IBV_QPS_RTR);
    ASSERT_EQ(to_rts(end), 0);
    EXPECT_EQ(end.state(), IBV_QPS_RTS);
    EXPECT_EQ(end.shown(), IBV_QPS_RTS);
  }
  static void one_way(End& from, End& to) {
    std::strcpy(from.memory, "hello");
    std::memset(to.memory, 0, sizeof to.memory);
    ASSERT_EQ(to.receive(1), 0);
    ASSERT_EQ(from.send(2), 0);
    ASSERT_EQ(from.next().status, IBV_WC_SUCCESS);
    const ibv_wc wc = to.next();
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.byte_len, 16u);
    EXPECT_EQ(wc.qp_num, to.qp->qp_num);
    EXPECT_STREQ(to.memory + 32, "hello");
  }
  static void expect_lost(End& end) {
    const ibv_wc first = end.next();
    EXPECT_EQ(first.status, IBV_WC_RETRY_EXC_ERR) << ibv_wc_status_str(first.status);
    EXPECT_EQ(first.wr_id, 1u);
    const ibv_wc second = end.next();
    EXPECT_EQ(second.status, IBV_WC_WR_FLUSH_ERR) << ibv_wc_status_str(second.status);
    EXPECT_EQ(end.state(), IBV_QPS_ERR);
    // Shown afterwards, by the library's thread.
    EXPECT_TRUE(urnic::test::soon([&] { return end.shown() == IBV_QPS_ERR; })) << end.shown();
  }
  static void end_behind_a_message(End& goes, End& stays) {
    ASSERT_EQ(stays.receive(1), 0);
    ASSERT_EQ(stays.receive(2), 0);
    ASSERT_EQ(goes.send(3), 0);
    EXPECT_EQ(goes.next().status, IBV_WC_SUCCESS);
    goes.destroy_qp();
  }
  void expect_outlives(End& stays, End& goes) {
    ready(goes, stays);
    ready(stays, goes);
    const auto begun = std::chrono::steady_clock::now();
    end_behind_a_message(goes, stays);
    EXPECT_EQ(stays.next().status, IBV_WC_SUCCESS);
    EXPECT_EQ(stays.next().status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(900));
  }
  // Ends the connection by Terminate: the peer of b_ has no right to write.
  void be_terminated() {
    ASSERT_EQ(a_.send(1, IBV_WR_RDMA_WRITE, &b_), 0);
    (void)a_.next();  // the kernel has it
    EXPECT_TRUE(urnic::test::soon([&] { return b_.state() != IBV_QPS_RTS; }));
    ASSERT_EQ(b_.state(), IBV_QPS_ERR);
  }
  // The end with the lower number connects.
  End& active() { return a_.qp->qp_num < b_.qp->qp_num ? a_ : b_; }
  End& passive() { return &active() == &a_ ? b_ : a_; }

  ibv_device** list_ = nullptr;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_gid gid_{};
  std::uint8_t gid_index_ = 0;
  End a_, b_, c_;
};

}  // namespace meeting
