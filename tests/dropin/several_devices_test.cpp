// Several devices of one configuration, as a C program sees them: their attributes, and that
// objects of one device are refused by another.
#include <errno.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "dropin/several_devices.h"

namespace devices {
namespace {

// proves: DI-24
TEST_F(DevicesTest, AllAreListedInFileOrderWithTheirOwnAttributes) {
  if (!within()) return;
  const std::vector<std::string> names{"second", "first", "rocky", "left", "right"};
  EXPECT_EQ(listed(), names);
  int number = 0;
  ibv_device** list = ibv_get_device_list(&number);
  ASSERT_EQ(number, 5);
  std::set<std::uint64_t> guids;
  for (int i = 0; i < number; ++i) {
    guids.insert(ibv_get_device_guid(list[i]));
    ibv_context* context = ibv_open_device(list[i]);
    ASSERT_NE(context, nullptr) << list[i]->name;
    EXPECT_EQ(context->device, list[i]);
    ibv_device_attr attr;
    ASSERT_EQ(ibv_query_device(context, &attr), 0);
    EXPECT_EQ(attr.node_guid, ibv_get_device_guid(list[i]));
    EXPECT_EQ(attr.max_qp_rd_atom, list[i]->name == std::string("first")   ? 7
                                   : list[i]->name == std::string("rocky") ? 16
                                                                           : 32);
    EXPECT_EQ(ibv_close_device(context), 0);
  }
  EXPECT_EQ(guids.size(), 5u);
  EXPECT_EQ(list[0]->transport_type, IBV_TRANSPORT_IB);
  EXPECT_EQ(list[1]->transport_type, IBV_TRANSPORT_IWARP);
  EXPECT_EQ(list[2]->node_type, IBV_NODE_CA);
  EXPECT_STRNE(list[0]->dev_name, list[1]->dev_name);
  ibv_free_device_list(list);
}

TEST_F(DevicesTest, EachHasItsAddressesAsGids) {
  if (!within()) return;
  const std::pair<const char*, std::string> own[] = {{"second", of_loopback(2)},
                                                     {"first", of_loopback(1)},
                                                     {"rocky", of_loopback(3)},
                                                     {"left", "10.79.0.1"},
                                                     {"right", "10.79.0.2"}};
  for (const auto& [name, address] : own) {
    ibv_context* context = open(name);
    ASSERT_NE(context, nullptr) << name;
    std::vector<ibv_gid_entry> entries(16);
    const ssize_t n = ibv_query_gid_table(context, entries.data(), entries.size(), 0);
    ASSERT_GT(n, 0);
    const sockaddr_in wanted = at(address, 0);
    EXPECT_EQ(std::count_if(entries.begin(), entries.begin() + n,
                            [&](const ibv_gid_entry& e) {
                              return std::memcmp(e.gid.raw + 12, &wanted.sin_addr, 4) == 0;
                            }),
              1)
        << name;
    EXPECT_EQ(ibv_close_device(context), 0);
  }
}

TEST_F(DevicesTest, RdmaCmHasOneContextOfEach) {
  if (!within()) return;
  int number = 0;
  ibv_context** list = rdma_get_devices(&number);
  ASSERT_NE(list, nullptr);
  ASSERT_EQ(number, 5);
  EXPECT_EQ(list[5], nullptr);
  EXPECT_STREQ(list[0]->device->name, "second");
  EXPECT_STREQ(list[4]->device->name, "right");
  ibv_context** again = rdma_get_devices(nullptr);
  EXPECT_TRUE(std::equal(list, list + 6, again));
  rdma_cm_id* id = new_id(channel_);
  sockaddr_in a = at("10.79.0.1", 0);
  ASSERT_EQ(rdma_bind_addr(id, cm::any(a)), 0);
  EXPECT_EQ(id->verbs, list[3]);
  EXPECT_EQ(rdma_destroy_id(id), 0);
  rdma_free_devices(list);
  rdma_free_devices(again);
}

class ChosenTest : public DevicesTest {
 protected:
  void prepare() override { setenv("URNIC_DEVICE", "first", 1); }
};

TEST_F(ChosenTest, TheSettingDeviceSelectsASingleDevice) {
  if (!within()) return;
  EXPECT_EQ(listed(), std::vector<std::string>{"first"});
}

// proves: DI-24
TEST_F(DevicesTest, ObjectsOfOneDeviceAreRefusedByAnother) {
  if (!within()) return;
  ibv_context *here = open("first"), *there = open("second");
  ASSERT_TRUE(here != nullptr && there != nullptr);
  ibv_pd *own = ibv_alloc_pd(here), *other = ibv_alloc_pd(there);
  ibv_cq* cq = ibv_create_cq(here, 8, nullptr, nullptr, 0);
  ibv_cq* other_cq = ibv_create_cq(there, 8, nullptr, nullptr, 0);
  ibv_comp_channel* channel = ibv_create_comp_channel(there);
  ASSERT_TRUE(own != nullptr && other != nullptr && cq != nullptr && other_cq != nullptr);
  errno = 0;
  EXPECT_EQ(ibv_create_cq(here, 8, nullptr, channel, 0), nullptr);
  EXPECT_EQ(errno, EINVAL);

  ibv_srq_init_attr s{};
  s.attr.max_wr = s.attr.max_sge = 1;
  ibv_srq* other_srq = ibv_create_srq(other, &s);
  ASSERT_NE(other_srq, nullptr);
  const auto refused = [&](ibv_pd* pd, ibv_cq* send, ibv_cq* receive, ibv_srq* srq) {
    auto a = cm::small_qp();
    a.send_cq = send;
    a.recv_cq = receive;
    a.srq = srq;
    errno = 0;
    ibv_qp* qp = ibv_create_qp(pd, &a);
    const int error = errno;
    if (qp != nullptr) ibv_destroy_qp(qp);
    return qp == nullptr && error == EINVAL;
  };
  EXPECT_TRUE(refused(other, cq, cq, nullptr));
  EXPECT_TRUE(refused(own, other_cq, cq, nullptr));
  EXPECT_TRUE(refused(own, cq, other_cq, nullptr));
  EXPECT_TRUE(refused(own, cq, cq, other_srq));

  char bytes[16];
  ibv_mr* mr = ibv_reg_mr(own, bytes, sizeof bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
  ASSERT_NE(mr, nullptr);
  errno = 0;
  EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, nullptr, 0, 0), IBV_REREG_MR_ERR_CMD);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(mr->pd, own);
  errno = 0;
  ibv_parent_domain_init_attr parent{};
  parent.pd = other;
  EXPECT_EQ(ibv_alloc_parent_domain(here, &parent), nullptr);
  EXPECT_EQ(errno, EINVAL);

