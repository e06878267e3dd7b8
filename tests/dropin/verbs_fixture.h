// A device opened through the exported names, as a C program opens it, with a protection domain.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <stdlib.h>

namespace verbs_api {

class VerbsTest : public testing::Test {
 protected:
  void SetUp() override {
    unsetenv("URNIC_CONFIG");
    list_ = ibv_get_device_list(&number_);
    ASSERT_NE(list_, nullptr);
    ASSERT_EQ(number_, 1);
    context_ = ibv_open_device(list_[0]);
    ASSERT_NE(context_, nullptr);
    ASSERT_EQ(ibv_query_device(context_, &attr_), 0);
    pd_ = ibv_alloc_pd(context_);
    ASSERT_NE(pd_, nullptr);
  }
  void TearDown() override {
    EXPECT_EQ(ibv_dealloc_pd(pd_), 0);
    EXPECT_EQ(ibv_close_device(context_), 0);
    ibv_free_device_list(list_);
  }
  ibv_qp_init_attr qp_attr(ibv_cq* cq) const {
    ibv_qp_init_attr a{};
    a.send_cq = a.recv_cq = cq;
    a.qp_type = IBV_QPT_RC;
    a.cap.max_send_wr = a.cap.max_recv_wr = 4;
    a.cap.max_send_sge = a.cap.max_recv_sge = 1;
    return a;
  }

  ibv_device** list_ = nullptr;
  int number_ = 0;
  ibv_context* context_ = nullptr;
  ibv_device_attr attr_{};
  ibv_pd* pd_ = nullptr;
};

}  // namespace verbs_api
