// The drop-in libibverbs over RoCE: the attributes of the device, queue pairs that programs connect
// by hand, datagrams. Both ends use one device, which sends to its own address.
#include <errno.h>
#include <poll.h>

#include <utility>

#include "dropin/roce_process.h"

namespace {

using roce::End;

class RoceVerbsTest : public roce::RoceTest {
 protected:
  void TearDown() override {
    a_.destroy();
    b_.destroy();
    RoceTest::TearDown();
  }
  void make(ibv_qp_type type) {
    a_.make(context_, pd_, type);
    b_.make(context_, pd_, type);
  }
  void connect(ibv_qp_type type) {
    make(type);
    a_.connect(gid_, b_.qp->qp_num);
    b_.connect(gid_, a_.qp->qp_num);
  }
  ibv_send_wr to_peer(std::uint64_t id, ibv_wr_opcode opcode, ibv_sge* sge) {
    ibv_send_wr wr = a_.request(id, opcode, sge);
    wr.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(b_.memory) + 64;
    wr.wr.rdma.rkey = b_.mr->rkey;
    return wr;
  }
  // The next asynchronous event.
  ibv_event_type next_event() const {
    pollfd p{context_->async_fd, POLLIN, 0};
    ibv_async_event e{};
    if (poll(&p, 1, urnic::test::kSoonMs) != 1 || ibv_get_async_event(context_, &e) != 0) {
      ADD_FAILURE() << "no event";
      return IBV_EVENT_DEVICE_FATAL;
    }
    ibv_ack_async_event(&e);
    return e.event_type;
  }
  bool is_silent(int ms) const {
    pollfd p{context_->async_fd, POLLIN, 0};
    return poll(&p, 1, ms) == 0;
  }

