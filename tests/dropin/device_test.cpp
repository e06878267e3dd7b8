// Devices as a C program opens them: their attributes, contexts, children of a fork.
#include <errno.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "dropin/verbs_fixture.h"
#include "support/quiet_fork.h"
#include "support/soon.h"

namespace verbs_api {
namespace {

TEST_F(VerbsTest, TheDeviceIsAnIwarpAdapter) {
  EXPECT_STREQ(ibv_get_device_name(list_[0]), "urnic0");
  EXPECT_EQ(list_[0]->node_type, IBV_NODE_RNIC);
  EXPECT_EQ(list_[0]->transport_type, IBV_TRANSPORT_IWARP);
  EXPECT_EQ(ibv_get_device_guid(list_[0]), attr_.node_guid);
  EXPECT_NE(attr_.node_guid, 0u);
  // Other vendors' drivers look for a pointer after the structure.
  void* behind;
  std::memcpy(&behind, list_[0] + 1, sizeof behind);
  EXPECT_EQ(behind, nullptr);
}

TEST_F(VerbsTest, QueryPortWritesOnlyTheSizeOfTheCallersStructure) {
  ibv_port_attr port;
  ASSERT_EQ(ibv_query_port(context_, 1, &port), 0);
  EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_EQ(ibv_query_port(context_, 2, &port), EINVAL);
  // The exported function is called with the old structure, of 48 bytes.
  struct {
    std::uint8_t old[48];
    std::uint8_t behind[16];
  } room;
  std::memset(&room, 0xee, sizeof room);
#pragma push_macro("ibv_query_port")
#undef ibv_query_port
  ASSERT_EQ(ibv_query_port(context_, 1, reinterpret_cast<_compat_ibv_port_attr*>(room.old)), 0);
#pragma pop_macro("ibv_query_port")
  for (const std::uint8_t b : room.behind) EXPECT_EQ(b, 0xee);
}

TEST_F(VerbsTest, TheExtendedQueryReportsThePortCount) {
  ibv_device_attr_ex ex;
  ASSERT_EQ(ibv_query_device_ex(context_, nullptr, &ex), 0);
  EXPECT_EQ(ex.phys_port_cnt_ex, 1u);
  EXPECT_EQ(ex.device_cap_flags_ex, attr_.device_cap_flags);
  EXPECT_EQ(ex.orig_attr.max_qp_wr, attr_.max_qp_wr);
  ibv_query_device_ex_input input{};
  input.comp_mask = 1;
  EXPECT_EQ(ibv_query_device_ex(context_, &input, &ex), EINVAL);
}

TEST_F(VerbsTest, TheGidsAreTheMacAddressFollowedByIpAddresses) {
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
  EXPECT_EQ(ibv_query_gid_table(context_, entries.data(), length - 1, 0), -EINVAL);
  ASSERT_EQ(ibv_query_gid_table(context_, entries.data(), entries.size(), 0), n);
  const std::uint8_t loopback[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
  bool found = false;
  for (std::uint32_t i = 0; i < length; ++i) {
    EXPECT_EQ(entries[i].gid_index, i);
    char name[IF_NAMESIZE];
    EXPECT_NE(if_indextoname(entries[i].ndev_ifindex, name), nullptr) << i;
    found = found || std::memcmp(entries[i].gid.raw, loopback, 16) == 0;
  }
  EXPECT_TRUE(found);
}

// The setting is read once per process, so this runs in a process of its own.
TEST_F(VerbsTest, AnIbLikeDeviceIsAnInfiniBandAdapterOnEthernet) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer knows no threads behind a fork of a process that had some";
#endif
  const pid_t child = urnic::test::quiet_fork();
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

// perftest's server checks that its port is active before there is a client, and otherwise gives
// up.
// proves: DI-7
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
  const pid_t server = urnic::test::quiet_fork();
  ASSERT_GE(server, 0);
  if (server == 0) {
    alarm(60);
    ibv_context* context = open_as("server");
    if (context == nullptr || state_of(context) != IBV_PORT_ACTIVE) _exit(1);
    if (write(ready[1], "", 1) != 1) _exit(2);
    // Only the loss of the client is reported, not its arrival.
    ibv_async_event event;
    if (ibv_get_async_event(context, &event) != 0) _exit(3);
    if (event.event_type != IBV_EVENT_PORT_ERR) _exit(4);
    _exit(state_of(context) == IBV_PORT_DOWN ? 0 : 5);
  }
  close(ready[1]);  // detects a server that ends early
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1) << "the server gave up";
  const pid_t client = urnic::test::quiet_fork();
  ASSERT_GE(client, 0);
  if (client == 0) {
    alarm(60);
    ibv_context* context = open_as("client");
    if (context == nullptr) _exit(1);
    while (state_of(context) != IBV_PORT_ACTIVE) usleep(1000);
    // Time for the server to see it, because the client gets no report of that: ten times as long
    // as a thread waits for a processor besides two that compute.
    usleep(1'000'000);
    _exit(0);
  }
  for (const pid_t child : {client, server}) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0) << (child == client ? "client" : "server");
  }
  close(ready[0]);
}

// perftest leaves a queue behind; objects left behind can still be used and destroyed.
TEST_F(VerbsTest, AContextWithRemainingObjectsCanBeClosed) {
  ibv_context* other = ibv_open_device(list_[0]);
  ASSERT_NE(other, nullptr);
  ibv_cq* cq = ibv_create_cq(other, 4, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  EXPECT_EQ(ibv_close_device(other), 0);
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(cq, 1, &wc), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

// A child has a device of its own; when it closes its parent's, nothing happens.
// proves: DI-11
TEST_F(VerbsTest, AChildOpensItsOwnDeviceAndDoesNotAffectItsParents) {
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
  // An event that was not fetched: of a shared receive queue with fewer receives than its limit.
  ibv_srq_init_attr s{};
  s.attr.max_wr = 4;
  s.attr.max_sge = 1;
  ibv_srq* srq = ibv_create_srq(pd_, &s);
  ASSERT_NE(srq, nullptr);
  s.attr.srq_limit = 1;
  ASSERT_EQ(ibv_modify_srq(srq, &s.attr, IBV_SRQ_LIMIT), 0);
  pollfd limit{context_->async_fd, POLLIN, 0};
  ASSERT_EQ(poll(&limit, 1, urnic::test::kSoonMs), 1);
  const pid_t child = urnic::test::quiet_fork();
  if (child == 0) {
    alarm(60);
    if (ibv_post_recv(qp, &receive, &bad) == 0) _exit(2);  // the parent's queue pair
    if (ibv_destroy_qp(qp) != 0 || ibv_destroy_cq(cq) != 0) _exit(3);
    if (ibv_destroy_comp_channel(channel) != 0 || ibv_destroy_srq(srq) != 0) _exit(4);
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
  ASSERT_EQ(poll(&limit, 1, 0), 1) << "the child has taken it away";
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
  EXPECT_EQ(poll(&limit, 1, 0), 0) << "the link that was there when the device was opened";
  q.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE), 0);
  pollfd p{channel->fd, POLLIN, 0};
  EXPECT_EQ(poll(&p, 1, urnic::test::kSoonMs), 1);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
}

}  // namespace
}  // namespace verbs_api
