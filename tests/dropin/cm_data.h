// A connection of rdma_cm whose client uses the extended calls to build requests and to poll.
#pragma once

#include "dropin/cm_ends.h"

namespace cm {

struct CmDataTest : CmTest {
  // The client builds its requests, and polls completions, with the extended calls.
  void connect_built(std::uint64_t operations) {
    resolve(ntohs(rdma_get_src_port(listener_)));
    rdma_destroy_qp(client_);
    ibv_cq_init_attr_ex c{};
    c.cqe = 16;
    c.wc_flags = IBV_WC_STANDARD_FLAGS;
    cq_ = ibv_create_cq_ex(client_->verbs, &c);
    ASSERT_NE(cq_, nullptr);
    ibv_qp_init_attr_ex x{};
    x.send_cq = x.recv_cq = ibv_cq_ex_to_cq(cq_);
    x.qp_type = IBV_QPT_RC;
    x.cap = small_qp().cap;
    x.cap.max_inline_data = 64;
    x.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    x.pd = client_->pd;
    x.send_ops_flags = operations;
    ASSERT_EQ(rdma_create_qp_ex(client_, &x), 0);
    ex_ = ibv_qp_to_qp_ex(client_->qp);
    ASSERT_NE(ex_, nullptr);
    request();
  }
  void TearDown() override {
    if (cq_ != nullptr) {
      rdma_destroy_qp(client_);
      EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq_)), 0);
    }
    CmTest::TearDown();
  }

  ibv_cq_ex* cq_ = nullptr;
  ibv_qp_ex* ex_ = nullptr;
};

}  // namespace cm
