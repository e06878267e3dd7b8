// The steps of a walk over the verbs in which the program moves RoCE queue pairs itself: along
// every move of the state table, with its required attributes, without one, and with foreign ones.
#pragma once

#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/device/walk_world.h"

namespace urnic::test {

// Each attribute has a letter, so that a row of the table is a word.
struct MoveField {
  char letter;
  std::optional<std::uint32_t> QpAttributes::*value;
  std::uint32_t low, high;
};
inline constexpr MoveField kMoveFields[] = {
    {'a', &QpAttributes::access, 1, 15},        {'q', &QpAttributes::qkey, 1, 0x7fffffff},
    {'d', &QpAttributes::dest_qp, 2, 0xffffff}, {'m', &QpAttributes::path_mtu, 256, 256},
    {'p', &QpAttributes::rq_psn, 0, 0xffffff},  {'r', &QpAttributes::responder_depth, 1, 16},
    {'n', &QpAttributes::min_rnr_timer, 1, 31}, {'s', &QpAttributes::sq_psn, 0, 0xffffff},
    {'t', &QpAttributes::ack_timeout, 8, 20},   {'c', &QpAttributes::retry_count, 1, 7},
    {'e', &QpAttributes::rnr_retry, 1, 7},      {'i', &QpAttributes::initiator_depth, 1, 16},
    {'o', &QpAttributes::port, 1, 1},           {'k', &QpAttributes::pkey_index, 0, 0},
};
inline constexpr char kWay = 'w';  // the path, which is not a number

struct MoveRow {
  QpState from, to;
  std::string_view needs, may;
};
using enum QpState;
inline constexpr MoveRow kRcMoves[] = {{reset, init, "a", "ok"},    {init, init, "", "aok"},
                                       {init, rtr, "dwmprn", "ak"}, {rtr, rts, "stcei", "an"},
                                       {rts, rts, "", "an"},        {rts, sqd, "", ""},
                                       {sqd, sqd, "", "awtceinok"}, {sqd, rts, "", "an"}};
inline constexpr MoveRow kUcMoves[] = {{reset, init, "a", "ok"},  {init, init, "", "aok"},
                                       {init, rtr, "dwmp", "ak"}, {rtr, rts, "s", "a"},
                                       {rts, rts, "", "a"},       {rts, sqd, "", ""},
                                       {sqd, sqd, "", "awk"},     {sqd, rts, "", "a"}};
inline constexpr MoveRow kUdMoves[] = {
    {reset, init, "q", "ok"}, {init, init, "", "qok"}, {init, rtr, "", "qk"}, {rtr, rts, "s", "q"},
    {rts, rts, "", "q"},      {rts, sqd, "", ""},      {sqd, sqd, "", "qk"},  {sqd, rts, "", "q"}};

class MoveSteps {
 public:
  explicit MoveSteps(WalkWorld& world) : world_(world) {}

  // Two programs exchange their values, and each moves a queue pair until both may send.
  void join(Dice& dice) {
    static constexpr Service kServices[] = {Service::rc, Service::rc, Service::uc};
    const std::uint32_t which = dice.below(3);
    const Service service = world_.is_faulty() ? Service::rc : kServices[which];
    WalkPair* pair[2];
    for (unsigned i = 0; i < 2; ++i) {
      pair[i] = unused(*world_.ends[i], service, dice);
      if (pair[i] == nullptr) return;
    }
    world_.tell("join " + WalkWorld::name(*pair[0]) + " and " + WalkWorld::name(*pair[1]));
    const bool v6 = dice.one_in(2), second = dice.one_in(2);
    const std::uint32_t mtu = 256u << dice.below(3);
    std::uint32_t psn[2], depth[2];
    for (unsigned i = 0; i < 2; ++i) {
      psn[i] = dice.below(1u << 24);
      depth[i] = dice.between(1, 7) * 2 + i;
    }
    for (const QpState to : {init, rtr, rts}) {
      for (unsigned i = 0; i < 2; ++i) {
        WalkPair &p = *pair[i], &q = *pair[1 - i];
        QpAttributes a = wanted(*row(p.service, p.state, to), dice, 3);
        if (to == init) a.access = access_remote_write | access_remote_read | access_remote_atomic;
        if (to == rtr) {
          a.dest_qp = q.qp.number();
          a.path = way(p, q, v6, second);
          a.path_mtu = mtu;
          a.rq_psn = psn[1 - i];
          if (service == Service::rc) a.responder_depth = depth[i];
        }
        if (to == rts) a.sq_psn = psn[i];
        if (to == rts && service == Service::rc) {
          a.ack_timeout = 14 + i;
          a.rnr_retry = 5 + i;
          a.initiator_depth = depth[1 - i];
        }
        if (to != init) a.access.reset();
        agree(p.qp.modify(to, a).ok(), "a queue pair is moved");
        moved(p, to, a);
      }
    }
    for (unsigned i = 0; i < 2; ++i) {
      pair[i]->stage = Stage::moved;
      pair[i]->peer = pair[1 - i];
      pair[i]->ird = static_cast<std::uint16_t>(depth[i]);
      pair[i]->ord = static_cast<std::uint16_t>(depth[1 - i]);
    }
  }

