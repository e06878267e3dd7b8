// Identifiers of rdma_cm whose device speaks RoCE; it sends to its own address.
#pragma once

#include <netinet/in.h>

#include <string>

#include "dropin/cm_ends.h"
#include "dropin/roce_process.h"

namespace roce {

inline sockaddr_in at(std::uint16_t port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  inet_pton(AF_INET, address().c_str(), &a.sin_addr);
  a.sin_port = htons(port);
  return a;
}
inline std::string padded(std::string text, std::size_t bytes) {
  text.resize(bytes);
  return text;
}

// Channels, and two identifiers of that port space: one bound, one for a client.
class RoceIdsTest : public RoceTest {
 protected:
  explicit RoceIdsTest(rdma_port_space space) : space_(space) {}
  void SetUp() override {
    RoceTest::SetUp();
    if (!is_within()) return;
    listeners_ = rdma_create_event_channel();
    clients_ = rdma_create_event_channel();
    ASSERT_EQ(rdma_create_id(listeners_, &listener_, this, space_), 0);
    sockaddr_in a = at(0);
    ASSERT_EQ(rdma_bind_addr(listener_, cm::any(a)), 0);
    ASSERT_EQ(rdma_create_id(clients_, &client_, nullptr, space_), 0);
  }
  void TearDown() override {
    for (rdma_cm_id* id : {client_, server_, listener_}) {
      if (id == nullptr) continue;
      rdma_destroy_qp(id);
      EXPECT_EQ(rdma_destroy_id(id), 0);
    }
    if (listeners_ != nullptr) rdma_destroy_event_channel(listeners_);
    if (clients_ != nullptr) rdma_destroy_event_channel(clients_);
    RoceTest::TearDown();
  }
  std::uint16_t port() const { return ntohs(rdma_get_src_port(listener_)); }
  void resolve(std::uint16_t to_port) {
    sockaddr_in to = at(to_port);
    ASSERT_EQ(rdma_resolve_addr(client_, nullptr, cm::any(to), 1000), 0);
    cm::pass(clients_, RDMA_CM_EVENT_ADDR_RESOLVED);
    ASSERT_EQ(rdma_resolve_route(client_, 1000), 0);
    cm::pass(clients_, RDMA_CM_EVENT_ROUTE_RESOLVED);
  }

  rdma_event_channel *listeners_ = nullptr, *clients_ = nullptr;
  rdma_cm_id *listener_ = nullptr, *client_ = nullptr, *server_ = nullptr;

 private:
  const rdma_port_space space_;
};

}  // namespace roce
