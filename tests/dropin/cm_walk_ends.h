// How connections and identifiers of the walk over rdma_cm end, and what must remain of them.
#pragma once

#include "dropin/cm_walk_work.h"

namespace calls_walk {

class CmEnds {
 public:
  explicit CmEnds(CmWorld& world) : world_(world), queues_(world), work_(world) {}

  void disconnect(Dice& dice) {
    Id* const i = world_.one(dice, dice.one_in(4) ? Stage::over : Stage::connected);
    if (i == nullptr) return;
    world_.settle(dice);
    if (i->stage == Stage::over) {
      agree_on(error_of(rdma_disconnect(i->id)), i->had_connection ? 0 : EINVAL,
               "rdma_disconnect behind the end");
      return;
    }
    tell("disconnect " + name(*i));
    const bool both = i->peer != nullptr && dice.one_in(3);
    agree_on(error_of(rdma_disconnect(i->id)), 0, "rdma_disconnect");
    if (both) agree_on(error_of(rdma_disconnect(i->peer->id)), 0, "rdma_disconnect of both");
    over(*i, dice);
  }

  void destroy_queues(Dice& dice) {
    std::vector<Id*> found;
    for (auto& i : world_.ids) {
      if (i->q.qp != nullptr && i->stage != Stage::connecting) found.push_back(i.get());
    }
    Id** const at = dice.any(found);
    if (at == nullptr) return;
    Id& i = **at;
    if (i.stage == Stage::connected) world_.settle(dice);
    tell("destroy the queue pair of " + name(i));
    const bool ends = i.stage == Stage::connected;
    queues_.destroy(i);
    if (ends) over(i, dice);
  }

  void destroy(Dice& dice) {
    if (!world_.ids.empty()) destroy(*world_.ids[dice.below(world_.ids.size())], dice);
  }
  void destroy(Id& i, Dice& dice) {
    if (i.stage >= Stage::connecting || i.stage == Stage::listening) world_.settle(dice);
    tell("destroy " + name(i) + (i.held.empty() ? "" : ", which has events"));
    const bool leaves_queues = i.q.qp != nullptr && dice.one_in(3);
    if (i.q.qp != nullptr && !leaves_queues) {
      queues_.destroy(i);
      if (i.stage == Stage::connected) {
        over(i, dice);
      } else if (i.stage == Stage::connecting) {
        left(i, dice);
      }
    }
    Id* const peer = i.peer;
    const Stage was = i.stage;
    rdma_cm_id queues{};
    if (leaves_queues) queues = *i.id;
    const auto call = [&] { agree_on(error_of(rdma_destroy_id(i.id)), 0, "rdma_destroy_id"); };
    if (i.held.empty()) {
      call();
    } else {
      destroy_waits(
          "rdma_destroy_id", call,
          [&] {
            while (!i.held.empty()) world_.acknowledge(i, dice.below(i.held.size()));
          },
          [&] { i.held.clear(), i.id = nullptr; });
    }
    give_port_back(i);
    if (was == Stage::requested) refuse_by_leaving(i, dice);
    i.id = nullptr;
    i.stage = Stage::over;
    i.wanted.clear();
    if (peer != nullptr && (was == Stage::connected || was == Stage::connecting)) {
      peer->peer = nullptr;
      i.peer = nullptr;
      if (was == Stage::connected) ended(*peer);
      world_.settle(dice);
      if (was == Stage::connected) agree_flushed(*peer, dice);
    }
    if (leaves_queues) free_left(i, queues, was, dice);
    queues_.free_others(i);
    world_.forget(i);
  }

 protected:
  void tell(const std::string& what) { world_.tell(what); }
  static std::string name(const Id& i) { return CmWorld::name(i); }

  void take_port(Id& i) {
    i.port = rdma_get_src_port(i.id);
    agree(i.port != 0, "a bound id has a port");
    if (!i.is_passive && i.stage != Stage::connecting) {
      world_.ports.insert(i.port);
      std::erase(free_ports_, i.port);
    }
  }
  void give_port_back(Id& i) {
    if (i.is_passive) return;  // its port belongs to the listener
    if (world_.ports.erase(i.port) != 0 && (world_.is_roce || i.stage <= Stage::listening)) {
      free_ports_.push_back(i.port);
    }
  }

  void refused(Id& client, int status, const std::string& data) {
    client.stage = Stage::over;
    std::string all = data;
    if (world_.is_roce) all.resize(kRefusalBytes);
    client.want(RDMA_CM_EVENT_REJECTED, status, {}, all);
  }

  void answered(Id& s) {
    if (s.listener != nullptr) --s.listener->waiting;
    s.listener = nullptr;
  }
  void part(Id& i) {
    if (i.peer != nullptr) i.peer->peer = nullptr;
    i.peer = nullptr;
  }
  // The id of a request is destroyed without an answer.
  void refuse_by_leaving(Id& s, Dice& dice) {
    answered(s);
    if (s.peer == nullptr) return;
    refused(*s.peer, world_.is_roce ? kRejected : -ECONNREFUSED, {});
    part(s);
    world_.settle(dice);
  }

  // One end gets the event that its connection has ended.
  void ended(Id& i) {
    i.stage = Stage::over;
    i.want(RDMA_CM_EVENT_DISCONNECTED);
    if (world_.is_roce) {
      i.want(RDMA_CM_EVENT_TIMEWAIT_EXIT);
      i.wanted.back().optional = true;
    }
  }
  void over(Id& i, Dice& dice) {
    Id* const peer = i.peer;
    part(i);
    ended(i);
    if (peer != nullptr) ended(*peer);
    world_.settle(dice);
    for (Id* end : {&i, peer}) {
      if (end != nullptr) agree_flushed(*end, dice);
    }
  }
  void agree_flushed(Id& i, Dice& dice) {
    if (i.q.qp == nullptr) return;
    Patience::waits_for([&] { return queues_.query(i).qp_state == IBV_QPS_ERR; });
    agree_on(int{queues_.query(i).qp_state}, int{IBV_QPS_ERR}, "the state behind the end");
    work_.agree_flushed(i.q, dice);
  }
  // The requesting identifier is destroyed before it gets an answer; its queue pair is destroyed
  // later.
  void left(Id& i, Dice&) {
    i.stage = Stage::over;
    i.wanted.clear();
    if (i.peer != nullptr) i.peer->peer = nullptr;
    i.peer = nullptr;
  }
  void free_left(Id& i, rdma_cm_id& queues, Stage was, Dice& dice) {
    if (was == Stage::connected) agree_flushed(i, dice);
    CmQueues::acknowledge(i.q);
    agree_on(ibv_destroy_qp(i.q.qp), 0, "ibv_destroy_qp behind its id");
    i.q.qp = nullptr;
    for (ibv_cq* cq : {queues.send_cq, queues.recv_cq}) {
      if (cq != nullptr) agree_on(ibv_destroy_cq(cq), 0, "ibv_destroy_cq behind its id");
    }
    for (ibv_comp_channel* c : {queues.send_cq_channel, queues.recv_cq_channel}) {
      if (c != nullptr) agree_on(ibv_destroy_comp_channel(c), 0, "a channel behind its id");
    }
    if (queues.srq != nullptr) agree_on(ibv_destroy_srq(queues.srq), 0, "ibv_destroy_srq");
  }

  CmWorld& world_;
  CmQueues queues_;
  CmWork work_;
  std::vector<__be16> free_ports_;
};

}  // namespace calls_walk