  auto a = cm::small_qp();
  a.send_cq = a.recv_cq = cq;
  ibv_qp* qp = ibv_create_qp(own, &a);
  ASSERT_NE(qp, nullptr);
  ibv_mw* window = ibv_alloc_mw(other, IBV_MW_TYPE_1);
  ASSERT_NE(window, nullptr);
  ibv_mw_bind bind{};
  EXPECT_EQ(ibv_bind_mw(qp, window, &bind), EINVAL);
  EXPECT_EQ(ibv_dealloc_mw(window), 0);
  window = ibv_alloc_mw(other, IBV_MW_TYPE_2);
  ibv_send_wr wr{}, *bad = nullptr;
  wr.opcode = IBV_WR_BIND_MW;
  wr.bind_mw.mw = window;
  wr.bind_mw.rkey = ibv_inc_rkey(window->rkey);
  EXPECT_EQ(ibv_post_send(qp, &wr, &bad), EINVAL);
  EXPECT_EQ(ibv_dealloc_mw(window), 0);

  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_destroy_srq(other_srq), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_destroy_cq(other_cq), 0);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
  EXPECT_EQ(ibv_dealloc_pd(own), 0);
  EXPECT_EQ(ibv_dealloc_pd(other), 0);
  EXPECT_EQ(ibv_close_device(here), 0);
  EXPECT_EQ(ibv_close_device(there), 0);
}