  // One move of one of them, valid or invalid.
  void move(Dice& dice) {
    WalkPair* p = world_.one_of(dice, nullptr, Stage::moved);
    if (p == nullptr || dice.one_in(4)) {
      p = unused(*world_.ends[dice.below(2)], static_cast<Service>(dice.below(3)), dice);
    }
    if (p == nullptr) return;
    const auto to = static_cast<QpState>(dice.below(7));
    const MoveRow* const r = row(p->service, p->state, to);
    const bool always = to == reset || (to == error && p->state != reset);
    QpAttributes a = r == nullptr ? QpAttributes() : wanted(*r, dice, 2);
    bool right = always || r != nullptr;
    std::string how = " as it may be";
    if (r != nullptr && dice.one_in(3)) {
      spoil(*r, &a, dice);
      right = false;
      how = " with the wrong attributes";
    }
    if (right && p->peer != nullptr && breaks(*p, to, a)) part(*p);
    world_.tell("move " + WalkWorld::name(*p) + " from " + state(p->state) + " to " + state(to) +
                how);
    const auto result = p->qp.modify(to, a);
    if (!right) {
      agree(!result.ok(), "a move that may not be is refused");
      const Errc code = result.error().code;
      const bool fits = r == nullptr ? code == Errc::wrong_state
                                     : code == Errc::invalid_argument || code == Errc::unsupported;
      agree(fits, "why a move is refused: " + result.error().message);
      return;
    }
    agree(result.ok(), "a move that may be is made: " + (result ? "" : result.error().message));
    const bool ends = to == error && p->state != error;
    moved(*p, to, a);
    if (ends) p->flush_receives();
    if (to == reset) forget(*p);
  }

  // Both ends of one connection change to other addresses, while nothing is sent.
  void move_way(Dice& dice) {
    WalkPair* const p = world_.one_of(dice, nullptr, Stage::moved);
    if (p == nullptr || p->peer == nullptr || p->state != rts || p->peer->state != rts) return;
    WalkPair* const both[] = {p, p->peer};
    world_.tell("another way for " + WalkWorld::name(*p));
    for (WalkPair* m : both) {
      QpAttributes a;
      const bool tells = dice.one_in(2);
      if (tells) a.tell_drained = true;
      agree(m->qp.modify(sqd, a).ok(), "sends stop");
      m->state = sqd;
      if (tells) m->end.want(EventKind::send_queue_drained, m);
    }
    world_.settle(30);
    const bool v6 = p->attributes.path->remote.find(':') != std::string::npos;
    const bool second =
        p->attributes.path->remote.ends_with(".1") || p->attributes.path->remote.ends_with(".2");
    for (WalkPair* m : both) {
      QpAttributes a;
      a.path = way(*m, *m->peer, v6, second);
      a.path->traffic_class = dice.between(1, 50) * 4;
      agree(m->qp.modify(sqd, a).ok(), "the way changes");
      moved(*m, sqd, a);
      agree(m->qp.modify(rts).ok(), "sends go on");
      m->state = rts;
    }
  }

  // Each queue pair must return the attributes that it was given.
  void check() {
    for (auto& p : world_.pairs) {
      if (p->stage == Stage::moved) check(*p);
    }
  }

 private:
  static const char* state(QpState s) {
    static const char* const kNames[] = {"reset", "init", "rtr", "rts", "sqd", "sqe", "error"};
    return kNames[static_cast<int>(s)];
  }
  static const MoveRow* row(Service service, QpState from, QpState to) {
    const std::span<const MoveRow> rows = service == Service::rc   ? std::span(kRcMoves)
                                          : service == Service::uc ? std::span(kUcMoves)
                                                                   : std::span(kUdMoves);
    for (const MoveRow& r : rows) {
      if (r.from == from && r.to == to) return &r;
    }
    return nullptr;
  }
  WalkPair* unused(WalkEnd& at, Service service, Dice& dice) {
    for (auto& p : world_.pairs) {
      const bool fits = &p->end == &at && p->is_roce() && p->service == service;
      if (fits && p->stage == Stage::idle && p->state == reset) return p.get();
    }
    return world_.make(at, dice, Transport::roce, service);
  }

