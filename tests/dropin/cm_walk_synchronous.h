// Synchronous identifiers and endpoints in the walk over rdma_cm: each call waits for its event.
#pragma once

#include <rdma/rdma_verbs.h>

#include "dropin/cm_walk_world.h"

namespace calls_walk {

class CmSynchronous {
 public:
  explicit CmSynchronous(CmWorld& world, const std::string& address)
      : world_(world), address_(address) {}

  void meet(Dice& dice) {
    rdma_addrinfo* none = nullptr;
    agree_on(error_of(rdma_getaddrinfo(nullptr, nullptr, nullptr, &none)), EINVAL, "no address");
    Endpoint listen(address_, "0", RAI_PASSIVE, dice);
    agree_on(error_of(rdma_listen(listen.id, 1)), 0, "rdma_listen");
    const std::string port = std::to_string(ntohs(rdma_get_src_port(listen.id)));
    world_.tell("meet synchronously at " + port);
    Words ask = Words::request(dice, world_.is_roce), answer = Words::reply(dice, world_.is_roce);
    const bool rejects = dice.one_in(4);
    std::string wrong;  // error of the server, whose thread must not throw
    std::thread server([&] {
      try {
        serve(listen.id, ask, answer, rejects);
      } catch (const urnic::test::Disagreement& d) {
        wrong = d.what();
      }
    });
    try {
      connect(port, ask, answer, rejects, dice);
    } catch (const urnic::test::Disagreement&) {
      server.join();
      agree(wrong.empty(), wrong);  // the server's error came first
      throw;
    }
    server.join();
    agree(wrong.empty(), wrong);
  }

 private:
  // The objects that rdma_getaddrinfo and rdma_create_ep create.
  struct Endpoint {
    rdma_addrinfo* info = nullptr;
    rdma_cm_id* id = nullptr;
    ibv_qp_init_attr attr{};

    Endpoint(const std::string& node, const std::string& service, int flags, Dice& dice) {
      rdma_addrinfo hints{};
      hints.ai_port_space = RDMA_PS_TCP;
      hints.ai_flags = flags | RAI_NUMERICHOST;
      agree_on(rdma_getaddrinfo(node.c_str(), service.c_str(), &hints, &info), 0, "getaddrinfo");
      const bool passive = (flags & RAI_PASSIVE) != 0;
      agree(info->ai_port_space == RDMA_PS_TCP && info->ai_qp_type == IBV_QPT_RC &&
                info->ai_family == AF_INET && info->ai_next == nullptr &&
                (info->ai_src_addr != nullptr) == passive &&
                (info->ai_dst_addr != nullptr) == !passive,
            "what rdma_getaddrinfo says");
      attr.cap = {dice.between(3, 4), dice.between(5, 6), 1, 2, 0};
      attr.sq_sig_all = 1;
      const int made = rdma_create_ep(&id, info, nullptr, &attr);
      if (made != 0) rdma_freeaddrinfo(info);
      agree_on(error_of(made), 0, "rdma_create_ep");
      agree((id->qp != nullptr) == !passive, "the queue pair of an endpoint");
    }
    ~Endpoint() {
      rdma_destroy_ep(id);
      rdma_freeaddrinfo(info);
    }
  };

