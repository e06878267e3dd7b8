// Link-local addresses of IPv6 (fe80::/10), which are valid on one link: sin6_scope_id, and GIDs
// without a link.
#include <errno.h>
#include <net/if.h>

#include <cstring>

#include "dropin/cm_ends.h"
#include "dropin/roce_process.h"
#include "support/link_local.h"

namespace {

class LinkLocalTest : public own_process::Test, public testing::WithParamInterface<const char*> {
 protected:
  // False: the test cannot run here.
  bool begin() {
#if defined(__SANITIZE_THREAD__)
    skipped_ = "the sanitizer has a thread, which keeps the process out of a namespace";
    return false;
#endif
    if (!within()) return false;
    if (!urnic::test::enter_link_local_network()) {
      skipped_ = "no network namespace of its own, or no IPv6";
      return false;
    }
    unsetenv("URNIC_CONFIG");
    setenv("URNIC_TRANSPORT", GetParam(), 1);
    setenv("URNIC_PORT", is_roce() ? "udp" : "tcp", 1);
    link_ = if_nametoindex("lo");
    channel_ = rdma_create_event_channel();
    peers_ = rdma_create_event_channel();
    EXPECT_EQ(rdma_create_id(channel_, &listener_, nullptr, RDMA_PS_TCP), 0);
    EXPECT_EQ(rdma_create_id(peers_, &client_, nullptr, RDMA_PS_TCP), 0);
    return true;
  }
  void TearDown() override {
    for (rdma_cm_id* id : {client_, server_, listener_}) {
      if (id == nullptr) continue;
      rdma_destroy_qp(id);
      EXPECT_EQ(rdma_destroy_id(id), 0);
    }
    for (rdma_event_channel* c : {channel_, peers_}) {
      if (c != nullptr) rdma_destroy_event_channel(c);
    }
    if (!skipped_.empty()) GTEST_SKIP() << skipped_;
  }
  bool is_roce() const {
    return std::strcmp(GetParam(), "roce") == 0;
  }

