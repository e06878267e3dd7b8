// The steps of a walk over the verbs that begin and end connections.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/device/walk_world.h"

namespace urnic::test {

class ConnectSteps {
 public:
  explicit ConnectSteps(WalkWorld& world) : world_(world) {}

  void make(Dice& dice) {
    world_.make(*world_.ends[dice.below(2)], dice,
                dice.one_in(2) ? Transport::roce : Transport::iwarp);
  }
  void destroy(Dice& dice) {
    if (world_.pairs.size() < 3) return;
    world_.drop(dice.below(world_.pairs.size()));
    world_.settle(3000);
  }

  // One end listens, the other one connects, and the first gives one of the possible answers.
  void connect(Dice& dice) {
    WalkEnd& from = *world_.ends[dice.below(2)];
    const Transport t = dice.one_in(2) ? Transport::roce : Transport::iwarp;
    WalkPair* p = world_.one_of(dice, &from, Stage::idle, t);
    if (p == nullptr) p = world_.make(from, dice, t);
    if (p == nullptr) return;
    WalkPair* q = world_.one_of(dice, &world_.other(from), Stage::idle, t);
    if (q == nullptr) q = world_.make(world_.other(from), dice, t);
    if (q == nullptr) return;
    Said ask(*p, dice), answer(*q, dice);
    const char* const hosts[] = {"10.77.0.", "fd77::"};
    const bool v6 = dice.one_in(2);
    const std::string host = std::to_string(q->end.which + (v6 || dice.one_in(2) ? 1 : 11));
    const Listening& l = listening(q->end, t, dice);
    const std::string at =
        (v6 ? "[fd77::" + host + "]:" : hosts[0] + host + ":") + std::to_string(l.listener.port());
    ask.o.timeout_ms = 4000;
    world_.tell("ask for " + at + " by " + WalkWorld::name(*p));

    agree(p->qp.connect_start(at, ask.o).ok(), "somebody connects");
    begun(*p);
    world_.settle(20);
    std::optional<Event> event = q->end.take_events();
    agree(event.has_value(), "a request comes");
    agree(event->context == &l, "the context of a request");
    ConnectRequest request = std::move(event->request);
    agree_on(request.local(), at, "the address that was asked for");
    check_request(request, *p, ask);
    answer_it(request, *p, ask, *q, answer, dice);
  }

