// The verbs as a C program calls them: what is reported can be had, and wrong use is answered as
// rdma-core answers it.
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

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

TEST_F(VerbsTest, TheDeviceIsAnIwarpAdapter) {
  EXPECT_STREQ(ibv_get_device_name(list_[0]), "urnic0");
  EXPECT_EQ(list_[0]->node_type, IBV_NODE_RNIC);
  EXPECT_EQ(list_[0]->transport_type, IBV_TRANSPORT_IWARP);
  EXPECT_EQ(ibv_get_device_guid(list_[0]), attr_.node_guid);
  EXPECT_NE(attr_.node_guid, 0u);
  // Drivers of others look for a pointer of theirs behind the structure.
  void* behind;
  std::memcpy(&behind, list_[0] + 1, sizeof behind);
  EXPECT_EQ(behind, nullptr);
}

TEST_F(VerbsTest, ThePortIsWrittenAsFarAsTheCallerSaid) {
  ibv_port_attr port;
  ASSERT_EQ(ibv_query_port(context_, 1, &port), 0);
  EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_EQ(ibv_query_port(context_, 2, &port), EINVAL);
  // The exported function has a caller with the old structure, of 48 octets.
  struct {
    std::uint8_t old[48];
    std::uint8_t behind[16];
  } room;
  std::memset(&room, 0xee, sizeof room);
#undef ibv_query_port
  ASSERT_EQ(ibv_query_port(context_, 1, reinterpret_cast<_compat_ibv_port_attr*>(room.old)), 0);
  for (const std::uint8_t b : room.behind) EXPECT_EQ(b, 0xee);
}

TEST_F(VerbsTest, TheExtendedQuerySaysHowManyPorts) {
  ibv_device_attr_ex ex;
  ASSERT_EQ(ibv_query_device_ex(context_, nullptr, &ex), 0);
  EXPECT_EQ(ex.phys_port_cnt_ex, 1u);
  EXPECT_EQ(ex.orig_attr.max_qp_wr, attr_.max_qp_wr);
  ibv_query_device_ex_input input{};
  input.comp_mask = 1;
  EXPECT_EQ(ibv_query_device_ex(context_, &input, &ex), EINVAL);
}

