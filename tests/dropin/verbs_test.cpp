// The verbs as a C program calls them: the reported limits can be used, and wrong use gets the
// errors of rdma-core.
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <thread>

#include "dropin/verbs_fixture.h"
#include "support/soon.h"

namespace verbs_api {
namespace {

// proves: DI-1
TEST_F(VerbsTest, CompletionQueuesAreAsDeepAsReportedAndNotDeeper) {
  for (const int wrong : {0, -1, attr_.max_cqe + 1}) {
    errno = 0;
    EXPECT_EQ(ibv_create_cq(context_, wrong, nullptr, nullptr, 0), nullptr) << wrong;
    EXPECT_EQ(errno, EINVAL);
  }
  EXPECT_EQ(ibv_create_cq(context_, 1, nullptr, nullptr, context_->num_comp_vectors), nullptr);
  EXPECT_EQ(errno, EINVAL);
  ibv_cq* cq = ibv_create_cq(context_, attr_.max_cqe, &cq, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  EXPECT_GE(cq->cqe, attr_.max_cqe);
  EXPECT_EQ(cq->cq_context, &cq);
  for (const int wrong : {0, -1, attr_.max_cqe + 1}) EXPECT_EQ(ibv_resize_cq(cq, wrong), EINVAL);
  EXPECT_EQ(ibv_resize_cq(cq, 10), 0);
  EXPECT_GE(cq->cqe, 10);
  EXPECT_LT(cq->cqe, 20);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

// libiscsi's iSER continues to poll inside the call in which the program destroyed the queue.
TEST_F(VerbsTest, PollingADestroyedQueueFindsNothing) {
  ibv_cq* cq = ibv_create_cq(context_, 16, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  ASSERT_EQ(ibv_destroy_cq(cq), 0);
  ibv_wc wc[1];
  EXPECT_EQ(ibv_poll_cq(cq, 1, wc), 0);
}

// proves: DI-1, DI-3
TEST_F(VerbsTest, AQueuePairSupportsExactlyTheReportedLimits) {
  ibv_cq* cq = ibv_create_cq(context_, 16, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  ibv_qp_init_attr a = qp_attr(cq);
  a.cap.max_send_wr = a.cap.max_recv_wr = static_cast<std::uint32_t>(attr_.max_qp_wr);
  a.cap.max_send_sge = a.cap.max_recv_sge = static_cast<std::uint32_t>(attr_.max_sge);
  ibv_qp* qp = ibv_create_qp(pd_, &a);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(a.cap.max_send_wr, static_cast<std::uint32_t>(attr_.max_qp_wr));
  EXPECT_EQ(ibv_destroy_cq(cq), EBUSY);
  EXPECT_EQ(ibv_dealloc_pd(pd_), EBUSY);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  for (int i = 0; i < 5; ++i) {
    a = qp_attr(cq);
    if (i == 0) a.cap.max_send_wr = static_cast<std::uint32_t>(attr_.max_qp_wr) + 1;
    if (i == 1) a.cap.max_recv_wr = static_cast<std::uint32_t>(attr_.max_qp_wr) + 1;
    if (i == 2) a.cap.max_send_sge = static_cast<std::uint32_t>(attr_.max_sge) + 1;
    if (i == 3) a.cap.max_recv_sge = static_cast<std::uint32_t>(attr_.max_sge) + 1;
    if (i == 4) a.send_cq = nullptr;
    errno = 0;
    EXPECT_EQ(ibv_create_qp(pd_, &a), nullptr) << i;
    EXPECT_EQ(errno, EINVAL) << i;
  }
  for (const ibv_qp_type type : {IBV_QPT_UD, IBV_QPT_UC, IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND}) {
    a = qp_attr(cq);
    a.qp_type = type;
    errno = 0;
    EXPECT_EQ(ibv_create_qp(pd_, &a), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
  }
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

// proves: DI-2, DI-4
TEST_F(VerbsTest, ANewRnicQueuePairIsInInitAndMovesAsTheTableAllows) {
  ibv_cq* cq = ibv_create_cq(context_, 16, nullptr, nullptr, 0);
  ibv_qp_init_attr a = qp_attr(cq);
  ibv_qp* qp = ibv_create_qp(pd_, &a);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(qp->state, IBV_QPS_RESET);
  ibv_qp_attr q{};
  ibv_qp_init_attr init;
  ASSERT_EQ(ibv_query_qp(qp, &q, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(q.qp_state, IBV_QPS_INIT);
  q = {};
  q.qp_state = IBV_QPS_RTS;
  EXPECT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE), EINVAL);
  q.qp_state = IBV_QPS_INIT;
  q.port_num = 2;
  EXPECT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE | IBV_QP_PORT), EINVAL);
  q.port_num = 1;
  EXPECT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX), 0);
  EXPECT_EQ(qp->state, IBV_QPS_INIT);
  // Four receives fit, and the fifth is reported as the bad one.
  ibv_recv_wr five[5]{}, *bad_receive = nullptr;
  for (int i = 0; i < 5; ++i) {
    five[i].wr_id = static_cast<std::uint64_t>(i);
    five[i].next = i < 4 ? &five[i + 1] : nullptr;
  }
  EXPECT_EQ(ibv_post_recv(qp, five, &bad_receive), ENOMEM);
  EXPECT_EQ(bad_receive, &five[4]);
  ibv_send_wr send{}, *bad_send = nullptr;
  send.opcode = IBV_WR_SEND;
  EXPECT_EQ(ibv_post_send(qp, &send, &bad_send), EINVAL);
  EXPECT_EQ(bad_send, &send);
  send.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  EXPECT_EQ(ibv_post_send(qp, &send, &bad_send), EINVAL);
  // Flushed in error, and discarded by RESET.
  q.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE), 0);
  ibv_wc wc[8];
  int n = 0;
  for (int tries = 0; tries < 1000 && n < 4; ++tries) n += ibv_poll_cq(cq, 8 - n, wc + n);
  ASSERT_EQ(n, 4);
  EXPECT_EQ(wc[0].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(wc[0].qp_num, qp->qp_num);
  q.qp_state = IBV_QPS_RESET;
  ASSERT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE), 0);
  EXPECT_EQ(qp->state, IBV_QPS_RESET);
  EXPECT_EQ(ibv_post_recv(qp, five, &bad_receive), EINVAL);
  EXPECT_EQ(bad_receive, five);
  // Connecting without a peer.
  q.qp_state = IBV_QPS_INIT;
  ASSERT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE), 0);
  q.qp_state = IBV_QPS_RTR;
  EXPECT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN), EOPNOTSUPP);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

