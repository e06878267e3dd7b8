// Tests whose device speaks RoCE, each in a process of its own, because most tests use iWARP.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "dropin/own_process.h"
#include "support/loopback_network.h"
#include "support/soon.h"

namespace roce {

// The device's only address; packets to it come back to the device.
inline std::string address() {
  return urnic::test::loopback_network() + "1";
}

class RoceTest : public own_process::Test {
 protected:
  void SetUp() override {
    if (!is_within()) return;
    unsetenv("URNIC_CONFIG");
    setenv("URNIC_TRANSPORT", "roce", 1);
    setenv("URNIC_PORT", ("udp:bind=" + address() + ",mtu=5000").c_str(), 1);
    prepare();
    open();
  }
  // Sets more settings, before the device is opened.
  virtual void prepare() {}
  void TearDown() override {
    if (pd_ != nullptr) {
      EXPECT_EQ(ibv_dealloc_pd(pd_), 0);
    }
    if (context_ != nullptr) {
      EXPECT_EQ(ibv_close_device(context_), 0);
    }
    if (list_ != nullptr) ibv_free_device_list(list_);
  }
  void open() {
    int number = 0;
    list_ = ibv_get_device_list(&number);
    ASSERT_EQ(number, 1);
    context_ = ibv_open_device(list_[0]);
    ASSERT_NE(context_, nullptr);
    pd_ = ibv_alloc_pd(context_);
    ASSERT_NE(pd_, nullptr);
    ASSERT_EQ(ibv_query_gid(context_, 1, 0, &gid_), 0);
  }

  ibv_device** list_ = nullptr;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_gid gid_{};
};

// A queue pair with a queue and memory of its own.
struct End {
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  ibv_qp* qp = nullptr;
  char memory[256] = {};

  static constexpr int kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  static constexpr std::uint32_t kQkey = 0x11111111;

  void make(ibv_context* context, ibv_pd* pd, ibv_qp_type type) {
    cq = ibv_create_cq(context, 32, nullptr, nullptr, 0);
    ASSERT_NE(cq, nullptr);
    mr = ibv_reg_mr(pd, memory, sizeof memory, kRights);
    ASSERT_NE(mr, nullptr);
    ibv_qp_init_attr a{};
    a.send_cq = a.recv_cq = cq;
    a.qp_type = type;
    a.cap.max_send_wr = a.cap.max_recv_wr = 8;
    a.cap.max_send_sge = a.cap.max_recv_sge = 1;
    qp = ibv_create_qp(pd, &a);
    ASSERT_NE(qp, nullptr);
  }
  void destroy() {
    if (qp != nullptr) {
      EXPECT_EQ(ibv_destroy_qp(qp), 0);
    }
    if (mr != nullptr) {
      EXPECT_EQ(ibv_dereg_mr(mr), 0);
    }
    if (cq != nullptr) {
      EXPECT_EQ(ibv_destroy_cq(cq), 0);
    }
  }
  int init() const {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qkey = kQkey;
    a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    const int own = qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
    return ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | own);
  }
  static ibv_ah_attr way(const ibv_gid& to) {
    ibv_ah_attr a{};
    a.is_global = 1;
    a.grh.dgid = to;
    a.grh.hop_limit = 1;
    a.port_num = 1;
    return a;
  }
  // Every attribute that a move to RTR may need.
  static ibv_qp_attr rtr(const ibv_gid& to, std::uint32_t number) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = IBV_MTU_1024;
    a.dest_qp_num = number;
    a.rq_psn = 0xfffff0;
    a.max_dest_rd_atomic = 4;
    a.min_rnr_timer = 12;
    a.ah_attr = way(to);
    return a;
  }
  static constexpr int kUcRtr =
      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  static constexpr int kRcRtr = kUcRtr | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  int to_rtr(const ibv_gid& to, std::uint32_t number) const {
    ibv_qp_attr a = rtr(to, number);
    const int mask = qp->qp_type == IBV_QPT_UD   ? IBV_QP_STATE
                     : qp->qp_type == IBV_QPT_UC ? kUcRtr
                                                 : kRcRtr;
    return ibv_modify_qp(qp, &a, mask);
  }
  static ibv_qp_attr rts() {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_RTS;
    a.sq_psn = 0xfffff0;
    a.timeout = 14;
    a.retry_cnt = 6;
    a.rnr_retry = 5;
    a.max_rd_atomic = 3;
    return a;
  }
  static constexpr int kRcRts = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  int to_rts() const {
    ibv_qp_attr a = rts();
    return ibv_modify_qp(qp, &a, qp->qp_type == IBV_QPT_RC ? kRcRts : IBV_QP_STATE | IBV_QP_SQ_PSN);
  }
  void connect(const ibv_gid& to, std::uint32_t number) const {
    ASSERT_EQ(init(), 0);
    ASSERT_EQ(to_rtr(to, number), 0);
    ASSERT_EQ(to_rts(), 0);
  }
  int receive(std::uint64_t id, std::uint32_t length = 128) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(memory) + 128, length, mr->lkey};
    ibv_recv_wr wr{}, *bad;
    wr.wr_id = id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    return ibv_post_recv(qp, &wr, &bad);
  }
  ibv_send_wr request(std::uint64_t id, ibv_wr_opcode opcode, ibv_sge* sge,
                      std::uint32_t length = 16) {
    *sge = {reinterpret_cast<std::uint64_t>(memory), length, mr->lkey};
    ibv_send_wr wr{};
    wr.wr_id = id;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = sge;
    wr.num_sge = 1;
    return wr;
  }
  int post(ibv_send_wr wr) const {
    ibv_send_wr* bad;
    return ibv_post_send(qp, &wr, &bad);
  }
  // The next completion.
  ibv_wc next() const {
    ibv_wc wc{};
    const bool came = urnic::test::soon([&] { return ibv_poll_cq(cq, 1, &wc) != 0; });
    EXPECT_TRUE(came) << "no completion";
    return wc;
  }
  ibv_qp_attr query() const {
    ibv_qp_attr a{};
    ibv_qp_init_attr i{};
    EXPECT_EQ(ibv_query_qp(qp, &a, IBV_QP_STATE, &i), 0);
    EXPECT_EQ(i.qp_type, qp->qp_type);
    return a;
  }
};

}  // namespace roce
