// Two ends that open, refuse and end connections, and a wire between them that loses, duplicates
// and reorders. Everything depends on a seed; URNIC_TEST_SEED=n runs only that one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "ib_cm/end.h"
#include "tests/support/faulty_wire.h"

namespace urnic::ib_cm {
namespace {

// The life of one handle, as its owner sees it.
struct Story {
  bool asked = false, established = false, failed = false, disconnected = false, released = false;
  std::uint32_t qpn = 0, peer_qpn = 0;
};

class Owner {
 public:
  Owner(int which, std::uint64_t seed)
      : end(which, test::keyed(seed * 2 + static_cast<std::uint64_t>(which))), rng_(seed ^ 0x0ca) {
    end.manager.listen({test::kService, {}, Transport::Rc, 64});
    end.manager.listen({test::kUdService, {}, Transport::Rc, 64});
  }

  void begin(const IpAddress& peer, Instant now) {
    if (rng_.chance(0.2)) {
      Resolve r;
      r.addresses = end.to(peer);
      r.service = test::kUdService;
      r.response_timeout = 14;
      stories[*end.manager.sidr().resolve(r, {}, now)].asked = true;
      return;
    }
    Connect c = end.connect_to(peer, next_qpn_++);
    c.response_timeout = 14;  // 67 ms
    const Handle h = *end.manager.connections().connect(c, {}, now);
    stories[h].qpn = c.qp.qpn;
  }
  // Returns what is wrong; empty: nothing.
  std::string take_events(Instant now) {
    for (Event e; end.manager.next_event(&e);) {
      Story& s = stories[e.handle];
      if (s.released) return "something behind the release";
      if (std::string w = take(e, s, now); !w.empty()) return w;
    }
    return "";
  }
  // The owner makes a call of its own.
  void act(Instant now) {
    for (auto& [h, s] : stories) {
      if (s.established && !s.disconnected && rng_.chance(0.1)) {
        end.manager.connections().disconnect(h, {}, now);
      }
    }
  }
  // Ends everything that is left.
  void finish(Instant now) {
    for (auto& [h, s] : stories) {
      if (s.established && !s.disconnected) end.manager.connections().disconnect(h, {}, now);
    }
  }

  test::End end;
  std::map<Handle, Story> stories;

 private:
  std::string take(const Event& e, Story& s, Instant now) {
    switch (e.kind) {
      case EventKind::ConnectRequest:
        if (s.asked) return "asked twice";
        s.asked = true;
        s.peer_qpn = e.qp.qpn;
        if (rng_.chance(0.15)) {
          end.manager.connections().reject(e.handle, Reason::Consumer, {}, now);
        } else {
          s.qpn = next_qpn_++;
          end.manager.connections().accept(e.handle, {s.qpn, ib::Psn(1), 1, 1, 7, false, false}, {},
                                           now);
        }
        return "";
      case EventKind::Accepted:
        if (s.established || s.failed) return "accepted what is decided";
        s.established = true;
        s.peer_qpn = e.qp.qpn;
        end.manager.connections().confirm(e.handle, {});
        return "";
      case EventKind::Established:
        if (s.established || s.failed) return "established what is decided";
        s.established = true;
        return "";
      case EventKind::Rejected:
      case EventKind::Unreachable:
        if (s.established || s.failed) return "failed what is decided";
        s.failed = true;
        return "";
      case EventKind::Disconnected:
        if (s.disconnected) return "disconnected twice";
        s.disconnected = true;
        return "";
      case EventKind::ServiceRequest:
        end.manager.sidr().answer(e.handle, {SidrStatus::Valid, 5, 6}, {}, now);
        return "";
      case EventKind::Resolved:
        if (s.failed || e.service.qpn != 5) return "resolved wrongly";
        s.failed = true;  // the outcome is certain
        return "";
      case EventKind::TurnedAway:
        return "turned away, and there is no gate";
      case EventKind::Released:
        s.released = true;
        return "";
    }
    return "an event of no kind";
  }

  Rng rng_;
  std::uint32_t next_qpn_ = 0x100;
};

class TwoManagers {
 public:
  explicit TwoManagers(std::uint64_t seed)
      : rng_(seed), wire_(seed + 5, faults(&rng_)), owners_{Owner(2, seed), Owner(3, seed)} {}