TEST_F(VerbsTest, TheGidsAreTheMacAddressAndBehindItThoseOfIp) {
  ibv_gid gid;
  ASSERT_EQ(ibv_query_gid(context_, 1, 0, &gid), 0);
  for (int i = 6; i < 16; ++i) EXPECT_EQ(gid.raw[i], 0);
  std::vector<ibv_gid_entry> entries(256);
  const ssize_t n = ibv_query_gid_table(context_, entries.data(), entries.size(), 0);
  ASSERT_GT(n, 1);
  const auto length = static_cast<std::uint32_t>(n);
  EXPECT_EQ(ibv_query_gid(context_, 1, static_cast<int>(length), &gid), -1);
  EXPECT_EQ(ibv_query_gid_ex(context_, 1, 0, entries.data(), 0), 0);
  EXPECT_EQ(entries[0].gid_type, static_cast<std::uint32_t>(IBV_GID_TYPE_IB));
  EXPECT_EQ(ibv_query_gid_ex(context_, 1, length, entries.data(), 0), EINVAL);
  EXPECT_EQ(ibv_query_gid_table(context_, entries.data(), 1, 0), 1);
  ASSERT_EQ(ibv_query_gid_table(context_, entries.data(), entries.size(), 0), n);
  const std::uint8_t loopback[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
  bool found = false;
  for (std::uint32_t i = 0; i < length; ++i) {
    EXPECT_EQ(entries[i].gid_index, i);
    found = found || std::memcmp(entries[i].gid.raw, loopback, 16) == 0;
  }
  EXPECT_TRUE(found);
}

// The setting is read once in a process, so in one of its own.
TEST_F(VerbsTest, AsIbLikeItIsAnAdapterOfInfiniBandOnEthernet) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer knows no threads behind a fork of a process that had some";
#endif
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    setenv("URNIC_IDENTITY", "ib-like", 1);
    int number = 0;
    ibv_device** list = ibv_get_device_list(&number);
    if (number != 1 || list[0]->transport_type != IBV_TRANSPORT_IB) _exit(1);
    if (list[0]->node_type != IBV_NODE_CA) _exit(2);
    ibv_context* context = ibv_open_device(list[0]);
    ibv_gid_entry entry;
    if (context == nullptr || ibv_query_gid_ex(context, 1, 0, &entry, 0) != 0) _exit(3);
    if (entry.gid_type != static_cast<std::uint32_t>(IBV_GID_TYPE_ROCE_V2)) _exit(4);
    if (entry.gid.raw[10] != 0xff || entry.gid.raw[11] != 0xff) _exit(5);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// perftest's server asks whether its port is active before there is a client, and gives up if not.
TEST_F(VerbsTest, AMemifPortIsActiveUntilItsFirstLinkIsLost) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer knows no threads behind a fork of a process that had some";
#endif
  const std::string socket = "memif:socket=@urnic-active-" + std::to_string(getpid());
  const auto open_as = [&](const char* role) {
    setenv("URNIC_PORT", (socket + ",role=" + role).c_str(), 1);
    setenv("URNIC_ADDRESS", role[0] == 's' ? "10.77.0.1/24" : "10.77.0.2/24", 1);
    int number = 0;
    ibv_device** list = ibv_get_device_list(&number);
    return number == 1 ? ibv_open_device(list[0]) : nullptr;
  };
  const auto state_of = [](ibv_context* context) {
    ibv_port_attr port{};
    return ___ibv_query_port(context, 1, &port) == 0 ? port.state : IBV_PORT_NOP;
  };
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t server = fork();
  ASSERT_GE(server, 0);
  if (server == 0) {
    alarm(20);
    ibv_context* context = open_as("server");
    if (context == nullptr || state_of(context) != IBV_PORT_ACTIVE) _exit(1);
    if (write(ready[1], "", 1) != 1) _exit(2);
    // That the client has come is no news; that it has gone is.
    ibv_async_event event;
    if (ibv_get_async_event(context, &event) != 0) _exit(3);
    if (event.event_type != IBV_EVENT_PORT_ERR) _exit(4);
    _exit(state_of(context) == IBV_PORT_DOWN ? 0 : 5);
  }
  close(ready[1]);  // a server that ends early is noticed
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1) << "the server gave up";
  const pid_t client = fork();
  ASSERT_GE(client, 0);
  if (client == 0) {
    alarm(20);
    ibv_context* context = open_as("client");
    usleep(500'000);
    _exit(context != nullptr && state_of(context) == IBV_PORT_ACTIVE ? 0 : 1);
  }
  for (const pid_t child : {client, server}) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0) << (child == client ? "client" : "server");
  }
  close(ready[0]);
}