// proves: DI-6
TEST_F(VerbsTest, ACompletionChannelCanBePolledAndIsBusyWhileUsed) {
  ibv_comp_channel* channel = ibv_create_comp_channel(context_);
  ASSERT_NE(channel, nullptr);
  ibv_cq* cq = ibv_create_cq(context_, 16, channel, channel, 0);
  ASSERT_NE(cq, nullptr);
  EXPECT_EQ(channel->refcnt, 1);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), EBUSY);
  ASSERT_EQ(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
  ibv_cq* which = nullptr;
  void* cq_context = nullptr;
  errno = 0;
  EXPECT_EQ(ibv_get_cq_event(channel, &which, &cq_context), -1);
  EXPECT_EQ(errno, EAGAIN);
  // A flushed receive completes, and an armed queue reports it.
  ibv_qp_init_attr a = qp_attr(cq);
  ibv_qp* qp = ibv_create_qp(pd_, &a);
  ASSERT_NE(qp, nullptr);
  ibv_qp_attr q{};
  q.qp_state = IBV_QPS_INIT;
  ASSERT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE), 0);
  ibv_recv_wr receive{}, *bad = nullptr;
  ASSERT_EQ(ibv_post_recv(qp, &receive, &bad), 0);
  ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
  q.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE), 0);
  pollfd p{channel->fd, POLLIN, 0};
  ASSERT_EQ(poll(&p, 1, urnic::test::kSoonMs), 1);
  ASSERT_EQ(ibv_get_cq_event(channel, &which, &cq_context), 0);
  EXPECT_EQ(which, cq);
  EXPECT_EQ(cq_context, channel);
  EXPECT_EQ(ibv_get_cq_event(channel, &which, &cq_context), -1);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  // Destruction waits until handed-out events are acknowledged.
  std::thread later([&] {
    usleep(20'000);
    ibv_ack_cq_events(cq, 1);
  });
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  later.join();
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
}

