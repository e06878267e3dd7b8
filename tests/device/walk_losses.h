// The steps of a walk over the verbs in which the line between its ends goes down and up: for a
// moment, for longer than either end waits, or so long that only one of them gives up; and in which
// the peer does not answer although the link is up.
#pragma once

#include <string>
#include <vector>

#include "tests/device/walk_connect.h"
#include "tests/device/walk_work.h"

namespace urnic::test {

class LossSteps {
 public:
  LossSteps(WalkWorld& world, ConnectSteps& connect, WorkSteps& work)
      : world_(world), connect_(connect), work_(work) {}

  // Takes the link down at one end or at both, and up again.
  void lose_link(Dice& dice) {
    const bool both = dice.one_in(2);
    const unsigned first = dice.below(2);
    const int ms =
        static_cast<int>(dice.one_in(2) ? dice.between(1, 150) : dice.between(4, 11) * 500 + 250);
    world_.tell("the link is down for " + std::to_string(ms) + " ms at " +
                (both ? "both ends" : "end " + std::to_string(first)));
    for (unsigned i = 0; i < 2; ++i) {
      if (both || i == first) take_down(i);
    }
    world_.settle(2);
    for (auto& e : world_.ends) e->check();
    if (ms < 160 && dice.one_in(2)) work_.work(dice, false);  // retransmitted until it arrives
    world_.settle(ms);
    for (unsigned i = 0; i < 2; ++i) {
      if (!both && i != first) continue;
      if (ms > WalkWorld::link_timeout_ms(i)) give_up(i);
    }
    for (unsigned i = 0; i < 2; ++i) {
      if (both || i == first) bring_up(i);
    }
    end_what_is_left();
    world_.settle(3000);
  }

  // Drops all packets of one end, while an end tries to connect.
  void nobody_answers(Dice& dice) {
    const unsigned dead = dice.below(2);
    world_.lines[dead]->carry(false);
    world_.tell("end " + std::to_string(dead) + " is dead");
    WalkEnd& from = *world_.ends[1 - dead];
    WalkPair* const p = world_.one_of(dice, &from, Stage::idle);
    if (p != nullptr) {
      ConnectionOptions o;
      o.timeout_ms = static_cast<int>(dice.between(500, 2500));
      const std::string at =
          "10.77.0." + std::to_string(dead + (dice.one_in(2) ? 1 : 11)) + ":6998";
      world_.tell("connect " + WalkWorld::name(*p) + " to " + at);
      const auto asked = p->qp.connect_start(at, o);
      agree(asked.ok(), "somebody connects");
      connect_.fails(*p);
      world_.settle(5000);
    } else {
      const bool busy = dice.one_in(2);
      if (busy) work_.work(dice, false);
      world_.settle(static_cast<int>(dice.between(1, busy ? 150 : 3000)));
    }
    world_.lines[dead]->carry(true);
    world_.tell("end " + std::to_string(dead) + " is back");

    world_.settle(3000);
  }

 private:
  void take_down(unsigned i) {
    world_.lines[i]->take_down();
    world_.ends[i]->want(EventKind::link_down, world_.ends[i].get());
  }
  void bring_up(unsigned i) {
    world_.lines[i]->bring_up();
    world_.ends[i]->want(EventKind::link_up, world_.ends[i].get());
  }
  // Its end of every connection fails.
  void give_up(unsigned i) {
    world_.tell("end " + std::to_string(i) + " gives up");
    for (auto& p : world_.pairs) {
      if (p->end.which != i || p->stage != Stage::up) continue;
      world_.end(*p, EventKind::failed);
    }
  }
  // When a peer has given up, RoCE ends learn it, because the DREQ is repeated; the others do not.
  void end_what_is_left() {
    for (auto& p : world_.pairs) {
      if (p->stage != Stage::up || p->peer->stage != Stage::over) continue;
      if (p->is_roce()) {
        world_.end(*p, EventKind::disconnected);
        continue;
      }
      world_.tell("abort " + WalkWorld::name(*p));
      p->qp.abort();
      world_.end(*p, EventKind::failed);
    }
  }

  WalkWorld& world_;
  ConnectSteps& connect_;
  WorkSteps& work_;
};

}  // namespace urnic::test
