// The steps of a walk over the verbs that move data over a connection, valid and invalid.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "tests/device/walk_world.h"

namespace urnic::test {

class WorkSteps {
 public:
  explicit WorkSteps(WalkWorld& world) : world_(world) {}

  // A few valid requests from one end; perhaps followed by one from the other end.
  void work(Dice& dice, bool answers = true) {
    WalkPair* const p = world_.ready(dice);
    if (p == nullptr) return;
    take_slots(dice);
    apart_ = !answers;
    const std::uint32_t many = dice.between(1, p->o.max_send);
    world_.lines[p->end.which]->classes(p->is_roce());
    for (std::uint32_t i = 0; i < many; ++i) one(*p, dice);
    if (answers && p->stage == Stage::up) check_class(*p);
    if (answers && dice.one_in(3)) work_back(*p, dice);
  }
  // Posts receives that are not used yet.
  void post_receives(Dice& dice) {
    if (world_.pairs.empty()) return;
    WalkPair& p = *world_.pairs[dice.below(world_.pairs.size())];
    if (!p.has_room()) return;
    world_.tell("a receive at " + WalkWorld::name(p));
    p.post_receive(world_.next_id(), dice);
  }
  // Changes event requests, and the size of queues.
  void change_queues(Dice& dice) {
    if (world_.pairs.empty()) return;
    WalkPair& p = *world_.pairs[dice.below(world_.pairs.size())];
    WalkCq& cq = dice.one_in(2) && !p.shares_cq ? p.receive_cq : p.send_cq;
    switch (dice.below(4)) {
      case 0: {
        const std::uint32_t depth = dice.between(20, 100);
        world_.tell("resize a queue of " + WalkWorld::name(p));
        agree(cq.cq.resize(depth).ok(), "a completion queue is resized");
        agree_on(cq.cq.depth(), std::bit_ceil(depth), "its depth");
        return;
      }
      case 1: {
        WalkEnd& e = p.end;
        e.shared.limit = dice.between(0, WalkShared::kMost);
        world_.tell("a limit of " + std::to_string(e.shared.limit));
        agree(e.shared.queue.set_limit(e.shared.limit).ok(), "a limit is set");
        e.look_at_limit();
        return;
      }
      default:  // the more general of two requests applies
        cq.solicited_only = dice.one_in(2) && (!cq.armed || cq.solicited_only);
        cq.armed = true;
        world_.tell("arm a queue of " + WalkWorld::name(p));
        cq.cq.arm(cq.solicited_only);
        return;
    }
  }
  // Posts more than fits.
  void overfill(Dice& dice) {
    WalkPair* const p = world_.ready(dice);
    if (p == nullptr) return;
    take_slots(dice);
    world_.tell("too many at " + WalkWorld::name(*p));
    std::vector<SendRequest> all(p->o.max_send + 1);
    for (SendRequest& r : all) {
      r.wr_id = world_.next_id();
      r.opcode = Opcode::write;
      r.rkey = p->peer->end.regions.front()->mr.rkey();
      r.remote_address = p->peer->end.regions.front()->area.base;
    }
    Error why;
    agree_on(p->qp.post_send(all, &why), p->o.max_send, "as many as there is room for");
    agree(why.code == Errc::queue_full, "the queue is full: " + why.message);
    for (std::size_t i = 0; i < p->o.max_send; ++i) {
      p->want_send(all[i].wr_id, Opcode::write, WcStatus::success);
    }
    p->counts.writes_sent += p->o.max_send;
  }
  // Requests that the queue pair refuses before it sends anything.
  void refuse(Dice& dice) {
    if (world_.pairs.empty()) return;
    WalkPair& p = *world_.pairs[dice.below(world_.pairs.size())];
    const Sge many[6] = {p.end.sge(0, 8),  p.end.sge(8, 8),  p.end.sge(16, 8),
                         p.end.sge(24, 8), p.end.sge(32, 8), p.end.sge(40, 8)};
    SendRequest r;
    r.wr_id = world_.next_id();
    if (p.service == Service::ud) return;
    const bool sends = p.state >= QpState::rts;
    r.sges = {many, p.o.max_send_sge + std::size_t{1}};
    const auto sge = p.qp.post_send(r);
    agree(!sge.ok(), "too many elements");
    if (sends) agree(sge.error().code == Errc::invalid_argument, "too many elements: the code");
    const Sge wide = p.end.sge(0, p.o.max_inline + 1);
    r.sges = {&wide, 1};
    r.flags = send_inline;
    const auto length = p.qp.post_send(r);
    agree(!length.ok(), "too long to be inline");
    if (sends) agree(length.error().code == Errc::invalid_argument, "too long: the code");
    r.flags = send_signaled;
    if (!sends) {
      const auto early = p.qp.post_send(r);
      agree(!early.ok() && early.error().code == Errc::wrong_state, "a send before there is a way");
    } else if (p.state == QpState::error) {
      agree(p.qp.post_send(r).ok(), "a send in error is taken");
      p.want_send(r.wr_id, Opcode::send, WcStatus::flushed);
    }
  }

