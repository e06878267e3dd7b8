// A queue pair of a walk over the verbs, with its state in the model.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "tests/device/walk_end.h"

namespace urnic::test {

enum class Stage : std::uint8_t {
  idle,   // no connection yet, or reset
  up,     // connected, by connection management
  moved,  // RoCE: the program moves it
  over,   // its connection has ended
};

struct WantedCompletion {
  Completion c;
  bool wakes = false;  // also wakes a thread that waits for solicited completions
};
// A completion queue that reports events.
struct WalkCq {
  CompletionQueue cq;
  bool armed = false, solicited_only = false;
};

class WalkPair {
 public:
  static constexpr std::size_t kReceiveSlots = 4;  // of the end's memory, for each pair

  WalkPair(WalkEnd& at, Dice& dice, Transport t, Service s, std::size_t first_slot)
      : end(at), transport(t), service(s), slot(first_slot) {
    o.transport = transport;
    o.service = service;
    o.max_send = dice.between(1, 7);
    o.max_receive = dice.between(8, 11);
    o.max_send_sge = dice.between(2, 3);
    o.max_receive_sge = dice.between(4, 5);
    o.max_inline = dice.between(20, 60);
    o.signal_all = dice.one_in(3);
    o.asynchronous_events = dice.one_in(2);
    o.iwarp.completion_method = dice.between(1, 2);
    if (o.iwarp.completion_method == 2u) o.iwarp.completion_threshold = dice.between(1, 3);
    o.events = end.events;
    o.context = this;
    shares_cq = dice.one_in(3);
    has_srq = (s == Service::rc || s == Service::ud) && dice.one_in(4);
    o.send_cq = make_cq(&send_cq, 32);
    o.receive_cq = shares_cq ? send_cq.cq : make_cq(&receive_cq, 16);
    if (has_srq) o.srq = end.shared.queue;
    auto made = end.device.create_qp(end.pd, o);
    agree(made.ok(), "a queue pair is made");
    qp = std::move(*made);
    state = made_in();
  }
  ~WalkPair() { begin_counting(); }
  WalkPair(const WalkPair&) = delete;
  WalkPair& operator=(const WalkPair&) = delete;

  bool is_roce() const { return transport == Transport::roce; }
  QpState made_in() const { return is_roce() ? QpState::reset : QpState::init; }
  bool takes_receives() const { return state != QpState::reset && service != Service::xrc_send; }

  // The queue that its receives come from.
  std::deque<WalkReceive>& queue() { return has_srq ? end.shared.receives : receives; }
  void post_receive(std::uint64_t id, Dice& dice) {
    const bool small = service == Service::ud && !has_srq && dice.one_in(3);
    const std::size_t at = free_slot() * kSlot;
    const std::size_t room = small ? dice.between(60, 700) : dice.between(0, 1) * 1000 + 3000;
    const std::size_t head = small ? 50 : 1000;
    const Sge two[] = {end.sge(at, head), end.sge(at + head, room - head)};
    const bool split = dice.one_in(2);
    const Sge whole = end.sge(at, room);
    const ReceiveRequest r{id, split ? std::span<const Sge>(two) : std::span<const Sge>(&whole, 1)};
    if (has_srq) return post_shared(r, at, room);
    const auto posted = qp.post_receive(r);
    if (!takes_receives()) {
      agree(!posted && posted.error().code == Errc::wrong_state, "a receive in reset is refused");
      return;
    }
    if (receives.size() == o.max_receive) {
      agree(!posted && posted.error().code == Errc::queue_full, "a receive queue is full");
      return;
    }
    agree(posted.ok(), "a receive is taken");
    if (state == QpState::error) {
      want_receive(id, WcStatus::flushed);
      return;
    }
    receives.push_back({id, at, room});
  }
  bool has_room() { return queue().size() < (has_srq ? WalkShared::kMost : kReceiveSlots); }

  Completion& want_send(std::uint64_t id, Opcode op, WcStatus status) {
    return want(&sends_wanted, id, op, status);
  }
  Completion& want_receive(std::uint64_t id, WcStatus status) {
    return want(&receives_wanted, id, Opcode::receive, status);
  }
  void last_receive_is_solicited() { receives_wanted.back().wakes = true; }
  void flush_receives() {
    if (has_srq) end.want(EventKind::last_receive, this);
    for (const WalkReceive& r : receives) want_receive(r.id, WcStatus::flushed);
    receives.clear();
  }
  // Discards its work and completions.
  void forget() {
    if (is_roce()) begin_counting();  // iWARP: with the next connection
    receives.clear();
    sends_wanted.clear();
    receives_wanted.clear();
  }

  void check() {
    const std::string who =
        "queue pair " + std::to_string(qp.number()) + " of end " + std::to_string(end.which) + ": ";
    check_wakes(who);
    poll(send_cq.cq, who);
    if (!shares_cq) poll(receive_cq.cq, who);
    agree(sends_wanted.empty(), who + "completions of sends that did not come");
    agree(receives_wanted.empty(), who + "completions of receives that did not come");
    agree_on(static_cast<int>(qp.state()), static_cast<int>(state), who + "state");
    agree_on(qp.connections(), connections, who + "connections");
    if (stage == Stage::up) {
      agree_on(qp.ird(), ird, who + "ird");
      agree_on(qp.ord(), ord, who + "ord");
    }
    check_counts(who);
  }
  void begin_counting() { end.add_up(&counts); }

  WalkEnd& end;
  Transport transport;
  Service service;
  std::size_t slot;  // the first of its own in the end's memory
  QpOptions o;
  WalkCq send_cq, receive_cq;
  bool shares_cq = false, has_srq = false;
  QueuePair qp;