  End a_, b_;
};

// proves: DI-20
TEST_F(RoceVerbsTest, TheDeviceIsAnInfiniBandAdapterOnEthernet) {
  if (!within()) return;
  EXPECT_EQ(list_[0]->node_type, IBV_NODE_CA);
  EXPECT_EQ(list_[0]->transport_type, IBV_TRANSPORT_IB);
  ibv_device_attr d;
  ASSERT_EQ(ibv_query_device(context_, &d), 0);
  EXPECT_EQ(d.max_qp_rd_atom, 16);
  EXPECT_EQ(d.max_qp_init_rd_atom, 16);
  EXPECT_EQ(d.max_ah, 1 << 20);
  EXPECT_NE(d.device_cap_flags & IBV_DEVICE_RC_RNR_NAK_GEN, 0u);
  EXPECT_EQ(d.atomic_cap, IBV_ATOMIC_GLOB);
  EXPECT_EQ(d.max_pkeys, 1);
  ibv_port_attr port;
  ASSERT_EQ(ibv_query_port(context_, 1, &port), 0);
  EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_EQ(port.active_mtu, IBV_MTU_4096);  // for an IP MTU of 5000
  EXPECT_EQ(port.max_msg_sz, 1u << 31);
  EXPECT_EQ(port.flags, IBV_QPF_GRH_REQUIRED);
  __be16 pkey = 0;
  ASSERT_EQ(ibv_query_pkey(context_, 1, 0, &pkey), 0);
  EXPECT_EQ(pkey, 0xffff);
}

// proves: DI-20
TEST_F(RoceVerbsTest, ItsGidsAreItsAddressesInRoCEv2Form) {
  if (!within()) return;
  ibv_port_attr port;
  ASSERT_EQ(ibv_query_port(context_, 1, &port), 0);
  ASSERT_EQ(port.gid_tbl_len, 1);
  ibv_gid_entry entry;
  ASSERT_EQ(ibv_query_gid_ex(context_, 1, 0, &entry, 0), 0);
  EXPECT_EQ(entry.gid_type, static_cast<std::uint32_t>(IBV_GID_TYPE_ROCE_V2));
  std::uint8_t mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  ASSERT_EQ(inet_pton(AF_INET, roce::address().c_str(), mapped + 12), 1);
  EXPECT_EQ(std::memcmp(entry.gid.raw, mapped, 16), 0);
  EXPECT_EQ(ibv_query_gid_ex(context_, 1, 1, &entry, 0), EINVAL);
}

// proves: DI-21
TEST_F(RoceVerbsTest, AReliableConnectionMadeByHandCarriesEveryOperation) {
  if (!within()) return;
  connect(IBV_QPT_RC);
  std::strcpy(a_.memory, "sent");
  ibv_sge sge;
  ASSERT_EQ(b_.receive(1), 0);
  ibv_send_wr wr = a_.request(2, IBV_WR_SEND_WITH_IMM, &sge);
  wr.imm_data = htobe32(0x89abcdef);
  ASSERT_EQ(a_.post(wr), 0);
  EXPECT_EQ(a_.next().status, IBV_WC_SUCCESS);
  ibv_wc wc = b_.next();
  EXPECT_EQ(wc.opcode, IBV_WC_RECV);
  EXPECT_EQ(wc.byte_len, 16u);
  EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_EQ(wc.imm_data, htobe32(0x89abcdef));
  EXPECT_STREQ(b_.memory + 128, "sent");

  std::strcpy(a_.memory, "written");
  ASSERT_EQ(b_.receive(3), 0);
  wr = to_peer(4, IBV_WR_RDMA_WRITE_WITH_IMM, &sge);
  wr.imm_data = htobe32(0xffffffff);
  ASSERT_EQ(a_.post(wr), 0);
  EXPECT_EQ(a_.next().opcode, IBV_WC_RDMA_WRITE);
  wc = b_.next();
  EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(wc.byte_len, 16u);
  EXPECT_EQ(wc.imm_data, htobe32(0xffffffff));
  EXPECT_STREQ(b_.memory + 64, "written");

  std::memset(a_.memory, 0, 16);
  ASSERT_EQ(a_.post(to_peer(5, IBV_WR_RDMA_READ, &sge)), 0);
  EXPECT_EQ(a_.next().opcode, IBV_WC_RDMA_READ);
  EXPECT_STREQ(a_.memory, "written");

  wr = to_peer(6, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge);
  sge.length = 8;
  wr.wr.atomic = {reinterpret_cast<std::uint64_t>(b_.memory) + 64, 1, 0, b_.mr->rkey};
  ASSERT_EQ(a_.post(wr), 0);
  EXPECT_EQ(a_.next().status, IBV_WC_SUCCESS);
  EXPECT_STREQ(b_.memory + 64, "xritten");
}

// proves: DI-21
TEST_F(RoceVerbsTest, QueryQpReturnsTheAttributesThatWereSet) {
  if (!within()) return;
  connect(IBV_QPT_RC);
  const ibv_qp_attr a = a_.query();
  EXPECT_EQ(a.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(a.path_mtu, IBV_MTU_1024);
  EXPECT_EQ(a.dest_qp_num, b_.qp->qp_num);
  EXPECT_EQ(a.rq_psn, 0xfffff0u);
  EXPECT_EQ(a.sq_psn, 0xfffff0u);
  EXPECT_EQ(a.max_dest_rd_atomic, 4);
  EXPECT_EQ(a.max_rd_atomic, 3);
  EXPECT_EQ(a.min_rnr_timer, 12);
  EXPECT_EQ(a.timeout, 14);
  EXPECT_EQ(a.retry_cnt, 6);
  EXPECT_EQ(a.rnr_retry, 5);
  EXPECT_EQ(std::memcmp(a.ah_attr.grh.dgid.raw, gid_.raw, 16), 0);
  ibv_qp_attr reset{};
  ASSERT_EQ(ibv_modify_qp(a_.qp, &reset, IBV_QP_STATE), 0);
  EXPECT_EQ(a_.query().qp_state, IBV_QPS_RESET);
  EXPECT_EQ(a_.query().dest_qp_num, 0u);
}

// proves: DI-21
TEST_F(RoceVerbsTest, AMoveTakesExactlyItsAttributes) {
  if (!within()) return;
  make(IBV_QPT_RC);
  ibv_qp_attr init{};
  init.qp_state = IBV_QPS_INIT;
  init.port_num = 1;
  for (const int lacking : {IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_ACCESS_FLAGS}) {
    const int mask =
        (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) & ~lacking;
    EXPECT_EQ(ibv_modify_qp(a_.qp, &init, mask), EINVAL) << lacking;
  }
  ASSERT_EQ(a_.init(), 0);
  const ibv_qp_attr whole = End::rtr(gid_, b_.qp->qp_num);
  const auto rtr = [&](int mask, auto&& change) {
    ibv_qp_attr a = whole;
    change(&a);
    return ibv_modify_qp(a_.qp, &a, mask);
  };
  const auto as_it_is = [](ibv_qp_attr*) {};
  for (const int lacking : {IBV_QP_AV, IBV_QP_PATH_MTU, IBV_QP_DEST_QPN, IBV_QP_RQ_PSN,
                            IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_MIN_RNR_TIMER}) {
    EXPECT_EQ(rtr(End::kRcRtr & ~lacking, as_it_is), EINVAL) << lacking;
  }
  for (const int foreign : {IBV_QP_SQ_PSN, IBV_QP_QKEY, IBV_QP_CUR_STATE, IBV_QP_RATE_LIMIT,
                            IBV_QP_EN_SQD_ASYNC_NOTIFY}) {
    EXPECT_EQ(rtr(End::kRcRtr | foreign, as_it_is), EINVAL) << foreign;
  }
  EXPECT_EQ(rtr(End::kRcRtr | IBV_QP_ALT_PATH, as_it_is), EOPNOTSUPP);
  EXPECT_EQ(rtr(End::kRcRtr, [](auto* a) { a->path_mtu = static_cast<ibv_mtu>(6); }), EINVAL);
  EXPECT_EQ(rtr(End::kRcRtr, [](auto* a) { a->max_dest_rd_atomic = 17; }), EINVAL);
  EXPECT_EQ(rtr(End::kRcRtr, [](auto* a) { a->dest_qp_num = 1 << 24; }), EINVAL);
  EXPECT_EQ(rtr(End::kRcRtr, [](auto* a) { a->ah_attr.is_global = 0; }), EINVAL);
  EXPECT_EQ(rtr(End::kRcRtr, [](auto* a) { a->ah_attr.port_num = 2; }), EINVAL);
  EXPECT_EQ(rtr(End::kRcRtr, [](auto* a) { a->ah_attr.grh.sgid_index = 1; }), EINVAL);
  EXPECT_EQ(rtr(End::kRcRtr, [](auto* a) { a->ah_attr.grh.dgid = {}; }), EINVAL);
  EXPECT_EQ(a_.query().qp_state, IBV_QPS_INIT);
  EXPECT_EQ(a_.query().dest_qp_num, 0u);
  ASSERT_EQ(rtr(End::kRcRtr, as_it_is), 0);
  ibv_qp_attr rts = End::rts();
  rts.cur_qp_state = IBV_QPS_INIT;
  EXPECT_EQ(ibv_modify_qp(a_.qp, &rts, End::kRcRts | IBV_QP_CUR_STATE), EINVAL);
  rts.cur_qp_state = IBV_QPS_RTR;
  EXPECT_EQ(ibv_modify_qp(a_.qp, &rts, End::kRcRts | IBV_QP_CUR_STATE), 0);
}

// proves: DI-21
TEST_F(RoceVerbsTest, APacketSequenceNumberHas24Bits) {
  if (!within()) return;
  make(IBV_QPT_RC);
  for (const auto& [end, number] : {std::pair{&a_, b_.qp->qp_num}, {&b_, a_.qp->qp_num}}) {
    ASSERT_EQ(end->init(), 0);
    ibv_qp_attr rtr = End::rtr(gid_, number), rts = End::rts();
    rtr.rq_psn |= 0xab000000;
    rts.sq_psn |= 0xcd000000;
    ASSERT_EQ(ibv_modify_qp(end->qp, &rtr, End::kRcRtr), 0);
    ASSERT_EQ(ibv_modify_qp(end->qp, &rts, End::kRcRts), 0);
  }
  ibv_sge sge;
  ASSERT_EQ(b_.receive(1), 0);
  ASSERT_EQ(a_.post(a_.request(2, IBV_WR_SEND, &sge)), 0);
  EXPECT_EQ(a_.next().status, IBV_WC_SUCCESS);
  EXPECT_EQ(b_.next().status, IBV_WC_SUCCESS);
}

// proves: DI-21
TEST_F(RoceVerbsTest, TheDrainedEventArrivesOnlyIfRequested) {
  if (!within()) return;
  connect(IBV_QPT_RC);
  for (const bool asked : {true, false}) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_SQD;
    a.en_sqd_async_notify = asked ? 1 : 0;
    ASSERT_EQ(ibv_modify_qp(a_.qp, &a, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
    if (asked) {
      EXPECT_EQ(next_event(), IBV_EVENT_SQ_DRAINED);
    }
    EXPECT_TRUE(urnic::test::soon([this] { return a_.query().sq_draining == 0; }));
    EXPECT_EQ(a_.query().qp_state, IBV_QPS_SQD);
    EXPECT_TRUE(is_silent(20));
    a.qp_state = IBV_QPS_RTS;
    ASSERT_EQ(ibv_modify_qp(a_.qp, &a, IBV_QP_STATE), 0);
  }
}

// proves: DI-21
TEST_F(RoceVerbsTest, ASilentPeerExceedsTheRetries) {
  if (!within()) return;
  make(IBV_QPT_RC);
  ASSERT_EQ(a_.init(), 0);
  ASSERT_EQ(a_.to_rtr(gid_, b_.qp->qp_num), 0);  // b_ stays in RESET
  ibv_qp_attr rts = End::rts();
  rts.timeout = 1;
  rts.retry_cnt = 1;
  ASSERT_EQ(ibv_modify_qp(a_.qp, &rts, End::kRcRts), 0);
  ibv_sge sge;
  ASSERT_EQ(a_.post(a_.request(1, IBV_WR_SEND, &sge)), 0);
  ASSERT_EQ(a_.post(a_.request(2, IBV_WR_SEND, &sge)), 0);
  EXPECT_EQ(a_.next().status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(a_.next().status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(a_.query().qp_state, IBV_QPS_ERR);
}

// proves: DI-22
TEST_F(RoceVerbsTest, AnUnreliableConnectionOnlySendsAndWrites) {
  if (!within()) return;
  connect(IBV_QPT_UC);
  std::strcpy(a_.memory, "unsure");
  ibv_sge sge;
  ASSERT_EQ(b_.receive(1), 0);
  ASSERT_EQ(a_.post(a_.request(2, IBV_WR_SEND, &sge)), 0);
  EXPECT_EQ(a_.next().status, IBV_WC_SUCCESS);
  EXPECT_EQ(b_.next().byte_len, 16u);
  EXPECT_STREQ(b_.memory + 128, "unsure");
  ASSERT_EQ(b_.receive(3), 0);
  ibv_send_wr wr = to_peer(4, IBV_WR_RDMA_WRITE_WITH_IMM, &sge);
  wr.imm_data = htobe32(7);
  ASSERT_EQ(a_.post(wr), 0);
  EXPECT_EQ(a_.next().status, IBV_WC_SUCCESS);
  const ibv_wc wc = b_.next();
  EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(wc.imm_data, htobe32(7));
  EXPECT_STREQ(b_.memory + 64, "unsure");
  EXPECT_EQ(a_.post(to_peer(5, IBV_WR_RDMA_READ, &sge)), EINVAL);
  EXPECT_EQ(a_.post(to_peer(6, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge)), EINVAL);
}

// proves: DI-22
TEST_F(RoceVerbsTest, ADatagramNamesItsSenderAndCanBeAnswered) {
  if (!within()) return;
  connect(IBV_QPT_UD);
  ibv_ah_attr way = End::way(gid_);
  ibv_ah* ah = ibv_create_ah(pd_, &way);
  ASSERT_NE(ah, nullptr);
  EXPECT_EQ(ah->context, context_);
  EXPECT_EQ(ibv_dealloc_pd(pd_), EBUSY);
  std::strcpy(a_.memory, "to whom it may concern");
  ibv_sge sge;
  ASSERT_EQ(b_.receive(1), 0);
  ibv_send_wr wr = a_.request(2, IBV_WR_SEND_WITH_IMM, &sge, 32);
  EXPECT_EQ(a_.post(wr), EINVAL);  // without a destination
  wr.wr.ud = {ah, b_.qp->qp_num, End::kQkey};
  wr.imm_data = htobe32(9);
  ASSERT_EQ(a_.post(wr), 0);
  EXPECT_EQ(a_.next().status, IBV_WC_SUCCESS);
  ibv_wc wc = b_.next();
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.byte_len, 40u + 32);
  EXPECT_EQ(wc.src_qp, a_.qp->qp_num);
  EXPECT_EQ(wc.wc_flags, static_cast<unsigned>(IBV_WC_GRH | IBV_WC_WITH_IMM));
  EXPECT_EQ(wc.sl, 8 | 2);  // UDP over IPv4: UCX drops datagrams without it
  EXPECT_STREQ(b_.memory + 128 + 40, "to whom it may concern");

  // Sends an answer with the header in front of the datagram.
  auto* grh = reinterpret_cast<ibv_grh*>(b_.memory + 128);
  ibv_ah_attr back;
  ASSERT_EQ(ibv_init_ah_from_wc(context_, 1, &wc, grh, &back), 0);
  EXPECT_EQ(back.is_global, 1);
  EXPECT_EQ(back.grh.sgid_index, 0);
  EXPECT_EQ(std::memcmp(back.grh.dgid.raw, gid_.raw, 16), 0);
  ibv_ah* answer = ibv_create_ah_from_wc(pd_, &wc, grh, 1);
  ASSERT_NE(answer, nullptr);
  ASSERT_EQ(a_.receive(3), 0);
  wr = b_.request(4, IBV_WR_SEND, &sge, 8);
  wr.wr.ud = {answer, wc.src_qp, End::kQkey};
  ASSERT_EQ(b_.post(wr), 0);
  EXPECT_EQ(b_.next().status, IBV_WC_SUCCESS);
  EXPECT_EQ(a_.next().src_qp, b_.qp->qp_num);
  EXPECT_EQ(ibv_destroy_ah(ah), 0);
  EXPECT_EQ(ibv_destroy_ah(answer), 0);
}

// A received datagram has its IPv4 header in the second half of the 40 bytes.
// proves: DI-22
TEST_F(RoceVerbsTest, ADatagramLeavesAsItsAddressHandleSays) {
  if (!within()) return;
  connect(IBV_QPT_UD);
  const struct { std::uint8_t said, on_the_wire; } hops[] = {{0, 64}, {1, 64}, {2, 2}, {255, 255}};
  for (const auto& h : hops) {
    ibv_ah_attr way = End::way(gid_);
    way.grh.traffic_class = 0x60;
    way.grh.hop_limit = h.said;
    ibv_ah* ah = ibv_create_ah(pd_, &way);
    ASSERT_NE(ah, nullptr);
    ASSERT_EQ(b_.receive(1), 0);
    ibv_sge sge;
    ibv_send_wr wr = a_.request(2, IBV_WR_SEND, &sge, 8);
    wr.wr.ud = {ah, b_.qp->qp_num, End::kQkey};
    ASSERT_EQ(a_.post(wr), 0);
    EXPECT_EQ(a_.next().status, IBV_WC_SUCCESS);
    const ibv_wc wc = b_.next();
    const auto* const ip = reinterpret_cast<const std::uint8_t*>(b_.memory) + 128 + 20;
    EXPECT_EQ(ip[1], 0x60);
    EXPECT_EQ(ip[8], h.on_the_wire) << "hop_limit " << int{h.said};
    ibv_ah_attr back;
    auto* const grh = reinterpret_cast<ibv_grh*>(b_.memory + 128);
    ASSERT_EQ(ibv_init_ah_from_wc(context_, 1, const_cast<ibv_wc*>(&wc), grh, &back), 0);
    EXPECT_EQ(back.grh.traffic_class, 0x60);
    EXPECT_EQ(ibv_destroy_ah(ah), 0);
  }
}

// proves: DI-22
TEST_F(RoceVerbsTest, AddressHandlesNeedAValidPathOrHeader) {
  if (!within()) return;
  const auto refused = [&](auto&& change) {
    ibv_ah_attr way = End::way(gid_);
    change(&way);
    errno = 0;
    EXPECT_EQ(ibv_create_ah(pd_, &way), nullptr);
    return errno;
  };
  EXPECT_EQ(refused([](auto* a) { a->is_global = 0; }), EINVAL);
  EXPECT_EQ(refused([](auto* a) { a->port_num = 0; }), EINVAL);
  EXPECT_EQ(refused([](auto* a) { a->grh.sgid_index = 9; }), EINVAL);
  EXPECT_EQ(refused([](auto* a) { a->grh.dgid = {}; }), EINVAL);
  ibv_wc wc{};
  ibv_grh grh{};
  ibv_ah_attr attr;
  const auto no_way_back = [&] {
    errno = 0;
    EXPECT_EQ(ibv_init_ah_from_wc(context_, 1, &wc, &grh, &attr), -1);
    return errno;
  };
  EXPECT_EQ(no_way_back(), EINVAL);  // no header
  wc.wc_flags = IBV_WC_GRH;
  EXPECT_EQ(no_way_back(), EPROTONOSUPPORT);  // neither version of IP
  grh.version_tclass_flow = htobe32(6u << 28 | 5u << 20 | 0x12345);
  grh.dgid = gid_;
  grh.sgid.raw[15] = 0xee;
  ASSERT_EQ(ibv_init_ah_from_wc(context_, 1, &wc, &grh, &attr), 0);
  EXPECT_EQ(attr.grh.traffic_class, 5);
  EXPECT_EQ(attr.grh.flow_label, 0x12345u);
  EXPECT_EQ(attr.grh.dgid.raw[15], 0xee);
  grh.dgid.raw[0] = 0xfd;  // not a local address
  EXPECT_EQ(no_way_back(), EINVAL);
}

// proves: DI-22
TEST_F(RoceVerbsTest, TheCallsOfAQueuePairFitItsService) {
  if (!within()) return;
  a_.make(context_, pd_, IBV_QPT_RC);
  ibv_qp_init_attr_ex ex{};
  ex.send_cq = ex.recv_cq = a_.cq;
  ex.pd = pd_;
  ex.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  ex.cap.max_send_wr = ex.cap.max_recv_wr = ex.cap.max_send_sge = ex.cap.max_recv_sge = 1;
  const auto refused = [&](ibv_qp_type type, std::uint64_t operations) {
    ex.qp_type = type;
    ex.send_ops_flags = operations;
    ibv_qp* qp = ibv_create_qp_ex(context_, &ex);
    if (qp == nullptr) return errno;
    ibv_destroy_qp(qp);
    return 0;
  };
  EXPECT_EQ(refused(IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM), 0);
  EXPECT_EQ(refused(IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE), EOPNOTSUPP);
  EXPECT_EQ(refused(IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND), 0);
  EXPECT_EQ(refused(IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ), EOPNOTSUPP);
  EXPECT_EQ(refused(IBV_QPT_RC, IBV_QP_EX_WITH_RDMA_READ), 0);
  EXPECT_EQ(refused(IBV_QPT_RAW_PACKET, 0), EOPNOTSUPP);
}

// proves: DI-22
TEST_F(RoceVerbsTest, ADatagramBuiltCallByCallReachesItsDestination) {
  if (!within()) return;
  b_.make(context_, pd_, IBV_QPT_UD);
  a_.make(context_, pd_, IBV_QPT_UD);
  EXPECT_EQ(ibv_destroy_qp(a_.qp), 0);
  ibv_qp_init_attr_ex ex{};
  ex.send_cq = ex.recv_cq = a_.cq;
  ex.pd = pd_;
  ex.qp_type = IBV_QPT_UD;
  ex.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  ex.send_ops_flags = IBV_QP_EX_WITH_SEND;
  ex.cap.max_send_wr = ex.cap.max_recv_wr = ex.cap.max_send_sge = ex.cap.max_recv_sge = 1;
  a_.qp = ibv_create_qp_ex(context_, &ex);
  ASSERT_NE(a_.qp, nullptr);
  a_.connect(gid_, 0);
  b_.connect(gid_, 0);
  ibv_ah_attr way = End::way(gid_);
  ibv_ah* ah = ibv_create_ah(pd_, &way);
  ASSERT_NE(ah, nullptr);
  ASSERT_EQ(b_.receive(1), 0);
  ibv_qp_ex* calls = ibv_qp_to_qp_ex(a_.qp);
  ASSERT_NE(calls, nullptr);
  std::strcpy(a_.memory, "built");
  ibv_wr_start(calls);
  calls->wr_id = 5;
  calls->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(calls);
  ibv_wr_set_ud_addr(calls, ah, b_.qp->qp_num, End::kQkey);
  ibv_wr_set_sge(calls, a_.mr->lkey, reinterpret_cast<std::uint64_t>(a_.memory), 8);
  ASSERT_EQ(ibv_wr_complete(calls), 0);
  EXPECT_EQ(a_.next().wr_id, 5u);
  EXPECT_EQ(b_.next().byte_len, 48u);
  EXPECT_STREQ(b_.memory + 128 + 40, "built");
  EXPECT_EQ(ibv_destroy_ah(ah), 0);
}

// A configuration file that serves other programs too: the identity of the device is set
// separately.
class RoceBesideIwarpTest : public roce::RoceTest {
 protected:
  void prepare() override {
    setenv("URNIC_TRANSPORT", "both", 1);
    setenv("URNIC_IDENTITY", "roce", 1);
    setenv("URNIC_PORT", "mem:name=beside,mtu=9000", 1);
  }
};

// proves: DI-20
TEST_F(RoceBesideIwarpTest, WithBothTransportsTheIdentityDecides) {
  if (!within()) return;
  EXPECT_EQ(list_[0]->transport_type, IBV_TRANSPORT_IB);
  End end;
  end.make(context_, pd_, IBV_QPT_UD);  // iWARP does not have it
  end.destroy();
}

}  // namespace
