// Data over a connection of rdma_cm: messages, memory by its keys, windows, requests built call by
// call, and completion events.
#include <cstring>
#include <thread>

#include "dropin/cm_data.h"

namespace cm {
namespace {

// proves: DI-5, DI-8
TEST_F(CmDataTest, MessagesWritesAndReadsGoBothWays) {
  connect();
  EXPECT_EQ(said_, "hello");
  char from[64] = "sixty-four bytes of something", into[64] = {}, back[64] = {};
  ibv_mr* source = rdma_reg_msgs(client_, from, sizeof from);
  ibv_mr* sink =
      ibv_reg_mr(server_->pd, into, sizeof into,
                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  ibv_mr* last = rdma_reg_msgs(client_, back, sizeof back);
  ASSERT_TRUE(source != nullptr && sink != nullptr && last != nullptr);
  auto attr = small_qp();
  ASSERT_EQ(rdma_create_qp(server_, nullptr, &attr), 0);
  ASSERT_EQ(rdma_post_recv(server_, into, into, sizeof into, sink), 0);
  ASSERT_EQ(rdma_accept(server_, nullptr), 0);
  pass(channel_, RDMA_CM_EVENT_ESTABLISHED);
  pass(peers_, RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(shown(*client_->qp), IBV_QPS_RTS);
  ASSERT_EQ(rdma_post_send(client_, from, from, sizeof from, source, IBV_SEND_SIGNALED), 0);
  EXPECT_EQ(wait_for(client_->send_cq).status, IBV_WC_SUCCESS);
  const ibv_wc got = wait_for(server_->recv_cq);
  EXPECT_EQ(got.status, IBV_WC_SUCCESS);
  EXPECT_EQ(got.opcode, IBV_WC_RECV);
  EXPECT_EQ(got.byte_len, sizeof from);
  EXPECT_EQ(got.qp_num, server_->qp->qp_num);
  EXPECT_STREQ(into, from);
  std::memset(into, 'x', sizeof into);
  const auto at = reinterpret_cast<std::uint64_t>(into);
  ASSERT_EQ(
      rdma_post_write(client_, from, from, sizeof from, source, IBV_SEND_SIGNALED, at, sink->rkey),
      0);
  EXPECT_EQ(wait_for(client_->send_cq).opcode, IBV_WC_RDMA_WRITE);
  ASSERT_EQ(
      rdma_post_read(client_, back, back, sizeof back, last, IBV_SEND_SIGNALED, at, sink->rkey), 0);
  EXPECT_EQ(wait_for(client_->send_cq).opcode, IBV_WC_RDMA_READ);
  EXPECT_STREQ(back, from);
  EXPECT_EQ(rdma_dereg_mr(source), 0);
  EXPECT_EQ(rdma_dereg_mr(last), 0);
  EXPECT_EQ(rdma_dereg_mr(sink), 0);
}

// rdma_xclient sends inline without having requested inline space.
// proves: DI-1
TEST_F(CmDataTest, InlineDataUpToTheGrantedSizeWorksEvenIfNotRequested) {
  resolve(ntohs(rdma_get_src_port(listener_)));
  rdma_destroy_qp(client_);
  auto attr = small_qp();
  ASSERT_EQ(attr.cap.max_inline_data, 0u);
  ASSERT_EQ(rdma_create_qp(client_, nullptr, &attr), 0);
  const std::uint32_t granted = attr.cap.max_inline_data;
  ASSERT_GE(granted, 16u);
  ibv_qp_attr told;
  ibv_qp_init_attr init;
  ASSERT_EQ(ibv_query_qp(client_->qp, &told, IBV_QP_CAP, &init), 0);
  EXPECT_EQ(told.cap.max_inline_data, granted);
  EXPECT_EQ(init.cap.max_inline_data, granted);
  request();
  std::string from(granted + 1, 'i'), into(granted + 1, 0);
  auto peers = small_qp();
  peers.cap.max_inline_data = granted + 1;
  ASSERT_EQ(rdma_create_qp(server_, nullptr, &peers), 0);
  EXPECT_EQ(peers.cap.max_inline_data, granted + 1) << "who asks for more has that";
  ibv_mr* sink = rdma_reg_msgs(server_, into.data(), into.size());
  ASSERT_NE(sink, nullptr);
  ASSERT_EQ(rdma_post_recv(server_, nullptr, into.data(), into.size(), sink), 0);
  ASSERT_EQ(rdma_accept(server_, nullptr), 0);
  pass(channel_, RDMA_CM_EVENT_ESTABLISHED);
  pass(peers_, RDMA_CM_EVENT_ESTABLISHED);
  constexpr int kFlags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
  errno = 0;
  EXPECT_EQ(rdma_post_send(client_, nullptr, from.data(), granted + 1, nullptr, kFlags), -1);
  EXPECT_EQ(errno, EINVAL);
  ASSERT_EQ(rdma_post_send(client_, nullptr, from.data(), granted, nullptr, kFlags), 0);
  EXPECT_EQ(wait_for(client_->send_cq).status, IBV_WC_SUCCESS);
  const ibv_wc got = wait_for(server_->recv_cq);
  EXPECT_EQ(got.status, IBV_WC_SUCCESS);
  EXPECT_EQ(got.byte_len, granted);
  EXPECT_EQ(into.substr(0, granted), from.substr(0, granted));
  EXPECT_EQ(rdma_dereg_mr(sink), 0);
}

// proves: DI-5
TEST_F(CmDataTest, WorkUsesTheIovaAndTheKeyOfTheLastRegistration) {
  connect();
  accept();
  constexpr std::uint64_t kIova = 0x7000;
  constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  char from[64] = "by any other name", into[64] = {}, other[64] = {};
  ibv_mr* source = ibv_reg_mr_iova(client_->pd, from, sizeof from, kIova, IBV_ACCESS_LOCAL_WRITE);
  ibv_mr* sink = ibv_reg_mr_iova(server_->pd, into, sizeof into, kIova, kAll);
  ASSERT_TRUE(source != nullptr && sink != nullptr);
  const auto write = [&](std::uint64_t to, std::uint32_t key) {
    ibv_sge sge{kIova + 3, 14, source->lkey};
    ibv_send_wr wr{}, *bad;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = to;
    wr.wr.rdma.rkey = key;
    EXPECT_EQ(ibv_post_send(client_->qp, &wr, &bad), 0);
    return wait_for(client_->send_cq).status;
  };
  EXPECT_EQ(write(kIova + 8, sink->rkey), IBV_WC_SUCCESS);
  // Over the kernel's TCP a Write is complete when the kernel has it: a Read posted after it sees
  // it.
  char back[64] = {};
  ibv_mr* last = rdma_reg_msgs(client_, back, sizeof back);
  ASSERT_EQ(
      rdma_post_read(client_, back, back, sizeof back, last, IBV_SEND_SIGNALED, kIova, sink->rkey),
      0);
  EXPECT_EQ(wait_for(client_->send_cq).status, IBV_WC_SUCCESS);
  EXPECT_STREQ(back + 8, "any other name");
  const std::uint32_t stale = sink->rkey;
  ASSERT_EQ(ibv_rereg_mr(sink, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, other, sizeof other, 0),
            0);
  const auto at = reinterpret_cast<std::uint64_t>(other);
  EXPECT_EQ(write(at, sink->rkey), IBV_WC_SUCCESS);
  ASSERT_EQ(
      rdma_post_read(client_, back, back, sizeof back, last, IBV_SEND_SIGNALED, at, sink->rkey), 0);
  EXPECT_EQ(wait_for(client_->send_cq).status, IBV_WC_SUCCESS);
  EXPECT_STREQ(back, "any other name");
  ASSERT_EQ(rdma_post_read(client_, back, back, sizeof back, last, IBV_SEND_SIGNALED, at, stale),
            0);
  EXPECT_EQ(wait_for(client_->send_cq).status, IBV_WC_REM_ACCESS_ERR);
  for (ibv_mr* mr : {source, sink, last}) EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

// proves: DI-1
TEST_F(CmDataTest, WindowsAreBoundUsedAndInvalidated) {
  connect();
  accept();
  char lent[64] = "lent for a while", back[64] = {};
  ibv_mr* region =
      ibv_reg_mr(server_->pd, lent, sizeof lent, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
  ibv_mr* sink = rdma_reg_msgs(client_, back, sizeof back);
  ibv_mw* one = ibv_alloc_mw(server_->pd, IBV_MW_TYPE_1);
  ibv_mw* two = ibv_alloc_mw(server_->pd, IBV_MW_TYPE_2);
  ASSERT_TRUE(region != nullptr && sink != nullptr && one != nullptr && two != nullptr);
  const auto at = reinterpret_cast<std::uint64_t>(lent);
  const auto read = [&](std::uint64_t from, std::uint32_t rkey) {
    EXPECT_EQ(rdma_post_read(client_, back, back, 17, sink, IBV_SEND_SIGNALED, from, rkey), 0);
    return wait_for(client_->send_cq).status;
  };
  ibv_mw_bind bind{};
  bind.wr_id = 7;
  bind.send_flags = IBV_SEND_SIGNALED;
  bind.bind_info = {region, at, 64, IBV_ACCESS_REMOTE_READ};

  // Wrong use changes nothing.
  const std::uint32_t first = one->rkey;
  EXPECT_EQ(ibv_bind_mw(server_->qp, two, &bind), EINVAL) << "of type 2 by post_send";
  bind.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED;
  EXPECT_EQ(ibv_bind_mw(server_->qp, one, &bind), EINVAL);
  bind.bind_info.mw_access_flags = IBV_ACCESS_MW_BIND;
  EXPECT_EQ(ibv_bind_mw(server_->qp, one, &bind), EINVAL);
  bind.bind_info = {nullptr, at, 64, IBV_ACCESS_REMOTE_READ};
  EXPECT_EQ(ibv_bind_mw(server_->qp, one, &bind), EINVAL);
  ibv_pd* other = ibv_alloc_pd(server_->verbs);
  ibv_mr* foreign = ibv_reg_mr(other, lent, sizeof lent, IBV_ACCESS_MW_BIND);
  bind.bind_info = {foreign, at, 64, IBV_ACCESS_REMOTE_READ};
  EXPECT_EQ(ibv_bind_mw(server_->qp, one, &bind), EPERM);
  EXPECT_EQ(ibv_dereg_mr(foreign), 0);
  EXPECT_EQ(ibv_dealloc_pd(other), 0);
  EXPECT_EQ(one->rkey, first);

  // Programs set a right that is not a right of a window.
  bind.bind_info = {region, at, 64, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_LOCAL_WRITE};
  ASSERT_EQ(ibv_bind_mw(server_->qp, one, &bind), 0);
  EXPECT_NE(one->rkey, first);
  ibv_wc done = wait_for(server_->send_cq);
  EXPECT_EQ(done.status, IBV_WC_SUCCESS);
  EXPECT_EQ(done.opcode, IBV_WC_BIND_MW);
  EXPECT_EQ(done.wr_id, 7u);
  EXPECT_EQ(read(at, one->rkey), IBV_WC_SUCCESS);
  EXPECT_STREQ(back, lent);
  EXPECT_EQ(ibv_dereg_mr(region), EBUSY);
  EXPECT_EQ(ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0),
            IBV_REREG_MR_ERR_CMD);
  EXPECT_EQ(errno, EBUSY);
  EXPECT_EQ(ibv_dealloc_mw(one), 0);

  // Type 2: bound, invalidated and bound again in one list.
  ibv_send_wr list[3]{}, *bad;
  for (int i = 0; i < 3; ++i) {
    list[i].next = i < 2 ? &list[i + 1] : nullptr;
    list[i].wr_id = static_cast<std::uint64_t>(i);
    list[i].opcode = i == 1 ? IBV_WR_LOCAL_INV : IBV_WR_BIND_MW;
    list[i].send_flags = IBV_SEND_SIGNALED;
  }
  const std::uint32_t key = ibv_inc_rkey(two->rkey), last = ibv_inc_rkey(key);
  list[0].bind_mw = {two, key, {region, at, 64, IBV_ACCESS_REMOTE_READ}};
  list[1].invalidate_rkey = key;
  list[2].bind_mw = {
      two, last & 0xff, {region, at + 5, 20, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED}};
  ASSERT_EQ(ibv_post_send(server_->qp, list, &bad), 0);
  for (int i = 0; i < 3; ++i) {
    done = wait_for(server_->send_cq);
    EXPECT_EQ(done.status, IBV_WC_SUCCESS) << i;
    EXPECT_EQ(done.opcode, i == 1 ? IBV_WC_LOCAL_INV : IBV_WC_BIND_MW);
  }
  EXPECT_EQ(two->rkey, last) << "of whose byte the program has named the lowest";
  EXPECT_EQ(read(0, last), IBV_WC_SUCCESS);
  EXPECT_STREQ(back, "for a while");
  // The key of another window is refused when it is posted; an impossible bind fails when it is
  // done.
  list[0].next = nullptr;
  list[0].bind_mw.rkey = two->rkey + 0x100;
  EXPECT_EQ(ibv_post_send(server_->qp, list, &bad), EINVAL);
  EXPECT_EQ(bad, &list[0]);
  list[0].bind_mw.rkey = ibv_inc_rkey(last);
  ASSERT_EQ(ibv_post_send(server_->qp, list, &bad), 0);
  EXPECT_EQ(wait_for(server_->send_cq).status, IBV_WC_MW_BIND_ERR) << "it is bound";
  errno = 0;
  EXPECT_EQ(ibv_dealloc_pd(server_->pd), EBUSY);
  EXPECT_EQ(errno, EBUSY);
  EXPECT_EQ(ibv_dealloc_mw(two), 0);
  EXPECT_EQ(ibv_dereg_mr(region), 0);
  EXPECT_EQ(ibv_dereg_mr(sink), 0);
}

TEST_F(CmDataTest, BuiltRequestsAndExtendedPollsCarryData) {
  connect_built(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV);
  auto attr = small_qp();
  ASSERT_EQ(rdma_create_qp(server_, nullptr, &attr), 0);
  char into[64] = {}, first[] = "copied at once, ", second[] = "in two pieces";
  ibv_mr* sink = rdma_reg_msgs(server_, into, sizeof into);
  ASSERT_EQ(rdma_post_recv(server_, into, into, sizeof into, sink), 0);
  ASSERT_EQ(rdma_accept(server_, nullptr), 0);
  pass(channel_, RDMA_CM_EVENT_ESTABLISHED);
  pass(peers_, RDMA_CM_EVENT_ESTABLISHED);
  ibv_data_buf pieces[] = {{first, sizeof first - 1}, {second, sizeof second}};
  ibv_wr_start(ex_);
  ex_->wr_id = 77;
  ex_->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(ex_);
  ibv_wr_set_inline_data_list(ex_, 2, pieces);
  std::memset(first, 'x', sizeof first - 1);
  ASSERT_EQ(ibv_wr_complete(ex_), 0);
  EXPECT_EQ(wait_for(server_->recv_cq).status, IBV_WC_SUCCESS);
  EXPECT_STREQ(into, "copied at once, in two pieces");
  ibv_poll_cq_attr none{};
  int got = ENOENT;
  EXPECT_TRUE(urnic::test::soon([&] { return (got = ibv_start_poll(cq_, &none)) != ENOENT; }));
  ASSERT_EQ(got, 0);
  EXPECT_EQ(cq_->wr_id, 77u);
  EXPECT_EQ(cq_->status, IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_wc_read_opcode(cq_), IBV_WC_SEND);
  EXPECT_EQ(ibv_wc_read_qp_num(cq_), client_->qp->qp_num);
  EXPECT_EQ(ibv_next_poll(cq_), ENOENT);
  ibv_end_poll(cq_);

  ibv_mr* lent =
      ibv_reg_mr(client_->pd, first, sizeof first, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
  ibv_mw* mw = ibv_alloc_mw(client_->pd, IBV_MW_TYPE_2);
  ASSERT_TRUE(lent != nullptr && mw != nullptr);
  const ibv_mw_bind_info info{lent, reinterpret_cast<std::uint64_t>(first), 8,
                              IBV_ACCESS_REMOTE_READ};
  const std::uint32_t key = ibv_inc_rkey(mw->rkey);
  ibv_wr_start(ex_);
  ex_->wr_flags = IBV_SEND_SIGNALED;
  ex_->wr_id = 1;
  ibv_wr_bind_mw(ex_, mw, key, &info);
  ex_->wr_id = 2;
  ibv_wr_local_inv(ex_, key);
  ASSERT_EQ(ibv_wr_complete(ex_), 0);
  for (const std::uint64_t id : {1u, 2u}) {
    const ibv_wc wc = wait_for(ibv_cq_ex_to_cq(cq_));
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, id == 1 ? IBV_WC_BIND_MW : IBV_WC_LOCAL_INV);
  }
  EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  EXPECT_EQ(ibv_dereg_mr(lent), 0);
  EXPECT_EQ(rdma_dereg_mr(sink), 0);
}

// Ten requests for a queue of eight.
// proves: DI-4
TEST_F(CmDataTest, TheFirstRefusedRequestIsReportedAndEarlierOnesComplete) {
  connect();
  auto attr = small_qp();
  ASSERT_EQ(rdma_create_qp(server_, nullptr, &attr), 0);
  ibv_recv_wr receive{}, *bad_receive = nullptr;
  for (int i = 0; i < 8; ++i) ASSERT_EQ(ibv_post_recv(server_->qp, &receive, &bad_receive), 0);
  ASSERT_EQ(rdma_accept(server_, nullptr), 0);
  pass(channel_, RDMA_CM_EVENT_ESTABLISHED);
  pass(peers_, RDMA_CM_EVENT_ESTABLISHED);
  ibv_send_wr list[10]{}, *bad = nullptr;
  for (std::size_t i = 0; i < 10; ++i) {
    list[i].next = i < 9 ? &list[i + 1] : nullptr;
    list[i].wr_id = i;
    list[i].opcode = IBV_WR_SEND;
    list[i].send_flags = IBV_SEND_SIGNALED;
  }
  EXPECT_EQ(ibv_post_send(client_->qp, list, &bad), ENOMEM);
  EXPECT_EQ(bad, &list[8]);
  for (std::uint64_t i = 0; i < 8; ++i) {
    const ibv_wc wc = wait_for(client_->send_cq);
    EXPECT_EQ(wc.wr_id, i);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wait_for(server_->recv_cq).status, IBV_WC_SUCCESS);
  }
  // An invalid opcode in the middle of a list.
  list[2].opcode = static_cast<ibv_wr_opcode>(99);
  EXPECT_EQ(ibv_post_send(client_->qp, list, &bad), EOPNOTSUPP);
  EXPECT_EQ(bad, &list[2]);
}

// The library takes 32 requests at a time.
TEST_F(CmDataTest, ARequestThatIsRefusedFarBehindTheFirstIsNamed) {
  resolve(ntohs(rdma_get_src_port(listener_)));
  rdma_destroy_qp(client_);
  auto attr = small_qp();
  attr.cap.max_send_wr = 64;
  ASSERT_EQ(rdma_create_qp(client_, nullptr, &attr), 0);
  request();
  accept();
  std::string much(attr.cap.max_inline_data + 1, 'x');
  ibv_sge sge{reinterpret_cast<std::uint64_t>(much.data()), static_cast<std::uint32_t>(much.size()),
              0};
  ibv_send_wr list[40]{}, *bad = nullptr;
  for (std::size_t i = 0; i < 40; ++i) {
    list[i].next = i < 39 ? &list[i + 1] : nullptr;
    list[i].opcode = IBV_WR_SEND;
  }
  list[35].sg_list = &sge;
  list[35].num_sge = 1;
  list[35].send_flags = IBV_SEND_INLINE;
  EXPECT_EQ(ibv_post_send(client_->qp, list, &bad), EINVAL);
  EXPECT_EQ(bad, &list[35]);
}

// proves: DI-6
TEST_F(CmDataTest, AQueueArmedForSolicitedMessagesIsSilentForOthers) {
  connect();
  auto attr = small_qp();
  ASSERT_EQ(rdma_create_qp(server_, nullptr, &attr), 0);
  ibv_recv_wr receive{}, *bad_receive = nullptr;
  for (int i = 0; i < 2; ++i) ASSERT_EQ(ibv_post_recv(server_->qp, &receive, &bad_receive), 0);
  ASSERT_EQ(rdma_accept(server_, nullptr), 0);
  pass(channel_, RDMA_CM_EVENT_ESTABLISHED);
  pass(peers_, RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_EQ(ibv_req_notify_cq(server_->recv_cq, 1), 0);
  const auto send = [&](unsigned flags) {
    ibv_send_wr wr{}, *bad = nullptr;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED | flags;
    EXPECT_EQ(ibv_post_send(client_->qp, &wr, &bad), 0);
  };
  pollfd p{server_->recv_cq_channel->fd, POLLIN, 0};
  send(0);
  EXPECT_EQ(wait_for(server_->recv_cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(poll(&p, 1, 50), 0);
  send(IBV_SEND_SOLICITED);
  ASSERT_EQ(poll(&p, 1, urnic::test::kSoonMs), 1);
  // A thread that waits for the event gets it, and only one event.
  ibv_cq* which = nullptr;
  void* its = nullptr;
  ASSERT_EQ(ibv_get_cq_event(server_->recv_cq_channel, &which, &its), 0);
  EXPECT_EQ(which, server_->recv_cq);
  ibv_ack_cq_events(which, 1);
  EXPECT_EQ(wait_for(server_->recv_cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(poll(&p, 1, 0), 0);
}

// proves: DI-6
TEST_F(CmDataTest, GetCqEventSleepsUntilAnEventArrives) {
  connect();
  auto attr = small_qp();
  ASSERT_EQ(rdma_create_qp(server_, nullptr, &attr), 0);
  ibv_recv_wr receive{}, *bad_receive = nullptr;
  ASSERT_EQ(ibv_post_recv(server_->qp, &receive, &bad_receive), 0);
  ASSERT_EQ(rdma_accept(server_, nullptr), 0);
  pass(channel_, RDMA_CM_EVENT_ESTABLISHED);
  pass(peers_, RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_EQ(ibv_req_notify_cq(server_->recv_cq, 0), 0);
  std::thread later([&] {
    usleep(50'000);
    ibv_send_wr wr{}, *bad = nullptr;
    wr.opcode = IBV_WR_SEND;
    EXPECT_EQ(ibv_post_send(client_->qp, &wr, &bad), 0);
  });
  ibv_cq* which = nullptr;
  void* its = nullptr;
  const int result = ibv_get_cq_event(server_->recv_cq_channel, &which, &its);
  EXPECT_EQ(result, 0);
  later.join();
  if (result == 0) {
    ibv_ack_cq_events(which, 1);
  }
  EXPECT_EQ(wait_for(server_->recv_cq).status, IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace cm
