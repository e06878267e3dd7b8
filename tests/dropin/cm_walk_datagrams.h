// Identifiers for datagrams in the walk over rdma_cm (RoCE): one resolves the queue pair that
// serves a port, and sends to it with the result.
#pragma once

#include "dropin/cm_walk_world.h"

namespace calls_walk {

class CmDatagrams {
 public:
  explicit CmDatagrams(CmWorld& world) : world_(world) {}

  void meet(Dice& dice) {
    rdma_event_channel* const channel = world_.channels.front();
    rdma_cm_id* id = nullptr;
    if (!world_.is_roce) {
      agree_on(error_of(rdma_create_id(channel, &id, nullptr, RDMA_PS_UDP)), EOPNOTSUPP,
               "datagrams over iWARP");
      return;
    }
    world_.tell("datagrams");
    Ends e;
    agree_on(error_of(rdma_create_id(e.servers, &e.listener, &e, RDMA_PS_UDP)), 0, "a listener");
    agree_on(error_of(rdma_create_id(e.clients, &e.client, &e, RDMA_PS_UDP)), 0, "a client");
    agree(e.client->qp_type == IBV_QPT_UD && e.client->ps == RDMA_PS_UDP, "the type of an id");
    agree_on(error_of(rdma_listen(e.listener, 2)), 0, "rdma_listen");
    ask(e, dice);
    if (dice.one_in(3)) {
      agree_on(error_of(rdma_reject(e.server, "no", 2)), 0, "rdma_reject");
      const Event refused(e.clients, RDMA_CM_EVENT_UNREACHABLE, 2);
      refused.agree_data("no", kReplyBytes);
    } else {
      answer(e, dice);
    }
  }

 private:
  static constexpr std::size_t kRequestBytes = 180, kReplyBytes = 136;
  static constexpr std::uint32_t kQkey = 0x01234567;

  struct Ends {
    rdma_event_channel *servers = rdma_create_event_channel(),
                       *clients = rdma_create_event_channel();
    rdma_cm_id *listener = nullptr, *client = nullptr, *server = nullptr;
    ibv_mr *in = nullptr, *out = nullptr;
    ibv_ah* way = nullptr;
    std::uint8_t bytes[128] = {};
    std::uint8_t tos = 0;

    Ends() = default;
    Ends(const Ends&) = delete;
    Ends& operator=(const Ends&) = delete;
    ~Ends() {
      if (way != nullptr) ibv_destroy_ah(way);
      for (ibv_mr* mr : {in, out}) {
        if (mr != nullptr) ibv_dereg_mr(mr);
      }
      for (rdma_cm_id* id : {server, client, listener}) {
        if (id == nullptr) continue;
        rdma_destroy_qp(id);
        rdma_destroy_id(id);
      }
      rdma_destroy_event_channel(servers);
      rdma_destroy_event_channel(clients);
    }
  };
  // The next event of a channel, acknowledged by the destructor.
  struct Event {
    rdma_cm_event* e = nullptr;

    Event(rdma_event_channel* channel, rdma_cm_event_type type, int status = 0) {
      agree(Patience::is_readable(channel->fd), std::string("no ") + rdma_event_str(type));
      agree_on(error_of(rdma_get_cm_event(channel, &e)), 0, "rdma_get_cm_event");
      const auto is = e->event;
      const int its_status = e->status;
      if (is != type || its_status != status) rdma_ack_cm_event(e);
      agree_on(int{is}, int{type}, "an event of datagrams");
      agree_on(its_status, status, rdma_event_str(type));
    }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    ~Event() { rdma_ack_cm_event(e); }
    void agree_data(std::string data, std::size_t bytes) const {
      data.resize(bytes);
      agree_on(e->param.ud.private_data_len, bytes, "private_data_len of datagrams");
      agree(std::memcmp(e->param.ud.private_data, data.data(), bytes) == 0, "private data");
    }
  };
  static std::string words(Dice& dice, std::size_t most) {
    const auto bytes = dice.bytes(dice.between(1, static_cast<std::uint32_t>(most)));
    return {bytes.begin(), bytes.end()};
  }

