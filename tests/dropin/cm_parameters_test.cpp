// rdma_connect and rdma_accept without parameters: the device's settings and the maxima take their
// place. The two ends are on devices with different settings, so no value can stand for another.
#include "dropin/several_devices.h"

namespace devices {
namespace {

class ParametersTest : public DevicesTest, public testing::WithParamInterface<bool> {
 protected:
  bool is_roce() const { return GetParam(); }
  std::string text() const override {
    const std::string transport = is_roce() ? "transport = \"roce\"\n" : "";
    const std::string port = is_roce() ? "port = \"udp:bind=" : "port = \"tcp:bind=";
    return "[device.client]\n" + port + of_loopback(1) + "\"\nird = 5\nord = 7\n" + transport +
           "[device.server]\n" + port + of_loopback(2) + "\"\nird = 11\nord = 13\n" + transport;
  }
  void TearDown() override {
    for (rdma_cm_id* id : {client_, server_, listener_}) {
      if (id == nullptr) continue;
      rdma_destroy_qp(id);
      EXPECT_EQ(rdma_destroy_id(id), 0);
    }
    DevicesTest::TearDown();
  }
  // The parameters of the request, whose id is `server_`.
  rdma_conn_param request(rdma_conn_param* asked) {
    rdma_conn_param said{};
    listener_ = listen_on("0.0.0.0");
    client_ = new_id(peers_);
    sockaddr_in from = at(of_loopback(1), 0);
    sockaddr_in to = at(of_loopback(2), ntohs(rdma_get_src_port(listener_)));
    EXPECT_EQ(rdma_resolve_addr(client_, cm::any(from), cm::any(to), 1000), 0);
    cm::pass(peers_, RDMA_CM_EVENT_ADDR_RESOLVED);
    EXPECT_EQ(rdma_resolve_route(client_, 1000), 0);
    cm::pass(peers_, RDMA_CM_EVENT_ROUTE_RESOLVED);
    auto attr = cm::small_qp();
    EXPECT_EQ(rdma_create_qp(client_, nullptr, &attr), 0);
    EXPECT_EQ(rdma_connect(client_, asked), 0);
    rdma_cm_event* const e = cm::next(channel_, RDMA_CM_EVENT_CONNECT_REQUEST);
    if (e == nullptr) return said;
    server_ = e->id;
    said = e->param.conn;
    EXPECT_EQ(rdma_ack_cm_event(e), 0);
    EXPECT_EQ(name_of(client_), "client");
    EXPECT_EQ(name_of(server_), "server");
    return said;
  }
  static rdma_conn_param next_established(rdma_event_channel* channel) {
    rdma_conn_param said{};
    rdma_cm_event* const e = cm::next(channel, RDMA_CM_EVENT_ESTABLISHED);
    if (e == nullptr) return said;
    said = e->param.conn;
    EXPECT_EQ(rdma_ack_cm_event(e), 0);
    return said;
  }
  void accept(rdma_conn_param* answer) {
    auto attr = cm::small_qp();
    ASSERT_EQ(rdma_create_qp(server_, nullptr, &attr), 0);
    ASSERT_EQ(rdma_accept(server_, answer), 0);
  }

  rdma_cm_id *listener_ = nullptr, *client_ = nullptr, *server_ = nullptr;
};

// proves: DI-8
TEST_P(ParametersTest, WithoutParametersTheClientRequestsWhatItsDeviceHasAndTheMostRetries) {
  if (!within()) return;
  const rdma_conn_param said = request(nullptr);
  EXPECT_EQ(said.responder_resources, 7) << "the client's ord";
  EXPECT_EQ(said.initiator_depth, 5) << "the client's ird";
  EXPECT_EQ(said.retry_count, is_roce() ? 7 : 0);
  EXPECT_EQ(said.rnr_retry_count, is_roce() ? 7 : 0);
  ASSERT_NE(server_, nullptr);
  accept(nullptr);
  const rdma_conn_param agreed = next_established(peers_);
  EXPECT_EQ(agreed.responder_resources, 5);
  EXPECT_EQ(agreed.initiator_depth, 7);
  EXPECT_EQ(agreed.rnr_retry_count, is_roce() ? 7 : 0);
}

// 255 is the maximum of each of the two fields by itself.
TEST_P(ParametersTest, AMaximalDepthIsThatOfTheDeviceAndLeavesTheOtherDepth) {
  if (!within()) return;
  rdma_conn_param p{};
  p.responder_resources = 255;
  p.initiator_depth = 3;
  const rdma_conn_param said = request(&p);
  EXPECT_EQ(said.responder_resources, 3);
  EXPECT_EQ(said.initiator_depth, 5) << "the client's ird";
  ASSERT_NE(server_, nullptr);
  p.responder_resources = 2;
  p.initiator_depth = 255;
  accept(&p);
  const rdma_conn_param agreed = next_established(peers_);
  EXPECT_EQ(agreed.responder_resources, 5) << "all that the client offers";
  EXPECT_EQ(agreed.initiator_depth, is_roce() ? 2 : 3);
}

INSTANTIATE_TEST_SUITE_P(Transports, ParametersTest, testing::Bool(),
                         [](const auto& i) { return i.param ? "Roce" : "Iwarp"; });

}  // namespace
}  // namespace devices
