// The number of Reads that accept grants to a client of another stack.
#include <sys/socket.h>

#include <algorithm>
#include <string>
#include <utility>

#include "dropin/cm_ends.h"

namespace cm {
namespace {

// A hand-written client on the kernel's TCP: it requests IRD and ORD (RFC 6581), and reads the
// values that the Reply grants.
class RequestOfReads {
 public:
  RequestOfReads(std::uint16_t port, std::uint8_t ird, std::uint8_t ord)
      : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to = loopback(port);
    std::string request = "MPA ID Req Frame";
    request += {0x50, 2, 0, 4, 0, static_cast<char>(ird), 0, static_cast<char>(ord)};
    EXPECT_EQ(::connect(fd_, any(to), sizeof to), 0);
    EXPECT_EQ(write(fd_, request.data(), request.size()), static_cast<ssize_t>(request.size()));
  }
  ~RequestOfReads() { close(fd_); }
  RequestOfReads(const RequestOfReads&) = delete;
  RequestOfReads& operator=(const RequestOfReads&) = delete;
  // IRD and ORD of the Reply.
  std::pair<int, int> granted() const {
    std::uint8_t reply[24] = {};
    EXPECT_EQ(recv(fd_, reply, sizeof reply, MSG_WAITALL), static_cast<ssize_t>(sizeof reply));
    return {(reply[20] & 0x3f) << 8 | reply[21], (reply[22] & 0x3f) << 8 | reply[23]};
  }

 private:
  int fd_;
};

TEST_F(CmTest, ARequestForTooManyReadsIsAcceptedWithTheDevicesLimit) {
  for (const bool with_parameters : {false, true}) {
    const RequestOfReads client(ntohs(rdma_get_src_port(listener_)), 128, 128);
    auto* request = next(channel_, RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(request, nullptr);
    rdma_cm_id* id = request->id;
    rdma_conn_param told = request->param.conn;
    EXPECT_EQ(rdma_ack_cm_event(request), 0);
    ibv_device_attr device{};
    ASSERT_EQ(ibv_query_device(id->verbs, &device), 0);
    ASSERT_LT(device.max_qp_rd_atom, 128);
    EXPECT_EQ(told.responder_resources, device.max_qp_rd_atom);
    EXPECT_EQ(told.initiator_depth, device.max_qp_init_rd_atom);
    auto attr = small_qp();
    ASSERT_EQ(rdma_create_qp(id, nullptr, &attr), 0);
    told.private_data = nullptr;
    told.private_data_len = 0;
    EXPECT_EQ(rdma_accept(id, with_parameters ? &told : nullptr), 0);
    const auto [ird, ord] = client.granted();
    EXPECT_GE(ird, device.max_qp_rd_atom);
    EXPECT_EQ(ord, device.max_qp_init_rd_atom);
    rdma_destroy_qp(id);
    EXPECT_EQ(rdma_destroy_id(id), 0);
  }
}

// The depth that the client requests is the one that the server serves, and vice versa.
// proves: DI-8
TEST_F(CmTest, ARequestReportsTheDepthsForTheServer) {
  const RequestOfReads client(ntohs(rdma_get_src_port(listener_)), 2, 5);
  auto* request = next(channel_, RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request, nullptr);
  rdma_cm_id* id = request->id;
  EXPECT_EQ(request->param.conn.responder_resources, 5);
  EXPECT_EQ(request->param.conn.initiator_depth, 2);
  EXPECT_EQ(rdma_ack_cm_event(request), 0);
  EXPECT_EQ(rdma_destroy_id(id), 0);
}

// Neither end requested the resulting values.
TEST_F(CmTest, EstablishedReportsTheAgreedDepths) {
  resolve(ntohs(rdma_get_src_port(listener_)));
  rdma_conn_param p{};
  p.responder_resources = 2;
  p.initiator_depth = 9;
  ASSERT_EQ(rdma_connect(client_, &p), 0);
  auto* event = next(channel_, RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(event, nullptr);
  server_ = event->id;
  EXPECT_EQ(rdma_ack_cm_event(event), 0);
  auto attr = small_qp();
  ASSERT_EQ(rdma_create_qp(server_, nullptr, &attr), 0);
  p.responder_resources = 3;
  p.initiator_depth = 7;
  ASSERT_EQ(rdma_accept(server_, &p), 0);
  event = next(channel_, RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->param.conn.initiator_depth, 2) << "as many as the client serves";
  const int served = event->param.conn.responder_resources;
  EXPECT_GE(served, 3);
  EXPECT_EQ(rdma_ack_cm_event(event), 0);
  event = next(peers_, RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->param.conn.initiator_depth, std::min(served, 9)) << "as many as it serves";
  EXPECT_EQ(event->param.conn.responder_resources, 2);
  EXPECT_EQ(rdma_ack_cm_event(event), 0);
}

}  // namespace
}  // namespace cm
