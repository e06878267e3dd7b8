// A process whose configuration names several devices: two of the kernel's TCP and one of RoCE,
// each at a loopback address of its own, and two at the ends of a wire within the process.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "dropin/cm_ends.h"
#include "dropin/own_process.h"
#include "support/loopback_network.h"

namespace devices {

class DevicesTest : public own_process::Test {
 protected:
  void SetUp() override {
    if (!is_within()) return;
    char name[] = "/tmp/urnic-devices-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    configure(text());
    prepare();
    channel_ = rdma_create_event_channel();
    peers_ = rdma_create_event_channel();
  }
  void TearDown() override {
    for (rdma_event_channel* c : {channel_, peers_}) {
      if (c != nullptr) rdma_destroy_event_channel(c);
    }
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }
  static std::string of_loopback(int last) {
    return urnic::test::loopback_network() + std::to_string(last);
  }
  // The order differs from that of the names.
  virtual std::string text() const {
    return "receive_window = \"1M\"\n[device.second]\nport = \"tcp:bind=" + of_loopback(2) +
           "\"\nidentity = \"ib-like\"\n[device.first]\nport = \"tcp:bind=" + of_loopback(1) +
           "\"\nird = 7\n[device.rocky]\nport = \"udp:bind=" + of_loopback(3) +
           "\"\ntransport = \"roce\"\n[device.left]\nport = \"mem:name=wire\"\naddress = "
           "[\"10.79.0.1/24\"]\n[device.right]\nport = \"mem:name=wire\"\naddress = "
           "[\"10.79.0.2/24\"]\n";
  }
  // Sets more of the environment, before there is a device.
  virtual void prepare() {}
  void configure(const std::string& text) const {
    const std::string file = folder_ + "/urnic.toml";
    std::ofstream(file) << text;
    setenv("URNIC_CONFIG", file.c_str(), 1);
  }
  static sockaddr_in at(const std::string& ip, std::uint16_t port) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    inet_pton(AF_INET, ip.c_str(), &a.sin_addr);
    a.sin_port = htons(port);
    return a;
  }
  static std::string name_of(const rdma_cm_id* id) {
    return id->verbs == nullptr ? "" : id->verbs->device->name;
  }
  static std::vector<std::string> listed() {
    int number = 0;
    ibv_device** list = ibv_get_device_list(&number);
    std::vector<std::string> names;
    for (int i = 0; i < number; ++i) names.emplace_back(ibv_get_device_name(list[i]));
    EXPECT_EQ(list[number], nullptr);
    ibv_free_device_list(list);
    return names;
  }
  static ibv_context* open(const std::string& name) {
    int number = 0;
    ibv_device** list = ibv_get_device_list(&number);
    ibv_context* context = nullptr;
    for (int i = 0; i < number; ++i) {
      if (name == list[i]->name) context = ibv_open_device(list[i]);
    }
    ibv_free_device_list(list);
    return context;
  }
  rdma_cm_id* new_id(rdma_event_channel* channel) const {
    rdma_cm_id* id = nullptr;
    EXPECT_EQ(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), 0);
    return id;
  }
  rdma_cm_id* listen_on(const std::string& ip) const {
    rdma_cm_id* id = new_id(channel_);
    sockaddr_in a = at(ip, 0);
    EXPECT_EQ(rdma_bind_addr(id, cm::any(a)), 0);
    EXPECT_EQ(rdma_listen(id, 0), 0);
    return id;
  }

  // Both ends of a connection, each with a queue pair.
  struct Connected {
    rdma_cm_id *client = nullptr, *server = nullptr;
  };
  // `client` is idle, or bound.
  Connected connect(rdma_cm_id* listener, rdma_cm_id* client, const std::string& to) const {
    SCOPED_TRACE(to);
    sockaddr_in there = at(to, ntohs(rdma_get_src_port(listener)));
    EXPECT_EQ(rdma_resolve_addr(client, nullptr, cm::any(there), 1000), 0);
    cm::pass(peers_, RDMA_CM_EVENT_ADDR_RESOLVED);
    EXPECT_EQ(rdma_resolve_route(client, 1000), 0);
    cm::pass(peers_, RDMA_CM_EVENT_ROUTE_RESOLVED);
    auto attr = cm::small_qp();
    EXPECT_EQ(rdma_create_qp(client, nullptr, &attr), 0);
    rdma_conn_param p{};
    p.responder_resources = 1;
    p.initiator_depth = 2;
    p.retry_count = 6;
    p.rnr_retry_count = 7;
    EXPECT_EQ(rdma_connect(client, &p), 0);
    rdma_cm_event* request = cm::next(channel_, RDMA_CM_EVENT_CONNECT_REQUEST);
    if (request == nullptr) return {client, nullptr};
    rdma_cm_id* server = request->id;
    EXPECT_EQ(request->listen_id, listener);
    EXPECT_EQ(rdma_ack_cm_event(request), 0);
    auto own = cm::small_qp();
    EXPECT_EQ(rdma_create_qp(server, nullptr, &own), 0);
    EXPECT_EQ(rdma_accept(server, &p), 0);
    cm::pass(channel_, RDMA_CM_EVENT_ESTABLISHED);
    cm::pass(peers_, RDMA_CM_EVENT_ESTABLISHED);
    return {client, server};
  }
  // A message arrives unchanged.
  static void exchange(const Connected& c) {
    char from[16] = "over the device", to[16] = {};
    constexpr int kRights = IBV_ACCESS_LOCAL_WRITE;
    ibv_mr* source = ibv_reg_mr(c.client->pd, from, sizeof from, 0);
    ibv_mr* sink = ibv_reg_mr(c.server->pd, to, sizeof to, kRights);
    ASSERT_TRUE(source != nullptr && sink != nullptr);
    ASSERT_EQ(rdma_post_recv(c.server, nullptr, to, sizeof to, sink), 0);
    ASSERT_EQ(rdma_post_send(c.client, nullptr, from, sizeof from, source, IBV_SEND_SIGNALED), 0);
    EXPECT_EQ(cm::wait_for(c.client->send_cq).status, IBV_WC_SUCCESS);
    EXPECT_EQ(cm::wait_for(c.server->recv_cq).status, IBV_WC_SUCCESS);
    EXPECT_STREQ(to, from);
    EXPECT_EQ(ibv_dereg_mr(source), 0);
    EXPECT_EQ(ibv_dereg_mr(sink), 0);
  }
  static void destroy(const Connected& c) {
    for (rdma_cm_id* id : {c.client, c.server}) {
      if (id == nullptr) continue;
      rdma_destroy_qp(id);
      EXPECT_EQ(rdma_destroy_id(id), 0);
    }
  }

  std::string folder_;
  rdma_event_channel *channel_ = nullptr, *peers_ = nullptr;
};

}  // namespace devices
