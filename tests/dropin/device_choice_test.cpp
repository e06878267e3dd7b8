// The choice of an id's device among several: the one with its address, the one with the route to
// its peer, all of them for a wildcard listener. Losing one device does not affect the others.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

#include "dropin/several_devices.h"
#include "support/quiet_fork.h"

namespace devices {
namespace {

TEST_F(DevicesTest, ABoundIdUsesTheDeviceWithItsAddress) {
  if (!within()) return;
  // A loopback address is a wildcard, as with a kernel.
  const std::pair<std::string, const char*> all[] = {
      {"10.79.0.1", "left"}, {"10.79.0.2", "right"}, {of_loopback(2), ""}, {"127.0.0.1", ""}};
  for (const auto& [address, name] : all) {
    rdma_cm_id* id = new_id(channel_);
    sockaddr_in a = at(address, 0);
    ASSERT_EQ(rdma_bind_addr(id, cm::any(a)), 0) << address;
    EXPECT_EQ(name_of(id), name);
    EXPECT_EQ(rdma_destroy_id(id), 0);
  }
  rdma_cm_id* id = new_id(channel_);
  sockaddr_in nobodys = at("10.79.0.3", 0);
  EXPECT_EQ(rdma_bind_addr(id, cm::any(nobodys)), -1);
  EXPECT_EQ(errno, EADDRNOTAVAIL);
  EXPECT_EQ(id->verbs, nullptr);
  EXPECT_EQ(rdma_destroy_id(id), 0);
}

// proves: DI-25
TEST_F(DevicesTest, TheDeviceWithTheLongestPrefixIsChosen) {
  if (!within()) return;
  // The first two reach every address over the kernel's routes; the wire's two devices are in
  // 10.79.0.0/24, and the first of them in the file is chosen.
  const std::pair<std::string, const char*> all[] = {
      {of_loopback(1), "first"}, {of_loopback(9), "second"}, {"10.79.0.1", "left"},
      {"10.79.0.2", "right"},    {"10.79.0.77", "left"},     {of_loopback(3), "rocky"}};
  for (const auto& [address, name] : all) {
    rdma_cm_id* id = new_id(peers_);
    sockaddr_in to = at(address, 4000);
    ASSERT_EQ(rdma_resolve_addr(id, nullptr, cm::any(to), 1000), 0);
    cm::pass(peers_, RDMA_CM_EVENT_ADDR_RESOLVED);
    EXPECT_EQ(name_of(id), name) << address;
    EXPECT_NE(id->pd, nullptr);
    EXPECT_EQ(id->pd->context, id->verbs);
    EXPECT_EQ(rdma_destroy_id(id), 0);
  }
}

// If the id has a source address, that address decides.
TEST_F(DevicesTest, TheSourceAddressSelectsTheDevice) {
  if (!within()) return;
  rdma_cm_id* listener = listen_on("10.79.0.2");
  EXPECT_EQ(name_of(listener), "right");
  rdma_cm_id* id = new_id(peers_);
  sockaddr_in from = at("10.79.0.1", 0);
  ASSERT_EQ(rdma_bind_addr(id, cm::any(from)), 0);
  const Connected c = connect(listener, id, "10.79.0.2");
  ASSERT_NE(c.server, nullptr);
  EXPECT_EQ(name_of(c.client), "left");
  EXPECT_EQ(name_of(c.server), "right");
  exchange(c);
  destroy(c);
  EXPECT_EQ(rdma_destroy_id(listener), 0);
}

class UnreachedTest : public DevicesTest {
 protected:
  std::string text() const override {
    return "[device.left]\nport = \"mem:name=wire\"\naddress = [\"10.79.0.1/24\"]\n"
           "[device.right]\nport = \"mem:name=wire\"\naddress = [\"10.79.0.2/24\"]\n";
  }
};

TEST_F(UnreachedTest, AnAddressThatNoDeviceReachesIsAnAddressError) {
  if (!within()) return;
  rdma_cm_id* id = new_id(peers_);
  sockaddr_in to = at("10.80.0.1", 4000);
  ASSERT_EQ(rdma_resolve_addr(id, nullptr, cm::any(to), 1000), 0);
  rdma_cm_event* event = cm::next(peers_, RDMA_CM_EVENT_ADDR_ERROR);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->status, -ENODEV);
  EXPECT_EQ(rdma_ack_cm_event(event), 0);
  EXPECT_EQ(id->verbs, nullptr);
  // The call may be repeated.
  sockaddr_in other = at("10.79.0.1", 4000);
  ASSERT_EQ(rdma_resolve_addr(id, nullptr, cm::any(other), 1000), 0);
  cm::pass(peers_, RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(name_of(id), "left");
  EXPECT_EQ(rdma_destroy_id(id), 0);
}

// proves: DI-25
TEST_F(DevicesTest, AWildcardListenerListensOnAllDevices) {
  if (!within()) return;
  rdma_cm_id* listener = listen_on("0.0.0.0");
  EXPECT_EQ(listener->verbs, nullptr);
  std::vector<Connected> all;
  const std::pair<std::string, const char*> ends[] = {{of_loopback(1), "first"},
                                                      {of_loopback(2), "second"},
                                                      {of_loopback(3), "rocky"},
                                                      {"10.79.0.1", "left"},
                                                      {"10.79.0.2", "right"}};
  for (const auto& [address, name] : ends) {
    const Connected c = connect(listener, new_id(peers_), address);
    ASSERT_NE(c.server, nullptr);
    EXPECT_EQ(name_of(c.server), name);
    EXPECT_EQ(c.server->pd->context, c.server->verbs);
    all.push_back(c);
  }
  for (const Connected& c : all) exchange(c);
  for (const Connected& c : all) destroy(c);
  EXPECT_EQ(rdma_destroy_id(listener), 0);
}

// One port for all devices: a port taken on one device is taken for all.
// proves: DI-25
TEST_F(DevicesTest, APortTakenOnOneDeviceIsTakenForAWildcard) {
  if (!within()) return;
  rdma_cm_id* owner = listen_on("10.79.0.2");
  const std::uint16_t port = ntohs(rdma_get_src_port(owner));
  rdma_cm_id* everywhere = new_id(channel_);
  sockaddr_in a = at("0.0.0.0", port);
  EXPECT_EQ(rdma_bind_addr(everywhere, cm::any(a)), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  // No binding was kept on the other devices.
  rdma_cm_id* beside = new_id(channel_);
  sockaddr_in there = at("10.79.0.1", port);
  EXPECT_EQ(rdma_bind_addr(beside, cm::any(there)), 0);
  EXPECT_EQ(rdma_destroy_id(beside), 0);
  EXPECT_EQ(rdma_destroy_id(owner), 0);
  ASSERT_EQ(rdma_bind_addr(everywhere, cm::any(a)), 0);
  EXPECT_EQ(rdma_listen(everywhere, 0), 0);
  rdma_cm_id* late = new_id(channel_);
  EXPECT_EQ(rdma_bind_addr(late, cm::any(there)), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  EXPECT_EQ(rdma_destroy_id(late), 0);
  EXPECT_EQ(rdma_destroy_id(everywhere), 0);
}

// An id bound to the wildcard connects from its port through the device with the route, and
// releases the port on the others.
TEST_F(DevicesTest, AnIdBoundToTheWildcardConnectsThroughOneDevice) {
  if (!within()) return;
  rdma_cm_id* listener = listen_on("10.79.0.1");
  rdma_cm_id* id = new_id(peers_);
  sockaddr_in a = at("0.0.0.0", 0);
  ASSERT_EQ(rdma_bind_addr(id, cm::any(a)), 0);
  const std::uint16_t port = ntohs(rdma_get_src_port(id));
  const Connected c = connect(listener, id, "10.79.0.1");
  ASSERT_NE(c.server, nullptr);
  EXPECT_EQ(name_of(c.client), "left");
  EXPECT_EQ(ntohs(rdma_get_dst_port(c.server)), port);
  rdma_cm_id* beside = new_id(channel_);
  sockaddr_in there = at("10.79.0.2", port);
  EXPECT_EQ(rdma_bind_addr(beside, cm::any(there)), 0);
  EXPECT_EQ(rdma_destroy_id(beside), 0);
  destroy(c);
  EXPECT_EQ(rdma_destroy_id(listener), 0);
}

// The last device's port is listened on by another id, so the ports of the others are given back.
TEST_F(DevicesTest, AnIdThatCannotListenOnAllDevicesListensOnNone) {
  if (!within()) return;
  int on = 1;
  rdma_cm_id* everywhere = new_id(channel_);
  rdma_cm_id* owner = new_id(channel_);
  for (rdma_cm_id* id : {everywhere, owner}) {
    ASSERT_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on), 0);
  }
  sockaddr_in a = at("0.0.0.0", 0);
  ASSERT_EQ(rdma_bind_addr(everywhere, cm::any(a)), 0);
  const std::uint16_t port = ntohs(rdma_get_src_port(everywhere));
  a = at("10.79.0.2", port);
  ASSERT_EQ(rdma_bind_addr(owner, cm::any(a)), 0);
  ASSERT_EQ(rdma_listen(owner, 0), 0);
  EXPECT_EQ(rdma_listen(everywhere, 0), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  EXPECT_EQ(ntohs(rdma_get_src_port(everywhere)), port);
  rdma_cm_id* client = new_id(peers_);
  a = at("10.79.0.1", port);
  ASSERT_EQ(rdma_resolve_addr(client, nullptr, cm::any(a), 1000), 0);
  cm::pass(peers_, RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_EQ(rdma_resolve_route(client, 1000), 0);
  cm::pass(peers_, RDMA_CM_EVENT_ROUTE_RESOLVED);
  auto attr = cm::small_qp();
  ASSERT_EQ(rdma_create_qp(client, nullptr, &attr), 0);
  rdma_conn_param p{};
  ASSERT_EQ(rdma_connect(client, &p), 0);
  cm::pass(peers_, RDMA_CM_EVENT_REJECTED);
  EXPECT_TRUE(cm::silent(channel_, 0));
  rdma_destroy_qp(client);
  EXPECT_EQ(rdma_destroy_id(client), 0);
  // It is bound as before, so it listens when the other id has gone.
  EXPECT_EQ(rdma_destroy_id(owner), 0);
  EXPECT_EQ(rdma_listen(everywhere, 0), 0);
  const Connected c = connect(everywhere, new_id(peers_), "10.79.0.2");
  ASSERT_NE(c.server, nullptr);
  destroy(c);
  EXPECT_EQ(rdma_destroy_id(everywhere), 0);
}

class MissingTest : public DevicesTest {
 protected:
  std::string text() const override {
    return "[device.gone]\nport = \"memif:socket=" + folder_ +
           "/none/wire.sock,role=server\"\n[device.here]\nport = \"tcp:bind=" + of_loopback(1) +
           "\"\n";
  }
};

TEST_F(MissingTest, ADeviceThatFailsToOpenDoesNotAffectOthers) {
  if (!within()) return;
  testing::internal::CaptureStderr();
  EXPECT_EQ(listed(), (std::vector<std::string>{"gone", "here"}));
  int number = 0;
  ibv_context** list = rdma_get_devices(&number);
  ASSERT_NE(list, nullptr);
  ASSERT_EQ(number, 1);
  EXPECT_STREQ(list[0]->device->name, "here");
  rdma_free_devices(list);
  EXPECT_EQ(open("gone"), nullptr);
  rdma_cm_id* listener = listen_on("0.0.0.0");
  const Connected c = connect(listener, new_id(peers_), of_loopback(1));
  ASSERT_NE(c.server, nullptr);
  exchange(c);
  destroy(c);
  EXPECT_EQ(rdma_destroy_id(listener), 0);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.find("urnic: gone: "), 0u) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

class LostTest : public DevicesTest {
 protected:
  std::string text() const override {
    return "link_timeout_ms = 1000\n[device.wire]\nport = \"memif:socket=" + folder_ +
           "/wire.sock,role=server\"\naddress = [\"10.79.0.1/24\"]\n[device.here]\nport = "
           "\"tcp:bind=" +
           of_loopback(1) + "\"\n";
  }
  // The other end of the wire, in another process: it connects, and stays until it is killed.
  pid_t peer(std::uint16_t port) const {
    const pid_t child = urnic::test::quiet_fork();
    if (child != 0) return child;
    alarm(60);
    std::ofstream(folder_ + "/peer.toml")
        << "port = \"memif:socket=" << folder_ << "/wire.sock,role=client\"\n"
        << "address = [\"10.79.0.2/24\"]\n";
    setenv("URNIC_CONFIG", (folder_ + "/peer.toml").c_str(), 1);
    rdma_cm_id* id = nullptr;
    sockaddr_in to = at("10.79.0.1", port);
    auto attr = cm::small_qp();
    rdma_conn_param p{};
    const bool fine = rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP) == 0 &&
                      rdma_resolve_addr(id, nullptr, cm::any(to), 5000) == 0 &&
                      rdma_resolve_route(id, 5000) == 0 &&
                      rdma_create_qp(id, nullptr, &attr) == 0 && rdma_connect(id, &p) == 0;
    if (!fine) _exit(1);
    for (;;) pause();
  }
};

// proves: DI-25
TEST_F(LostTest, OtherDevicesContinueWhenOneIsLost) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer knows no threads behind a fork of a process that had some";
#endif
  if (!within()) return;
  ibv_context *wire = open("wire"), *here = open("here");
  ASSERT_TRUE(wire != nullptr && here != nullptr);
  rdma_cm_id* listener = listen_on("0.0.0.0");
  const pid_t child = peer(ntohs(rdma_get_src_port(listener)));
  rdma_cm_event* request = cm::next(channel_, RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request, nullptr);
  rdma_cm_id* served = request->id;
  EXPECT_EQ(name_of(served), "wire");
  EXPECT_EQ(rdma_ack_cm_event(request), 0);
  auto attr = cm::small_qp();
  ASSERT_EQ(rdma_create_qp(served, nullptr, &attr), 0);
  rdma_conn_param p{};
  ASSERT_EQ(rdma_accept(served, &p), 0);
  cm::pass(channel_, RDMA_CM_EVENT_ESTABLISHED);
  const Connected c = connect(listener, new_id(peers_), of_loopback(1));
  ASSERT_NE(c.server, nullptr);
  exchange(c);

  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  ibv_async_event event;
  ASSERT_EQ(ibv_get_async_event(wire, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_PORT_ERR);
  ibv_ack_async_event(&event);
  cm::pass(channel_, RDMA_CM_EVENT_DISCONNECTED);
  ibv_port_attr port{};
  ASSERT_EQ(ibv_query_port(wire, 1, &port), 0);
  EXPECT_EQ(port.state, IBV_PORT_DOWN);
  ASSERT_EQ(ibv_query_port(here, 1, &port), 0);
  EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
  pollfd quiet{here->async_fd, POLLIN, 0};
  EXPECT_EQ(poll(&quiet, 1, 0), 0) << "an event of another device";
  exchange(c);
  const Connected another = connect(listener, new_id(peers_), of_loopback(1));
  ASSERT_NE(another.server, nullptr);
  exchange(another);
  destroy(another);
  destroy(c);
  destroy({served, nullptr});
  EXPECT_EQ(rdma_destroy_id(listener), 0);
  EXPECT_EQ(ibv_close_device(wire), 0);
  EXPECT_EQ(ibv_close_device(here), 0);
}

}  // namespace
}  // namespace devices
