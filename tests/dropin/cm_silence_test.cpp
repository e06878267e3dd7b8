// Which event rdma_cm reports when the peer does not answer while a connection is being set up, at
// the end that connects and at the end that accepts, over each transport.
#include <errno.h>
#include <sys/socket.h>

#include "dropin/several_devices.h"

namespace devices {
namespace {

class SilenceTest : public DevicesTest {
 protected:
  std::string text() const override {
    return "[device.iwarp]\nport = \"tcp:bind=" + of_loopback(1) +
           "\"\n[device.roce]\nport = \"udp:bind=" + of_loopback(3) +
           "\"\ntransport = \"roce\"\n[device.left]\nport = \"mem:name=wire\"\naddress = "
           "[\"10.79.0.1/24\"]\n[device.right]\nport = \"mem:name=wire\"\naddress = "
           "[\"10.79.0.2/24\"]\n";
  }
  void SetUp() override {
    DevicesTest::SetUp();
    if (!is_within()) return;
    silent_listener_ = socket(AF_INET, SOCK_STREAM, 0);
    silent_client_ = socket(AF_INET, SOCK_STREAM, 0);
  }
  void TearDown() override {
    for (rdma_cm_id* id : ids_) {
      rdma_destroy_qp(id);
      EXPECT_EQ(rdma_destroy_id(id), 0);
    }
    close(silent_listener_);
    close(silent_client_);
    DevicesTest::TearDown();
  }
  rdma_cm_id* keep(rdma_cm_id* id) {
    ids_.push_back(id);
    return id;
  }
  static void make_qp(rdma_cm_id* id) {
    auto attr = cm::small_qp();
    ASSERT_EQ(rdma_create_qp(id, nullptr, &attr), 0);
  }
  // Begins to connect from an address of one of the devices; without a queue pair the peer gets
  // the number of another one.
  rdma_cm_id* connect_from(const std::string& own, sockaddr_in to, bool has_qp = true) {
    rdma_cm_id* const id = keep(new_id(peers_));
    sockaddr_in from = at(own, 0);
    EXPECT_EQ(rdma_resolve_addr(id, cm::any(from), cm::any(to), 1000), 0);
    cm::pass(peers_, RDMA_CM_EVENT_ADDR_RESOLVED);
    EXPECT_EQ(rdma_resolve_route(id, 1000), 0);
    cm::pass(peers_, RDMA_CM_EVENT_ROUTE_RESOLVED);
    if (has_qp) make_qp(id);
    rdma_conn_param p{};
    p.qp_num = 0x123456;
    EXPECT_EQ(rdma_connect(id, &p), 0);
    return id;
  }
  rdma_cm_id* next_request() {
    rdma_cm_event* const e = cm::next(channel_, RDMA_CM_EVENT_CONNECT_REQUEST);
    if (e == nullptr) return nullptr;
    rdma_cm_id* const id = keep(e->id);
    EXPECT_EQ(rdma_ack_cm_event(e), 0);
    return id;
  }
  struct Reported {
    rdma_cm_event_type type;
    int status;
    bool operator==(const Reported&) const = default;
  };
  // The next event of each of these, by its id.
  static std::map<const rdma_cm_id*, Reported> next_of(rdma_event_channel* channel,
                                                       std::size_t many) {
    std::map<const rdma_cm_id*, Reported> all;
    while (all.size() < many) {
      pollfd p{channel->fd, POLLIN, 0};
      rdma_cm_event* e = nullptr;
      if (poll(&p, 1, urnic::test::kSoonMs) != 1 || rdma_get_cm_event(channel, &e) != 0) break;
      all.emplace(e->id, Reported{e->event, e->status});
      EXPECT_EQ(rdma_ack_cm_event(e), 0);
    }
    return all;
  }

  std::vector<rdma_cm_id*> ids_;
  int silent_listener_ = -1, silent_client_ = -1;
};

// All of them wait for the same ten seconds.
// proves: DI-8
TEST_F(SilenceTest, APeerThatDoesNotAnswerIsUnreachableButNotToTheAcceptingEndOfIwarp) {
  if (!within()) return;
  // A TCP listener that sends no MPA Reply.
  sockaddr_in tcp = at(of_loopback(1), 0);
  socklen_t length = sizeof tcp;
  ASSERT_EQ(bind(silent_listener_, cm::any(tcp), sizeof tcp), 0);
  ASSERT_EQ(listen(silent_listener_, 1), 0);
  ASSERT_EQ(getsockname(silent_listener_, cm::any(tcp), &length), 0);
  const rdma_cm_id* const without_reply = connect_from(of_loopback(1), tcp);
  // A TCP client that requests an RTR frame (RFC 6581) and does not send it.
  rdma_cm_id* const listener = keep(listen_on("0.0.0.0"));
  sockaddr_in to = at(of_loopback(1), ntohs(rdma_get_src_port(listener)));
  std::string request = "MPA ID Req Frame";
  request += {0x50, 2, 0, 4, '\x80', 2, '\x80', 2};  // A, and C: a Write of no bytes
  ASSERT_EQ(::connect(silent_client_, cm::any(to), sizeof to), 0);
  ASSERT_EQ(write(silent_client_, request.data(), request.size()),
            static_cast<ssize_t>(request.size()));
  rdma_cm_id* const without_rtr = next_request();
  ASSERT_NE(without_rtr, nullptr);
  make_qp(without_rtr);
  ASSERT_EQ(rdma_accept(without_rtr, nullptr), 0);
  // No host has the address.
  const rdma_cm_id* const without_rep = connect_from(of_loopback(3), at(of_loopback(77), 9));
  const rdma_cm_id* const without_arp = connect_from("10.79.0.1", at("10.79.0.77", 9));
  // A client that does not call rdma_establish, so that no RTU is sent.
  to = at(of_loopback(3), ntohs(rdma_get_src_port(listener)));
  connect_from(of_loopback(3), to, false);
  rdma_cm_id* const without_rtu = next_request();
  ASSERT_NE(without_rtu, nullptr);
  make_qp(without_rtu);
  ASSERT_EQ(rdma_accept(without_rtu, nullptr), 0);
  cm::pass(peers_, RDMA_CM_EVENT_CONNECT_RESPONSE);

  auto accepting = next_of(channel_, 2);
  EXPECT_EQ(accepting[without_rtr], (Reported{RDMA_CM_EVENT_CONNECT_ERROR, -ETIMEDOUT}));
  EXPECT_EQ(accepting[without_rtu], (Reported{RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT}));
  auto connecting = next_of(peers_, 4);
  EXPECT_EQ(connecting[without_reply], (Reported{RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT}));
  EXPECT_EQ(connecting[without_rep], (Reported{RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT}));
  EXPECT_EQ(connecting[without_arp], (Reported{RDMA_CM_EVENT_UNREACHABLE, -EHOSTUNREACH}));
}

}  // namespace
}  // namespace devices
