// Steps of the walk over rdma_cm: bind and listen, resolve and connect, accept and reject.
#pragma once

#include "dropin/cm_walk_datagrams.h"
#include "dropin/cm_walk_ends.h"
#include "dropin/cm_walk_numbers.h"
#include "dropin/cm_walk_synchronous.h"

namespace calls_walk {

class CmMoves : public CmEnds {
 public:
  explicit CmMoves(CmWorld& world, const std::string& address)
      : CmEnds(world), numbers_(world), synchronous_(world, address), datagrams_(world) {}

  void work(Dice& dice) { work_.work(dice); }
  void meet(Dice& dice) {
    switch (dice.below(3)) {
      case 0:
        return numbers_.meet(dice);
      case 1:
        return synchronous_.meet(dice);
      default:
        return datagrams_.meet(dice);
    }
  }

  void make(Dice& dice) {
    if (world_.ids.size() >= 12) return;
    Id& i = world_.make(*dice.any(world_.channels));
    tell("make " + name(i));
  }

  // ---- before a connection

  void bind(Dice& dice) {
    Id* const i = world_.one(dice, Stage::idle);
    if (i == nullptr) return;
    sockaddr_in a = world_.at(0);
    if (dice.one_in(4)) {  // a bind that fails
      int error = EADDRNOTAVAIL;
      if (dice.one_in(2) && !world_.ports.empty()) {
        a.sin_port = *world_.ports.begin();
        error = EADDRINUSE;
      } else {
        inet_pton(AF_INET, "192.0.2.1", &a.sin_addr);
      }
      agree_on(error_of(rdma_bind_addr(i->id, CmWorld::any(a))), error, "binding in vain");
      agree_on(rdma_get_src_port(i->id), 0, "the port of an id that is not bound");
      return;
    }
    if (!free_ports_.empty() && dice.one_in(2)) {  // bind a used port again
      a.sin_port = free_ports_[dice.below(free_ports_.size())];
    }
    tell("bind " + name(*i) + " to " + std::to_string(ntohs(a.sin_port)));
    agree_on(error_of(rdma_bind_addr(i->id, CmWorld::any(a))), 0, "rdma_bind_addr");
    agree(a.sin_port == 0 || a.sin_port == rdma_get_src_port(i->id), "the port that was named");
    i->stage = Stage::bound;
    take_port(*i);
    agree(i->id->verbs == nullptr, "a loopback address is a wildcard");
  }

  void listen(Dice& dice) {
    Id* i = world_.one(dice, Stage::bound);
    if (i == nullptr && dice.one_in(4)) i = world_.one(dice, Stage::idle);
    if (i == nullptr || world_.those(Stage::listening).size() >= 3) return;
    listen_at(*i, dice);
  }
  void listen_at(Id& i, Dice& dice) {
    i.backlog = static_cast<int>(dice.between(1, 2));
    agree_on(error_of(rdma_listen(i.id, i.backlog)), 0, "rdma_listen");
    const __be16 was = i.port;
    i.stage = Stage::listening;
    take_port(i);
    agree(was == 0 || was == i.port, "who listens has the port it was bound to");
    tell("listen " + name(i) + " at " + std::to_string(ntohs(i.port)));
  }