  std::string run() {
    Instant act = now_;
    for (int left = 30, idle = 0, steps = 0; steps < 200'000; ++steps) {
      if (now_ >= act) {
        if (left > 0) {
          Owner& o = owners_[rng_.below(2)];
          o.begin(other(o).end.me, now_);
          --left;
        }
        for (Owner& o : owners_) left > 0 ? o.act(now_) : o.finish(now_);
        act = now_ + Duration::ms(static_cast<std::int64_t>(rng_.between(1, 200)));
      }
      if (std::string w = exchange(); !w.empty()) return w;
      Instant next = wire_.next();
      for (Owner& o : owners_) next = earlier(next, o.end.manager.due());
      idle = next.is_never() && left == 0 ? idle + 1 : 0;
      if (idle == 3) return judge();  // the owners have had their time
      now_ = std::max(now_, earlier(next, act));
      while (wire_.next() <= now_) {
        const auto [to, mad] = wire_.take();
        Owner& o = owners_[to];
        o.end.manager.take(o.end.to(other(o).end.me), mad, now_);
      }
      for (Owner& o : owners_) o.end.manager.on_time(now_);
    }
    return "it does not end";
  }

  const urnic::test::FaultyWire& wire() const { return wire_; }
  std::uint64_t connected() const { return connected_; }

 private:
  static urnic::test::WireFaults faults(Rng* rng) {
    const auto some = [rng] { return 0.01 * static_cast<double>(rng->between(1, 30)); };
    return {some(), some(), some()};
  }
  Owner& other(const Owner& o) { return owners_[&o == &owners_[0] ? 1 : 0]; }
  std::string exchange() {
    for (int i = 0; i < 2; ++i) {
      if (std::string w = owners_[i].take_events(now_); !w.empty()) return w;
      for (const Outgoing& o : owners_[i].end.mads()) {
        wire_.send(now_, 1 - i, {o.mad.begin(), o.mad.end()});
      }
    }
    return "";
  }
  // Every handle was released, and if one end considered a connection established, the other end
  // did too, or was notified of the failure.
  std::string judge() {
    for (Owner& o : owners_) {
      if (o.end.manager.size() != 0 || o.end.manager.half_open() != 0) return "something is left";
      for (const auto& [h, s] : o.stories) {
        if (!s.released) return "not released";
        if (s.established && !s.disconnected) return "established and never ended";
        if (!s.established && s.disconnected && s.peer_qpn == 0) return "ended and never begun";
        connected_ += s.established;
        if (!s.established) continue;
        int peers = 0;
        for (const auto& [other_h, t] : other(o).stories) {
          peers += t.qpn == s.peer_qpn && t.peer_qpn == s.qpn;
        }
        if (peers != 1) return "an end without the other, or with two";
      }
    }
    return "";
  }

  Rng rng_;
  urnic::test::FaultyWire wire_;
  Owner owners_[2];
  Instant now_ = Instant::from_ns(1);
  std::uint64_t connected_ = 0;
};

// proves: IB-139
TEST(TwoManagersTest, EveryRequestEndsInOneConnectionOrOneClearFailure) {
  std::uint64_t first = 1, last = std::getenv("URNIC_TEST_LONG") != nullptr ? 10'000 : 200;
  if (const char* one = std::getenv("URNIC_TEST_SEED"); one != nullptr) {
    first = last = std::strtoull(one, nullptr, 10);
  }
  std::uint64_t lost = 0, doubled = 0, overtaken = 0, connected = 0;
  for (std::uint64_t seed = first; seed <= last && !HasFailure(); ++seed) {
    TwoManagers both(seed);
    EXPECT_EQ(both.run(), "") << "seed " << seed;
    lost += both.wire().lost;
    doubled += both.wire().doubled;
    overtaken += both.wire().overtaken;
    connected += both.connected();
  }
  const std::uint64_t seeds = last - first + 1;
  for (const std::uint64_t n : {lost, doubled, overtaken, connected}) EXPECT_GT(n, seeds);
}

}  // namespace
}  // namespace urnic::ib_cm
