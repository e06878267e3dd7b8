// XRC of the drop-in libibverbs: domains by file, shared receive queues with a number, queue pairs
// with one half, further handles of them. Both ends use one device.
#include <errno.h>
#include <fcntl.h>

#include <cstdlib>

#include "dropin/roce_process.h"

namespace {

class RoceXrcTest : public roce::RoceTest {
 protected:
  void SetUp() override {
    roce::RoceTest::SetUp();
    if (context_ == nullptr) return;
    cq_ = ibv_create_cq(context_, 32, nullptr, nullptr, 0);
    send_cq_ = ibv_create_cq(context_, 32, nullptr, nullptr, 0);
    mr_ = ibv_reg_mr(pd_, memory_, sizeof memory_,
                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    char name[] = "/tmp/urnic-xrc-XXXXXX";
    fd_ = mkstemp(name);
    unlink(name);
    ASSERT_TRUE(cq_ != nullptr && send_cq_ != nullptr && mr_ != nullptr && fd_ >= 0);
  }
  void TearDown() override {
    for (ibv_qp* qp : {from_, to_}) {
      if (qp != nullptr) {
        EXPECT_EQ(ibv_destroy_qp(qp), 0);
      }
    }
    if (srq_ != nullptr) {
      EXPECT_EQ(ibv_destroy_srq(srq_), 0);
    }
    if (xrcd_ != nullptr) {
      EXPECT_EQ(ibv_close_xrcd(xrcd_), 0);
    }
    if (mr_ != nullptr) {
      EXPECT_EQ(ibv_dereg_mr(mr_), 0);
      EXPECT_EQ(ibv_destroy_cq(cq_), 0);
      EXPECT_EQ(ibv_destroy_cq(send_cq_), 0);
      close(fd_);
    }
    roce::RoceTest::TearDown();
  }
  ibv_xrcd* open_domain(int fd, int oflags) const {
    ibv_xrcd_init_attr a{};
    a.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    a.fd = fd;
    a.oflags = oflags;
    errno = 0;
    return ibv_open_xrcd(context_, &a);
  }
  ibv_srq* make_srq(ibv_xrcd* xrcd) const {
    ibv_srq_init_attr_ex a{};
    a.attr.max_wr = 4;
    a.attr.max_sge = 1;
    a.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ |
                  IBV_SRQ_INIT_ATTR_PD;
    a.srq_type = IBV_SRQT_XRC;
    a.xrcd = xrcd;
    a.cq = cq_;
    a.pd = pd_;
    return ibv_create_srq_ex(context_, &a);
  }
  ibv_qp* make_sender() const {
    ibv_qp_init_attr_ex a{};
    a.qp_type = IBV_QPT_XRC_SEND;
    a.send_cq = send_cq_;
    a.cap.max_send_wr = 8;
    a.cap.max_send_sge = 1;
    a.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    a.send_ops_flags = IBV_QP_EX_WITH_SEND;
    a.pd = pd_;
    return ibv_create_qp_ex(context_, &a);
  }
  ibv_qp* make_receiver(ibv_xrcd* xrcd) const {
    ibv_qp_init_attr_ex a{};
    a.qp_type = IBV_QPT_XRC_RECV;
    a.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    a.xrcd = xrcd;
    return ibv_create_qp_ex(context_, &a);
  }
  void make() {
    xrcd_ = open_domain(fd_, O_CREAT);
    ASSERT_NE(xrcd_, nullptr);
    srq_ = make_srq(xrcd_);
    from_ = make_sender();
    to_ = make_receiver(xrcd_);
    ASSERT_TRUE(srq_ != nullptr && from_ != nullptr && to_ != nullptr);
    ASSERT_EQ(ibv_get_srq_num(srq_, &number_), 0);
    EXPECT_NE(number_, 0u);
  }
  // perftest does this: attributes of the other half are set, and ignored.
  void connect(ibv_qp* qp, std::uint32_t peer) const {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    ASSERT_EQ(
        ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
    a = roce::End::rtr(gid_, peer);
    a.ah_attr = roce::End::way(gid_);
    ASSERT_EQ(ibv_modify_qp(qp, &a,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              0);
    a = {};
    a.qp_state = IBV_QPS_RTS;
    a.sq_psn = 0xfffff0;
    a.timeout = 14;
    a.retry_cnt = a.rnr_retry = 7;
    ASSERT_EQ(ibv_modify_qp(qp, &a,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
              0);
  }
  void up() {
    make();
    connect(to_, from_->qp_num);
    connect(from_, to_->qp_num);
  }
  int receive(std::uint64_t id) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(memory_) + 128, 64, mr_->lkey};
    ibv_recv_wr wr{}, *bad = nullptr;
    wr.wr_id = id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    return ibv_post_srq_recv(srq_, &wr, &bad);
  }
  int send(std::uint64_t id, std::uint32_t srq) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(memory_), 16, mr_->lkey};
    ibv_send_wr wr{}, *bad = nullptr;
    wr.wr_id = id;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.qp_type.xrc.remote_srqn = srq;
    return ibv_post_send(from_, &wr, &bad);
  }
  static ibv_wc next(ibv_cq* cq) {
    ibv_wc wc{};
    const bool came = urnic::test::soon([&] { return ibv_poll_cq(cq, 1, &wc) != 0; });
    EXPECT_TRUE(came) << "no completion";
    return wc;
  }