  // Usually to a listener, seldom to a port without one.
  void resolve_address(Dice& dice) {
    Id* i = world_.one(dice, dice.one_in(4) ? Stage::bound : Stage::idle);
    if (i == nullptr) return;
    if (dice.one_in(6)) return resolve_in_vain(*i);
    Id* const to = world_.one(dice, Stage::listening);
    if (to == nullptr && !dice.one_in(8)) return;
    i->wants_port = to != nullptr ? to->port : htons(9);
    sockaddr_in from = world_.at(0), there = world_.at(i->wants_port);
    const bool names_source = i->stage == Stage::idle && dice.one_in(3);
    tell("resolve " + name(*i));
    agree_on(error_of(rdma_resolve_addr(i->id, names_source ? CmWorld::any(from) : nullptr,
                                        CmWorld::any(there), 2000)),
             0, "rdma_resolve_addr");
    const bool has_port = world_.is_roce || names_source || i->stage == Stage::bound;
    agree_on(rdma_get_src_port(i->id) != 0, has_port, "a port before the connection");
    i->stage = Stage::addressed;
    if (has_port) take_port(*i);
    agree_on(rdma_get_dst_port(i->id), i->wants_port, "the port that will be asked");
    agree(i->id->verbs != nullptr && i->id->pd != nullptr && i->id->port_num == 1,
          "the device of an id whose address is resolved");
    i->want(RDMA_CM_EVENT_ADDR_RESOLVED);
  }
  void resolve_in_vain(Id& i) {
    sockaddr_in nowhere = world_.at(htons(9));
    inet_pton(AF_INET, "255.255.255.255", &nowhere.sin_addr);
    tell("resolve nowhere " + name(i));
    agree_on(error_of(rdma_resolve_addr(i.id, nullptr, CmWorld::any(nowhere), 2000)), 0,
             "rdma_resolve_addr");
    i.want(RDMA_CM_EVENT_ADDR_ERROR, -ENETUNREACH);
    agree_on(rdma_get_src_port(i.id), i.port, "the port of an id that was not resolved");
  }

  void resolve_route(Dice& dice) {
    Id* const i = world_.one(dice, Stage::addressed);
    if (i == nullptr) return;
    tell("route " + name(*i));
    if (dice.one_in(3)) {
      ibv_path_data path{};
      path.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY;
      agree_on(
          error_of(rdma_set_option(i->id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof path)),
          EINVAL, "half a path");
      path.flags |= IBV_PATH_FLAG_BIDIRECTIONAL;
      agree_on(
          error_of(rdma_set_option(i->id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof path)),
          0, "a path that is known");
    } else {
      agree_on(error_of(rdma_resolve_route(i->id, 2000)), 0, "rdma_resolve_route");
    }
    i->stage = Stage::routed;
    i->want(RDMA_CM_EVENT_ROUTE_RESOLVED);
    if (i->port != 0) world_.agree_path(*i);
  }

  void set_option(Dice& dice) {
    if (world_.ids.empty()) return;
    set_option(*world_.ids[dice.below(world_.ids.size())], dice);
  }
  void set_option(Id& i, Dice& dice) {
    const bool is_before =
        i.stage != Stage::connecting && i.stage != Stage::connected && i.stage != Stage::over;
    std::uint8_t value;
    if (dice.one_in(2)) {
      value = static_cast<std::uint8_t>(dice.between(1, 60) * 4);
      agree_on(set(i, RDMA_OPTION_ID_TOS, &value), 0, "RDMA_OPTION_ID_TOS");
      if (is_before) i.tos = value;
    } else {
      value = static_cast<std::uint8_t>(
          dice.between(i.is_passive ? 18u : 15u, i.is_passive ? 20u : 17u));
      agree_on(set(i, RDMA_OPTION_ID_ACK_TIMEOUT, &value), 0, "RDMA_OPTION_ID_ACK_TIMEOUT");
      if (is_before) i.timeout = value;
      value = 32;
      agree_on(set(i, RDMA_OPTION_ID_ACK_TIMEOUT, &value), EINVAL, "a code that there is not");
    }
    int on = 1;
    const bool binds = i.stage == Stage::idle || i.stage == Stage::bound;
    agree_on(error_of(rdma_set_option(i.id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof on)),
             binds ? 0 : EINVAL, "RDMA_OPTION_ID_AFONLY");
    if (!i.is_passive) agree_on(rdma_get_src_port(i.id), i.port, "the port behind an option");
    agree_on(error_of(rdma_set_option(i.id, 7, 0, &on, sizeof on)), ENOSYS, "an unknown level");
  }