// perftest leaves a queue; what is left may still be used and destroyed.
TEST_F(VerbsTest, AContextWithSomethingLeftCanBeClosed) {
  ibv_context* other = ibv_open_device(list_[0]);
  ASSERT_NE(other, nullptr);
  ibv_cq* cq = ibv_create_cq(other, 4, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  EXPECT_EQ(ibv_close_device(other), 0);
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(cq, 1, &wc), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

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

// libiscsi's iSER polls on in the call in which the program behind it destroyed the queue.
TEST_F(VerbsTest, AQueueJustDestroyedHasNothingToPoll) {
  ibv_cq* cq = ibv_create_cq(context_, 16, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  ASSERT_EQ(ibv_destroy_cq(cq), 0);
  ibv_wc wc[1];
  EXPECT_EQ(ibv_poll_cq(cq, 1, wc), 0);
}

TEST_F(VerbsTest, AQueuePairHasWhatIsReportedAndNotMore) {
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

TEST_F(VerbsTest, AFreshQueuePairIsInResetAndMovesAsItMay) {
  ibv_cq* cq = ibv_create_cq(context_, 16, nullptr, nullptr, 0);
  ibv_qp_init_attr a = qp_attr(cq);
  ibv_qp* qp = ibv_create_qp(pd_, &a);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(qp->state, IBV_QPS_RESET);
  ibv_qp_attr q{};
  ibv_qp_init_attr init;
  ASSERT_EQ(ibv_query_qp(qp, &q, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(q.qp_state, IBV_QPS_RESET);
  ibv_recv_wr receive{}, *bad_receive = nullptr;
  EXPECT_EQ(ibv_post_recv(qp, &receive, &bad_receive), EINVAL);
  EXPECT_EQ(bad_receive, &receive);
  q = {};
  q.qp_state = IBV_QPS_RTS;
  EXPECT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE), EINVAL);
  q.qp_state = IBV_QPS_INIT;
  q.port_num = 2;
  EXPECT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE | IBV_QP_PORT), EINVAL);
  q.port_num = 1;
  EXPECT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX), 0);
  EXPECT_EQ(qp->state, IBV_QPS_INIT);
  // Four receives, and the fifth says which one it was.
  ibv_recv_wr five[5]{};
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
  // Flushed in error, and gone with RESET.
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
  // Connecting to nobody.
  q.qp_state = IBV_QPS_INIT;
  ASSERT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE), 0);
  q.qp_state = IBV_QPS_RTR;
  EXPECT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN), EOPNOTSUPP);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(VerbsTest, RegionsWantRightsThatFit) {
  std::vector<char> memory(4096);
  const auto reg = [&](int access) { return ibv_reg_mr(pd_, memory.data(), 4096, access); };
  errno = 0;
  EXPECT_EQ(reg(IBV_ACCESS_REMOTE_WRITE), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(reg(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  ibv_mr* mr = reg(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                   IBV_ACCESS_RELAXED_ORDERING);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(mr->addr, memory.data());
  EXPECT_EQ(mr->length, 4096u);
  EXPECT_EQ(ibv_dealloc_pd(pd_), EBUSY);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(VerbsTest, WindowsAreClaimedAndCounted) {
  EXPECT_NE(attr_.device_cap_flags & IBV_DEVICE_MEM_WINDOW, 0u);
  EXPECT_NE(attr_.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B, 0u);
  EXPECT_GT(attr_.max_mw, 0);
  errno = 0;
  EXPECT_EQ(ibv_alloc_mw(pd_, static_cast<ibv_mw_type>(3)), nullptr);
  EXPECT_EQ(errno, EINVAL);
  ibv_mw* one = ibv_alloc_mw(pd_, IBV_MW_TYPE_1);
  ibv_mw* two = ibv_alloc_mw(pd_, IBV_MW_TYPE_2);
  ASSERT_TRUE(one != nullptr && two != nullptr);
  EXPECT_EQ(one->type, IBV_MW_TYPE_1);
  EXPECT_EQ(one->pd, pd_);
  EXPECT_EQ(one->context, context_);
  EXPECT_NE(one->rkey, two->rkey);
  EXPECT_EQ(ibv_dealloc_pd(pd_), EBUSY);
  EXPECT_EQ(ibv_dealloc_mw(one), 0);
  EXPECT_EQ(ibv_dealloc_mw(two), 0);
}

TEST_F(VerbsTest, ReregistrationIsAnsweredAsRdmaCoreAnswersIt) {
  std::vector<char> memory(4096), other(100);
  ibv_mr* mr = ibv_reg_mr(pd_, memory.data(), 4096, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(mr, nullptr);
  const std::uint32_t key = mr->lkey;
  constexpr int kMove = IBV_REREG_MR_CHANGE_TRANSLATION, kRights = IBV_REREG_MR_CHANGE_ACCESS,
                kDomain = IBV_REREG_MR_CHANGE_PD;
  const auto refused = [&](int answer, int error, int flags, void* address, std::size_t length,
                           int access) {
    errno = 0;
    EXPECT_EQ(ibv_rereg_mr(mr, flags, nullptr, address, length, access), answer) << flags;
    EXPECT_EQ(errno, error) << flags;
    EXPECT_EQ(mr->lkey, key);
    EXPECT_EQ(mr->rkey, key);
    EXPECT_EQ(mr->addr, memory.data());
    EXPECT_EQ(mr->length, 4096u);
    EXPECT_EQ(mr->pd, pd_);
  };
  refused(IBV_REREG_MR_ERR_INPUT, EINVAL, 1 << 8, nullptr, 0, 0);
  refused(IBV_REREG_MR_ERR_INPUT, EINVAL, kMove, nullptr, 100, 0);
  refused(IBV_REREG_MR_ERR_INPUT, EINVAL, kMove, other.data(), 0, 0);
  refused(IBV_REREG_MR_ERR_INPUT, EINVAL, kMove, other.data(), 100, IBV_ACCESS_LOCAL_WRITE);
  refused(IBV_REREG_MR_ERR_INPUT, EINVAL, kDomain, nullptr, 0, 0);
  refused(IBV_REREG_MR_ERR_CMD, EINVAL, 0, nullptr, 0, 0);
  refused(IBV_REREG_MR_ERR_CMD, EINVAL, kRights, nullptr, 0, IBV_ACCESS_REMOTE_WRITE);
  refused(IBV_REREG_MR_ERR_CMD, EOPNOTSUPP, kRights, nullptr, 0, IBV_ACCESS_ON_DEMAND);

  EXPECT_EQ(ibv_rereg_mr(mr, kRights, nullptr, nullptr, 0,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ),
            0);
  EXPECT_EQ(mr->lkey, key);
  EXPECT_EQ(ibv_rereg_mr(mr, kMove | kRights, nullptr, other.data(), 100, 0), 0);
  EXPECT_NE(mr->lkey, key);
  EXPECT_EQ(mr->rkey, mr->lkey);
  EXPECT_EQ(mr->addr, other.data());
  EXPECT_EQ(mr->length, 100u);
  ibv_pd* domain = ibv_alloc_pd(context_);
  EXPECT_EQ(ibv_rereg_mr(mr, kDomain, domain, nullptr, 0, 0), 0);
  EXPECT_EQ(mr->pd, domain);
  EXPECT_EQ(ibv_dealloc_pd(domain), EBUSY);
  EXPECT_EQ(ibv_rereg_mr(mr, kDomain, pd_, nullptr, 0, 0), 0);
  EXPECT_EQ(ibv_dealloc_pd(domain), 0);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(VerbsTest, ARegionMayHaveAnotherAddressForWorkThanForTheProgram) {
  std::vector<char> memory(4096);
  ibv_mr* mr = ibv_reg_mr_iova(pd_, memory.data(), 4096, 0x10, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(mr->addr, memory.data());
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  errno = 0;
  EXPECT_EQ(ibv_reg_mr_iova(pd_, memory.data(), 4096, ~0ull - 100, IBV_ACCESS_LOCAL_WRITE),
            nullptr);
  EXPECT_EQ(errno, EINVAL);
}

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
  // A flushed receive completes, and an armed queue says so.
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
  ASSERT_EQ(poll(&p, 1, 5000), 1);
  ASSERT_EQ(ibv_get_cq_event(channel, &which, &cq_context), 0);
  EXPECT_EQ(which, cq);
  EXPECT_EQ(cq_context, channel);
  EXPECT_EQ(ibv_get_cq_event(channel, &which, &cq_context), -1);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  // Destruction waits for what was handed out.
  std::thread later([&] {
    usleep(20'000);
    ibv_ack_cq_events(cq, 1);
  });
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  later.join();
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
}

// A child has a device of its own; what it closes of its parent's harms nobody.
TEST_F(VerbsTest, AChildOpensItsOwnAndLeavesItsParentsAlone) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer knows no threads behind a fork of a process that had some";
#endif
  ibv_comp_channel* channel = ibv_create_comp_channel(context_);
  ibv_cq* cq = ibv_create_cq(context_, 16, nullptr, channel, 0);
  ibv_qp_init_attr a = qp_attr(cq);
  ibv_qp* qp = ibv_create_qp(pd_, &a);
  ASSERT_NE(qp, nullptr);
  ibv_qp_attr q{};
  q.qp_state = IBV_QPS_INIT;
  ASSERT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE), 0);
  ibv_recv_wr receive{}, *bad = nullptr;
  ASSERT_EQ(ibv_post_recv(qp, &receive, &bad), 0);
  ASSERT_EQ(ibv_req_notify_cq(cq, 0), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    if (ibv_post_recv(qp, &receive, &bad) == 0) _exit(2);  // the parent's
    if (ibv_destroy_qp(qp) != 0 || ibv_destroy_cq(cq) != 0) _exit(3);
    if (ibv_destroy_comp_channel(channel) != 0) _exit(4);
    int number = 0;
    ibv_device** list = ibv_get_device_list(&number);
    ibv_context* own = number == 1 ? ibv_open_device(list[0]) : nullptr;
    ibv_pd* pd = own != nullptr ? ibv_alloc_pd(own) : nullptr;
    ibv_cq* mine = pd != nullptr ? ibv_create_cq(own, 16, nullptr, nullptr, 0) : nullptr;
    if (mine == nullptr) _exit(5);
    ibv_qp_init_attr again = qp_attr(mine);
    ibv_qp* other = ibv_create_qp(pd, &again);
    _exit(other != nullptr && ibv_destroy_qp(other) == 0 ? 0 : 6);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  q.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE), 0);
  pollfd p{channel->fd, POLLIN, 0};
  EXPECT_EQ(poll(&p, 1, 5000), 1);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
}

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
  ibv_qp* qp = ibv_create_qp(pd_, &a);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(ibv_destroy_srq(srq), EBUSY);
  ibv_recv_wr receive{}, *bad = nullptr;
  EXPECT_EQ(ibv_post_srq_recv(srq, &receive, &bad), 0);
  ibv_srq_attr limits{};
  limits.srq_limit = 9;
  EXPECT_EQ(ibv_modify_srq(srq, &limits, IBV_SRQ_LIMIT), EINVAL);
  // One is there and two are wanted: the event comes at once.
  limits.srq_limit = 2;
  ASSERT_EQ(ibv_modify_srq(srq, &limits, IBV_SRQ_LIMIT), 0);
  pollfd p{context_->async_fd, POLLIN, 0};
  ASSERT_EQ(poll(&p, 1, 5000), 1);
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

TEST_F(VerbsTest, OnlyAskedForQueuePairsAndQueuesHaveTheExtendedCalls) {
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
  ibv_qp* qp = ibv_create_qp_ex(context_, &x);
  ASSERT_NE(qp, nullptr);
  ibv_qp_ex* ex = ibv_qp_to_qp_ex(qp);
  ASSERT_NE(ex, nullptr);
  // Errors come when it is complete, and what was dropped leaves nothing behind.
  ibv_wr_start(ex);
  ibv_wr_send(ex);
  EXPECT_EQ(ibv_wr_complete(ex), EINVAL);  // not connected
  ibv_wr_start(ex);
  ibv_wr_send(ex);
  ibv_wr_abort(ex);
  ibv_wr_start(ex);
  EXPECT_EQ(ibv_wr_complete(ex), 0);
  ibv_wr_start(ex);
  ibv_wr_set_sge(ex, 0, 0, 0);  // of no request
  EXPECT_EQ(ibv_wr_complete(ex), EINVAL);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

TEST_F(VerbsTest, WhatIsNotSupportedFails) {
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

}  // namespace