// Like a kernel, which knows its objects only by these numbers.
TEST_F(VerbsTest, AnObjectWhoseHandleWasChangedIsUnknown) {
  ibv_pd* pd = ibv_alloc_pd(context_);
  ibv_cq* cq = ibv_create_cq(context_, 16, nullptr, nullptr, 0);
  ibv_qp_init_attr a = qp_attr(cq);
  ibv_srq_init_attr s{};
  s.attr.max_wr = s.attr.max_sge = 1;
  ibv_srq* srq = ibv_create_srq(pd, &s);
  char memory[8];
  ibv_mr* mr = ibv_reg_mr(pd, memory, sizeof memory, 0);
  ibv_qp* qp = ibv_create_qp(pd, &a);
  ASSERT_TRUE(srq != nullptr && mr != nullptr && qp != nullptr);
  EXPECT_NE(pd->handle, pd_->handle);
  for (std::uint32_t* handle : {&pd->handle, &cq->handle, &srq->handle, &mr->handle, &qp->handle}) {
    EXPECT_NE(*handle, 0u);
    *handle ^= 0x1000;
  }
  ibv_qp_attr q{};
  ibv_srq_attr limits{};
  errno = 0;
  EXPECT_EQ(ibv_reg_mr(pd, memory, sizeof memory, 0), nullptr);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(ibv_create_qp(pd_, &a), nullptr) << "its queue";
  EXPECT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE), ENOENT);
  EXPECT_EQ(ibv_query_qp(qp, &q, IBV_QP_STATE, &a), ENOENT);
  EXPECT_EQ(ibv_query_srq(srq, &limits), ENOENT);
  EXPECT_EQ(ibv_modify_srq(srq, &limits, IBV_SRQ_LIMIT), ENOENT);
  EXPECT_EQ(ibv_resize_cq(cq, 32), ENOENT);
  EXPECT_EQ(ibv_destroy_qp(qp), ENOENT);
  EXPECT_EQ(ibv_dereg_mr(mr), ENOENT);
  EXPECT_EQ(ibv_destroy_srq(srq), ENOENT);
  EXPECT_EQ(ibv_destroy_cq(cq), ENOENT);
  EXPECT_EQ(ibv_dealloc_pd(pd), ENOENT);
  for (std::uint32_t* handle : {&pd->handle, &cq->handle, &srq->handle, &mr->handle, &qp->handle}) {
    *handle ^= 0x1000;
  }
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
}

// proves: DI-7
TEST_F(VerbsTest, SharedReceiveQueuesCountTheirUsers) {
  ibv_srq_init_attr s{};
  s.attr.max_wr = static_cast<std::uint32_t>(attr_.max_srq_wr) + 1;
  s.attr.max_sge = 1;
  errno = 0;
  EXPECT_EQ(ibv_create_srq(pd_, &s), nullptr);
  EXPECT_EQ(errno, EINVAL);
  s.attr.max_wr = 8;
  ibv_srq* srq = ibv_create_srq(pd_, &s);
  ASSERT_NE(srq, nullptr);
  ibv_cq* cq = ibv_create_cq(context_, 16, nullptr, nullptr, 0);
  ibv_qp_init_attr a = qp_attr(cq);
  a.srq = srq;
  a.cap.max_recv_wr = a.cap.max_recv_sge = UINT32_MAX;  // ignored (ibv_create_qp(3))
  ibv_qp* qp = ibv_create_qp(pd_, &a);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(ibv_destroy_srq(srq), EBUSY);
  ibv_recv_wr receive{}, *bad = nullptr;
  EXPECT_EQ(ibv_post_srq_recv(srq, &receive, &bad), 0);
  ibv_srq_attr limits{};
  limits.srq_limit = 9;
  EXPECT_EQ(ibv_modify_srq(srq, &limits, IBV_SRQ_LIMIT), EINVAL);
  // One receive is posted and the limit is two: the event arrives at once.
  limits.srq_limit = 2;
  ASSERT_EQ(ibv_modify_srq(srq, &limits, IBV_SRQ_LIMIT), 0);
  pollfd p{context_->async_fd, POLLIN, 0};
  ASSERT_EQ(poll(&p, 1, urnic::test::kSoonMs), 1);
  ibv_async_event event;
  ASSERT_EQ(ibv_get_async_event(context_, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT_EQ(event.element.srq, srq);
  ibv_ack_async_event(&event);
  ASSERT_EQ(fcntl(context_->async_fd, F_SETFL, O_NONBLOCK), 0);
  EXPECT_EQ(ibv_get_async_event(context_, &event), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

// More flushed receives than the queue has room for.
// proves: DI-7
TEST_F(VerbsTest, AnOverrunIsAnEventOfTheQueueAndItsQueuePairsAreInError) {
  ibv_cq* cq = ibv_create_cq(context_, 1, nullptr, nullptr, 0);
  ibv_cq* other = ibv_create_cq(context_, 1, nullptr, nullptr, 0);
  ASSERT_TRUE(cq != nullptr && other != nullptr);
  const int places = cq->cqe;
  ibv_qp_init_attr a = qp_attr(cq);
  a.cap.max_recv_wr = static_cast<std::uint32_t>(places) + 1;
  ibv_qp* qp = ibv_create_qp(pd_, &a);
  ASSERT_NE(qp, nullptr);
  ibv_qp_attr q{};
  q.qp_state = IBV_QPS_INIT;
  ASSERT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE), 0);
  ibv_recv_wr receive{}, *bad = nullptr;
  for (int i = 0; i <= places; ++i) ASSERT_EQ(ibv_post_recv(qp, &receive, &bad), 0);
  q.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE), 0);
  bool told = false;
  for (pollfd p{context_->async_fd, POLLIN, 0}; !told && poll(&p, 1, urnic::test::kSoonMs) == 1;) {
    ibv_async_event event;
    ASSERT_EQ(ibv_get_async_event(context_, &event), 0);
    if (event.event_type == IBV_EVENT_CQ_ERR) {
      EXPECT_EQ(event.element.cq, cq);
      told = true;
    }
    ibv_ack_async_event(&event);
  }
  EXPECT_TRUE(told);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_destroy_cq(other), 0);
}