  void make_queues(Dice& dice) {
    std::vector<Id*> found;
    for (auto& i : world_.ids) {
      const bool fits =
          i->stage == Stage::addressed || i->stage == Stage::routed || i->stage == Stage::requested;
      if (fits && i->q.qp == nullptr) found.push_back(i.get());
    }
    if (Id** const i = dice.any(found); i != nullptr) queues_.make(**i, dice);
  }

  // ---- connecting

  void connect(Dice& dice) {
    Id* const i = world_.one(dice, Stage::routed);
    if (i == nullptr) return;
    if (i->q.qp == nullptr) queues_.make(*i, dice);
    if (dice.one_in(3)) set_option(*i, dice);
    world_.settle(dice);
    i->ask = Words::request(dice, world_.is_roce);
    if (dice.one_in(4)) fail_to_ask(*i, dice);
    Id* const to = listener_at(i->wants_port);
    if (to != nullptr && to->waiting >= to->backlog) return;
    tell("connect " + name(*i) + (i->ask.given ? "" : " without parameters"));
    if (dice.one_in(8)) all_of_one(i->ask.p, dice);
    agree_on(error_of(rdma_connect(i->id, i->ask.param())), 0, "rdma_connect");
    i->stage = Stage::connecting;
    i->had_connection = true;
    // Over iWARP the port is chosen now. If nothing listens there, it may be released again.
    if (!world_.is_roce && to != nullptr) take_port(*i);
    if (to != nullptr) world_.agree_path(*i);
    if (to == nullptr) {
      refused(*i, world_.is_roce ? kNobodyListens : -ECONNREFUSED, {});
    } else if (dice.one_in(10)) {
      close_unseen(*to, *i, dice);
    } else {
      ++to->waiting;
      to->wanted.push_back({RDMA_CM_EVENT_CONNECT_REQUEST, 0, as_asked(*i),
                            i->ask.padded(world_.is_roce, kRequestBytes), i, false});
    }
    world_.settle(dice);
  }

  // ---- answering

  void answer(Dice& dice) {
    Id* const s = world_.one(dice, Stage::requested);
    if (s == nullptr || s->peer == nullptr) return;
    world_.settle(dice);
    if (dice.one_in(3)) set_option(*s, dice);
    s->answer = Words::reply(dice, world_.is_roce);
    const auto choice = dice.below(8);
    if (choice == 0) return reject(*s, dice);
    if (s->q.qp == nullptr) {
      if (!world_.is_roce) {
        agree_on(error_of(rdma_accept(s->id, nullptr)), EINVAL, "accepting without a queue pair");
      }
      queues_.make(*s, dice);
    }
    if (choice == 1) {
      rdma_conn_param p{};
      (dice.one_in(2) ? p.responder_resources : p.initiator_depth) = 200;
      agree_on(error_of(rdma_accept(s->id, &p)), EINVAL, "more Reads than the device has");
    }
    if (choice == 2 && world_.is_roce) return accept_too_much(*s, dice);
    accept(*s, dice);
  }

  // Takes one step towards a connection.
  void go_on(Dice& dice) {
    if (world_.those(Stage::listening).empty()) {
      if (world_.those(Stage::idle).empty()) make(dice);
      Id* const i = world_.one(dice, Stage::idle);
      if (i != nullptr) return listen_at(*i, dice);
    }
    const auto has = [&](Stage s) { return !world_.those(s).empty() && !dice.one_in(3); };
    if (has(Stage::requested)) return answer(dice);
    if (has(Stage::routed)) return connect(dice);
    if (has(Stage::addressed)) return resolve_route(dice);
    if (has(Stage::idle)) return resolve_address(dice);
    make(dice);
  }

  // ---- other calls

