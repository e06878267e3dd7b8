// Two ends of rdma_cm in one process, used like from C, over the kernel's TCP on loopback.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <unistd.h>

#include <string>

#include "support/soon.h"

namespace cm {

inline sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  a.sin_port = htons(port);
  return a;
}

inline sockaddr* any(sockaddr_in& a) {
  return reinterpret_cast<sockaddr*>(&a);
}

// The next event, which must be `wanted`; not acknowledged yet.
inline rdma_cm_event* next(rdma_event_channel* channel, rdma_cm_event_type wanted) {
  pollfd p{channel->fd, POLLIN, 0};
  if (poll(&p, 1, urnic::test::kSoonMs) != 1) {
    ADD_FAILURE() << "no " << rdma_event_str(wanted);
    return nullptr;
  }
  rdma_cm_event* event = nullptr;
  EXPECT_EQ(rdma_get_cm_event(channel, &event), 0);
  EXPECT_EQ(event->event, wanted) << rdma_event_str(event->event);
  return event;
}

inline void pass(rdma_event_channel* channel, rdma_cm_event_type wanted) {
  auto* event = next(channel, wanted);
  EXPECT_EQ(rdma_ack_cm_event(event), event == nullptr ? -1 : 0);
}

inline bool silent(rdma_event_channel* channel, int ms) {
  pollfd p{channel->fd, POLLIN, 0};
  return poll(&p, 1, ms) == 0;
}

inline ibv_qp_init_attr small_qp() {
  ibv_qp_init_attr a{};
  a.qp_type = IBV_QPT_RC;
  a.cap.max_send_wr = a.cap.max_recv_wr = 8;
  a.cap.max_send_sge = a.cap.max_recv_sge = 1;
  return a;
}

inline ibv_wc wait_for(ibv_cq* cq) {
  ibv_wc wc{};
  const bool came = urnic::test::soon([&] { return ibv_poll_cq(cq, 1, &wc) != 0; });
  EXPECT_TRUE(came) << "no completion";
  return wc;
}

// The state that the library shows, written by a thread of its own.
inline ibv_qp_state shown(const ibv_qp& qp) {
  return __atomic_load_n(&qp.state, __ATOMIC_RELAXED);
}

class CmTest : public testing::Test {
 protected:
  void SetUp() override {
    channel_ = rdma_create_event_channel();
    peers_ = rdma_create_event_channel();
    ASSERT_NE(channel_, nullptr);
    ASSERT_NE(peers_, nullptr);
    ASSERT_EQ(rdma_create_id(channel_, &listener_, this, RDMA_PS_TCP), 0);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    ASSERT_EQ(rdma_bind_addr(listener_, any(a)), 0);
    ASSERT_EQ(rdma_listen(listener_, 0), 0);
    ASSERT_NE(rdma_get_src_port(listener_), 0);
    ASSERT_EQ(rdma_create_id(peers_, &client_, this, RDMA_PS_TCP), 0);
  }
  void TearDown() override {
    if (server_ != nullptr) {
      rdma_destroy_qp(server_);
      EXPECT_EQ(rdma_destroy_id(server_), 0);
    }
    rdma_destroy_qp(client_);
    EXPECT_EQ(rdma_destroy_id(client_), 0);
    EXPECT_EQ(rdma_destroy_id(listener_), 0);
    rdma_destroy_event_channel(channel_);
    rdma_destroy_event_channel(peers_);
  }
  void resolve(std::uint16_t port) {
    sockaddr_in to = loopback(port);
    ASSERT_EQ(rdma_resolve_addr(client_, nullptr, any(to), urnic::test::kSoonMs), 0);
    pass(peers_, RDMA_CM_EVENT_ADDR_RESOLVED);
    ASSERT_NE(client_->verbs, nullptr);
    ASSERT_NE(client_->pd, nullptr);
    ASSERT_EQ(rdma_resolve_route(client_, urnic::test::kSoonMs), 0);
    pass(peers_, RDMA_CM_EVENT_ROUTE_RESOLVED);
    auto attr = small_qp();
    ASSERT_EQ(rdma_create_qp(client_, nullptr, &attr), 0);
    EXPECT_NE(attr.send_cq, nullptr);
  }
  // The request's event is acknowledged; its private data is in `said_`.
  void connect() {
    resolve(ntohs(rdma_get_src_port(listener_)));
    request();
  }
  void request() {
    rdma_conn_param p{};
    p.private_data = "hello";
    p.private_data_len = 5;
    p.responder_resources = 4;
    p.initiator_depth = 5;
    ASSERT_EQ(rdma_connect(client_, &p), 0);
    auto* request = next(channel_, RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(request, nullptr);
    server_ = request->id;
    EXPECT_EQ(request->listen_id, listener_);
    EXPECT_EQ(server_->context, this);
    EXPECT_EQ(server_->verbs, client_->verbs);
    said_.assign(static_cast<const char*>(request->param.conn.private_data),
                 request->param.conn.private_data_len);
    EXPECT_EQ(rdma_ack_cm_event(request), 0);
  }
  void accept() {
    auto attr = small_qp();
    ASSERT_EQ(rdma_create_qp(server_, nullptr, &attr), 0);
    rdma_conn_param p{};
    p.private_data = "welcome";
    p.private_data_len = 7;
    p.responder_resources = 6;
    p.initiator_depth = 3;
    ASSERT_EQ(rdma_accept(server_, &p), 0);
    pass(channel_, RDMA_CM_EVENT_ESTABLISHED);
    auto* event = next(peers_, RDMA_CM_EVENT_ESTABLISHED);
    ASSERT_NE(event, nullptr);
    EXPECT_EQ(std::string(static_cast<const char*>(event->param.conn.private_data),
                          event->param.conn.private_data_len),
              "welcome");
    EXPECT_EQ(rdma_ack_cm_event(event), 0);
  }

  rdma_event_channel *channel_ = nullptr, *peers_ = nullptr;
  rdma_cm_id *listener_ = nullptr, *client_ = nullptr, *server_ = nullptr;
  std::string said_;
};

}  // namespace cm