// By its domain, by its number, and as the id's own queue pair.
// proves: DI-24
TEST_F(DevicesTest, AnIdTakesNoQueuePairOfAnotherDevice) {
  if (!within()) return;
  ibv_context* there = open("second");
  ASSERT_NE(there, nullptr);
  ibv_pd* other = ibv_alloc_pd(there);
  ibv_cq* cq = ibv_create_cq(there, 8, nullptr, nullptr, 0);
  auto a = cm::small_qp();
  a.send_cq = a.recv_cq = cq;
  ibv_qp* qp = ibv_create_qp(other, &a);
  ASSERT_NE(qp, nullptr);
  rdma_cm_id* listener = listen_on(of_loopback(1));
  rdma_cm_id* client = new_id(peers_);
  sockaddr_in to = at(of_loopback(1), ntohs(rdma_get_src_port(listener)));
  ASSERT_EQ(rdma_resolve_addr(client, nullptr, cm::any(to), 1000), 0);
  cm::pass(peers_, RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_EQ(rdma_resolve_route(client, 1000), 0);
  cm::pass(peers_, RDMA_CM_EVENT_ROUTE_RESOLVED);
  auto own = cm::small_qp();
  EXPECT_EQ(rdma_create_qp(client, other, &own), -1);
  EXPECT_EQ(errno, EINVAL);
  ibv_srq_init_attr s{};
  s.attr.max_wr = s.attr.max_sge = 1;
  EXPECT_EQ(rdma_create_srq(client, other, &s), -1);
  EXPECT_EQ(errno, EINVAL);
  rdma_conn_param p{};
  p.qp_num = qp->qp_num;
  EXPECT_EQ(rdma_connect(client, &p), -1);
  EXPECT_EQ(errno, EINVAL);
  client->qp = qp;
  EXPECT_EQ(rdma_connect(client, &p), -1);
  EXPECT_EQ(errno, EINVAL);
  client->qp = nullptr;
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_dealloc_pd(other), 0);
  EXPECT_EQ(ibv_close_device(there), 0);
  EXPECT_EQ(rdma_destroy_id(client), 0);
  EXPECT_EQ(rdma_destroy_id(listener), 0);
}

// An invalid configuration: one line, no device, no crash.
class WrongTest : public DevicesTest {
 protected:
  std::string text() const override {
    return "[device.a]\nport = \"tcp\"\n[device.b]\nport = \"tcp\"\n";
  }
  void prepare() override { testing::internal::CaptureStderr(); }
};

TEST_F(WrongTest, AWrongConfigurationPrintsOneLineAndGivesNoDevice) {
  if (!within()) return;
  EXPECT_EQ(channel_, nullptr);
  EXPECT_TRUE(listed().empty());
  errno = 0;
  EXPECT_EQ(rdma_get_devices(nullptr), nullptr);
  EXPECT_EQ(errno, ENODEV);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "urnic: device b: has the same port as device a: tcp\n");
}

class UnknownTest : public DevicesTest {
 protected:
  void prepare() override {
    setenv("URNIC_DEVICE", "frist", 1);
    testing::internal::CaptureStderr();
  }
};

TEST_F(UnknownTest, AnUnknownDevicePrintsOneLineAndGivesNoDevice) {
  if (!within()) return;
  EXPECT_TRUE(listed().empty());
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "urnic: no device 'frist'; the nearest is 'first'; the configuration has second, "
            "first, rocky, left, right\n");
}

}  // namespace
}  // namespace devices