  void migrate(Dice& dice) {
    if (world_.ids.empty()) return;
    Id& i = *world_.ids[dice.below(world_.ids.size())];
    if (i.stage == Stage::listening) world_.settle(dice);
    rdma_event_channel* const to = *dice.any(world_.channels);
    tell("migrate " + name(i) + " with " + std::to_string(i.wanted.size()) + " events");
    agree_on(error_of(rdma_migrate_id(i.id, to)), 0, "rdma_migrate_id");
    agree(i.id->channel == to, "the channel of an id that has moved");
    i.channel = to;
  }
  void acknowledge(Dice& dice) {
    for (auto& i : world_.ids) {
      if (!i->held.empty() && dice.one_in(2)) world_.acknowledge(*i, dice.below(i->held.size()));
    }
  }
  // Calls that do not fit the stage must fail and change nothing.
  void misuse(Dice& dice) {
    if (world_.ids.empty()) return;
    Id& i = *world_.ids[dice.below(world_.ids.size())];
    rdma_conn_param p{};
    sockaddr_in a = world_.at(htons(9));
    const auto wrong = [&](int result, const char* call) {
      agree_on(error_of(result), EINVAL, std::string(call) + " of " + name(i));
    };
    if (i.stage != Stage::idle && i.stage != Stage::bound) {
      wrong(rdma_resolve_addr(i.id, nullptr, CmWorld::any(a), 1), "rdma_resolve_addr");
      wrong(rdma_listen(i.id, 1), "rdma_listen");
    }
    if (i.stage != Stage::idle) wrong(rdma_bind_addr(i.id, CmWorld::any(a)), "rdma_bind_addr");
    if (i.stage != Stage::addressed) wrong(rdma_resolve_route(i.id, 1), "rdma_resolve_route");
    if (i.stage != Stage::routed) wrong(rdma_connect(i.id, &p), "rdma_connect");
    if (i.stage != Stage::requested) {
      wrong(rdma_accept(i.id, &p), "rdma_accept");
      wrong(rdma_reject(i.id, nullptr, 0), "rdma_reject");
    }
    if (i.stage != Stage::connected && i.stage != Stage::over) {
      wrong(rdma_disconnect(i.id), "rdma_disconnect");
    }
    if (world_.is_roce || i.stage != Stage::connected)
      wrong(rdma_establish(i.id), "rdma_establish");
    if (!i.had_connection) wrong(rdma_notify(i.id, IBV_EVENT_COMM_EST), "rdma_notify");
    rdma_cm_id* none = nullptr;
    wrong(rdma_get_request(i.id, &none), "rdma_get_request");
    if (i.stage < Stage::addressed) {
      ibv_qp_init_attr q{};
      q.qp_type = IBV_QPT_RC;
      wrong(rdma_create_qp(i.id, nullptr, &q), "rdma_create_qp");
    }
  }

 private:
  static int set(const Id& i, int option, std::uint8_t* value) {
    return error_of(rdma_set_option(i.id, RDMA_OPTION_ID, option, value, 1));
  }

  Id* listener_at(__be16 port) {
    for (Id* l : world_.those(Stage::listening)) {
      if (l->port == port) return l;
    }
    return nullptr;
  }