  // A request that the peer refuses ends the connection; later requests are flushed.
  void break_rules(Dice& dice) {
    WalkPair* const p = world_.one_of(dice, nullptr, Stage::up);
    if (p == nullptr) return;
    // The peer's refusal may arrive after the end of the connection.
    if (world_.is_faulty() && p->is_roce()) return;
    take_slots(dice);
    SendRequest r;
    r.wr_id = world_.next_id();
    r.flags = dice.one_in(2) ? send_signaled : 0u;
    r.opcode = dice.one_in(2) ? Opcode::read : Opcode::write;
    const Sge local = p->end.sge(local_slot(), 200);
    r.sges = {&local, 1};
    if (!aim_badly(*p, r.opcode, &r, dice)) return;
    world_.tell(std::string(r.opcode == Opcode::read ? "a Read" : "a Write") +
                " that may not be by " + WalkWorld::name(*p));
    agree(p->qp.post_send(r).ok(), "what will be refused is taken");
    WalkPair& q = *p->peer;
    if (r.opcode == Opcode::read) {
      ++p->counts.reads_sent;
      if (!p->is_roce()) ++q.counts.read_requests_received;
    } else {
      ++p->counts.writes_sent;
      p->counts.write_bytes_sent += 200;
    }
    const bool tells = p->is_roce() || r.opcode == Opcode::read;
    if (tells) {
      p->want_send(r.wr_id, r.opcode, WcStatus::remote_access);
    } else if (r.flags != 0 || p->o.signal_all) {  // iWARP: done when it has been sent
      p->want_send(r.wr_id, r.opcode, WcStatus::success);
    }
    world_.end(*p, EventKind::failed);
    world_.end(q, EventKind::failed, EventKind::access_error);
    if (!p->is_roce()) {  // and again when TCP has closed
      p->end.want(EventKind::disconnected, p);
      q.end.want(EventKind::disconnected, &q);
    }
    world_.settle(3000);
    world_.check();
  }

  // ---- memory