  QpState state = QpState::init;
  Stage stage = Stage::idle;
  WalkPair* peer = nullptr;
  std::uint32_t connections = 0;
  std::uint16_t ird = 0, ord = 0;
  std::uint8_t traffic_class = 0;
  QpAttributes attributes;  // of RoCE, as far as they are set
  std::deque<WalkReceive> receives;
  VerbsStats counts;

 private:
  void check_counts(const std::string& who) {
    const VerbsStats is = qp.stats().verbs;
    for (const WalkCounter& c : kWalkCounters) {
      if (is_roce() || !c.of_entries()) agree_on(is.*c.member, counts.*c.member, who + c.name);
    }
  }
  CompletionQueue make_cq(WalkCq* to, std::uint32_t depth) {
    to->cq = *end.device.create_cq(depth, to);
    agree(to->cq.deliver_events(end.channel, to).ok(), "a completion queue tells a channel");
    return to->cq;
  }
  void post_shared(const ReceiveRequest& r, std::size_t at, std::size_t room) {
    const auto own = qp.post_receive(r);
    const Errc code = takes_receives() ? Errc::invalid_argument : Errc::wrong_state;
    agree(!own && own.error().code == code, "its receives come from another queue");
    const auto posted = end.shared.queue.post_receive(r);
    if (end.shared.receives.size() == WalkShared::kMost) {
      agree(!posted && posted.error().code == Errc::queue_full, "the shared queue is full");
      return;
    }
    agree(posted.ok(), "a receive is taken by the shared queue");
    end.shared.receives.push_back({r.wr_id, at, room});
  }
  std::size_t free_slot() {
    const std::size_t first = has_srq ? kSrqSlot : slot;
    const std::size_t most = has_srq ? WalkShared::kMost : kReceiveSlots;
    for (std::size_t i = first; i < first + most; ++i) {
      const auto& all = queue();
      const bool taken = std::any_of(all.begin(), all.end(),
                                     [&](const WalkReceive& r) { return r.at == i * kSlot; });
      if (!taken) return i;
    }
    return first;
  }
  // An armed queue has reported once, if a matching completion arrived.
  void check_wakes(const std::string& who) {
    const bool of_sends = wakes(&send_cq, sends_wanted, shares_cq ? &receives_wanted : nullptr);
    agree_on(end.took(&send_cq), of_sends ? 1u : 0u, who + "events of the queue for sends");
    if (shares_cq) return;
    const bool of_receives = wakes(&receive_cq, receives_wanted, nullptr);
    agree_on(end.took(&receive_cq), of_receives ? 1u : 0u,
             who + "events of the queue for receives");
  }
  static bool wakes(WalkCq* cq, const std::deque<WantedCompletion>& some,
                    const std::deque<WantedCompletion>* more) {
    bool comes = false;
    const auto look = [&](const std::deque<WantedCompletion>& all) {
      for (const WantedCompletion& w : all) comes = comes || w.wakes || !cq->solicited_only;
    };
    look(some);
    if (more != nullptr) look(*more);
    return comes && std::exchange(cq->armed, false);
  }
  Completion& want(std::deque<WantedCompletion>* of, std::uint64_t id, Opcode op, WcStatus status) {
    WantedCompletion w;
    w.c.wr_id = id;
    w.c.opcode = op;
    w.c.status = status;
    w.c.qp_number = qp.number();
    w.wakes = status != WcStatus::success;
    of->push_back(w);
    return of->back().c;
  }
  void poll(CompletionQueue& cq, const std::string& who) {
    Completion got[8];
    for (int n; (n = cq.poll(got)) > 0;) {
      for (int i = 0; i < n; ++i) {
        const bool receive = got[i].opcode == Opcode::receive;
        take(got[i], receive ? &receives_wanted : &sends_wanted,
             who + (receive ? "receive " : "send "));
      }
    }
  }
  static void take(const Completion& is, std::deque<WantedCompletion>* of, std::string what) {
    what += std::to_string(is.wr_id) + ": ";
    agree(!of->empty(), what + "nothing was to complete (" + to_string(is.status) + ")");
    const Completion& c = of->front().c;
    agree_on(is.wr_id, c.wr_id, what + "wr_id");
    agree(is.status == c.status,
          what + "status: " + to_string(is.status) + ", the model says " + to_string(c.status));
    agree_on(is.qp_number, c.qp_number, what + "qp_number");
    agree_on(static_cast<int>(is.opcode), static_cast<int>(c.opcode), what + "opcode");
    if (is.status == WcStatus::success) {
      const bool says_length = is.opcode == Opcode::receive || is.opcode == Opcode::read;
      if (says_length) agree_on(is.byte_len, c.byte_len, what + "byte_len");
      agree_on(is.invalidated, c.invalidated, what + "invalidated");
      agree_on(is.invalidated_rkey, c.invalidated_rkey, what + "invalidated_rkey");
      agree_on(is.with_immediate, c.with_immediate, what + "with_immediate");
      agree_on(is.behind_write, c.behind_write, what + "behind_write");
      agree_on(is.immediate, c.immediate, what + "immediate");
      agree_on(is.has_grh, c.has_grh, what + "has_grh");
      agree_on(is.grh_is_ipv4, c.grh_is_ipv4, what + "grh_is_ipv4");
      agree_on(is.source_qp, c.source_qp, what + "source_qp");
    }
    of->pop_front();
  }

  std::deque<WantedCompletion> sends_wanted, receives_wanted;
};

}  // namespace urnic::test
