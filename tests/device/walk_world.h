// Two devices that speak both transports, joined by a wire in memory, and the queue pairs of a
// program that uses both.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/device/walk_line.h"
#include "tests/device/walk_pair.h"
#include "tests/support/virtual_time.h"

namespace urnic::test {

class WalkWorld {
 public:
  enum class Line : std::uint8_t { perhaps_faulty, good };
  // The steps are recorded in `*to`.
  WalkWorld(Dice& dice, std::vector<std::string>* to, Line line = Line::perhaps_faulty)
      : time_(dice.number()), told_(*to), line_(line) {
    for (unsigned i = 0; i < 2; ++i) {
      ends.push_back(std::make_unique<WalkEnd>(configuration(i, dice), i));
      ends[i]->want(EventKind::link_up, ends[i].get());
      lines[i] = &WalkLine::before(ends[i]->device);
    }
    bool ready = false;
    for (int i = 0; i < 1000 && !ready; ++i) {
      ready = ends[0]->device.wait_link(1);
      ready = ends[1]->device.wait_link(1) && ready;
    }
    agree(ready, "the devices have a link");
    settle(100);
  }
  ~WalkWorld() {
    pairs.clear();
    ends.clear();
  }
  WalkWorld(const WalkWorld&) = delete;
  WalkWorld& operator=(const WalkWorld&) = delete;

  // ---- time

  // Lets this many milliseconds pass, from one deadline to the next.
  void settle(int ms) {
    const std::int64_t begin = VirtualTime::now_ns(), until = begin + std::int64_t{ms} * 1000000;
    for (int rounds = 0;; ++rounds) {
      agree(rounds < 2000000, "the devices come to rest");
      bool busy = false;
      for (auto& e : ends) busy = e->device.progress() || busy;
      if (busy && rounds % 64 != 63) continue;
      if (VirtualTime::now_ns() >= until) return;
      std::int64_t next = until;
      for (auto& e : ends) next = std::min(next, engine_of(e->device).next_deadline().ns());
      const std::int64_t left = std::max<std::int64_t>(next - VirtualTime::now_ns(), 20000);
      // The engine's deadlines do not include the time when a faulty line releases a frame.
      const bool early = VirtualTime::now_ns() - begin < 60000000;
      VirtualTime::pass(std::min<std::int64_t>(left, faulty_ && early ? 500000 : 50000000));
    }
  }
  void check() {
    for (auto& e : ends) e->check();
    for (auto& p : pairs) p->check();
    for (auto& e : ends) check_tables(*e);
  }
  // Destroys everything, and checks that nothing is left.
  void finish() {
    while (!pairs.empty()) drop(pairs.size() / 2);
    settle(5000);
    check();
    for (auto& e : ends) {
      while (!e->windows.empty()) e->windows.erase(e->windows.begin());
      while (!e->regions.empty()) e->regions.erase(e->regions.begin());
    }
    settle(150000);
    for (auto& e : ends) {
      engine::EngineTables left = engine_of(e->device).tables();
      left.neighbours = 0;  // they stay for a while
      const VerbsStats ended = e->device.stats().ended.verbs;
      for (const WalkCounter& c : kWalkCounters) {
        if (c.of_entries()) continue;
        agree_on(ended.*c.member, e->counts.*c.member, std::string("in all, ") + c.name);
      }
      agree(left == engine::EngineTables{}, "something is left at end " + std::to_string(e->which));
    }
  }

  // ---- queue pairs