// proves: DI-7
TEST_F(VerbsTest, AQueuePairInErrorReportsItsLastSharedReceive) {
  ibv_srq_init_attr s{};
  s.attr.max_wr = 8;
  s.attr.max_sge = 1;
  ibv_srq* srq = ibv_create_srq(pd_, &s);
  ibv_cq* cq = ibv_create_cq(context_, 16, nullptr, nullptr, 0);
  ibv_qp_init_attr a = qp_attr(cq);
  a.srq = srq;
  ibv_qp* qp = ibv_create_qp(pd_, &a);
  ASSERT_NE(qp, nullptr);
  ibv_qp_attr q{};
  q.qp_state = IBV_QPS_INIT;
  ASSERT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE), 0);
  q.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE), 0);
  pollfd p{context_->async_fd, POLLIN, 0};
  ASSERT_EQ(poll(&p, 1, urnic::test::kSoonMs), 1);
  ibv_async_event event;
  ASSERT_EQ(ibv_get_async_event(context_, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
  EXPECT_EQ(event.element.qp, qp);
  ibv_ack_async_event(&event);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(VerbsTest, AMoveThatNamesAnotherPresentStateOrAnotherPKeyChangesNothing) {
  ibv_cq* cq = ibv_create_cq(context_, 16, nullptr, nullptr, 0);
  ibv_qp_init_attr a = qp_attr(cq);
  ibv_qp* qp = ibv_create_qp(pd_, &a);
  ASSERT_NE(qp, nullptr);
  ibv_qp_attr q{};
  q.qp_state = IBV_QPS_INIT;
  ASSERT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE), 0);
  q.qp_state = IBV_QPS_ERR;
  q.cur_qp_state = IBV_QPS_RTS;
  EXPECT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE | IBV_QP_CUR_STATE), EINVAL);
  q.pkey_index = 1;
  EXPECT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE | IBV_QP_PKEY_INDEX), EINVAL);
  EXPECT_EQ(qp->state, IBV_QPS_INIT);
  q.cur_qp_state = IBV_QPS_INIT;
  EXPECT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE | IBV_QP_CUR_STATE), 0);
  EXPECT_EQ(qp->state, IBV_QPS_ERR);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

