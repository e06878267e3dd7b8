// A queue pair of a walk over the verbs, and what its model knows of it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "tests/device/walk_end.h"

namespace urnic::test {

enum class Stage : std::uint8_t {
  idle,   // no connection yet, or reset
  up,     // connected, by connection management
  moved,  // RoCE: the program moves it
  over,   // its connection has ended
};

struct WalkReceive {
  std::uint64_t id;
  std::size_t at, room;
};
struct WantedCompletion {
  Completion c;
  bool any_status = false;  // may be what is said, or success, or flushed
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
    o.events = end.events;
    o.context = this;
    o.send_cq = send_cq = *end.device.create_cq(32);
    o.receive_cq = receive_cq = dice.one_in(3) ? send_cq : *end.device.create_cq(16);
    auto made = end.device.create_qp(end.pd, o);
    agree(made.ok(), "a queue pair is made");
    qp = std::move(*made);
    state = made_in();
  }
  WalkPair(const WalkPair&) = delete;
  WalkPair& operator=(const WalkPair&) = delete;

  bool is_roce() const { return transport == Transport::roce; }
  QpState made_in() const { return is_roce() ? QpState::reset : QpState::init; }
  bool takes_receives() const { return state != QpState::reset && service != Service::xrc_send; }

  void post_receive(std::uint64_t id, Dice& dice) {
    const std::size_t place = first_free();
    const std::size_t at = (slot + place) * kSlot, room = dice.between(0, 1) * 1000 + 3000;
    const Sge two[] = {end.sge(at, 1000), end.sge(at + 1000, room - 1000)};
    const bool split = dice.one_in(2);
    const Sge whole = end.sge(at, room);
    const auto posted =
        qp.post_receive({id, split ? std::span<const Sge>(two) : std::span<const Sge>(&whole, 1)});
    if (!takes_receives()) {
      agree(!posted && posted.error().code == Errc::wrong_state, "a receive in reset is refused");
      return;
    }
    if (receives.size() == o.max_receive) {
      agree(!posted && posted.error().code == Errc::no_memory, "a receive queue is full");
      return;
    }
    agree(posted.ok(), "a receive is taken");
    if (state == QpState::error) {
      want_receive(id, WcStatus::flushed);
      return;
    }
    receives.push_back({id, at, room});
  }
  bool has_room() const { return receives.size() < kReceiveSlots; }

  Completion& want_send(std::uint64_t id, Opcode op, WcStatus status) {
    return want(&sends_wanted, id, op, status);
  }
  Completion& want_receive(std::uint64_t id, WcStatus status) {
    return want(&receives_wanted, id, Opcode::receive, status);
  }
  void flush_receives() {
    for (const WalkReceive& r : receives) want_receive(r.id, WcStatus::flushed);
    receives.clear();
  }
  // Its work and completions vanish.
  void forget() {
    receives.clear();
    sends_wanted.clear();
    receives_wanted.clear();
  }

  void check() {
    const std::string who =
        "queue pair " + std::to_string(qp.number()) + " of end " + std::to_string(end.which) + ": ";
    poll(send_cq, who);
    if (!shares_cq()) poll(receive_cq, who);
    agree(sends_wanted.empty(), who + "completions of sends that did not come");
    agree(receives_wanted.empty(), who + "completions of receives that did not come");
    agree_on(static_cast<int>(qp.state()), static_cast<int>(state), who + "state");
    agree_on(qp.connections(), connections, who + "connections");
    if (stage == Stage::up) {
      agree_on(qp.ird(), ird, who + "ird");
      agree_on(qp.ord(), ord, who + "ord");
    }
    if (is_roce()) return;  // counts packets (RoceStats)
    const ConnectionStats s = qp.stats();
    agree_on(s.verbs.writes_sent, writes, who + "writes_sent");
    agree_on(s.verbs.reads_sent, reads, who + "reads_sent");
    agree_on(s.verbs.sends_sent, sends, who + "sends_sent");
    agree_on(s.verbs.sends_received, sends_received, who + "sends_received");
  }
  void begin_counting() { writes = reads = sends = sends_received = 0; }

  WalkEnd& end;
  Transport transport;
  Service service;
  std::size_t slot;  // the first of its own in the end's memory
  QpOptions o;
  CompletionQueue send_cq, receive_cq;
  QueuePair qp;

  QpState state = QpState::init;
  Stage stage = Stage::idle;
  WalkPair* peer = nullptr;
  std::uint32_t connections = 0;
  std::uint16_t ird = 0, ord = 0;
  QpAttributes attributes;  // of RoCE, as far as they are set
  std::deque<WalkReceive> receives;
  std::uint64_t writes = 0, reads = 0, sends = 0, sends_received = 0;

 private:
  bool shares_cq() const { return send_cq.depth() == receive_cq.depth(); }
  std::size_t first_free() const {
    std::array<bool, kReceiveSlots> taken{};
    for (const WalkReceive& r : receives) taken[r.at / kSlot - slot] = true;
    for (std::size_t i = 0; i < kReceiveSlots; ++i) {
      if (!taken[i]) return i;
    }
    return 0;
  }
  Completion& want(std::deque<WantedCompletion>* of, std::uint64_t id, Opcode op, WcStatus status) {
    WantedCompletion w;
    w.c.wr_id = id;
    w.c.opcode = op;
    w.c.status = status;
    w.c.qp_number = qp.number();
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
    }
    of->pop_front();
  }

  std::deque<WantedCompletion> sends_wanted, receives_wanted;
};

}  // namespace urnic::test
