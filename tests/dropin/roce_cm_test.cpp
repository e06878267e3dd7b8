// The drop-in librdmacm over RoCE. Both ends use one device, which sends to its own address.
#include <errno.h>

#include <chrono>

#include "dropin/roce_ids.h"
#include "support/quiet_fork.h"

namespace {

using cm::any;
using cm::next;
using cm::pass;
using roce::at;
using roce::padded;

constexpr std::uint8_t kRequestBytes = 56, kReplyBytes = 196, kRefusalBytes = 148;

std::string data_of(const rdma_cm_event& e) {
  return {static_cast<const char*>(e.param.conn.private_data), e.param.conn.private_data_len};
}

class RoceCmTest : public roce::RoceIdsTest {
 protected:
  RoceCmTest() : RoceIdsTest(RDMA_PS_TCP) {}
  void listen() const { ASSERT_EQ(rdma_listen(listener_, 1), 0); }
  void resolve() { RoceIdsTest::resolve(port()); }
  // The listener listens, and the client has its path and its queue pair.
  void ready() {
    listen();
    resolve();
    auto attr = cm::small_qp();
    ASSERT_EQ(rdma_create_qp(client_, nullptr, &attr), 0);
  }
  static rdma_conn_param saying(const char* text) {
    rdma_conn_param p{};
    p.private_data = text;
    p.private_data_len = static_cast<std::uint8_t>(std::strlen(text));
    p.responder_resources = 4;
    p.initiator_depth = 5;
    p.retry_count = 6;
    p.rnr_retry_count = 7;
    return p;
  }
  void request(rdma_conn_param p = saying("hello")) {
    ASSERT_EQ(rdma_connect(client_, &p), 0);
    auto* e = next(listeners_, RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(e, nullptr);
    server_ = e->id;
    EXPECT_EQ(data_of(*e), padded("hello", kRequestBytes));
    EXPECT_EQ(rdma_ack_cm_event(e), 0);
  }
  // The client's event is not fetched yet.
  void accept() {
    auto attr = cm::small_qp();
    ASSERT_EQ(rdma_create_qp(server_, nullptr, &attr), 0);
    rdma_conn_param p = saying("welcome");
    ASSERT_EQ(rdma_accept(server_, &p), 0);
    pass(listeners_, RDMA_CM_EVENT_ESTABLISHED);
  }
  void connect() {
    ready();
    request();
    accept();
    auto* e = next(clients_, RDMA_CM_EVENT_ESTABLISHED);
    ASSERT_NE(e, nullptr);
    EXPECT_EQ(data_of(*e), padded("welcome", kReplyBytes));
    EXPECT_EQ(rdma_ack_cm_event(e), 0);
  }
};

// proves: DI-23
TEST_F(RoceCmTest, TwoEndsConnectAndDisconnect) {
  if (!within()) return;
  connect();
  EXPECT_EQ(client_->qp->state, IBV_QPS_RTS);
  const auto& ways = client_->route.addr.addr.ibaddr;
  EXPECT_EQ(std::memcmp(ways.sgid.raw, gid_.raw, 16), 0);
  EXPECT_EQ(std::memcmp(ways.dgid.raw, gid_.raw, 16), 0);
  EXPECT_EQ(ways.pkey, 0xffff);
  char from[64] = "over rdma_cm", into[64] = {};
  ibv_mr* out = rdma_reg_msgs(client_, from, sizeof from);
  ibv_mr* in = ibv_reg_mr(server_->pd, into, sizeof into, roce::End::kRights);
  ASSERT_EQ(rdma_post_recv(server_, nullptr, into, 32, in), 0);
  ASSERT_EQ(rdma_post_send(client_, nullptr, from, 32, out, IBV_SEND_SIGNALED), 0);
  EXPECT_EQ(cm::wait_for(client_->send_cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(cm::wait_for(server_->recv_cq).byte_len, 32u);
  EXPECT_STREQ(into, "over rdma_cm");
  // The peer may write, read and use atomics without having set any rights.
  std::strcpy(into + 32, "read");
  ASSERT_EQ(rdma_post_read(client_, nullptr, from, 8, out, IBV_SEND_SIGNALED,
                           reinterpret_cast<std::uint64_t>(into + 32), in->rkey),
            0);
  EXPECT_EQ(cm::wait_for(client_->send_cq).status, IBV_WC_SUCCESS);
  EXPECT_STREQ(from, "read");
  ASSERT_EQ(rdma_post_write(client_, nullptr, from, 8, out, IBV_SEND_SIGNALED,
                            reinterpret_cast<std::uint64_t>(into + 48), in->rkey),
            0);
  EXPECT_EQ(cm::wait_for(client_->send_cq).status, IBV_WC_SUCCESS);
  EXPECT_STREQ(into + 48, "read");
  ASSERT_EQ(rdma_disconnect(client_), 0);
  pass(clients_, RDMA_CM_EVENT_DISCONNECTED);
  pass(listeners_, RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(rdma_disconnect(server_), 0);
  EXPECT_TRUE(cm::silent(listeners_, 50));
  EXPECT_EQ(ibv_dereg_mr(out), 0);
  EXPECT_EQ(ibv_dereg_mr(in), 0);
}

// Some programs destroy their queues first.
TEST_F(RoceCmTest, AnIdWithoutItsQueuePairIsStillDisconnected) {
  if (!within()) return;
  connect();
  rdma_destroy_qp(client_);
  pass(clients_, RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(rdma_disconnect(client_), 0);
  pass(listeners_, RDMA_CM_EVENT_DISCONNECTED);
  rdma_destroy_qp(server_);
  EXPECT_EQ(rdma_disconnect(server_), 0);
}

// A target releases its connections on this event.
// proves: DI-23
TEST_F(RoceCmTest, BothEndsGetTimewaitExit) {
  if (!within()) return;
  connect();
  ASSERT_EQ(rdma_disconnect(client_), 0);
  pass(clients_, RDMA_CM_EVENT_DISCONNECTED);
  pass(listeners_, RDMA_CM_EVENT_DISCONNECTED);
  pass(clients_, RDMA_CM_EVENT_TIMEWAIT_EXIT);
  pass(listeners_, RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

// proves: DI-23
TEST_F(RoceCmTest, ARejectionCarriesItsReasonAlsoWithoutAListener) {
  if (!within()) return;
  ready();
  request();
  ASSERT_EQ(rdma_reject(server_, "no", 2), 0);
  auto* e = next(clients_, RDMA_CM_EVENT_REJECTED);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->status, 28) << "the reason of the REJ";
  EXPECT_EQ(data_of(*e), padded("no", kRefusalBytes));
  EXPECT_EQ(rdma_ack_cm_event(e), 0);

  rdma_destroy_qp(client_);
  EXPECT_EQ(rdma_destroy_id(client_), 0);
  ASSERT_EQ(rdma_create_id(clients_, &client_, nullptr, RDMA_PS_TCP), 0);
  sockaddr_in nobody = at(9);
  ASSERT_EQ(rdma_resolve_addr(client_, nullptr, any(nobody), 1000), 0);
  pass(clients_, RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_EQ(rdma_resolve_route(client_, 1000), 0);
  pass(clients_, RDMA_CM_EVENT_ROUTE_RESOLVED);
  auto attr = cm::small_qp();
  ASSERT_EQ(rdma_create_qp(client_, nullptr, &attr), 0);
  rdma_conn_param p = saying("hello");
  ASSERT_EQ(rdma_connect(client_, &p), 0);
  e = next(clients_, RDMA_CM_EVENT_REJECTED);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->status, 8) << "the reason of the REJ";
  EXPECT_EQ(rdma_ack_cm_event(e), 0);
}

// proves: DI-23
TEST_F(RoceCmTest, UnsupportedConnectionParametersAreRefused) {
  if (!within()) return;
  listen();
  resolve();
  for (const ibv_qp_type type : {IBV_QPT_UC, IBV_QPT_UD}) {
    auto attr = cm::small_qp();
    attr.qp_type = type;
    EXPECT_EQ(rdma_create_qp(client_, nullptr, &attr), -1);
    EXPECT_EQ(errno, EOPNOTSUPP);
  }
  auto attr = cm::small_qp();
  ASSERT_EQ(rdma_create_qp(client_, nullptr, &attr), 0);
  rdma_conn_param p = saying("hello");
  p.responder_resources = 17;
  EXPECT_EQ(rdma_connect(client_, &p), -1);
  EXPECT_EQ(errno, EINVAL);
  const std::string long_words(kRequestBytes + 1, 'x');
  p = saying(long_words.c_str());
  EXPECT_EQ(rdma_connect(client_, &p), -1);
  EXPECT_EQ(errno, EINVAL);
  request();  // the id is unchanged
}

// A Send that finds no receive is refused at once.
class RoceRetriesTest : public RoceCmTest {
 protected:
  void prepare() override { setenv("URNIC_RNR_PARK", "0", 1); }
};

// proves: DI-23
TEST_F(RoceRetriesTest, EachEndRetriesAsOftenAsTheOtherAllows) {
  if (!within()) return;
  ready();
  rdma_conn_param p = saying("hello");
  p.retry_count = 200;  // treated as the maximum
  p.rnr_retry_count = 1;
  ASSERT_EQ(rdma_connect(client_, &p), 0);
  auto* e = next(listeners_, RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(e, nullptr);
  server_ = e->id;
  EXPECT_EQ(e->param.conn.retry_count, 7);
  EXPECT_EQ(e->param.conn.rnr_retry_count, 1);
  EXPECT_EQ(rdma_ack_cm_event(e), 0);
  auto attr = cm::small_qp();
  ASSERT_EQ(rdma_create_qp(server_, nullptr, &attr), 0);
  p = saying("welcome");
  p.rnr_retry_count = 7;
  ASSERT_EQ(rdma_accept(server_, &p), 0);
  pass(listeners_, RDMA_CM_EVENT_ESTABLISHED);
  pass(clients_, RDMA_CM_EVENT_ESTABLISHED);
  char bytes[16] = {};
  constexpr int kRights = IBV_ACCESS_LOCAL_WRITE;
  ibv_mr* mr = ibv_reg_mr(server_->pd, bytes, sizeof bytes, kRights);
  ASSERT_NE(mr, nullptr);
  // Retried without limit, until there is a receive.
  ASSERT_EQ(rdma_post_send(client_, nullptr, bytes, 8, mr, IBV_SEND_SIGNALED), 0);
  ibv_wc wc;
  usleep(100'000);
  EXPECT_EQ(ibv_poll_cq(client_->send_cq, 1, &wc), 0);
  ASSERT_EQ(rdma_post_recv(server_, nullptr, bytes + 8, 8, mr), 0);
  EXPECT_EQ(cm::wait_for(client_->send_cq).status, IBV_WC_SUCCESS);
  // Retried once only.
  ASSERT_EQ(rdma_post_send(server_, nullptr, bytes, 8, mr, IBV_SEND_SIGNALED), 0);
  EXPECT_EQ(cm::wait_for(server_->send_cq).status, IBV_WC_RNR_RETRY_EXC_ERR);
  rdma_destroy_qp(client_);
  rdma_destroy_qp(server_);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

// proves: DI-23
TEST_F(RoceCmTest, TheProgramsAckTimeoutIsUsed) {
  if (!within()) return;
  ready();
  std::uint8_t code = 8;  // a millisecond; the path between them would give two seconds
  ASSERT_EQ(rdma_set_option(client_, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &code, 1), 0);
  request();
  accept();
  pass(clients_, RDMA_CM_EVENT_ESTABLISHED);
  ibv_qp_attr told;
  ibv_qp_init_attr init;
  ASSERT_EQ(ibv_query_qp(client_->qp, &told, IBV_QP_TIMEOUT, &init), 0);
  EXPECT_EQ(told.timeout, code);
  // A peer that does not respond any more.
  ibv_qp_attr error{};
  error.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(server_->qp, &error, IBV_QP_STATE), 0);
  char bytes[8] = {};
  ibv_mr* mr = ibv_reg_mr(client_->pd, bytes, sizeof bytes, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(mr, nullptr);
  const auto begun = std::chrono::steady_clock::now();
  ASSERT_EQ(rdma_post_send(client_, nullptr, bytes, 8, mr, IBV_SEND_SIGNALED), 0);
  EXPECT_EQ(cm::wait_for(client_->send_cq).status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(4));
  rdma_destroy_qp(client_);
  rdma_destroy_qp(server_);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

// rping -q does this: it moves its queue pair with the attributes of rdma_init_qp_attr.
// proves: DI-23
TEST_F(RoceCmTest, InitQpAttrReturnsTheAttributesOfEachMove) {
  if (!within()) return;
  listen();
  resolve();
  ibv_cq* cq = ibv_create_cq(client_->verbs, 8, nullptr, nullptr, 0);
  ibv_qp_init_attr a = cm::small_qp();
  a.send_cq = a.recv_cq = cq;
  ibv_qp* mine = ibv_create_qp(client_->pd, &a);
  ibv_qp* theirs = ibv_create_qp(client_->pd, &a);
  const auto move = [](rdma_cm_id* id, ibv_qp* qp, ibv_qp_state to) {
    ibv_qp_attr attr{};
    int mask = -1;
    attr.qp_state = to;
    EXPECT_EQ(rdma_init_qp_attr(id, &attr, &mask), 0);
    EXPECT_EQ(ibv_modify_qp(qp, &attr, mask), 0);
  };
  rdma_conn_param p = saying("hello");
  p.qp_num = mine->qp_num;
  request(p);
  move(server_, theirs, IBV_QPS_INIT);
  move(server_, theirs, IBV_QPS_RTR);
  move(server_, theirs, IBV_QPS_RTS);
  p = saying("welcome");
  p.qp_num = theirs->qp_num;
  ASSERT_EQ(rdma_accept(server_, &p), 0);
  pass(clients_, RDMA_CM_EVENT_CONNECT_RESPONSE);
  move(client_, mine, IBV_QPS_INIT);
  move(client_, mine, IBV_QPS_RTR);
  move(client_, mine, IBV_QPS_RTS);
  EXPECT_EQ(rdma_establish(client_), 0);
  pass(listeners_, RDMA_CM_EVENT_ESTABLISHED);
  for (ibv_qp* qp : {mine, theirs}) {
    ibv_qp_attr attr;
    ibv_qp_init_attr init;
    ASSERT_EQ(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
  }
  // The peer may read it, as rdma_cm allows.
  char memory[16] = "read";
  ibv_mr* mr = ibv_reg_mr(client_->pd, memory, sizeof memory, roce::End::kRights);
  ASSERT_NE(mr, nullptr);
  ibv_sge into{reinterpret_cast<std::uint64_t>(memory) + 8, 8, mr->lkey};
  ibv_send_wr read{}, *bad;
  read.opcode = IBV_WR_RDMA_READ;
  read.send_flags = IBV_SEND_SIGNALED;
  read.sg_list = &into;
  read.num_sge = 1;
  read.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(memory);
  read.wr.rdma.rkey = mr->rkey;
  ASSERT_EQ(ibv_post_send(theirs, &read, &bad), 0);
  EXPECT_EQ(cm::wait_for(cq).status, IBV_WC_SUCCESS);
  EXPECT_STREQ(memory + 8, "read");
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_destroy_qp(mine), 0);
  EXPECT_EQ(ibv_destroy_qp(theirs), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

// proves: DI-23
TEST_F(RoceCmTest, ConnectingSetsTheRightsOfAQueuePairInInit) {
  if (!within()) return;
  ready();
  ibv_qp_attr without_rights{};
  without_rights.qp_state = IBV_QPS_INIT;
  without_rights.port_num = 1;
  ASSERT_EQ(ibv_modify_qp(client_->qp, &without_rights,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
            0);
  request();
  ibv_qp_attr attr;
  ibv_qp_init_attr init;
  ASSERT_EQ(ibv_query_qp(client_->qp, &attr, IBV_QP_ACCESS_FLAGS, &init), 0);
  constexpr unsigned kRead = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  EXPECT_EQ(attr.qp_access_flags & kRead, kRead);
}

// proves: DI-23
TEST_F(RoceCmTest, APortIsReservedFromBindAddrOn) {
  if (!within()) return;
  rdma_cm_id* other = nullptr;
  ASSERT_EQ(rdma_create_id(clients_, &other, nullptr, RDMA_PS_TCP), 0);
  sockaddr_in taken = at(ntohs(rdma_get_src_port(listener_)));
  EXPECT_EQ(rdma_bind_addr(other, any(taken)), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  sockaddr_in strange = at(0);
  inet_pton(AF_INET, "192.0.2.1", &strange.sin_addr);
  EXPECT_EQ(rdma_bind_addr(other, any(strange)), -1);
  EXPECT_EQ(errno, EADDRNOTAVAIL);
  EXPECT_EQ(rdma_destroy_id(other), 0);
}

// proves: DI-8
TEST_F(RoceCmTest, AnIdHasAPathAndItsQueuePairAPeer) {
  if (!within()) return;
  connect();
  for (rdma_cm_id* id : {client_, server_}) {
    ASSERT_EQ(id->route.num_paths, 1);
    const ibv_sa_path_rec& path = *id->route.path_rec;
    ibv_gid own{};
    ASSERT_EQ(ibv_query_gid(id->verbs, 1, 0, &own), 0);
    EXPECT_EQ(std::memcmp(&path.sgid, &own, sizeof own), 0);
    EXPECT_EQ(std::memcmp(&path.dgid, &own, sizeof own), 0);
    ibv_port_attr port{};
    ASSERT_EQ(ibv_query_port(id->verbs, 1, &port), 0);
    EXPECT_EQ(path.mtu, port.active_mtu);
    EXPECT_EQ(path.pkey, 0xffff);
    EXPECT_EQ(path.packet_life_time, 16);
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    ASSERT_EQ(ibv_query_qp(id->qp, &attr, IBV_QP_DEST_QPN, &init), 0);
    EXPECT_EQ(attr.dest_qp_num, (id == client_ ? server_ : client_)->qp->qp_num);
  }
}

// The depth that the client requests is the one that the server serves, and vice versa, as a
// kernel's cm reports it.
// proves: DI-8
TEST_F(RoceCmTest, ARequestReportsTheDepthsForTheServer) {
  if (!within()) return;
  ready();
  rdma_conn_param p = saying("hello");
  p.responder_resources = 2;
  p.initiator_depth = 5;
  ASSERT_EQ(rdma_connect(client_, &p), 0);
  auto* e = next(listeners_, RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(e, nullptr);
  server_ = e->id;
  EXPECT_EQ(e->param.conn.responder_resources, 5);
  EXPECT_EQ(e->param.conn.initiator_depth, 2);
  EXPECT_EQ(rdma_ack_cm_event(e), 0);
}

// A kernel reports nothing of it at the passive end.
// proves: DI-8
TEST_F(RoceCmTest, EstablishedReportsTheAgreedDepths) {
  if (!within()) return;
  ready();
  rdma_conn_param p = saying("hello");
  p.responder_resources = 2;
  p.initiator_depth = 9;
  request(p);
  auto attr = cm::small_qp();
  ASSERT_EQ(rdma_create_qp(server_, nullptr, &attr), 0);
  p = saying("welcome");
  p.responder_resources = 3;
  p.initiator_depth = 1;
  ASSERT_EQ(rdma_accept(server_, &p), 0);
  auto* e = next(listeners_, RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->param.conn.responder_resources, 0);
  EXPECT_EQ(e->param.conn.initiator_depth, 0);
  EXPECT_EQ(rdma_ack_cm_event(e), 0);
  e = next(clients_, RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->param.conn.responder_resources, 1);
  EXPECT_EQ(e->param.conn.initiator_depth, 3);
  EXPECT_EQ(rdma_ack_cm_event(e), 0);
}

// A kernel allows this: libfabric binds to "localhost" to list the devices.
// proves: DI-9
TEST_F(RoceCmTest, ALoopbackAddressIsAWildcard) {
  if (!within()) return;
  rdma_cm_id* everywhere = nullptr;
  ASSERT_EQ(rdma_create_id(listeners_, &everywhere, this, RDMA_PS_TCP), 0);
  sockaddr_in loopback = at(0);
  loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(rdma_bind_addr(everywhere, any(loopback)), 0);
  EXPECT_EQ(everywhere->verbs, nullptr);
  const auto* shown = reinterpret_cast<const sockaddr_in*>(rdma_get_local_addr(everywhere));
  EXPECT_EQ(ntohl(shown->sin_addr.s_addr), INADDR_LOOPBACK);
  EXPECT_NE(shown->sin_port, 0);
  int on = 1;  // binds it again, to the same address
  EXPECT_EQ(rdma_set_option(everywhere, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on),
            0);
  ASSERT_EQ(rdma_listen(everywhere, 1), 0);
  RoceIdsTest::resolve(ntohs(rdma_get_src_port(everywhere)));
  auto attr = cm::small_qp();
  ASSERT_EQ(rdma_create_qp(client_, nullptr, &attr), 0);
  request();
  EXPECT_EQ(server_->verbs, client_->verbs);
  EXPECT_EQ(rdma_destroy_id(everywhere), 0);
}

// A kernel also ends the connections of a process that exits.
TEST_F(RoceCmTest, ExitEndsTheConnectionsOfTheProcess) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer knows no threads behind a fork of a process that had some";
#endif
  if (!within()) return;
  listen();
  sockaddr_in to = at(ntohs(rdma_get_src_port(listener_)));
  const pid_t child = urnic::test::quiet_fork();
  if (child == 0) {  // a device of its own, at an address of its own
    setenv("URNIC_PORT", ("udp:bind=" + urnic::test::loopback_network() + "2,mtu=5000").c_str(), 1);
    rdma_event_channel* channel = rdma_create_event_channel();
    rdma_cm_id* id = nullptr;
    if (rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) != 0) _exit(2);
    if (rdma_resolve_addr(id, nullptr, any(to), 1000) != 0) _exit(3);
    pass(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    if (rdma_resolve_route(id, 1000) != 0) _exit(4);
    pass(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
    auto attr = cm::small_qp();
    rdma_conn_param p = saying("hello");
    if (rdma_create_qp(id, nullptr, &attr) != 0 || rdma_connect(id, &p) != 0) _exit(5);
    pass(channel, RDMA_CM_EVENT_ESTABLISHED);
    exit(0);  // _exit would skip the code under test
  }
  auto* e = next(listeners_, RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(e, nullptr);
  server_ = e->id;
  EXPECT_EQ(rdma_ack_cm_event(e), 0);
  auto attr = cm::small_qp();
  ASSERT_EQ(rdma_create_qp(server_, nullptr, &attr), 0);
  rdma_conn_param p = saying("welcome");
  ASSERT_EQ(rdma_accept(server_, &p), 0);
  pass(listeners_, RDMA_CM_EVENT_ESTABLISHED);
  pass(listeners_, RDMA_CM_EVENT_DISCONNECTED);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