  void agree_event(const rdma_cm_id* id, rdma_cm_event_type type, const rdma_conn_param& must,
                   const std::string& data) {
    const std::string what = std::string("synchronous ") + rdma_event_str(type) + " ";
    agree(id->event != nullptr, what + "is there");
    agree_on(int{id->event->event}, int{type}, what);
    const rdma_conn_param& is = id->event->param.conn;
    agree_on(is.responder_resources, must.responder_resources, what + "responder_resources");
    agree_on(is.initiator_depth, must.initiator_depth, what + "initiator_depth");
    agree_on(is.rnr_retry_count, must.rnr_retry_count, what + "rnr_retry_count");
    agree_on(is.private_data_len, data.size(), what + "private_data_len");
    agree(data.empty() || std::memcmp(is.private_data, data.data(), data.size()) == 0,
          what + "private data");
  }
  void serve(rdma_cm_id* listen, const Words& ask, Words& answer, bool rejects) {
    rdma_cm_id* id = nullptr;
    agree_on(error_of(rdma_get_request(listen, &id)), 0, "rdma_get_request");
    const auto close = [](rdma_cm_id* gone) { rdma_destroy_ep(gone); };
    const std::unique_ptr<rdma_cm_id, decltype(close)> whole(id, close);
    rdma_conn_param seen{};
    const auto [serves, asks] = Depths::wishes(ask, kIrd, kOrd);
    seen.responder_resources = std::min(asks, kIrd);
    seen.initiator_depth = std::min(serves, kOrd);
    if (world_.is_roce) seen.rnr_retry_count = ask.p.rnr_retry_count;
    agree_event(id, RDMA_CM_EVENT_CONNECT_REQUEST, seen, ask.padded(world_.is_roce, kRequestBytes));
    agree(id->qp != nullptr && id->qp->qp_type == IBV_QPT_RC, "the queue pair of a request");
    if (rejects) {
      agree_on(error_of(rdma_reject(id, "no", 2)), 0, "rdma_reject");
      return;
    }
    std::uint8_t bytes[64] = {};
    ibv_mr* const mr = rdma_reg_msgs(id, bytes, sizeof bytes);
    agree_on(error_of(rdma_post_recv(id, bytes, bytes, sizeof bytes, mr)), 0, "rdma_post_recv");
    agree_on(error_of(rdma_accept(id, answer.param())), 0, "rdma_accept");
    const Depths d(ask, answer, world_.is_roce);
    rdma_conn_param at_server{};
    if (!world_.is_roce) at_server.responder_resources = d.server_serves;
    if (!world_.is_roce) at_server.initiator_depth = d.server_asks;
    agree_event(id, RDMA_CM_EVENT_ESTABLISHED, at_server, {});
    ibv_wc wc{};
    agree_on(rdma_get_recv_comp(id, &wc), 1, "rdma_get_recv_comp");
    agree(wc.status == IBV_WC_SUCCESS && wc.byte_len == 33 && bytes[32] == 77, "the message");
    agree_on(error_of(rdma_disconnect(id)), 0, "rdma_disconnect of the server");
    agree_event(id, RDMA_CM_EVENT_DISCONNECTED, {}, {});
    agree_on(rdma_dereg_mr(mr), 0, "rdma_dereg_mr");
  }
  void connect(const std::string& port, Words& ask, const Words& answer, bool rejects, Dice& dice) {
    Endpoint client(address_, port, 0, dice);
    rdma_cm_id* const id = client.id;
    agree_event(id, RDMA_CM_EVENT_ROUTE_RESOLVED, {}, {});
    agree_on(error_of(rdma_connect(id, ask.param())), rejects ? ECONNREFUSED : 0, "rdma_connect");
    if (rejects) {
      std::string why = "no";
      if (world_.is_roce) why.resize(kRefusalBytes);
      agree_event(id, RDMA_CM_EVENT_REJECTED, {}, why);
      return;
    }
    const Depths d(ask, answer, world_.is_roce);
    rdma_conn_param seen{};
    seen.responder_resources = d.client_serves;
    seen.initiator_depth = d.client_asks;
    if (world_.is_roce) seen.rnr_retry_count = answer.p.rnr_retry_count;
    agree_event(id, RDMA_CM_EVENT_ESTABLISHED, seen, answer.padded(world_.is_roce, kReplyBytes));
    std::uint8_t bytes[33] = {};
    bytes[32] = 77;
    ibv_mr* const mr = rdma_reg_msgs(id, bytes, sizeof bytes);
    agree_on(error_of(rdma_post_send(id, bytes, bytes, sizeof bytes, mr, 0)), 0, "a message");
    ibv_wc wc{};
    agree_on(rdma_get_send_comp(id, &wc), 1, "rdma_get_send_comp");
    agree(wc.status == IBV_WC_SUCCESS && wc.wr_id == reinterpret_cast<std::uintptr_t>(bytes),
          "the completion of a message");
    agree_on(error_of(rdma_disconnect(id)), 0, "rdma_disconnect of the client");
    agree_event(id, RDMA_CM_EVENT_DISCONNECTED, {}, {});
    agree_on(rdma_dereg_mr(mr), 0, "rdma_dereg_mr");
    if (!world_.is_roce) {
      agree_on(error_of(rdma_disconnect(id)), EINVAL, "no further event would come");
    }
  }

  CmWorld& world_;
  const std::string address_;
};

}  // namespace calls_walk
