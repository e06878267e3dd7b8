// The steps of a walk over the verbs with scarce resources: an allocation of a call fails, or a
// completion queue is too small.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/device/walk_connect.h"
#include "tests/support/allocator.h"

namespace urnic::test {

class RefusalSteps {
 public:
  RefusalSteps(WalkWorld& world, ConnectSteps& connect) : world_(world), connect_(connect) {}

  // A call with one failing allocation reports no_memory, or works; the object that it created is
  // destroyed at once. After a refusal the call works.
  void make(Dice& dice) {
    WalkEnd& e = *world_.ends[dice.below(2)];
    QpOptions o;
    o.transport = dice.one_in(2) ? Transport::roce : Transport::iwarp;
    o.send_cq = o.receive_cq = *e.device.create_cq(dice.between(1, 30));
    o.max_send = dice.between(1, 9);
    o.max_receive = dice.between(10, 19);
    o.events = e.events;
    if (dice.one_in(3)) o.srq = e.shared.queue;
    SrqOptions s;
    s.events = e.events;
    switch (dice.below(9)) {
      case 0:
        refused(dice, "create_cq", [&] { return e.device.create_cq(dice.between(1, 99)); });
        break;
      case 1:
        refused(dice, "create_srq", [&] { return e.device.create_srq(e.pd, s); });
        break;
      case 2:
        refused(dice, "create_qp", [&] { return e.device.create_qp(e.pd, o); });
        break;
      case 3:
        refused(dice, "register_memory", [&] {
          return e.device.register_memory(e.pd, e.address(100), 5000, access_local_write);
        });
        break;
      case 4:
        refused(dice, "create_window",
                [&] { return e.device.create_window(e.pd, WindowType::type2); });
        break;
      case 5:
        refused(dice, "listen", [&] { return e.device.listen(9000, 3, e.events, this); });
        break;
      case 6: {
        QpPath path;
        path.remote = "10.77.0." + std::to_string(2 - e.which);
        refused(dice, "create_address_handle",
                [&] { return e.device.create_address_handle(e.pd, path); });
        world_.settle(8000);  // its neighbour is resolved again
        break;
      }
      case 7:
        refused(dice, "open_xrc_domain", [&] { return e.device.open_xrc_domain("walk"); });
        break;
      default:
        refused(dice, "alloc_pd", [&] { return e.device.alloc_pd(); });
        break;
    }
  }
  // For an idle queue pair: it is unchanged, or connects and is refused.
  void connect(Dice& dice) {
    WalkPair* const p = world_.one_of(dice, nullptr, Stage::idle);
    if (p == nullptr) return;
    const std::string at = "10.77.0." + std::to_string(2 - p->end.which) + ":6997";
    world_.tell("connect " + WalkWorld::name(*p) + " without memory");
    const bool begun = refused(
        dice, "connect_start", [&] { return p->qp.connect_start(at); }, dice.one_in(2));
    if (begun) connect_.fails(*p);
    world_.settle(15000);  // packets that could not be sent for lack of memory are retransmitted
  }

  // More completions than a completion queue has room for: it keeps those in it, and its end fails.
  void overrun(Dice& dice) {
    WalkPair* const p = world_.one_of(dice, nullptr, Stage::up);
    if (p == nullptr || p->has_srq || p->shares_cq || !p->receives.empty()) return;
    WalkPair& q = *p->peer;
    const std::uint32_t depth = 1u << dice.below(2);
    if (q.o.max_send <= depth) return;
    world_.tell("a queue of " + std::to_string(depth) + " overruns at " + WalkWorld::name(*p));
    agree(p->receive_cq.cq.resize(depth).ok(), "an empty queue is resized");
    std::vector<std::uint64_t> ids;
    for (std::uint32_t i = 0; i <= depth; ++i) {
      ids.push_back(world_.next_id());
      const Sge into = p->end.sge((p->slot + i) * kSlot, 10);
      agree(p->qp.post_receive({ids.back(), {&into, 1}}).ok(), "a receive is taken");
    }
    for (std::uint32_t i = 0; i <= depth; ++i) {
      SendRequest r;
      r.flags = 0;
      agree(q.qp.post_send(r).ok(), "a request is taken");
      ++q.counts.sends_sent;
      ++p->counts.sends_received;
      world_.settle(2);
    }
    p->end.want(EventKind::cq_overrun, &p->receive_cq);
    p->end.want(EventKind::failed, p);
    world_.settle(100);
    q.end.forget_events_of(&q);
    drop(q);
    p->end.check();
    agree(p->qp.state() == QpState::error, "a queue pair whose queue has overrun is in error");
    Completion c[4];
    agree_on(p->receive_cq.cq.poll(c), static_cast<int>(depth), "what had room");
    for (std::uint32_t i = 0; i < depth; ++i) agree_on(c[i].wr_id, ids[i], "in its order");
    for (int i = 0; i < 2; ++i) agree_on(p->receive_cq.cq.poll(c), -1, "behind an overrun");
    p->end.took(&p->receive_cq);
    p->stage = Stage::over;
    drop(*p);
    world_.settle(3000);
  }

 private:
  template <class Call>
  bool refused(Dice& dice, const char* what, Call&& call, bool again = true) {
    std::uint64_t failed = 0;
    bool ok = false;
    {
      std::optional<decltype(call())> made;
      {
        const testing::NoMemory plan(dice.below(24));
        made.emplace(call());
        failed = plan.failed();
      }
      ok = made->ok();
      agree(ok || made->error().code == Errc::no_memory, std::string(what) + " without memory");
      agree(ok || failed != 0, std::string(what) + " has what it needs");
      world_.tell(std::string(what) + (ok ? " works" : " is refused"));
    }
    if (ok || !again) return ok;
    const auto made = call();
    agree(made.ok(),
          std::string(what) + " behind a refusal: " + (made.ok() ? "" : made.error().message));
    return true;
  }
  void drop(const WalkPair& p) {
    for (std::size_t i = 0; i < world_.pairs.size(); ++i) {
      if (world_.pairs[i].get() != &p) continue;
      world_.pairs[i]->stage = Stage::over;
      world_.drop(i);
      return;
    }
  }

  WalkWorld& world_;
  ConnectSteps& connect_;
};

}  // namespace urnic::test