// proves: DI-3
TEST_F(VerbsTest, ParentAndThreadDomainsCountTheirUsers) {
  ibv_td_init_attr none{};
  ibv_td* td = ibv_alloc_td(context_, &none);
  ASSERT_NE(td, nullptr);
  ibv_parent_domain_init_attr attr{};
  EXPECT_EQ(ibv_alloc_parent_domain(context_, &attr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  attr.pd = pd_;
  attr.td = td;
  ibv_pd* parent = ibv_alloc_parent_domain(context_, &attr);
  ASSERT_NE(parent, nullptr);
  EXPECT_EQ(ibv_dealloc_td(td), EBUSY);
  EXPECT_EQ(ibv_dealloc_pd(pd_), EBUSY);
  EXPECT_EQ(ibv_dealloc_pd(parent), 0);
  EXPECT_EQ(ibv_dealloc_td(td), 0);
}

// proves: DI-1
TEST_F(VerbsTest, OnlyRequestedQueuePairsAndQueuesHaveTheExtendedCalls) {
  ibv_cq_init_attr_ex c{};
  c.cqe = 16;
  c.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
  errno = 0;
  EXPECT_EQ(ibv_create_cq_ex(context_, &c), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  c.wc_flags = IBV_WC_STANDARD_FLAGS;
  ibv_cq_ex* cq = ibv_create_cq_ex(context_, &c);
  ASSERT_NE(cq, nullptr);
  ibv_poll_cq_attr poll_attr{};
  EXPECT_EQ(ibv_start_poll(cq, &poll_attr), ENOENT);
  ibv_qp_init_attr a = qp_attr(ibv_cq_ex_to_cq(cq));
  ibv_qp* plain = ibv_create_qp(pd_, &a);
  ASSERT_NE(plain, nullptr);
  EXPECT_EQ(ibv_qp_to_qp_ex(plain), nullptr);
  EXPECT_EQ(ibv_destroy_qp(plain), 0);
  ibv_qp_init_attr_ex x{};
  x.send_cq = x.recv_cq = ibv_cq_ex_to_cq(cq);
  x.qp_type = IBV_QPT_RC;
  x.cap = a.cap;
  x.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  x.pd = pd_;
  x.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO;
  errno = 0;
  EXPECT_EQ(ibv_create_qp_ex(context_, &x), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  x.send_ops_flags = IBV_QP_EX_WITH_SEND;
  x.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
  x.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
  errno = 0;
  EXPECT_EQ(ibv_create_qp_ex(context_, &x), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  x.create_flags = 0;  // present but 0: no flag is requested
  ibv_qp* qp = ibv_create_qp_ex(context_, &x);
  ASSERT_NE(qp, nullptr);
  ibv_qp_ex* ex = ibv_qp_to_qp_ex(qp);
  ASSERT_NE(ex, nullptr);
  // Errors are reported by wr_complete, and aborted requests have no effect.
  ibv_wr_start(ex);
  ibv_wr_send(ex);
  EXPECT_EQ(ibv_wr_complete(ex), EINVAL);  // not connected
  ibv_wr_start(ex);
  ibv_wr_send(ex);
  ibv_wr_abort(ex);
  ibv_wr_start(ex);
  EXPECT_EQ(ibv_wr_complete(ex), 0);
  ibv_wr_start(ex);
  ibv_wr_set_sge(ex, 0, 0, 0);  // no request was started
  EXPECT_EQ(ibv_wr_complete(ex), EINVAL);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

TEST_F(VerbsTest, UnsupportedCallsFail) {
  errno = 0;
  ibv_ah_attr ah{};
  EXPECT_EQ(ibv_create_ah(pd_, &ah), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(ibv_import_device(0), nullptr);
  ibv_xrcd_init_attr xrc{};
  EXPECT_EQ(ibv_open_xrcd(context_, &xrc), nullptr);
  ibv_alloc_dm_attr dm{};
  EXPECT_EQ(ibv_alloc_dm(context_, &dm), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

// proves: DI-1
TEST_F(VerbsTest, AChannelWithoutADescriptorFailsWithEmfile) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = dup(0);
  ASSERT_GE(next, 0);
  EXPECT_EQ(close(next), 0);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(next);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  errno = 0;
  ibv_comp_channel* channel = ibv_create_comp_channel(context_);
  const int error = errno;
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(channel, nullptr);
  EXPECT_EQ(error, EMFILE);
  channel = ibv_create_comp_channel(context_);
  ASSERT_NE(channel, nullptr);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
}

}  // namespace
}  // namespace verbs_api