  WalkEnd& other(const WalkEnd& e) { return *ends[1 - e.which]; }
  std::vector<WalkPair*> those(const WalkEnd* of, Stage stage,
                               std::optional<Transport> transport = {}) {
    std::vector<WalkPair*> found;
    for (auto& p : pairs) {
      const bool connects = p->service == Service::rc || stage == Stage::moved;
      const bool fits = (of == nullptr || &p->end == of) && p->stage == stage && connects;
      if (fits && (!transport || p->transport == *transport)) found.push_back(p.get());
    }
    return found;
  }
  // Null when there is none.
  WalkPair* one_of(Dice& dice, const WalkEnd* of, Stage stage,
                   std::optional<Transport> transport = {}) {
    auto found = those(of, stage, transport);
    WalkPair** const p = dice.any(found);
    return p == nullptr ? nullptr : *p;
  }
  // One that may send to its peer; null when there is none.
  WalkPair* ready(Dice& dice) {
    std::vector<WalkPair*> found;
    for (auto& p : pairs) {
      const bool linked = p->stage == Stage::moved && p->peer != nullptr;
      const bool sends = linked && p->state == QpState::rts && p->peer->state == QpState::rts;
      if (p->stage == Stage::up || sends) found.push_back(p.get());
    }
    WalkPair** const p = dice.any(found);
    return p == nullptr ? nullptr : *p;
  }
  // Null when the end already has the maximum number.
  WalkPair* make(WalkEnd& at, Dice& dice, Transport t, Service service = Service::rc) {
    std::set<std::size_t> slots;
    for (std::size_t i = 0; i < kMostPairs; ++i) {
      slots.insert(kSharedSlots + i * WalkPair::kReceiveSlots);
    }
    for (auto& p : pairs) {
      if (&p->end == &at) slots.erase(p->slot);
    }
    if (slots.empty()) return nullptr;
    pairs.push_back(std::make_unique<WalkPair>(at, dice, t, service, *slots.begin()));
    tell("make " + name(*pairs.back()));
    return pairs.back().get();
  }
  void drop(std::size_t at) {
    WalkPair& p = *pairs[at];
    tell("destroy " + name(p));
    // Its peer gets the end event, and this end gets no more events.
    if (p.stage == Stage::up) {
      end(*p.peer, p.is_roce() ? EventKind::disconnected : EventKind::failed);
    }
    part(p);
    p.end.forget_events_of(&p);
    p.end.unbind_of(&p);
    pairs.erase(pairs.begin() + static_cast<std::ptrdiff_t>(at));
  }
  void part(WalkPair& p) {
    if (p.peer != nullptr) p.peer->peer = nullptr;
    p.peer = nullptr;
  }
  // A connection has ended; expects the events of the program at that end.
  void end(WalkPair& p, EventKind how, std::optional<EventKind> cause = {}) {
    p.stage = Stage::over;
    p.state = QpState::error;
    p.end.want(how, &p);
    if (cause && p.o.asynchronous_events) p.end.want(*cause, &p);
    if (p.is_roce() && p.o.asynchronous_events) p.end.want(EventKind::time_wait_over, &p);
    p.flush_receives();
  }
  static std::string name(const WalkPair& p) {
    return (p.is_roce() ? "RoCE " : "iWARP ") + std::to_string(p.qp.number()) + " of end " +
           std::to_string(p.end.which);
  }

  static int link_timeout_ms(unsigned which) { return 3500 + 1000 * static_cast<int>(which); }
  bool is_faulty() const { return faulty_; }
  void tell(std::string what) { told_.push_back(std::move(what)); }
  std::uint64_t next_id() { return ++last_id_; }
  std::uint16_t next_port() { return ++last_port_; }

 private:
  VirtualTime time_;  // constructed before the objects that read the time

 public:
  static constexpr std::size_t kMostPairs = 4;  // per end
  std::vector<std::unique_ptr<WalkEnd>> ends;
  WalkLine* lines[2];
  std::vector<std::unique_ptr<WalkPair>> pairs;

 private:
  Config configuration(unsigned which, Dice& dice) {
    Config c;
    const auto set = [&](const char* name, const std::string& value) {
      agree(c.set(name, value).ok(), std::string("the setting ") + name);
    };
    const std::string host = std::to_string(which + 1), second = std::to_string(which + 11);
    set("port", "mem:name=walk,mtu=2000");
    set("address", "10.77.0." + host + "/24,10.77.0." + second + "/24,fd77::" + host + "/64");
    set("transport", "both");
    set("progress", "poll");
    set("stat", "off");
    set("link_timeout_ms", std::to_string(link_timeout_ms(which)));
    set("ird", std::to_string(5 + which));
    set("ord", std::to_string(8 + which));
    if (which == 0) faulty_ = line_ == Line::perhaps_faulty && dice.one_in(4);
    if (faulty_) set("faults", "reorder=0.05:2,dup=0.03,seed=" + std::to_string(which + 1));
    static const char* const kTypes[] = {"fast", "slow"};
    set("connection_type", kTypes[dice.below(2)]);
    return c;
  }
  void check_tables(WalkEnd& e) {
    const engine::EngineTables t = engine_of(e.device).tables();
    const std::string who = " of end " + std::to_string(e.which);
    agree_on(t.regions, e.regions.size() + e.windows.size(), "regions" + who);
    std::size_t of_it = 0;
    for (auto& p : pairs) of_it += &p->end == &e ? 1 : 0;
    agree_on(t.queue_pairs, of_it, "queue pairs" + who);
    agree_on(t.pending + t.half_open, 0u, "connections half open" + who);
    agree_on(t.waiting_to_send + t.waiting_to_drain + t.looped, 0u, "work that waits" + who);
    agree_on(t.reassembly_bytes, 0u, "bytes in reassembly" + who);
  }

  std::vector<std::string>& told_;
  Line line_;
  bool faulty_ = false;
  std::uint64_t last_id_ = 0;
  std::uint16_t last_port_ = 7000;
};

// A walk in such a world: after each step time passes, and then both devices must agree with the
// model.
class WorldWalk : public Walk {
 public:
  void step(Dice& dice) final {
    act(dice);
    world_.settle(pause_ms_);
    check();
  }
  void finish() final {
    clean_up();
    world_.finish();
  }

 protected:
  WorldWalk(Dice& dice, int pause_ms, WalkWorld::Line line = WalkWorld::Line::good)
      : world_(dice, &told, line), pause_ms_(pause_ms) {}

  virtual void act(Dice&) = 0;
  virtual void check() { world_.check(); }
  virtual void clean_up() {}

  WalkWorld world_;

 private:
  int pause_ms_;
};

}  // namespace urnic::test