  char memory_[256] = "extended";
  ibv_cq *cq_ = nullptr, *send_cq_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_xrcd* xrcd_ = nullptr;
  ibv_srq* srq_ = nullptr;
  ibv_qp *from_ = nullptr, *to_ = nullptr;
  std::uint32_t number_ = 0;
  int fd_ = -1;
};

// proves: DI-26
TEST_F(RoceXrcTest, RequestsNameASharedReceiveQueueAndCompleteOnItsQueue) {
  if (!within()) return;
  ibv_device_attr d;
  ASSERT_EQ(ibv_query_device(context_, &d), 0);
  EXPECT_NE(d.device_cap_flags & IBV_DEVICE_XRC, 0u);
  up();
  ASSERT_EQ(receive(7), 0);
  ASSERT_EQ(send(1, number_), 0);
  EXPECT_EQ(next(send_cq_).status, IBV_WC_SUCCESS);
  ibv_wc wc = next(cq_);
  EXPECT_EQ(wc.wr_id, 7u);
  EXPECT_EQ(wc.qp_num, to_->qp_num);
  EXPECT_STREQ(memory_ + 128, "extended");
  // With the extended calls.
  ASSERT_EQ(receive(8), 0);
  ibv_qp_ex* const ex = ibv_qp_to_qp_ex(from_);
  ASSERT_NE(ex, nullptr);
  ibv_wr_start(ex);
  ex->wr_id = 2;
  ex->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(ex);
  ibv_wr_set_xrc_srqn(ex, number_);
  ibv_wr_set_sge(ex, mr_->lkey, reinterpret_cast<std::uint64_t>(memory_), 16);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  EXPECT_EQ(next(send_cq_).wr_id, 2u);
  EXPECT_EQ(next(cq_).wr_id, 8u);
}

// proves: DI-26
TEST_F(RoceXrcTest, AQueueOfAnotherDomainFailsWithItsOwnStatus) {
  if (!within()) return;
  up();
  ibv_xrcd* const other = open_domain(-1, O_CREAT);
  ASSERT_NE(other, nullptr);
  ibv_srq* const foreign = make_srq(other);
  ASSERT_NE(foreign, nullptr);
  std::uint32_t number = 0;
  ASSERT_EQ(ibv_get_srq_num(foreign, &number), 0);
  ASSERT_EQ(send(1, number), 0);
  EXPECT_EQ(next(send_cq_).status, IBV_WC_REM_INV_RD_REQ_ERR);
  EXPECT_EQ(ibv_close_xrcd(other), EBUSY);
  EXPECT_EQ(ibv_destroy_srq(foreign), 0);
  EXPECT_EQ(ibv_close_xrcd(other), 0);
}

// proves: DI-26
TEST_F(RoceXrcTest, ADomainBelongsToItsFileAsLongAsAHandleExists) {
  if (!within()) return;
  EXPECT_EQ(open_domain(fd_, 0), nullptr);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(open_domain(-1, 0), nullptr);
  EXPECT_EQ(open_domain(9999, O_CREAT), nullptr);
  EXPECT_EQ(errno, EBADF);
  make();
  EXPECT_EQ(open_domain(fd_, O_CREAT | O_EXCL), nullptr);
  EXPECT_EQ(errno, EEXIST);
  // Another handle of the same file is the same domain.
  const int again = dup(fd_);
  ibv_xrcd* const same = open_domain(again, 0);
  ASSERT_NE(same, nullptr);
  EXPECT_EQ(ibv_destroy_qp(to_), 0);
  to_ = make_receiver(same);
  ASSERT_NE(to_, nullptr);
  EXPECT_EQ(ibv_close_xrcd(same), EBUSY);
  connect(to_, from_->qp_num);
  connect(from_, to_->qp_num);
  ASSERT_EQ(receive(7), 0);
  ASSERT_EQ(send(1, number_), 0);
  EXPECT_EQ(next(cq_).wr_id, 7u);
  EXPECT_EQ(ibv_destroy_qp(to_), 0);
  to_ = nullptr;
  EXPECT_EQ(ibv_close_xrcd(same), 0);
  close(again);
}

// proves: DI-26
TEST_F(RoceXrcTest, AReceivingEndExistsUntilItsLastHandleIsDestroyed) {
  if (!within()) return;
  up();
  ibv_qp_open_attr a{};
  a.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  a.qp_num = to_->qp_num;
  a.xrcd = xrcd_;
  a.qp_type = IBV_QPT_XRC_RECV;
  ibv_qp* const second = ibv_open_qp(context_, &a);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->qp_num, to_->qp_num);
  EXPECT_EQ(second->state, IBV_QPS_RTS);
  EXPECT_EQ(ibv_destroy_qp(to_), 0);
  to_ = second;
  ASSERT_EQ(receive(7), 0);
  ASSERT_EQ(send(1, number_), 0);
  EXPECT_EQ(next(cq_).wr_id, 7u);
  // Another number, type or domain is refused.
  ibv_qp_open_attr wrong = a;
  wrong.qp_num = from_->qp_num;
  EXPECT_EQ(ibv_open_qp(context_, &wrong), nullptr);
  wrong = a;
  wrong.qp_type = IBV_QPT_RC;
  EXPECT_EQ(ibv_open_qp(context_, &wrong), nullptr);
  ibv_xrcd* const other = open_domain(-1, O_CREAT);
  wrong = a;
  wrong.xrcd = other;
  EXPECT_EQ(ibv_open_qp(context_, &wrong), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_close_xrcd(other), 0);
}

// proves: DI-26
TEST_F(RoceXrcTest, XrcObjectsWithoutADomainOrNumberAreRefused) {
  if (!within()) return;
  EXPECT_EQ(make_receiver(nullptr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(make_srq(nullptr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  ibv_srq_init_attr plain{};
  plain.attr.max_wr = 1;
  plain.attr.max_sge = 1;
  ibv_srq* const ordinary = ibv_create_srq(pd_, &plain);
  ASSERT_NE(ordinary, nullptr);
  std::uint32_t number = 0;
  EXPECT_EQ(ibv_get_srq_num(ordinary, &number), EOPNOTSUPP);
  EXPECT_EQ(ibv_destroy_srq(ordinary), 0);
}

}  // namespace
