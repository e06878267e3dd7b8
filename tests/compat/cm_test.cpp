// rdma_cm as a C program calls it: two ends in one process, over the kernel's TCP on loopback.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  a.sin_port = htons(port);
  return a;
}

sockaddr* any(sockaddr_in& a) {
  return reinterpret_cast<sockaddr*>(&a);
}

// The next event within 10 s, which must be `wanted`; not yet acknowledged.
rdma_cm_event* next(rdma_event_channel* channel, rdma_cm_event_type wanted) {
  pollfd p{channel->fd, POLLIN, 0};
  if (poll(&p, 1, 10'000) != 1) {
    ADD_FAILURE() << "no " << rdma_event_str(wanted);
    return nullptr;
  }
  rdma_cm_event* event = nullptr;
  EXPECT_EQ(rdma_get_cm_event(channel, &event), 0);
  EXPECT_EQ(event->event, wanted) << rdma_event_str(event->event);
  return event;
}

void pass(rdma_event_channel* channel, rdma_cm_event_type wanted) {
  auto* event = next(channel, wanted);
  EXPECT_EQ(rdma_ack_cm_event(event), event == nullptr ? -1 : 0);
}

bool silent(rdma_event_channel* channel, int ms) {
  pollfd p{channel->fd, POLLIN, 0};
  return poll(&p, 1, ms) == 0;
}

ibv_qp_init_attr small_qp() {
  ibv_qp_init_attr a{};
  a.qp_type = IBV_QPT_RC;
  a.cap.max_send_wr = a.cap.max_recv_wr = 8;
  a.cap.max_send_sge = a.cap.max_recv_sge = 1;
  return a;
}

ibv_wc wait_for(ibv_cq* cq) {
  ibv_wc wc{};
  for (int i = 0; i < 100'000; ++i) {
    const int n = ibv_poll_cq(cq, 1, &wc);
    if (n != 0) return wc;
    usleep(100);
  }
  ADD_FAILURE() << "no completion";
  return wc;
}

// What the library shows of it, from a thread of its own.
ibv_qp_state shown(const ibv_qp& qp) {
  return __atomic_load_n(&qp.state, __ATOMIC_RELAXED);
}

class CmTest : public testing::Test {
 protected:
  void SetUp() override {
    channel_ = rdma_create_event_channel();
    peers_ = rdma_create_event_channel();
    ASSERT_NE(channel_, nullptr);
    ASSERT_NE(peers_, nullptr);
    ASSERT_EQ(rdma_create_id(channel_, &listener_, this, RDMA_PS_TCP), 0);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    ASSERT_EQ(rdma_bind_addr(listener_, any(a)), 0);
    ASSERT_EQ(rdma_listen(listener_, 0), 0);
    ASSERT_NE(rdma_get_src_port(listener_), 0);
    ASSERT_EQ(rdma_create_id(peers_, &client_, this, RDMA_PS_TCP), 0);
  }
  void TearDown() override {
    if (server_ != nullptr) {
      rdma_destroy_qp(server_);
      EXPECT_EQ(rdma_destroy_id(server_), 0);
    }
    rdma_destroy_qp(client_);
    EXPECT_EQ(rdma_destroy_id(client_), 0);
    EXPECT_EQ(rdma_destroy_id(listener_), 0);
    rdma_destroy_event_channel(channel_);
    rdma_destroy_event_channel(peers_);
  }
  void resolve(std::uint16_t port) {
    sockaddr_in to = loopback(port);
    ASSERT_EQ(rdma_resolve_addr(client_, nullptr, any(to), 1000), 0);
    pass(peers_, RDMA_CM_EVENT_ADDR_RESOLVED);
    ASSERT_NE(client_->verbs, nullptr);
    ASSERT_NE(client_->pd, nullptr);
    ASSERT_EQ(rdma_resolve_route(client_, 1000), 0);
    pass(peers_, RDMA_CM_EVENT_ROUTE_RESOLVED);
    auto attr = small_qp();
    ASSERT_EQ(rdma_create_qp(client_, nullptr, &attr), 0);
    EXPECT_NE(attr.send_cq, nullptr);
  }
  // The request's event is acknowledged; its private data is in `said_`.
  void connect() {
    resolve(ntohs(rdma_get_src_port(listener_)));
    rdma_conn_param p{};
    p.private_data = "hello";
    p.private_data_len = 5;
    p.responder_resources = p.initiator_depth = 4;
    ASSERT_EQ(rdma_connect(client_, &p), 0);
    auto* request = next(channel_, RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(request, nullptr);
    server_ = request->id;
    EXPECT_EQ(request->listen_id, listener_);
    EXPECT_EQ(server_->context, this);
    EXPECT_EQ(server_->verbs, client_->verbs);
    said_.assign(static_cast<const char*>(request->param.conn.private_data),
                 request->param.conn.private_data_len);
    EXPECT_EQ(rdma_ack_cm_event(request), 0);
  }
  void accept() {
    auto attr = small_qp();
    ASSERT_EQ(rdma_create_qp(server_, nullptr, &attr), 0);
    rdma_conn_param p{};
    p.private_data = "welcome";
    p.private_data_len = 7;
    p.responder_resources = p.initiator_depth = 4;
    ASSERT_EQ(rdma_accept(server_, &p), 0);
    pass(channel_, RDMA_CM_EVENT_ESTABLISHED);
    auto* event = next(peers_, RDMA_CM_EVENT_ESTABLISHED);
    ASSERT_NE(event, nullptr);
    EXPECT_EQ(std::string(static_cast<const char*>(event->param.conn.private_data),
                          event->param.conn.private_data_len),
              "welcome");
    EXPECT_EQ(rdma_ack_cm_event(event), 0);
  }

  rdma_event_channel *channel_ = nullptr, *peers_ = nullptr;
  rdma_cm_id *listener_ = nullptr, *client_ = nullptr, *server_ = nullptr;
  std::string said_;
};

TEST_F(CmTest, MessagesWritesAndReadsGoBothWays) {
  connect();
  EXPECT_EQ(said_, "hello");
  char from[64] = "sixty-four octets of something", into[64] = {}, back[64] = {};
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

TEST_F(CmTest, WorkNamesMemoryByItsIovaAndByTheKeyOfItsLastRegistration) {
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
  // Over the kernel's TCP a Write is complete when the kernel has it: a Read behind it has seen it.
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

TEST_F(CmTest, WindowsAreBoundUsedAndTakenBack) {
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
  bind.bind_info.mw_access_flags = IBV_ACCESS_LOCAL_WRITE;
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

  bind.bind_info = {region, at, 64, IBV_ACCESS_REMOTE_READ};
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
      two, last, {region, at + 5, 20, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED}};
  ASSERT_EQ(ibv_post_send(server_->qp, list, &bad), 0);
  for (int i = 0; i < 3; ++i) {
    done = wait_for(server_->send_cq);
    EXPECT_EQ(done.status, IBV_WC_SUCCESS) << i;
    EXPECT_EQ(done.opcode, i == 1 ? IBV_WC_LOCAL_INV : IBV_WC_BIND_MW);
  }
  EXPECT_EQ(read(0, last), IBV_WC_SUCCESS);
  EXPECT_STREQ(back, "for a while");
  // Another window's key is told when it is posted, what cannot be bound when it is done.
  list[0].next = nullptr;
  list[0].bind_mw.rkey = two->rkey + 0x100;
  EXPECT_EQ(ibv_post_send(server_->qp, list, &bad), EINVAL);
  EXPECT_EQ(bad, &list[0]);
  list[0].bind_mw.rkey = ibv_inc_rkey(last);
  ASSERT_EQ(ibv_post_send(server_->qp, list, &bad), 0);
  EXPECT_EQ(wait_for(server_->send_cq).status, IBV_WC_MW_BIND_ERR) << "it is bound";
  EXPECT_EQ(ibv_dealloc_mw(two), 0);
  EXPECT_EQ(ibv_dereg_mr(region), 0);
  EXPECT_EQ(ibv_dereg_mr(sink), 0);
}

TEST_F(CmTest, BuiltRequestsAndExtendedPollsCarryData) {
  resolve(ntohs(rdma_get_src_port(listener_)));
  rdma_destroy_qp(client_);
  ibv_cq_init_attr_ex c{};
  c.cqe = 16;
  c.wc_flags = IBV_WC_STANDARD_FLAGS;
  ibv_cq_ex* cq = ibv_create_cq_ex(client_->verbs, &c);
  ASSERT_NE(cq, nullptr);
  ibv_qp_init_attr_ex x{};
  x.send_cq = x.recv_cq = ibv_cq_ex_to_cq(cq);
  x.qp_type = IBV_QPT_RC;
  x.cap = small_qp().cap;
  x.cap.max_inline_data = 64;
  x.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  x.pd = client_->pd;
  x.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV;
  ASSERT_EQ(rdma_create_qp_ex(client_, &x), 0);
  ASSERT_EQ(rdma_connect(client_, nullptr), 0);
  auto* request = next(channel_, RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request, nullptr);
  server_ = request->id;
  EXPECT_EQ(rdma_ack_cm_event(request), 0);
  auto attr = small_qp();
  ASSERT_EQ(rdma_create_qp(server_, nullptr, &attr), 0);
  char into[64] = {}, first[] = "copied at once, ", second[] = "in two pieces";
  ibv_mr* sink = rdma_reg_msgs(server_, into, sizeof into);
  ASSERT_EQ(rdma_post_recv(server_, into, into, sizeof into, sink), 0);
  ASSERT_EQ(rdma_accept(server_, nullptr), 0);
  pass(channel_, RDMA_CM_EVENT_ESTABLISHED);
  pass(peers_, RDMA_CM_EVENT_ESTABLISHED);
  ibv_qp_ex* ex = ibv_qp_to_qp_ex(client_->qp);
  ASSERT_NE(ex, nullptr);
  ibv_data_buf pieces[] = {{first, sizeof first - 1}, {second, sizeof second}};
  ibv_wr_start(ex);
  ex->wr_id = 77;
  ex->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(ex);
  ibv_wr_set_inline_data_list(ex, 2, pieces);
  std::memset(first, 'x', sizeof first - 1);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  EXPECT_EQ(wait_for(server_->recv_cq).status, IBV_WC_SUCCESS);
  EXPECT_STREQ(into, "copied at once, in two pieces");
  ibv_poll_cq_attr none{};
  int got = ENOENT;
  for (int i = 0; i < 10'000 && got == ENOENT; ++i) {
    got = ibv_start_poll(cq, &none);
    if (got == ENOENT) usleep(100);
  }
  ASSERT_EQ(got, 0);
  EXPECT_EQ(cq->wr_id, 77u);
  EXPECT_EQ(cq->status, IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_wc_read_opcode(cq), IBV_WC_SEND);
  EXPECT_EQ(ibv_wc_read_qp_num(cq), client_->qp->qp_num);
  EXPECT_EQ(ibv_next_poll(cq), ENOENT);
  ibv_end_poll(cq);

  ibv_mr* lent =
      ibv_reg_mr(client_->pd, first, sizeof first, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
  ibv_mw* mw = ibv_alloc_mw(client_->pd, IBV_MW_TYPE_2);
  ASSERT_TRUE(lent != nullptr && mw != nullptr);
  const ibv_mw_bind_info info{lent, reinterpret_cast<std::uint64_t>(first), 8,
                              IBV_ACCESS_REMOTE_READ};
  const std::uint32_t key = ibv_inc_rkey(mw->rkey);
  ibv_wr_start(ex);
  ex->wr_flags = IBV_SEND_SIGNALED;
  ex->wr_id = 1;
  ibv_wr_bind_mw(ex, mw, key, &info);
  ex->wr_id = 2;
  ibv_wr_local_inv(ex, key);
  ASSERT_EQ(ibv_wr_complete(ex), 0);
  for (const std::uint64_t id : {1u, 2u}) {
    const ibv_wc wc = wait_for(ibv_cq_ex_to_cq(cq));
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, id == 1 ? IBV_WC_BIND_MW : IBV_WC_LOCAL_INV);
  }
  EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  EXPECT_EQ(ibv_dereg_mr(lent), 0);
  EXPECT_EQ(rdma_dereg_mr(sink), 0);
  rdma_destroy_qp(client_);
  EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

TEST_F(CmTest, ImmediateDataComesWithWritesAndSends) {
  connect();
  char from[64] = "with four octets more", into[64] = {}, target[64] = {};
  ibv_mr* source = rdma_reg_msgs(client_, from, sizeof from);
  ibv_mr* sink = rdma_reg_msgs(client_, into, sizeof into);
  ibv_mr* open = ibv_reg_mr(client_->pd, target, sizeof target,
                            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  ASSERT_TRUE(source != nullptr && sink != nullptr && open != nullptr);
  accept();
  for (const std::uint32_t length : {0u, 64u}) {
    for (const ibv_wr_opcode op : {IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND_WITH_IMM}) {
      SCOPED_TRACE(static_cast<int>(op));
      ibv_sge from_here{reinterpret_cast<std::uint64_t>(from), length, source->lkey};
      ibv_send_wr wr{}, *bad = nullptr;
      wr.opcode = op;
      wr.sg_list = &from_here;
      wr.num_sge = 1;
      wr.send_flags = IBV_SEND_SIGNALED;
      wr.imm_data = htonl(0xabcd0000 + length);
      wr.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(target);
      wr.wr.rdma.rkey = open->rkey;
      ASSERT_EQ(rdma_post_recv(server_, into, into, sizeof into, sink), 0);
      ASSERT_EQ(ibv_post_send(client_->qp, &wr, &bad), 0);
      const bool write = op == IBV_WR_RDMA_WRITE_WITH_IMM;
      const ibv_wc sent = wait_for(client_->send_cq);
      EXPECT_EQ(sent.status, IBV_WC_SUCCESS);
      EXPECT_EQ(sent.opcode, write ? IBV_WC_RDMA_WRITE : IBV_WC_SEND);
      const ibv_wc got = wait_for(server_->recv_cq);
      EXPECT_EQ(got.status, IBV_WC_SUCCESS);
      EXPECT_EQ(got.wr_id, reinterpret_cast<std::uint64_t>(into));
      EXPECT_EQ(got.opcode, write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
      EXPECT_EQ(got.wc_flags & IBV_WC_WITH_IMM, static_cast<unsigned>(IBV_WC_WITH_IMM));
      EXPECT_EQ(ntohl(got.imm_data), 0xabcd0000 + length);
      EXPECT_EQ(got.byte_len, length);
      EXPECT_EQ(std::memcmp(write ? target : into, from, length), 0);
    }
  }
  for (ibv_mr* mr : {source, sink, open}) EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(CmTest, AtomicsBringWhatWasThere) {
  ibv_device_attr device;
  connect();
  ASSERT_EQ(ibv_query_device(client_->verbs, &device), 0);
  EXPECT_EQ(device.atomic_cap, IBV_ATOMIC_GLOB);
  alignas(8) std::uint64_t word = 5, got = 0;
  ibv_mr* into = rdma_reg_msgs(client_, &got, sizeof got);
  EXPECT_EQ(ibv_reg_mr(client_->pd, &word, sizeof word, IBV_ACCESS_REMOTE_ATOMIC), nullptr);
  ibv_mr* target = ibv_reg_mr(client_->pd, &word, sizeof word,
                              IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
  ASSERT_TRUE(into != nullptr && target != nullptr);
  accept();
  const auto run = [&](ibv_wr_opcode op, std::uint64_t compare_add, std::uint64_t swap) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(&got), sizeof got, into->lkey};
    ibv_send_wr wr{}, *bad = nullptr;
    wr.opcode = op;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.atomic.remote_addr = reinterpret_cast<std::uint64_t>(&word);
    wr.wr.atomic.compare_add = compare_add;
    wr.wr.atomic.swap = swap;
    wr.wr.atomic.rkey = target->rkey;
    EXPECT_EQ(ibv_post_send(client_->qp, &wr, &bad), 0);
    const ibv_wc done = wait_for(client_->send_cq);
    EXPECT_EQ(done.status, IBV_WC_SUCCESS);
    EXPECT_EQ(done.byte_len, 8u);
    EXPECT_EQ(done.opcode, op == IBV_WR_ATOMIC_CMP_AND_SWP ? IBV_WC_COMP_SWAP : IBV_WC_FETCH_ADD);
    return got;
  };
  EXPECT_EQ(run(IBV_WR_ATOMIC_FETCH_AND_ADD, 3, 0), 5u);
  EXPECT_EQ(run(IBV_WR_ATOMIC_CMP_AND_SWP, 7, 9), 8u);
  EXPECT_EQ(run(IBV_WR_ATOMIC_CMP_AND_SWP, 8, 9), 8u);
  EXPECT_EQ(run(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0), 9u);
  for (ibv_mr* mr : {into, target}) EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(CmTest, DisconnectedComesOnceAtEachEndAlsoWhenTheQueuePairIsGone) {
  connect();
  accept();
  ASSERT_EQ(rdma_disconnect(client_), 0);
  rdma_destroy_qp(client_);
  pass(channel_, RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(rdma_disconnect(server_), 0);
  pass(peers_, RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_TRUE(silent(channel_, 100));
  EXPECT_TRUE(silent(peers_, 10));
}

// Eight times 64 KiB, and the program's memory is its own again before they can have left.
TEST_F(CmTest, WhatWasPostedBeforeRdmaDisconnectArrivesThoughAllIsDestroyed) {
  connect();
  accept();
  constexpr std::size_t kPiece = 65536, kAll = kPiece * 8;
  std::vector<char> from(kAll), to(kAll);
  for (std::size_t i = 0; i < kAll; ++i) from[i] = static_cast<char>(i * 31 + i / kPiece);
  ibv_mr* source = ibv_reg_mr(client_->pd, from.data(), kAll, 0);
  ibv_mr* sink =
      ibv_reg_mr(server_->pd, to.data(), kAll, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  ASSERT_TRUE(source != nullptr && sink != nullptr);
  for (std::size_t at = 0; at < kAll; at += kPiece) {
    ASSERT_EQ(rdma_post_write(client_, nullptr, from.data() + at, kPiece, source, 0,
                              reinterpret_cast<std::uint64_t>(to.data() + at), sink->rkey),
              0);
  }
  const std::vector<char> expected = from;
  ASSERT_EQ(rdma_disconnect(client_), 0);
  rdma_destroy_qp(client_);
  ASSERT_EQ(ibv_dereg_mr(source), 0);
  std::fill(from.begin(), from.end(), '!');
  pass(channel_, RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_TRUE(to == expected);
  pass(peers_, RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_TRUE(silent(channel_, 50) && silent(peers_, 10));
  rdma_destroy_qp(server_);
  EXPECT_EQ(ibv_dereg_mr(sink), 0);
}

// The peer writes where it may not: the program hears of it, and cannot destroy the queue pair
// while it holds the event.
TEST_F(CmTest, AnAccessWithoutRightIsAnAsynchronousEventThatIsWaitedFor) {
  connect();
  accept();
  char octet = 0;
  ibv_mr* mr = ibv_reg_mr(client_->pd, &octet, 1, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(mr, nullptr);
  ASSERT_EQ(rdma_post_write(client_, nullptr, &octet, 1, mr, 0, 0x1000, 0x12345601), 0);
  ibv_async_event event{};
  do {
    if (event.event_type == IBV_EVENT_PORT_ACTIVE) ibv_ack_async_event(&event);
    pollfd p{server_->verbs->async_fd, POLLIN, 0};
    ASSERT_EQ(poll(&p, 1, 10'000), 1);
    ASSERT_EQ(ibv_get_async_event(server_->verbs, &event), 0);
  } while (event.event_type == IBV_EVENT_PORT_ACTIVE);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_ACCESS_ERR) << ibv_event_type_str(event.event_type);
  EXPECT_EQ(event.element.qp, server_->qp);
  std::atomic<bool> destroyed{false};
  std::thread destroying([&] {
    rdma_destroy_qp(server_);
    destroyed = true;
  });
  usleep(100'000);
  EXPECT_FALSE(destroyed);
  ibv_ack_async_event(&event);
  destroying.join();
  rdma_destroy_qp(client_);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

// The same two queue pairs, by number, under new identifiers each time.
TEST_F(CmTest, AQueuePairIsConnectedAgainBehindErrAndReset) {
  resolve(ntohs(rdma_get_src_port(listener_)));
  rdma_destroy_qp(client_);
  ibv_cq* cq = ibv_create_cq(client_->verbs, 16, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  auto attr = small_qp();
  attr.send_cq = attr.recv_cq = cq;
  ibv_qp* ends[2] = {ibv_create_qp(client_->pd, &attr), ibv_create_qp(client_->pd, &attr)};
  ASSERT_TRUE(ends[0] != nullptr && ends[1] != nullptr);
  const auto move = [&](ibv_qp_state to) {
    ibv_qp_attr a{};
    a.qp_state = to;
    a.port_num = 1;
    for (ibv_qp* qp : ends) {
      EXPECT_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0) << to;
      EXPECT_EQ(shown(*qp), to);
    }
  };
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    if (round != 0) {
      ASSERT_EQ(rdma_create_id(peers_, &client_, this, RDMA_PS_TCP), 0);
      sockaddr_in to = loopback(ntohs(rdma_get_src_port(listener_)));
      ASSERT_EQ(rdma_resolve_addr(client_, nullptr, any(to), 1000), 0);
      pass(peers_, RDMA_CM_EVENT_ADDR_RESOLVED);
      ASSERT_EQ(rdma_resolve_route(client_, 1000), 0);
      pass(peers_, RDMA_CM_EVENT_ROUTE_RESOLVED);
    }
    move(IBV_QPS_INIT);
    ibv_recv_wr receive{}, *bad_receive = nullptr;
    receive.wr_id = 7;
    ASSERT_EQ(ibv_post_recv(ends[1], &receive, &bad_receive), 0);
    receive.wr_id = 8;
    ASSERT_EQ(ibv_post_recv(ends[1], &receive, &bad_receive), 0);
    rdma_conn_param p{};
    p.qp_num = ends[0]->qp_num;
    ASSERT_EQ(rdma_connect(client_, &p), 0);
    auto* request = next(channel_, RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(request, nullptr);
    rdma_cm_id* server = request->id;
    EXPECT_EQ(rdma_ack_cm_event(request), 0);
    p.qp_num = ends[1]->qp_num;
    ASSERT_EQ(rdma_accept(server, &p), 0);
    pass(channel_, RDMA_CM_EVENT_ESTABLISHED);
    pass(peers_, RDMA_CM_EVENT_ESTABLISHED);
    ibv_send_wr send{}, *bad = nullptr;
    send.wr_id = 9;
    send.opcode = IBV_WR_SEND;
    ASSERT_EQ(ibv_post_send(ends[0], &send, &bad), 0);
    ibv_wc wc = wait_for(cq);
    EXPECT_EQ(wc.wr_id, 7u);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    move(IBV_QPS_ERR);
    wc = wait_for(cq);
    EXPECT_EQ(wc.wr_id, 8u);
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    pass(channel_, RDMA_CM_EVENT_DISCONNECTED);
    pass(peers_, RDMA_CM_EVENT_DISCONNECTED);
    move(IBV_QPS_RESET);
    EXPECT_EQ(rdma_destroy_id(server), 0);
    if (round != 2) {
      EXPECT_EQ(rdma_destroy_id(client_), 0);
    }
  }
  for (ibv_qp* qp : ends) EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(CmTest, AQueuePairDestroyedWithoutAWordEndsTheConnection) {
  connect();
  accept();
  rdma_destroy_qp(client_);
  pass(peers_, RDMA_CM_EVENT_DISCONNECTED);
  pass(channel_, RDMA_CM_EVENT_DISCONNECTED);
}

TEST_F(CmTest, AnIdDestroyedWhileConnectedEndsTheConnection) {
  connect();
  accept();
  ibv_qp* qp = server_->qp;
  ibv_cq *send = server_->send_cq, *receive = server_->recv_cq;
  ibv_comp_channel *of_send = server_->send_cq_channel, *of_receive = server_->recv_cq_channel;
  EXPECT_EQ(rdma_destroy_id(server_), 0);
  server_ = nullptr;
  pass(peers_, RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_TRUE(silent(channel_, 50));
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(send), 0);
  EXPECT_EQ(ibv_destroy_cq(receive), 0);
  EXPECT_EQ(ibv_destroy_comp_channel(of_send), 0);
  EXPECT_EQ(ibv_destroy_comp_channel(of_receive), 0);
}

// As a read of the kernel's: signal() restarts it, a handler without SA_RESTART ends it.
TEST_F(CmTest, SignalsInterruptAWaitOnlyIfTheyAreMeantTo) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer's handlers stand in the place of the program's";
#endif
  std::atomic<bool> ready{false};
  std::atomic<int> error{-1};
  rdma_cm_event* event = nullptr;
  pthread_t waiter;
  const auto wait_in_thread = [&] {
    ready = false;
    std::thread t([&] {
      waiter = pthread_self();
      ready = true;
      error = rdma_get_cm_event(peers_, &event) == 0 ? 0 : errno;
    });
    while (!ready) usleep(1000);
    usleep(50'000);
    return t;
  };
  struct sigaction before {
  }, plain{};
  sigaction(SIGUSR1, nullptr, &before);
  signal(SIGUSR1, [](int) {});
  std::thread t = wait_in_thread();
  pthread_kill(waiter, SIGUSR1);
  usleep(50'000);
  EXPECT_EQ(error, -1);
  sockaddr_in to = loopback(9);
  ASSERT_EQ(rdma_resolve_addr(client_, nullptr, any(to), 1000), 0);
  t.join();
  ASSERT_EQ(error, 0);
  EXPECT_EQ(rdma_ack_cm_event(event), 0);
  error = -1;
  plain.sa_handler = [](int) {};
  sigaction(SIGUSR1, &plain, nullptr);
  t = wait_in_thread();
  pthread_kill(waiter, SIGUSR1);
  t.join();
  EXPECT_EQ(error, EINTR);
  sigaction(SIGUSR1, &before, nullptr);
}

TEST_F(CmTest, ARejectionCarriesPrivateData) {
  connect();
  ASSERT_EQ(rdma_reject(server_, "no", 2), 0);
  auto* event = next(peers_, RDMA_CM_EVENT_REJECTED);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->status, -ECONNREFUSED);
  EXPECT_EQ(std::string(static_cast<const char*>(event->param.conn.private_data),
                        event->param.conn.private_data_len),
            "no");
  EXPECT_EQ(rdma_ack_cm_event(event), 0);
}

// A program that tells its port before it listens is found, its posted receives too.
TEST_F(CmTest, AListenerMayComeALittleLate) {
  const std::uint16_t port = ntohs(rdma_get_src_port(listener_));
  resolve(port);
  ASSERT_EQ(rdma_destroy_id(listener_), 0);
  ASSERT_EQ(rdma_create_id(channel_, &listener_, this, RDMA_PS_TCP), 0);
  std::thread late([&] {
    usleep(30'000);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_port = htons(port);
    EXPECT_EQ(rdma_bind_addr(listener_, any(a)), 0);
    EXPECT_EQ(rdma_listen(listener_, 0), 0);
  });
  rdma_conn_param p{};
  EXPECT_EQ(rdma_connect(client_, &p), 0);
  late.join();
  auto* request = next(channel_, RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request, nullptr);
  server_ = request->id;
  EXPECT_EQ(rdma_ack_cm_event(request), 0);
  accept();
}

TEST_F(CmTest, NobodyListeningIsARejectionWithinATenthOfASecond) {
  resolve(1);
  rdma_conn_param p{};
  ASSERT_EQ(rdma_connect(client_, &p), 0);
  auto* event = next(peers_, RDMA_CM_EVENT_REJECTED);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->status, -ECONNREFUSED);
  EXPECT_EQ(rdma_ack_cm_event(event), 0);
}

TEST_F(CmTest, WrongUseIsAnsweredAndChangesNothing) {
  rdma_cm_id* id = nullptr;
  errno = 0;
  EXPECT_EQ(rdma_create_id(channel_, &id, nullptr, RDMA_PS_UDP), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(rdma_resolve_addr(client_, nullptr, nullptr, 100), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_resolve_route(client_, 100), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_disconnect(client_), -1);
  EXPECT_EQ(errno, EINVAL);
  rdma_conn_param p{};
  EXPECT_EQ(rdma_connect(client_, &p), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_accept(client_, &p), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_migrate_id(client_, channel_), 0);
  ASSERT_EQ(fcntl(peers_->fd, F_SETFL, O_NONBLOCK), 0);
  rdma_cm_event* event;
  EXPECT_EQ(rdma_get_cm_event(peers_, &event), -1);
  EXPECT_EQ(errno, EAGAIN);
  // An address that is not ours.
  ASSERT_EQ(rdma_create_id(channel_, &id, nullptr, RDMA_PS_TCP), 0);
  sockaddr_in foreign{};
  foreign.sin_family = AF_INET;
  inet_pton(AF_INET, "192.0.2.1", &foreign.sin_addr);
  EXPECT_EQ(rdma_bind_addr(id, any(foreign)), -1);
  EXPECT_EQ(errno, ENODEV);
  EXPECT_EQ(rdma_destroy_id(id), 0);
  // Taken.
  ASSERT_EQ(rdma_create_id(channel_, &id, nullptr, RDMA_PS_TCP), 0);
  sockaddr_in taken = loopback(ntohs(rdma_get_src_port(listener_)));
  EXPECT_EQ(rdma_bind_addr(id, any(taken)), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  EXPECT_EQ(rdma_destroy_id(id), 0);
}

TEST_F(CmTest, APortIsKnownOnceItIsBoundAndRefusesUntilItIsListenedOn) {
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(rdma_create_id(channel_, &id, nullptr, RDMA_PS_TCP), 0);
  sockaddr_in a = loopback(0);
  ASSERT_EQ(rdma_bind_addr(id, any(a)), 0);
  EXPECT_NE(id->verbs, nullptr);
  const std::uint16_t port = ntohs(rdma_get_src_port(id));
  ASSERT_NE(port, 0);
  resolve(port);
  rdma_conn_param p{};
  ASSERT_EQ(rdma_connect(client_, &p), 0);
  pass(peers_, RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(rdma_listen(id, 1), 0);
  EXPECT_EQ(ntohs(rdma_get_src_port(id)), port);
  EXPECT_EQ(rdma_destroy_id(id), 0);
}

// As tgtd does.
TEST_F(CmTest, BothVersionsListenOnOnePort) {
  const std::uint16_t port = ntohs(rdma_get_src_port(listener_));
  sockaddr_in6 all{};
  all.sin6_family = AF_INET6;
  all.sin6_port = htons(port);
  rdma_cm_id* six = nullptr;
  ASSERT_EQ(rdma_create_id(channel_, &six, nullptr, RDMA_PS_TCP), 0);
  EXPECT_EQ(rdma_bind_addr(six, reinterpret_cast<sockaddr*>(&all)), -1);
  EXPECT_EQ(errno, EADDRINUSE) << "version 4 would be in it";
  int on = 1;
  ASSERT_EQ(rdma_set_option(six, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof on), 0);
  ASSERT_EQ(rdma_bind_addr(six, reinterpret_cast<sockaddr*>(&all)), 0);
  ASSERT_EQ(rdma_listen(six, 0), 0);
  EXPECT_EQ(ntohs(rdma_get_src_port(six)), port);
  EXPECT_EQ(rdma_set_option(six, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof on), -1);
  EXPECT_EQ(errno, EINVAL) << "it listens";
  connect();
  accept();
  EXPECT_EQ(rdma_destroy_id(six), 0);
}

TEST_F(CmTest, AnAddressMayBeSharedUntilSomebodyListens) {
  rdma_cm_id* ids[2] = {};
  sockaddr_in a = loopback(0);
  int on = 1;
  for (rdma_cm_id*& id : ids) {
    ASSERT_EQ(rdma_create_id(channel_, &id, nullptr, RDMA_PS_TCP), 0);
    if (&id != ids) {  // without it, taken
      EXPECT_EQ(rdma_bind_addr(id, any(a)), -1);
      EXPECT_EQ(errno, EADDRINUSE);
    }
    ASSERT_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on), 0);
    ASSERT_EQ(rdma_bind_addr(id, any(a)), 0);
    a = loopback(ntohs(rdma_get_src_port(id)));
  }
  EXPECT_EQ(rdma_listen(ids[0], 0), 0);
  EXPECT_EQ(rdma_listen(ids[1], 0), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  for (rdma_cm_id* id : ids) EXPECT_EQ(rdma_destroy_id(id), 0);
}

TEST_F(CmTest, ConnectsFromTheAddressAndPortItIsBoundTo) {
  sockaddr_in from = loopback(0), to = loopback(ntohs(rdma_get_src_port(listener_)));
  from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 5);
  ASSERT_EQ(rdma_resolve_addr(client_, any(from), any(to), 1000), 0);
  pass(peers_, RDMA_CM_EVENT_ADDR_RESOLVED);
  const std::uint16_t port = rdma_get_src_port(client_);
  EXPECT_NE(port, 0);
  ASSERT_EQ(rdma_resolve_route(client_, 1000), 0);
  pass(peers_, RDMA_CM_EVENT_ROUTE_RESOLVED);
  auto attr = small_qp();
  ASSERT_EQ(rdma_create_qp(client_, nullptr, &attr), 0);
  rdma_conn_param p{};
  ASSERT_EQ(rdma_connect(client_, &p), 0);
  auto* request = next(channel_, RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request, nullptr);
  server_ = request->id;
  EXPECT_EQ(rdma_ack_cm_event(request), 0);
  sockaddr_in peer{};
  std::memcpy(&peer, rdma_get_peer_addr(server_), sizeof peer);
  EXPECT_EQ(peer.sin_addr.s_addr, from.sin_addr.s_addr);
  EXPECT_EQ(peer.sin_port, port);
  accept();
  EXPECT_EQ(rdma_get_src_port(client_), port);
}

TEST_F(CmTest, TheChosenPortIsShownAndARequestOutlivesItsListener) {
  connect();
  EXPECT_EQ(rdma_get_src_port(client_), rdma_get_dst_port(server_));
  EXPECT_NE(rdma_get_src_port(client_), 0);
  ASSERT_EQ(rdma_destroy_id(listener_), 0);
  ASSERT_EQ(rdma_create_id(channel_, &listener_, this, RDMA_PS_TCP), 0);
  accept();
}

TEST_F(CmTest, SynchronousEndpointsWaitForTheirEvents) {
  rdma_addrinfo hints{}, *passive = nullptr, *active = nullptr;
  hints.ai_port_space = RDMA_PS_TCP;
  hints.ai_flags = RAI_PASSIVE;
  ASSERT_EQ(rdma_getaddrinfo("127.0.0.1", "0", &hints, &passive), 0);
  rdma_cm_id *listen = nullptr, *client = nullptr;
  auto attr = small_qp();
  ASSERT_EQ(rdma_create_ep(&listen, passive, nullptr, &attr), 0);
  ASSERT_EQ(rdma_listen(listen, 1), 0);
  const std::string port = std::to_string(ntohs(rdma_get_src_port(listen)));
  std::thread server([&] {
    rdma_cm_id* id = nullptr;
    ASSERT_EQ(rdma_get_request(listen, &id), 0);
    ASSERT_NE(id->qp, nullptr);
    EXPECT_EQ(rdma_accept(id, nullptr), 0);
    EXPECT_EQ(rdma_disconnect(id), 0);
    rdma_destroy_ep(id);
  });
  hints.ai_flags = 0;
  ASSERT_EQ(rdma_getaddrinfo("127.0.0.1", port.c_str(), &hints, &active), 0);
  auto mine = small_qp();
  ASSERT_EQ(rdma_create_ep(&client, active, nullptr, &mine), 0);
  EXPECT_EQ(rdma_connect(client, nullptr), 0);
  EXPECT_EQ(rdma_disconnect(client), 0);
  server.join();
  rdma_destroy_ep(client);
  rdma_destroy_ep(listen);
  rdma_freeaddrinfo(passive);
  rdma_freeaddrinfo(active);
}

}  // namespace