  // 255 means the maximum.
  static void all_of_one(rdma_conn_param& p, Dice& dice) {
    (dice.one_in(2) ? p.responder_resources : p.initiator_depth) = 255;
  }
  // The parameters that CONNECT_REQUEST must report.
  rdma_conn_param as_asked(const Id& i) const {
    rdma_conn_param p{};
    const auto [serves, asks] = Depths::wishes(i.ask, kIrd, kOrd);
    p.responder_resources = std::min(asks, kIrd);  // at most the device's limit
    p.initiator_depth = std::min(serves, kOrd);
    if (!world_.is_roce) return p;
    p.retry_count = i.ask.p.retry_count;
    p.rnr_retry_count = i.ask.p.rnr_retry_count;
    p.flow_control = i.ask.p.flow_control;
    p.srq = i.q.has_srq ? 1 : 0;
    p.qp_num = i.q.qp->qp_num;
    return p;
  }
  void fail_to_ask(Id& i, Dice& dice) {
    rdma_conn_param p{};
    const std::string much(kRequestBytes + 1, 'x');
    if (world_.is_roce && dice.one_in(2)) {
      p.private_data = much.data();
      p.private_data_len = kRequestBytes + 1;
    } else {
      (dice.one_in(2) ? p.responder_resources : p.initiator_depth) = kIrd + 1;
    }
    agree_on(error_of(rdma_connect(i.id, &p)), EINVAL, "asking for more than there is");
  }
  // The listener is destroyed while the request waits in its channel.
  void close_unseen(Id& listener, Id& client, Dice& dice) {
    tell(name(listener) + " goes before it has seen that");
    agree(Patience::is_readable(listener.channel->fd), "a request comes");
    client.peer = nullptr;
    refused(client, world_.is_roce ? kRejected : -ECONNREFUSED, {});
    for (auto& i : world_.ids) {
      if (i->listener == &listener) i->listener = nullptr;
    }
    const auto call = [&] {
      agree_on(error_of(rdma_destroy_id(listener.id)), 0, "rdma_destroy_id");
    };
    if (listener.held.empty()) {
      call();
    } else {
      destroy_waits(
          "rdma_destroy_id", call,
          [&] {
            while (!listener.held.empty()) world_.acknowledge(listener, 0);
          },
          [&] { listener.held.clear(), listener.id = nullptr; });
    }
    give_port_back(listener);
    world_.forget(listener);
    world_.settle(dice);
  }
  void reject(Id& s, Dice& dice) {
    const std::string why(s.answer.data.substr(0, dice.below(kRefusalBytes)));
    tell("reject " + name(*s.peer));
    agree_on(error_of(rdma_reject(s.id, why.empty() ? nullptr : why.data(),
                                  static_cast<std::uint8_t>(why.size()))),
             0, "rdma_reject");
    refused(*s.peer, world_.is_roce ? kRejected : -ECONNREFUSED, why);
    answered(s);
    part(s);
    s.stage = Stage::over;
    world_.settle(dice);
  }
  void accept_too_much(Id& s, Dice& dice) {
    rdma_conn_param p{};
    const std::string much(kReplyBytes + 1, 'x');
    p.private_data = much.data();
    p.private_data_len = kReplyBytes + 1;
    tell("accept with too much " + name(s));
    agree_on(error_of(rdma_accept(s.id, &p)), EINVAL, "more private data than fits");
    s.stage = Stage::over;
    refuse_by_leaving(s, dice);
  }
  void accept(Id& s, Dice& dice) {
    Id& c = *s.peer;
    tell("accept " + name(c) + (s.answer.given ? "" : " without parameters"));
    if (dice.one_in(8)) all_of_one(s.answer.p, dice);
    agree_on(error_of(rdma_accept(s.id, s.answer.param())), 0, "rdma_accept");
    answered(s);
    c.answer = s.answer;
    s.had_connection = true;
    s.port = rdma_get_src_port(s.id);
    c.stage = s.stage = Stage::connected;
    const bool roce = world_.is_roce;
    const Depths d(c.ask, s.answer, roce);
    rdma_conn_param at_client{}, at_server{};
    at_client.responder_resources = d.client_serves;
    at_client.initiator_depth = d.client_asks;
    if (roce) {
      at_client.rnr_retry_count = s.answer.p.rnr_retry_count;
      at_client.flow_control = s.answer.p.flow_control;
      at_client.srq = s.q.has_srq ? 1 : 0;
      at_client.qp_num = s.q.qp->qp_num;
    } else {
      at_server.responder_resources = d.server_serves;
      at_server.initiator_depth = d.server_asks;
    }
    c.want(RDMA_CM_EVENT_ESTABLISHED, 0, at_client, s.answer.padded(roce, kReplyBytes));
    s.want(RDMA_CM_EVENT_ESTABLISHED, 0, at_server);
    world_.settle(dice);
    queues_.agree_connected(c, s);
    agree_on(rdma_get_src_port(c.id), rdma_get_dst_port(s.id), "the port of the client");
    agree_on(rdma_get_src_port(s.id), c.wants_port, "the port of the server");
    world_.agree_path(c);
    world_.agree_path(s);
  }

  CmNumbers numbers_;
  CmSynchronous synchronous_;
  CmDatagrams datagrams_;
};

}  // namespace calls_walk