  void change_regions(Dice& dice) {
    WalkEnd& e = *world_.ends[dice.below(2)];
    if (e.regions.size() < 5 && dice.one_in(2)) {
      static constexpr std::uint32_t kRights[] = {
          access_local_write,
          access_local_write | access_remote_write,
          access_remote_read,
          access_local_write | access_remote_read | access_remote_atomic,
          access_local_write | access_remote_write | access_zero_based,
          access_remote_read | access_zero_based,
          access_local_write | access_bind_window,
          access_local_write | access_remote_write | access_bind_window};
      const std::size_t at = dice.below(kSharedSlots / 2) * kSlot;
      e.add_region(at, kSlot * dice.between(1, 8), kRights[dice.below(std::size(kRights))]);
      world_.tell("a region at end " + std::to_string(e.which));
    } else if (e.regions.size() > 1) {
      const std::size_t at = 1 + dice.below(e.regions.size() - 1);
      WalkRegion& r = *e.regions[at];
      world_.tell("a region of end " + std::to_string(e.which) + " goes");
      const std::uint32_t key = r.mr.rkey();
      const auto gone = r.mr.deregister();
      if (r.windows != 0) {
        agree(!gone.ok() && gone.error().code == Errc::in_use, "windows are bound to it");
        return;
      }
      agree(gone.ok(), "a region goes");
      e.dead_keys.push_back(key);
      e.regions.erase(e.regions.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }

  void change_windows(Dice& dice) {
    WalkEnd& e = *world_.ends[dice.below(2)];
    if (e.windows.size() < 6 && dice.one_in(2)) {
      const auto type = dice.one_in(2) ? WindowType::type1 : WindowType::type2;
      auto made = e.device.create_window(e.pd, type);
      agree(made.ok() && made->type() == type, "a window is made");
      e.windows.push_back(std::make_unique<WalkWindow>());
      e.windows.back()->window = std::move(*made);
      world_.tell("a window of type " + std::to_string(static_cast<int>(type)) + " at end " +
                  std::to_string(e.which));
      return;
    }
    if (e.windows.empty()) return;
    const std::size_t at = dice.below(e.windows.size());
    if (dice.one_in(4)) {
      world_.tell("a window of end " + std::to_string(e.which) + " goes");
      e.dead_keys.push_back(e.windows[at]->window.rkey());
      e.unbind(*e.windows[at]);
      e.windows.erase(e.windows.begin() + static_cast<std::ptrdiff_t>(at));
      return;
    }
    if (WalkPair* const p = world_.one_of(dice, &e, Stage::up)) bind(*p, *e.windows[at], dice);
  }

 private:
  static constexpr std::uint32_t kRemote =
      access_remote_write | access_remote_read | access_remote_atomic;

  // ---- windows

  void bind(WalkPair& p, WalkWindow& w, Dice& dice) {
    const bool of_two = w.window.type() == WindowType::type2;
    if (w.area && of_two) return invalidate(p, w);
    WalkRegion* const region = of_windows(p.end, dice);
    const std::uint32_t may = access_bind_window;
    const bool writable = (region->area.rights & access_local_write) != 0;
    if ((region->area.rights & may) == 0 || !writable) return;
    WalkArea area = region->area;
    area.at += 8 * dice.between(1, 20);
    area.length -= 8 * dice.between(21, 60);
    area.rights = kRemote & dice.below(32);
    const bool zero = dice.one_in(3);
    if (zero) area.rights |= access_zero_based;
    area.only = of_two ? &p : nullptr;
    const std::uint64_t from = region->area.base + (area.at - region->area.at);
    area.base = zero ? 0 : from;
    const std::uint32_t old = w.window.rkey();
    const WindowBind b{from, area.length, region->mr.lkey(), w.window.next_rkey(), area.rights};
    world_.tell("bind a window by " + WalkWorld::name(p));
    post_of_memory(p, Opcode::bind_window, &b, 0);
    if (old != w.window.rkey()) p.end.dead_keys.push_back(old);
    p.end.unbind(w);
    w.area = area;
    w.of = region;
    ++region->windows;
  }
  // Chooses a random suitable region rather than the first.
  static WalkRegion* of_windows(WalkEnd& e, Dice& dice) {
    std::vector<WalkRegion*> fit;
    for (auto& r : e.regions) {
      if ((r->area.rights & access_bind_window) != 0) fit.push_back(r.get());
    }
    return fit.size() > 1 ? fit[1 + dice.below(fit.size() - 1)] : fit.front();
  }
  void invalidate(WalkPair& p, WalkWindow& w) {
    if (w.area->only != &p) return;
    world_.tell("invalidate a window by " + WalkWorld::name(p));
    post_of_memory(p, Opcode::local_invalidate, nullptr, w.window.rkey());
    p.end.unbind(w);
  }
  void post_of_memory(WalkPair& p, Opcode op, const WindowBind* b, std::uint32_t key) {
    SendRequest r;
    r.wr_id = world_.next_id();
    r.opcode = op;
    r.bind = b;
    r.invalidate_rkey = key;
    agree(p.qp.post_send(r).ok(), "what is about memory is taken");
    p.want_send(r.wr_id, op, WcStatus::success);
  }

  void check_class(const WalkPair& p) {
    const auto left = world_.lines[p.end.which]->classes(p.is_roce());
    agree(left.contains(p.traffic_class), "the traffic class of what " + WalkWorld::name(p) +
                                              " sends, " + std::to_string(p.traffic_class));
  }

  // ---- slots of the memory, of which no two requests share one

  void take_slots(Dice& dice) {
    local_ = dice.below(kSharedSlots);
    remote_ = local_;
  }
  std::size_t local_slot() { return local_++ % kSharedSlots * kSlot; }
  // A slot other than that of local_slot(), at the other end.
  std::size_t remote_slot() { return remote_++ % kSharedSlots; }

  // ---- one request

  void work_back(WalkPair& p, Dice& dice) {
    world_.settle(5);
    one(*p.peer, dice);
  }

  static bool reads(Opcode op) { return op == Opcode::read || op >= Opcode::fetch_add; }
  static bool takes_receive(Opcode op) {
    return op == Opcode::send || op == Opcode::send_with_invalidate ||
           op == Opcode::send_with_immediate || op == Opcode::write_with_immediate;
  }
  static bool is_atomic(Opcode op) { return op >= Opcode::fetch_add; }

  void one(WalkPair& p, Dice& dice) {
    static constexpr Opcode kAll[] = {
        Opcode::send,      Opcode::send_with_invalidate, Opcode::send_with_immediate,
        Opcode::write,     Opcode::write_with_immediate, Opcode::read,
        Opcode::fetch_add, Opcode::compare_swap};
    Opcode op = kAll[dice.below(std::size(kAll))];
    if (p.service == Service::uc && (reads(op) || op == Opcode::send_with_invalidate)) {
      op = Opcode::write;
    }
    SendRequest r;
    r.wr_id = world_.next_id();
    r.opcode = op;
    r.flags = (dice.one_in(2) ? send_signaled : 0u) | (dice.one_in(4) ? send_solicited : 0u) |
              (dice.one_in(6) ? send_fence : 0u);
    if (op == Opcode::send_with_invalidate && !choose_window(*p.peer, &r)) {
      r.opcode = op = Opcode::send;
    }
    // A retransmission may arrive after a later request: no two receives may be at the same place.
    if (apart_ && takes_receive(op) && p.peer->queue().empty()) r.opcode = op = Opcode::write;
    if (takes_receive(op)) {
      if (p.peer->queue().empty()) p.peer->post_receive(world_.next_id(), dice);
    }
    const std::size_t length = is_atomic(op) ? 8 : dice.one_in(8) ? 0 : dice.between(1, 2900);
    if (!is_atomic(op) && op != Opcode::read && length <= p.o.max_inline && dice.one_in(2)) {
      r.flags |= send_inline;
    }
    post(p, r, length, dice);
  }

  void post(WalkPair& p, SendRequest r, std::size_t length, Dice& dice) {
    const std::size_t at = local_slot();
    const std::size_t head = length == 0 ? 0 : dice.below(length);
    const Sge split[] = {p.end.sge(at, head), p.end.sge(at + head, length - head)};
    r.sges = is_atomic(r.opcode) ? std::span<const Sge>(split + 1, 1) : std::span<const Sge>(split);
    const Sge whole = p.end.sge(at, length);
    if (is_atomic(r.opcode) || dice.one_in(2)) r.sges = {&whole, 1};
    if (length == 0) r.sges = {};
    std::optional<std::size_t> far;
    if (r.opcode != Opcode::send && r.opcode != Opcode::send_with_invalidate &&
        r.opcode != Opcode::send_with_immediate) {
      far = aim(*p.peer, r.opcode, length, &r, dice);
    }
    if (!reads(r.opcode)) p.end.write(at, dice.bytes(length));
    r.immediate = dice.number() & (p.is_roce() ? 0xffffffffu : ~0ull);
    r.atomic.data = dice.number();
    r.atomic.boundaries = 0;
    r.atomic.compare = dice.one_in(2) || !far ? dice.number() : number_at(p.peer->end, *far);
    agree(p.qp.post_send(r).ok(), "a request is taken");
    world_.tell("request " + std::to_string(static_cast<int>(r.opcode)) + " of " +
                std::to_string(length) + " bytes by " + WalkWorld::name(p));
    done(p, r, at, far, length);
    world_.settle(2);  // the next request may use its result
  }

  // The effect of the request in the model.
  void done(WalkPair& p, const SendRequest& r, std::size_t at, std::optional<std::size_t> far,
            std::size_t length) {
    WalkPair& q = *p.peer;
    std::vector<std::uint8_t>& here = p.end.model;
    std::vector<std::uint8_t>& there = q.end.model;
    if ((r.flags & send_signaled) != 0 || p.o.signal_all) {
      Completion& c = p.want_send(r.wr_id, r.opcode, WcStatus::success);
      if (reads(r.opcode)) c.byte_len = static_cast<std::uint32_t>(length);
    }
    if (r.opcode == Opcode::read) {
      std::copy_n(there.begin() + static_cast<std::ptrdiff_t>(*far), length,
                  here.begin() + static_cast<std::ptrdiff_t>(at));
      count_read(p, q, length);
    } else if (is_atomic(r.opcode)) {
      atomic(r, p.end, at, q.end, *far);
      ++p.counts.reads_sent;
      ++q.counts.read_requests_received;
    } else if (far) {
      std::copy_n(here.begin() + static_cast<std::ptrdiff_t>(at), length,
                  there.begin() + static_cast<std::ptrdiff_t>(*far));
      ++p.counts.writes_sent;
      p.counts.write_bytes_sent += length;
      q.counts.write_bytes_received += length;
      q.counts.payload_placed += length;
    }
    if (takes_receive(r.opcode)) received(p, q, r, at, length);
  }
  void received(WalkPair& p, WalkPair& q, const SendRequest& r, std::size_t at,
                std::size_t length) {
    const WalkReceive into = q.queue().front();
    q.queue().pop_front();
    if (q.has_srq) q.end.look_at_limit();
    Completion& c = q.want_receive(into.id, WcStatus::success);
    const bool writes = r.opcode == Opcode::write_with_immediate;
    c.with_immediate = writes || r.opcode == Opcode::send_with_immediate;
    c.immediate = c.with_immediate ? r.immediate : 0;
    c.behind_write = writes && q.is_roce();
    c.byte_len = writes && !q.is_roce() ? 0 : static_cast<std::uint32_t>(length);
    c.invalidated = r.opcode == Opcode::send_with_invalidate;
    c.invalidated_rkey = c.invalidated ? r.invalidate_rkey : 0;
    if (!writes) {
      std::copy_n(p.end.model.begin() + static_cast<std::ptrdiff_t>(at), length,
                  q.end.model.begin() + static_cast<std::ptrdiff_t>(into.at));
    }
    if (!writes || !q.is_roce()) {
      ++p.counts.sends_sent;
      ++q.counts.sends_received;
    }
    if (!writes) {
      p.counts.send_bytes_sent += length;
      q.counts.send_bytes_received += length;
      q.counts.payload_placed += length;
    }
    if (q.is_roce()) ++q.counts.completion_cqe_writes;
    if ((r.flags & send_solicited) != 0) q.last_receive_is_solicited();
    if (!c.invalidated) return;
    for (auto& w : q.end.windows) {
      if (w->window.rkey() == r.invalidate_rkey) q.end.unbind(*w);
    }
  }
  static void count_read(WalkPair& p, WalkPair& q, std::size_t length) {
    ++p.counts.reads_sent;
    p.counts.read_response_bytes_received += length;
    p.counts.payload_placed += length;
    ++q.counts.read_requests_received;
    ++q.counts.read_responses_sent;
    q.counts.read_response_bytes_sent += length;
  }
  static std::uint64_t number_at(const WalkEnd& e, std::size_t at) {
    std::uint64_t n;
    std::memcpy(&n, e.model.data() + at, sizeof n);
    return n;
  }
  static void atomic(const SendRequest& r, WalkEnd& here, std::size_t at, WalkEnd& there,
                     std::size_t far) {
    const std::uint64_t was = number_at(there, far);
    std::uint64_t is = was + r.atomic.data;
    if (r.opcode == Opcode::compare_swap) is = was == r.atomic.compare ? r.atomic.data : was;
    std::memcpy(there.model.data() + far, &is, sizeof is);
    std::memcpy(here.model.data() + at, &was, sizeof was);
  }

  // ---- destinations

  static std::uint32_t right_of(Opcode op) {
    return op == Opcode::read ? access_remote_read
           : is_atomic(op)    ? access_remote_atomic
                              : access_remote_write;
  }
  struct Key {
    std::uint32_t rkey;
    WalkArea area;
  };
  // All keys that a peer of `q` may use.
  static std::vector<Key> keys_at(const WalkPair& q) {
    std::vector<Key> all;
    for (auto& r : q.end.regions) all.push_back({r->mr.rkey(), r->area});
    for (auto& w : q.end.windows) {
      if (w->area && (w->area->only == nullptr || w->area->only == &q)) {
        all.push_back({w->window.rkey(), *w->area});
      }
    }
    return all;
  }
  // Chooses its place in the memory of that end.
  std::size_t aim(const WalkPair& q, Opcode op, std::size_t length, SendRequest* r, Dice& dice) {
    const std::size_t slot = remote_slot() * kSlot;
    std::vector<Key> fit;
    for (const Key& k : keys_at(q)) {
      const bool may = (k.area.rights & right_of(op)) != 0;
      if (may && k.area.covers(slot, std::max<std::size_t>(length, 8))) fit.push_back(k);
    }
    const Key& k = *dice.any(fit);
    r->rkey = k.rkey;
    r->remote_address = k.area.base + (slot - k.area.at);
    return slot;
  }
  bool choose_window(const WalkPair& q, SendRequest* r) {
    for (auto& w : q.end.windows) {
      if (!w->area || w->area->only != &q) continue;
      r->invalidate_rkey = w->window.rkey();
      return true;
    }
    return false;
  }
  // An invalid key, range or right.
  bool aim_badly(const WalkPair& p, Opcode op, SendRequest* r, Dice& dice) {
    const WalkPair& q = *p.peer;
    auto keys = keys_at(q);
    const Key& k = *dice.any(keys);
    r->rkey = k.rkey;
    r->remote_address = k.area.base;
    switch (dice.below(6)) {
      case 0:
        r->remote_address = k.area.base + k.area.length - 199;
        return true;
      case 1:
        r->remote_address = k.area.base - 1;
        return true;
      case 2:
      case 3:
      case 4: {
        std::vector<std::uint32_t> dead, all = q.end.dead_keys;
        for (auto& w : q.end.windows) all.push_back(w->window.rkey());
        for (const std::uint32_t d : all) {
          if (!q.end.named(d, &q)) dead.push_back(d);
        }
        const std::uint32_t* const d = dice.any(dead);
        r->rkey = d != nullptr ? *d : k.rkey ^ 0x01000000;
        return true;
      }
      default:
        return (k.area.rights & right_of(op)) == 0;
    }
  }

  WalkWorld& world_;
  std::size_t local_ = 0, remote_ = 0;
  bool apart_ = false;
};

}  // namespace urnic::test
