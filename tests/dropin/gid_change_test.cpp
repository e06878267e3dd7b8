// GIDs of a running program while addresses are added and removed, in a network namespace of its
// own.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>

#include "dropin/own_process.h"
#include "support/soon.h"

namespace {

class GidChangeTest : public own_process::Test, public testing::WithParamInterface<const char*> {
 protected:
  // Sets `address` on an alias of loopback; a null address removes it.
  static bool set_address(const char* alias, const char* address) {
    const int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq r{};
    strcpy(r.ifr_name, alias);
    bool ok;
    if (address == nullptr) {
      r.ifr_flags = 0;
      ok = ioctl(s, SIOCSIFFLAGS, &r) == 0;
    } else {
      auto* const in = reinterpret_cast<sockaddr_in*>(&r.ifr_addr);
      in->sin_family = AF_INET;
      inet_pton(AF_INET, address, &in->sin_addr);
      ok = ioctl(s, SIOCSIFADDR, &r) == 0;
      inet_pton(AF_INET, "255.255.255.255", &in->sin_addr);
      ok = ok && ioctl(s, SIOCSIFNETMASK, &r) == 0;
    }
    close(s);
    return ok;
  }
  static bool enter_namespace() {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
    const int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq r{};
    strcpy(r.ifr_name, "lo");
    r.ifr_flags = IFF_UP;
    const bool ok = ioctl(s, SIOCSIFFLAGS, &r) == 0;
    close(s);
    return ok && set_address("lo:1", "10.9.1.1") && set_address("lo:2", "10.9.2.1");
  }
  static ibv_gid gid_of(const char* address) {
    ibv_gid gid{};
    gid.raw[10] = gid.raw[11] = 0xff;
    inet_pton(AF_INET, address, gid.raw + 12);
    return gid;
  }
  static int index_of(ibv_context* c, const char* address) {
    const ibv_gid wanted = gid_of(address);
    ibv_port_attr port{};
    ibv_query_port(c, 1, &port);
    for (int i = 0; i < port.gid_tbl_len; ++i) {
      ibv_gid gid;
      if (ibv_query_gid(c, 1, i, &gid) == 0 && memcmp(&gid, &wanted, sizeof gid) == 0) return i;
    }
    return -1;
  }
  // A change may arrive in steps (an address, its netmask); the first one is enough.
  static bool is_told(ibv_context* c) {
    pollfd p{c->async_fd, POLLIN, 0};
    bool told = false;
    while (!told && poll(&p, 1, urnic::test::kSoonMs) == 1) {
      ibv_async_event event;
      if (ibv_get_async_event(c, &event) != 0) return false;
      told = event.event_type == IBV_EVENT_GID_CHANGE && event.element.port_num == 1;
      ibv_ack_async_event(&event);
    }
    return told;
  }
};

TEST_P(GidChangeTest, AnIndexStaysAndEachContextGetsChangeEvents) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer has a thread, which keeps the process out of a namespace";
#endif
  if (!within()) return;
  if (!enter_namespace()) GTEST_SKIP() << "no network namespace of its own";
  unsetenv("URNIC_CONFIG");
  const bool roce = strcmp(GetParam(), "roce") == 0;
  setenv("URNIC_TRANSPORT", GetParam(), 1);
  setenv("URNIC_PORT", roce ? "udp" : "tcp", 1);
  ibv_device** list = ibv_get_device_list(nullptr);
  ASSERT_NE(list, nullptr);
  ibv_context* contexts[] = {ibv_open_device(list[0]), ibv_open_device(list[0])};
  ASSERT_NE(contexts[0], nullptr);
  ASSERT_NE(contexts[1], nullptr);
  const int first = index_of(contexts[0], "10.9.1.1"), second = index_of(contexts[0], "10.9.2.1");
  ASSERT_GE(first, 0);
  ASSERT_GE(second, 0);

  ASSERT_TRUE(set_address("lo:3", "10.9.3.1"));
  for (ibv_context* c : contexts) EXPECT_TRUE(is_told(c));
  EXPECT_EQ(index_of(contexts[0], "10.9.1.1"), first);
  EXPECT_EQ(index_of(contexts[0], "10.9.2.1"), second);
  EXPECT_GE(index_of(contexts[1], "10.9.3.1"), 0);

  ASSERT_TRUE(set_address("lo:1", nullptr));
  EXPECT_TRUE(is_told(contexts[1]));
  EXPECT_EQ(index_of(contexts[0], "10.9.1.1"), -1);
  EXPECT_EQ(index_of(contexts[0], "10.9.2.1"), second);
  ibv_gid hole;
  memset(&hole, 0xee, sizeof hole);
  EXPECT_EQ(ibv_query_gid(contexts[0], 1, first, &hole), 0);
  const ibv_gid zero{};
  EXPECT_EQ(memcmp(&hole, &zero, sizeof zero), 0);
  ibv_gid_entry entry;
  EXPECT_EQ(ibv_query_gid_ex(contexts[0], 1, static_cast<std::uint32_t>(first), &entry, 0),
            ENODATA);
  ibv_gid_entry entries[32];
  const ssize_t n = ibv_query_gid_table(contexts[0], entries, 32, 0);
  ASSERT_GT(n, 0);
  for (ssize_t i = 0; i < n; ++i) {
    EXPECT_NE(entries[i].gid_index, static_cast<std::uint32_t>(first)) << "without holes";
  }

  ASSERT_TRUE(set_address("lo:4", "10.9.4.1"));
  EXPECT_TRUE(is_told(contexts[1]));
  EXPECT_EQ(index_of(contexts[0], "10.9.4.1"), first) << "the first hole";
  for (ibv_context* c : contexts) EXPECT_EQ(ibv_close_device(c), 0);
  ibv_free_device_list(list);
}

INSTANTIATE_TEST_SUITE_P(Transports, GidChangeTest, testing::Values("iwarp", "roce"));

}  // namespace
