// Operations other than Send, Write and Read over a connection of rdma_cm: Send with Invalidate,
// Immediate Data, atomics.
#include <cstring>

#include "dropin/cm_data.h"

namespace cm {
namespace {

// proves: DI-5
TEST_F(CmDataTest, SendWithInvalidateReportsAndInvalidatesTheKey) {
  connect();
  char lent[64] = "lent", back[64] = {};
  ibv_mr* region =
      ibv_reg_mr(server_->pd, lent, sizeof lent, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
  ibv_mw* mw = ibv_alloc_mw(server_->pd, IBV_MW_TYPE_2);
  ibv_mr* sink = rdma_reg_msgs(client_, back, sizeof back);
  ASSERT_TRUE(region != nullptr && mw != nullptr && sink != nullptr);
  accept();
  ibv_recv_wr receive{}, *bad_receive = nullptr;
  ASSERT_EQ(ibv_post_recv(server_->qp, &receive, &bad_receive), 0);
  const auto at = reinterpret_cast<std::uint64_t>(lent);
  const std::uint32_t key = ibv_inc_rkey(mw->rkey);
  ibv_send_wr bind{}, *bad = nullptr;
  bind.opcode = IBV_WR_BIND_MW;
  bind.send_flags = IBV_SEND_SIGNALED;
  bind.bind_mw = {mw, key, {region, at, sizeof lent, IBV_ACCESS_REMOTE_READ}};
  ASSERT_EQ(ibv_post_send(server_->qp, &bind, &bad), 0);
  EXPECT_EQ(wait_for(server_->send_cq).status, IBV_WC_SUCCESS);
  const auto read = [&] {
    EXPECT_EQ(rdma_post_read(client_, back, back, 5, sink, IBV_SEND_SIGNALED, at, key), 0);
    return wait_for(client_->send_cq).status;
  };
  EXPECT_EQ(read(), IBV_WC_SUCCESS);
  ibv_send_wr send{};
  send.opcode = IBV_WR_SEND_WITH_INV;
  send.send_flags = IBV_SEND_SIGNALED;
  send.invalidate_rkey = key;
  ASSERT_EQ(ibv_post_send(client_->qp, &send, &bad), 0);
  EXPECT_EQ(wait_for(client_->send_cq).opcode, IBV_WC_SEND);
  const ibv_wc got = wait_for(server_->recv_cq);
  EXPECT_EQ(got.status, IBV_WC_SUCCESS);
  EXPECT_EQ(got.opcode, IBV_WC_RECV);
  EXPECT_EQ(got.wc_flags, static_cast<unsigned>(IBV_WC_WITH_INV));
  EXPECT_EQ(got.invalidated_rkey, key);
  EXPECT_EQ(read(), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  for (ibv_mr* mr : {region, sink}) EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

// proves: DI-5
TEST_F(CmDataTest, ImmediateDataArrivesWithWritesAndSends) {
  connect();
  char from[64] = "with four bytes more", into[64] = {}, target[64] = {};
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

// proves: DI-5
TEST_F(CmDataTest, AtomicsReturnTheOldValue) {
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

TEST_F(CmDataTest, AtomicsCanBeBuiltCallByCall) {
  connect_built(IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD);
  alignas(8) std::uint64_t word = 5, got[2] = {};
  ibv_mr* into = rdma_reg_msgs(client_, got, sizeof got);
  ibv_mr* target = ibv_reg_mr(client_->pd, &word, sizeof word,
                              IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
  ASSERT_TRUE(into != nullptr && target != nullptr);
  accept();
  const auto at = reinterpret_cast<std::uint64_t>(&word);
  const auto to = reinterpret_cast<std::uint64_t>(got);
  ibv_wr_start(ex_);
  ex_->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_atomic_fetch_add(ex_, target->rkey, at, 3);
  ibv_wr_set_sge(ex_, into->lkey, to, 8);
  ibv_wr_atomic_cmp_swp(ex_, target->rkey, at, 8, 21);
  ibv_wr_set_sge(ex_, into->lkey, to + 8, 8);
  ASSERT_EQ(ibv_wr_complete(ex_), 0);
  for (const ibv_wc_opcode op : {IBV_WC_FETCH_ADD, IBV_WC_COMP_SWAP}) {
    const ibv_wc wc = wait_for(ibv_cq_ex_to_cq(cq_));
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, op);
  }
  EXPECT_EQ(got[0], 5u);
  EXPECT_EQ(got[1], 8u);
  EXPECT_EQ(word, 21u);
  for (ibv_mr* mr : {into, target}) EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

// If accept failed here, a target that serves many clients would end, as tgt does.
// proves: DI-8
TEST_F(CmTest, AcceptingAPeerThatHasGoneFailsWithAnEvent) {
  connect();
  auto attr = small_qp();
  ASSERT_EQ(rdma_create_qp(server_, nullptr, &attr), 0);
  char into[8] = {};
  ibv_mr* mr = rdma_reg_msgs(server_, into, sizeof into);
  ASSERT_EQ(rdma_post_recv(server_, into, into, sizeof into, mr), 0);
  rdma_destroy_qp(client_);
  EXPECT_EQ(rdma_destroy_id(client_), 0);
  ASSERT_EQ(rdma_create_id(peers_, &client_, this, RDMA_PS_TCP), 0);
  usleep(200'000);  // usually known by then; the result is the same
  EXPECT_EQ(rdma_accept(server_, nullptr), 0);
  pass(channel_, RDMA_CM_EVENT_CONNECT_ERROR);
  const ibv_wc wc = wait_for(server_->recv_cq);
  EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(rdma_dereg_mr(mr), 0);
}

}  // namespace
}  // namespace cm