  void ask(Ends& e, Dice& dice) {
    sockaddr_in to = world_.at(rdma_get_src_port(e.listener));
    if (dice.one_in(2)) {
      e.tos = static_cast<std::uint8_t>(dice.between(1, 60) * 4);
      agree_on(error_of(rdma_set_option(e.client, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &e.tos, 1)),
               0, "RDMA_OPTION_ID_TOS");
    }
    std::uint8_t timeout = 15;
    agree_on(error_of(rdma_set_option(e.client, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
                                      &timeout, 1)),
             EINVAL, "a time-out of datagrams");
    agree_on(error_of(rdma_resolve_addr(e.client, nullptr, CmWorld::any(to), 2000)), 0,
             "resolving");
    { const Event resolved(e.clients, RDMA_CM_EVENT_ADDR_RESOLVED); }
    agree_on(error_of(rdma_connect(e.client, nullptr)), EINVAL, "asking without a route");
    agree_on(error_of(rdma_resolve_route(e.client, 2000)), 0, "rdma_resolve_route");
    { const Event resolved(e.clients, RDMA_CM_EVENT_ROUTE_RESOLVED); }
    const std::string said = words(dice, kRequestBytes);
    rdma_conn_param p{};
    p.private_data = said.data();
    p.private_data_len = static_cast<std::uint8_t>(said.size());
    agree_on(error_of(rdma_connect(e.client, &p)), 0, "rdma_connect");
    const Event asked(e.servers, RDMA_CM_EVENT_CONNECT_REQUEST);
    e.server = asked.e->id;
    agree(asked.e->listen_id == e.listener && e.server->context == &e &&
              e.server->qp_type == IBV_QPT_UD,
          "a request for datagrams");
    agree(asked.e->param.ud.qp_num == 0 && asked.e->param.ud.qkey == 0,
          "a request names no number");
    asked.agree_data(said, kRequestBytes);
  }
  void answer(Ends& e, Dice& dice) {
    const std::string said = words(dice, kReplyBytes);
    rdma_conn_param p{};
    p.private_data = said.data();
    p.private_data_len = static_cast<std::uint8_t>(said.size());
    p.qp_num = dice.between(2, 0xffffff);
    agree_on(error_of(rdma_accept(e.server, nullptr)), EINVAL, "an answer without a number");
    const bool sends = dice.one_in(2);
    if (sends) make_queues(e);
    agree_on(error_of(rdma_accept(e.server, &p)), 0, "rdma_accept");
    agree_on(error_of(rdma_accept(e.server, &p)), EINVAL, "answering twice");
    const Event found(e.clients, RDMA_CM_EVENT_ESTABLISHED);
    found.agree_data(said, kReplyBytes);
    const rdma_ud_param& ud = found.e->param.ud;
    agree_on(ud.qp_num, sends ? e.server->qp->qp_num : p.qp_num, "the number behind a port");
    agree_on(ud.qkey, kQkey, "qkey");
    agree(ud.ah_attr.is_global == 1 && ud.ah_attr.port_num == 1 && ud.ah_attr.grh.hop_limit == 64,
          "the way to it");
    agree_on(ud.ah_attr.grh.traffic_class, e.tos, "the traffic class of the way");
    if (sends) send(e, ud, dice);
  }
  static void make_queues(Ends& e) {
    for (rdma_cm_id* id : {e.client, e.server}) {
      ibv_qp_init_attr a{};
      a.qp_type = IBV_QPT_UD;
      a.cap = {3, 4, 1, 2, 0};
      a.sq_sig_all = 1;
      agree_on(error_of(rdma_create_qp(id, nullptr, &a)), 0, "rdma_create_qp");
      ibv_qp_attr q{};
      ibv_qp_init_attr init{};
      agree_on(ibv_query_qp(id->qp, &q, 0, &init), 0, "ibv_query_qp");
      agree(q.qp_state == IBV_QPS_RTS && q.qkey == kQkey, "a queue pair for datagrams is ready");
    }
  }
  static void send(Ends& e, const rdma_ud_param& to, Dice& dice) {
    e.in = rdma_reg_msgs(e.server, e.bytes, sizeof e.bytes);
    e.out = rdma_reg_msgs(e.client, e.bytes, sizeof e.bytes);
    agree_on(error_of(rdma_post_recv(e.server, &e, e.bytes, 100, e.in)), 0, "rdma_post_recv");
    ibv_ah_attr way = to.ah_attr;
    e.way = ibv_create_ah(e.client->pd, &way);
    agree(e.way != nullptr, "ibv_create_ah");
    ibv_sge sge{reinterpret_cast<std::uint64_t>(e.bytes) + 100, 20, e.out->lkey};
    ibv_send_wr wr{}, *bad = nullptr;
    wr.wr_id = dice.number();
    wr.opcode = IBV_WR_SEND_WITH_IMM;
    wr.imm_data = static_cast<std::uint32_t>(dice.number());
    wr.sg_list = &sge;
    wr.num_sge = 1;
    agree_on(ibv_post_send(e.client->qp, &wr, &bad), EINVAL, "a datagram to nobody");
    wr.wr.ud = {e.way, to.qp_num, to.qkey};
    const auto data = dice.bytes(20);
    std::copy(data.begin(), data.end(), e.bytes + 100);
    agree_on(ibv_post_send(e.client->qp, &wr, &bad), 0, "a datagram");
    ibv_wc sent{}, got{};
    agree(Patience::waits_for([&] { return ibv_poll_cq(e.client->send_cq, 1, &sent) != 0; }) &&
              Patience::waits_for([&] { return ibv_poll_cq(e.server->recv_cq, 1, &got) != 0; }),
          "the completions of a datagram");
    agree(sent.status == IBV_WC_SUCCESS && sent.wr_id == wr.wr_id && sent.opcode == IBV_WC_SEND &&
              sent.qp_num == e.client->qp->qp_num,
          "the completion of a datagram that was sent");
    agree(got.status == IBV_WC_SUCCESS && got.opcode == IBV_WC_RECV &&
              got.wr_id == reinterpret_cast<std::uintptr_t>(&e) && got.imm_data == wr.imm_data,
          "the completion of a datagram that has come");
    agree_on(got.byte_len, 60u, "byte_len of a datagram");
    agree_on(got.src_qp, e.client->qp->qp_num, "src_qp of a datagram");
    agree_on(got.wc_flags, unsigned{IBV_WC_GRH | IBV_WC_WITH_IMM}, "wc_flags of a datagram");
    agree(std::memcmp(e.bytes + 40, data.data(), data.size()) == 0, "the data of a datagram");
    ibv_ah_attr back{};
    agree_on(error_of(ibv_init_ah_from_wc(e.server->verbs, 1, &got,
                                          reinterpret_cast<ibv_grh*>(e.bytes), &back)),
             0, "the way back");
    agree_on(back.grh.traffic_class, to.ah_attr.grh.traffic_class, "the traffic class that came");
  }

  CmWorld& world_;
};

}  // namespace calls_walk