  static sockaddr_in6 at(const char* ip, std::uint32_t link, std::uint16_t port = 0) {
    sockaddr_in6 a{};
    a.sin6_family = AF_INET6;
    inet_pton(AF_INET6, ip, &a.sin6_addr);
    a.sin6_scope_id = link;
    a.sin6_port = htons(port);
    return a;
  }
  static sockaddr* any(sockaddr_in6& a) {
    return reinterpret_cast<sockaddr*>(&a);
  }
  static int error_of(int result) {
    return result == 0 ? 0 : errno;
  }
  // "fe80::1%1", as the id shows it.
  static std::string text_of(const sockaddr* a) {
    sockaddr_in6 six;
    std::memcpy(&six, a, sizeof six);
    char text[INET6_ADDRSTRLEN] = {};
    if (six.sin6_family != AF_INET6) return "not IPv6";
    inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof text);
    return std::string(text) + "%" + std::to_string(six.sin6_scope_id);
  }
  std::string named(const char* ip) const {
    return ip + ("%" + std::to_string(link_));
  }
  static int index_of(ibv_context* c, const char* ip) {
    ibv_gid wanted, gid;
    inet_pton(AF_INET6, ip, wanted.raw);
    ibv_port_attr port{};
    ibv_query_port(c, 1, &port);
    for (int i = 0; i < port.gid_tbl_len; ++i) {
      if (ibv_query_gid(c, 1, i, &gid) == 0 && std::memcmp(&gid, &wanted, sizeof gid) == 0)
        return i;
    }
    return -1;
  }
  // Connects from the client's source to fe80::1, where `listener_` listens, and back.
  void meet(std::uint16_t port) {
    sockaddr_in6 to = at("fe80::1", link_, port);
    ASSERT_EQ(error_of(rdma_resolve_addr(client_, nullptr, any(to), urnic::test::kSoonMs)), 0);
    cm::pass(peers_, RDMA_CM_EVENT_ADDR_RESOLVED);
    ASSERT_EQ(rdma_resolve_route(client_, urnic::test::kSoonMs), 0);
    cm::pass(peers_, RDMA_CM_EVENT_ROUTE_RESOLVED);
    auto attr = cm::small_qp();
    ASSERT_EQ(rdma_create_qp(client_, nullptr, &attr), 0);
    ASSERT_EQ(rdma_connect(client_, nullptr), 0);
    auto* request = cm::next(channel_, RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(request, nullptr);
    server_ = request->id;
    EXPECT_EQ(rdma_ack_cm_event(request), 0);
    attr = cm::small_qp();
    ASSERT_EQ(rdma_create_qp(server_, nullptr, &attr), 0);
    ASSERT_EQ(rdma_accept(server_, nullptr), 0);
    cm::pass(channel_, RDMA_CM_EVENT_ESTABLISHED);
    cm::pass(peers_, RDMA_CM_EVENT_ESTABLISHED);
    EXPECT_EQ(text_of(rdma_get_local_addr(server_)), named("fe80::1"));
    EXPECT_EQ(text_of(rdma_get_peer_addr(client_)), named("fe80::1"));
    EXPECT_EQ(text_of(rdma_get_peer_addr(server_)), text_of(rdma_get_local_addr(client_)));
  }

  std::uint32_t link_ = 0;
  rdma_event_channel *channel_ = nullptr, *peers_ = nullptr;
  rdma_cm_id *listener_ = nullptr, *client_ = nullptr, *server_ = nullptr;

 private:
  std::string skipped_;
};

TEST_P(LinkLocalTest, ProgramsConnectAndKnowTheLinkOfBothEnds) {
  if (!begin()) return;
  sockaddr_in6 own = at("fe80::1", link_), from = at("fe80::2", link_);
  ASSERT_EQ(error_of(rdma_bind_addr(listener_, any(own))), 0);
  EXPECT_EQ(text_of(rdma_get_local_addr(listener_)), named("fe80::1"));
  ASSERT_EQ(rdma_listen(listener_, 1), 0);
  ASSERT_EQ(error_of(rdma_bind_addr(client_, any(from))), 0);
  meet(ntohs(rdma_get_src_port(listener_)));
  EXPECT_EQ(text_of(rdma_get_peer_addr(server_)), named("fe80::2"));
}

TEST_P(LinkLocalTest, AWildcardListensThereToo) {
  if (!begin()) return;
  sockaddr_in6 wildcard = at("::", 0);
  ASSERT_EQ(rdma_bind_addr(listener_, any(wildcard)), 0);
  ASSERT_EQ(rdma_listen(listener_, 1), 0);
  meet(ntohs(rdma_get_src_port(listener_)));
}

// Linux's cma_check_linklocal() has the same rules.
// proves: DI-9
TEST_P(LinkLocalTest, AnAddressWithoutItsLinkIsInvalid) {
  if (!begin()) return;
  sockaddr_in6 own = at("fe80::1", 0), to = at("fe80::2", 0, 9);
  EXPECT_EQ(error_of(rdma_bind_addr(listener_, any(own))), EINVAL);
  EXPECT_EQ(error_of(rdma_resolve_addr(client_, nullptr, any(to), 1000)), EINVAL);
  EXPECT_EQ(error_of(rdma_resolve_addr(client_, any(own), any(to), 1000)), EINVAL);
  own.sin6_scope_id = link_ + 76;  // no such interface
  EXPECT_EQ(error_of(rdma_bind_addr(listener_, any(own))), EADDRNOTAVAIL);
}

TEST_P(LinkLocalTest, ABoundIdKnowsTheLinkOfItsPeer) {
  if (!begin()) return;
  sockaddr_in6 from = at("fe80::2", link_), elsewhere = at("fe80::1", link_ + 76, 9);
  sockaddr_in6 to = at("fe80::1", 0, 9);
  ASSERT_EQ(error_of(rdma_bind_addr(client_, any(from))), 0);
  EXPECT_EQ(error_of(rdma_resolve_addr(client_, nullptr, any(elsewhere), 1000)), EINVAL);
  ASSERT_EQ(error_of(rdma_resolve_addr(client_, nullptr, any(to), 1000)), 0);
  cm::pass(peers_, RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(text_of(rdma_get_peer_addr(client_)), named("fe80::1"));
}

TEST_P(LinkLocalTest, AddressesMayEndInAnInterfaceName) {
  if (!begin()) return;
  char node[] = "fe80::1%lo", service[] = "7471";
  rdma_addrinfo* found = nullptr;
  ASSERT_EQ(rdma_getaddrinfo(node, service, nullptr, &found), 0);
  EXPECT_EQ(text_of(found->ai_dst_addr), named("fe80::1"));
  rdma_freeaddrinfo(found);
}

// proves: DI-12
TEST_P(LinkLocalTest, QueuePairsConnectByLinkLocalGids) {
  if (!begin()) return;
  ibv_device** list = ibv_get_device_list(nullptr);
  ASSERT_NE(list, nullptr);
  ibv_context* context = ibv_open_device(list[0]);
  ASSERT_NE(context, nullptr);
  ibv_pd* pd = ibv_alloc_pd(context);
  const int one = index_of(context, "fe80::1"), two = index_of(context, "fe80::2");
  ASSERT_GT(one, index_of(context, "::1"));
  ASSERT_GT(two, index_of(context, "::1"));
  ibv_gid_entry entry;
  ASSERT_EQ(ibv_query_gid_ex(context, 1, static_cast<std::uint32_t>(one), &entry, 0), 0);
  EXPECT_EQ(entry.ndev_ifindex, link_);

  roce::End a, b;
  a.make(context, pd, IBV_QPT_RC);
  b.make(context, pd, IBV_QPT_RC);
  const auto move = [&](roce::End& end, int own, int peers, const roce::End& peer) {
    ibv_gid to;
    ASSERT_EQ(ibv_query_gid(context, 1, peers, &to), 0);
    ASSERT_EQ(end.init(), 0);
    ibv_qp_attr attr = roce::End::rtr(to, peer.qp->qp_num);
    attr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(own);
    ASSERT_EQ(ibv_modify_qp(end.qp, &attr, roce::End::kRcRtr), 0);
    ASSERT_EQ(end.to_rts(), 0);
  };
  move(a, one, two, b);
  move(b, two, one, a);
  ASSERT_EQ(b.receive(7), 0);
  ibv_sge sge;
  ASSERT_EQ(a.post(a.request(8, IBV_WR_SEND, &sge)), 0);
  EXPECT_EQ(a.next().status, IBV_WC_SUCCESS);
  EXPECT_EQ(b.next().status, IBV_WC_SUCCESS);
  a.destroy();
  b.destroy();
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
  EXPECT_EQ(ibv_close_device(context), 0);
  ibv_free_device_list(list);
}

INSTANTIATE_TEST_SUITE_P(Transports, LinkLocalTest, testing::Values("iwarp", "roce"));

}  // namespace