  // Destroys one listener.
  void close_listener(Dice& dice) {
    if (listeners_.empty()) return;
    const std::size_t at = dice.below(listeners_.size());
    world_.tell("a listener of end " + std::to_string(listeners_[at]->end->which) + " goes");
    listeners_.erase(listeners_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  void close_listeners() { listeners_.clear(); }

  void connect_to_nobody(Dice& dice) {
    WalkPair* const p = world_.one_of(dice, nullptr, Stage::idle);
    if (p == nullptr) return;
    world_.tell("connect " + WalkWorld::name(*p) + " where nobody listens");
    const std::string at = "10.77.0." + std::to_string(2 - p->end.which) + ":6999";
    agree(p->qp.connect_start(at).ok(), "somebody connects");
    begun(*p);
    refused(*p, p->is_roce() ? std::string(148, '\0') : "");
    world_.settle(100);
  }

  // Its connection request will fail.
  void fails(WalkPair& p) {
    begun(p);
    refused(p, "");
  }

  void end(Dice& dice) {
    WalkPair* const p = world_.one_of(dice, nullptr, Stage::up);
    if (p == nullptr) return;
    WalkPair& q = *p->peer;
    switch (dice.below(3)) {
      case 0:
        world_.tell("disconnect " + WalkWorld::name(*p));
        p->qp.disconnect();
        world_.end(*p, EventKind::disconnected);
        world_.end(q, EventKind::disconnected);
        break;
      case 1:
        world_.tell("abort " + WalkWorld::name(*p));
        p->qp.abort();
        world_.end(*p, EventKind::failed);
        world_.end(q, p->is_roce() ? EventKind::disconnected : EventKind::failed);
        break;
      default:
        world_.tell("disconnect both ends of " + WalkWorld::name(*p));
        p->qp.disconnect();
        q.qp.disconnect();
        world_.end(*p, EventKind::disconnected);
        world_.end(q, EventKind::disconnected);
        break;
    }
    world_.settle(3000);  // until the numbers of RoCE are out of time-wait
  }

  // Resets a queue pair whose connection has ended, or never began.
  void again(Dice& dice) {
    WalkPair* const p = world_.one_of(dice, nullptr, Stage::over);
    if (p == nullptr) return;
    world_.tell("reset " + WalkWorld::name(*p));
    agree(p->qp.modify(QpState::reset).ok(), "a queue pair is reset");
    p->forget();
    p->end.unbind_of(p);
    p->stage = Stage::idle;
    p->state = QpState::reset;
    p->attributes = {};
    world_.part(*p);
  }

 private:
  // The parameters of one end.
  struct Said {
    Said(WalkPair& p, Dice& dice) : data(dice.bytes(dice.between(1, 50))) {
      o.private_data = data;
      if (!dice.one_in(4)) o.ird = static_cast<std::uint16_t>(dice.between(1, 4) * 2 - p.end.which);
      if (!dice.one_in(4)) o.ord = static_cast<std::uint16_t>(dice.between(4, 7) * 2 - p.end.which);
      ird = o.ird.value_or(5 + p.end.which);
      ord = o.ord.value_or(8 + p.end.which);
      if (!p.is_roce()) {
        if (!dice.one_in(4))
          o.iwarp.traffic_class = static_cast<std::uint8_t>(dice.between(1, 63) * 4);
        return;
      }
      if (!dice.one_in(4)) o.roce.rnr_retry = static_cast<std::uint8_t>(dice.between(1, 6));
      if (!dice.one_in(4)) o.roce.retry_count = static_cast<std::uint8_t>(dice.between(2, 6));
      if (!dice.one_in(4)) o.roce.min_rnr_timer = static_cast<std::uint8_t>(dice.between(1, 20));
      if (!dice.one_in(4))
        o.roce.traffic_class = static_cast<std::uint8_t>(dice.between(1, 63) * 4);
    }
    std::string padded(std::size_t bytes) const {
      std::string s(data.begin(), data.end());
      if (bytes != 0) s.resize(bytes);
      return s;
    }
    std::uint8_t traffic_class(std::uint8_t otherwise) const {
      return o.iwarp.traffic_class != 0 ? o.iwarp.traffic_class
                                        : o.roce.traffic_class.value_or(otherwise);
    }
    ConnectionOptions o;
    std::vector<std::uint8_t> data;
    std::uint16_t ird, ord;
  };

  void begun(WalkPair& p) {
    ++p.connections;
    p.begin_counting();
    if (p.state == QpState::reset) p.state = QpState::init;
  }
  void refused(WalkPair& p, const std::string& data) {
    p.stage = Stage::over;
    p.state = QpState::error;
    p.end.want(EventKind::connect_failed, &p, data);
    p.flush_receives();
  }

  void check_request(const ConnectRequest& r, const WalkPair& p, const Said& ask) {
    const auto data = r.private_data();
    agree(std::string(data.begin(), data.end()) == ask.padded(p.is_roce() ? 56 : 0),
          "the private data of a request");
    agree_on(r.ird(), ask.ord, "what the peer wants outstanding");
    agree_on(r.ord(), ask.ird, "what the peer can serve");
    agree(r.service() == Service::rc, "the service of a request");
    const RocePeer peer = r.roce_peer();
    if (!p.is_roce()) {
      agree_on(peer.qp_number, 0u, "no number over iWARP");
      return;
    }
    agree_on(peer.qp_number, p.qp.number(), "the number of the peer");
    agree_on(r.retry_count(), ask.o.roce.retry_count.value_or(7), "retry_count of a request");
    agree_on(r.rnr_retry(), ask.o.roce.rnr_retry.value_or(7), "rnr_retry of a request");
    agree_on(peer.srq, p.has_srq, "srq of a request");
  }

  void answer_it(ConnectRequest& request, WalkPair& p, const Said& ask, WalkPair& q, Said& answer,
                 Dice& dice) {
    switch (dice.below(6)) {
      case 3:
        give_up(request, p, q);
        return;
      case 0:
        world_.tell("reject " + WalkWorld::name(p));
        request.reject(answer.data);
        refused(p, answer.padded(p.is_roce() ? 148 : 0));
        world_.settle(100);
        return;
      case 1:
        world_.tell("a request of " + WalkWorld::name(p) + " is dropped");
        request = ConnectRequest();
        refused(p, p.is_roce() ? std::string(148, '\0') : "");
        world_.settle(100);
        return;
      case 2:  // without any parameters
        answer.o = {};
        answer.data.clear();
        answer.ird = static_cast<std::uint16_t>(5 + q.end.which);
        answer.ord = static_cast<std::uint16_t>(8 + q.end.which);
        break;
      default:
        break;
    }
    world_.tell("connect " + WalkWorld::name(p) + " with " + WalkWorld::name(q));
    agree(request.accept(q.qp, answer.o).ok(), "a request is accepted");
    agree(request.accept(q.qp, answer.o).error().code == Errc::wrong_state,
          "what was answered is answered again");
    begun(q);
    established(p, ask, q, answer);
  }

  // The connecting end is destroyed before it gets an answer.
  void give_up(ConnectRequest& request, WalkPair& p, WalkPair& q) {
    for (std::size_t i = 0; i < world_.pairs.size(); ++i) {
      if (world_.pairs[i].get() != &p) continue;
      world_.drop(i);
      break;
    }
    world_.settle(100);
    const auto late = request.accept(q.qp);
    agree(!late.ok() && late.error().code == Errc::closed, "who asked has gone");
  }

  void established(WalkPair& p, const Said& ask, WalkPair& q, const Said& answer) {
    p.peer = &q;
    q.peer = &p;
    p.stage = q.stage = Stage::up;
    p.state = q.state = QpState::rts;
    p.traffic_class = ask.traffic_class(0);
    q.traffic_class = answer.traffic_class(q.is_roce() ? p.traffic_class : std::uint8_t{0});
    if (p.is_roce()) {
      q.ird = std::min(answer.ird, ask.ord);
      q.ord = std::min(answer.ord, ask.ird);
      p.ird = std::min(ask.ird, q.ord);
      p.ord = std::min(ask.ord, q.ird);
    } else {
      q.ird = std::max(answer.ird, ask.ord);
      q.ord = std::min(answer.ord, ask.ird);
      p.ird = ask.ird;
      p.ord = std::min(ask.ord, q.ird);
    }
    p.end.want(EventKind::established, &p, answer.padded(p.is_roce() ? 196 : 0));
    q.end.want(EventKind::established, &q);
    world_.settle(100);
    world_.check();
    if (p.is_roce()) check_attributes(p, ask, q, answer);
  }
  // Each end shows its own values and those of the other.
  void check_attributes(WalkPair& p, const Said& ask, WalkPair& q, const Said& answer) {
    const QpAttributes a = p.qp.attributes(), b = q.qp.attributes();
    agree_on(*a.dest_qp, q.qp.number(), "dest_qp of who asked");
    agree_on(*b.dest_qp, p.qp.number(), "dest_qp of who answered");
    agree_on(*a.rq_psn, *b.sq_psn, "rq_psn of who asked");
    agree_on(*b.rq_psn, *a.sq_psn, "rq_psn of who answered");
    agree_on(*a.path_mtu, *b.path_mtu, "path_mtu");
    agree_on(*a.rnr_retry, answer.o.roce.rnr_retry.value_or(7), "rnr_retry of who asked");
    agree_on(*b.rnr_retry, ask.o.roce.rnr_retry.value_or(7), "rnr_retry of who answered");
    agree_on(*a.retry_count, ask.o.roce.retry_count.value_or(7), "retry_count of who asked");
    agree_on(*b.retry_count, ask.o.roce.retry_count.value_or(7), "retry_count of who answered");
    agree_on(*a.min_rnr_timer, ask.o.roce.min_rnr_timer.value_or(12), "min_rnr_timer of who asked");
    agree_on(*b.min_rnr_timer, answer.o.roce.min_rnr_timer.value_or(12),
             "min_rnr_timer of who answered");
    agree_on(*a.initiator_depth, p.ord, "initiator_depth of who asked");
    agree_on(*b.initiator_depth, q.ord, "initiator_depth of who answered");
    agree_on(*a.responder_depth, p.ird, "responder_depth of who asked");
    agree_on(*b.responder_depth, q.ird, "responder_depth of who answered");
    const std::uint8_t asked = ask.o.roce.traffic_class.value_or(0);
    agree_on(a.path->traffic_class, asked, "traffic_class of who asked");
    agree_on(b.path->traffic_class, answer.o.roce.traffic_class.value_or(asked),
             "traffic_class of who answered");
    agree_on(a.path->remote, b.path->local, "the way of who asked");
    agree_on(b.path->remote, a.path->local, "the way of who answered");
  }

  struct Listening {
    WalkEnd* end;
    Transport transport;
    Listener listener;
  };
  // The backlog is 1, so that a place that is not freed is detected.
  Listening& listening(WalkEnd& end, Transport t, Dice& dice) {
    for (auto& l : listeners_) {
      if (l->end == &end && l->transport == t) return *l;
    }
    const std::uint16_t port = dice.one_in(2) ? std::uint16_t{7001} : world_.next_port();
    BindOptions b;
    b.transport = t;
    auto bound = end.device.bind("[::]:" + std::to_string(port), b);
    agree(bound.ok(), "an address is bound");
    listeners_.push_back(std::make_unique<Listening>());
    Listening& l = *listeners_.back();
    auto listener = end.device.listen(*bound, 1, end.events, &l);
    agree(listener.ok(), "somebody listens");
    agree_on(listener->port(), port, "the port of a listener");
    l = {&end, t, std::move(*listener)};
    return l;
  }

  WalkWorld& world_;
  std::vector<std::unique_ptr<Listening>> listeners_;
};

}  // namespace urnic::test