  static QpPath way(const WalkPair& p, const WalkPair& q, bool v6, bool second) {
    const auto at = [&](const WalkPair& of) {
      if (v6) return "fd77::" + std::to_string(of.end.which + 1);
      return "10.77.0." + std::to_string(of.end.which + (second ? 11 : 1));
    };
    QpPath w;
    w.remote = at(q);
    w.local = at(p);
    w.hop_limit = 20 + p.end.which;
    w.source_port = 0xc100 + p.end.which;
    return w;
  }
  // The required attributes of the row, and some of the optional ones.
  QpAttributes wanted(const MoveRow& r, Dice& dice, unsigned one_in) {
    QpAttributes a;
    for (const MoveField& f : kMoveFields) {
      const bool needed = r.needs.find(f.letter) != r.needs.npos;
      const bool may = r.may.find(f.letter) != r.may.npos && dice.one_in(one_in);
      if (needed || may) a.*f.value = value(f, dice);
    }
    const bool may = r.may.find(kWay) != r.may.npos && dice.one_in(one_in);
    if (r.needs.find(kWay) != r.needs.npos || may) {
      a.path.emplace();
      a.path->remote = "10.77.0.99";
      a.path->local = "";
    }
    return a;
  }
  static std::uint32_t value(const MoveField& f, Dice& dice) {
    const std::uint32_t v = dice.between(f.low, f.high);
    if (f.letter != 'a') return v;
    return ((v & 1) != 0 ? access_remote_write : 0u) | ((v & 2) != 0 ? access_remote_read : 0u) |
           ((v & 4) != 0 ? access_remote_atomic : 0u);
  }
  void spoil(const MoveRow& r, QpAttributes* a, Dice& dice) {
    std::vector<const MoveField*> wrong;
    for (const MoveField& f : kMoveFields) {
      const bool implied = f.letter == 'o' || f.letter == 'k';  // they have defaults
      if (r.may.find(f.letter) == r.may.npos && !implied) wrong.push_back(&f);
    }
    const MoveField& f = **dice.any(wrong);
    if (r.needs.find(f.letter) != r.needs.npos) {
      (a->*f.value).reset();
    } else {
      a->*f.value = value(f, dice);
    }
  }

  void moved(WalkPair& p, QpState to, const QpAttributes& a) {
    p.state = to;
    p.stage = Stage::moved;
    if (to == rtr && p.service != Service::ud) ++p.connections;
    for (const MoveField& f : kMoveFields) {
      if (a.*f.value) p.attributes.*f.value = a.*f.value;
    }
    if (a.path) p.attributes.path = a.path;
  }
  // True if this move breaks the connection to the other end.
  static bool breaks(const WalkPair& p, QpState to, const QpAttributes& a) {
    const bool closes = a.access.has_value() || a.path.has_value();
    return to == reset || to == error || closes || (to == sqd && p.state == sqd && a.path);
  }
  static void part(WalkPair& p) {
    p.peer->peer = nullptr;
    p.peer = nullptr;
  }
  static void forget(WalkPair& p) {
    p.forget();
    p.end.unbind_of(&p);
    p.stage = Stage::idle;
    p.attributes = {};
  }

  void check(WalkPair& p) {
    const QpAttributes is = p.qp.attributes();
    const std::string who = "queue pair " + std::to_string(p.qp.number()) + " of end " +
                            std::to_string(p.end.which) + ": attribute ";
    for (const MoveField& f : kMoveFields) {
      if (!(p.attributes.*f.value)) continue;
      agree((is.*f.value).has_value(), who + f.letter + " is not there");
      agree_on(*(is.*f.value), *(p.attributes.*f.value), who + f.letter);
    }
    if (!p.attributes.path) return;
    agree(is.path.has_value(), who + "path is not there");
    agree_on(is.path->remote, p.attributes.path->remote, who + "path.remote");
    if (!p.attributes.path->local.empty()) {
      agree_on(is.path->local, p.attributes.path->local, who + "path.local");
    }
    agree_on(is.path->traffic_class, p.attributes.path->traffic_class, who + "path.traffic_class");
    agree_on(is.path->hop_limit, p.attributes.path->hop_limit, who + "path.hop_limit");
    agree_on(is.path->source_port, p.attributes.path->source_port, who + "path.source_port");
  }

  WalkWorld& world_;
};

}  // namespace urnic::test
