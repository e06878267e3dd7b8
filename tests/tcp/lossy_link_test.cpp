// Two control blocks over a bad link. Whatever the link does, the received bytes equal the sent
// ones, both ends reach the end of the stream, and nothing hangs. A failure prints the seed.
#include <gtest/gtest.h>

#include <memory>
#include <queue>
#include <string>

#include "base/rng.h"
#include "tests/tcp/host.h"

namespace urnic::tcp::test {
namespace {

struct Link {
  double loss = 0, duplicate = 0, corrupt = 0, reorder = 0;
  Duration delay = Duration::us(500);
  Duration jitter = Duration::us(2000);
};

struct InFlight {
  Instant at;
  std::uint64_t order;
  int to;
  Bytes bytes;
  bool operator<(const InFlight& o) const { return at != o.at ? at > o.at : order > o.order; }
};

class Simulation {
 public:
  Simulation(std::uint64_t seed, const Link& link) : rng(seed), link_(link) {
    for (int i = 0; i < 2; ++i) {
      host[i].stream = static_cast<unsigned>(i);
      host[i].peer_stream = static_cast<unsigned>(1 - i);
      host[i].local_port = static_cast<std::uint16_t>(1000 + i);
      host[i].remote_port = static_cast<std::uint16_t>(1001 - i);
      host[i].iss = Seq(static_cast<std::uint32_t>(rng.next()));
    }
  }

  // Runs until both ends are done or `limit` has passed.
  void run(Duration limit) {
    const Instant end = now + limit;
    while (now < end) {
      collect();
      Instant next = earlier(host[0].deadline(), host[1].deadline());
      if (!wire_.empty()) next = earlier(next, wire_.top().at);
      if (next.is_never()) return;
      ASSERT_GE(next, now) << "a deadline in the past";
      now = next;
      for (Host& h : host) {
        if (h.deadline() <= now) h.run_timers(now);
      }
      while (!wire_.empty() && wire_.top().at <= now) {
        const InFlight f = wire_.top();
        wire_.pop();
        host[f.to].input(f.bytes, now);
      }
      ++steps;
    }
  }

  Rng rng;
  Host host[2];
  Instant now = Instant::from_ns(1000000000);
  std::uint64_t steps = 0, dropped = 0, sent = 0;
  std::uint64_t hash = 1469598103934665603ULL;  // of every byte sent and its time

 private:
  void collect() {
    for (int i = 0; i < 2; ++i) {
      while (!host[i].out.empty()) {
        Bytes b = std::move(host[i].out.front().bytes);
        host[i].out.pop_front();
        ++sent;
        for (const std::uint8_t x : b) hash = (hash ^ x) * 1099511628211ULL;
        hash = (hash ^ static_cast<std::uint64_t>(now.ns())) * 1099511628211ULL;
        if (rng.chance(link_.loss)) {
          ++dropped;
          continue;
        }
        if (rng.chance(link_.duplicate)) post(1 - i, b);
        if (rng.chance(link_.corrupt)) {
          b[rng.below(b.size())] ^= static_cast<std::uint8_t>(1u << rng.below(8));
        }
        post(1 - i, std::move(b));
      }
    }
  }
  void post(int to, Bytes b) {
    Instant at = now + link_.delay;
    if (rng.chance(link_.reorder)) {
      at = at + Duration::ns(static_cast<std::int64_t>(
                    rng.below(static_cast<std::uint64_t>(link_.jitter.count_ns()))));
    }
    wire_.push({at, order_++, to, std::move(b)});
  }

  Link link_;
  std::priority_queue<InFlight> wire_;
  std::uint64_t order_ = 0;
};

void transfer(std::uint64_t seed, Link link, const std::function<void(Simulation&)>& tune,
              std::uint64_t bytes) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Simulation sim(seed, link);
  tune(sim);
  Host &a = sim.host[0], &b = sim.host[1];
  b.listening = true;
  a.connect(sim.now);
  a.write(bytes, sim.now);
  for (int i = 0; i < 10000 && !synchronized(b.tcb.state); ++i) sim.run(Duration::ms(50));
  b.write(bytes / 3, sim.now);
  a.shutdown(sim.now);
  b.shutdown(sim.now);
  sim.run(Duration::s(3600));
  ASSERT_TRUE(a.content_ok && b.content_ok);
  ASSERT_EQ(b.delivered, bytes);
  ASSERT_EQ(a.delivered, bytes / 3);
  ASSERT_TRUE(a.end_of_stream && b.end_of_stream);
  ASSERT_EQ(a.tcb.state, State::Closed);
  ASSERT_EQ(b.tcb.state, State::Closed);
}

TEST(LossyLink, PerfectLinkDeliversEverythingWithoutARetransmission) {
  Simulation sim(1, {});
  Host &a = sim.host[0], &b = sim.host[1];
  b.listening = true;
  a.connect(sim.now);
  a.write(1000000, sim.now);
  sim.run(Duration::s(10));
  EXPECT_EQ(b.delivered, 1000000u);
  EXPECT_TRUE(b.content_ok);
  EXPECT_EQ(a.tcb.timers.retries, 0);
  EXPECT_EQ(a.tcb.loss.has_recover, false);
  EXPECT_EQ(a.tcb.sent_segments.size(), 0u);
}

TEST(LossyLink, DeliversEverythingOverABadLink) {
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    Rng rng(seed * 977);
    Link link;
    link.loss = 0.06 * static_cast<double>(rng.below(4)) / 3;
    link.duplicate = 0.03 * static_cast<double>(rng.below(3)) / 2;
    link.corrupt = 0.03 * static_cast<double>(rng.below(3)) / 2;
    link.reorder = 0.3 * static_cast<double>(rng.below(3)) / 2;
    transfer(
        seed, link,
        [&](Simulation& sim) {
          for (Host& h : sim.host) {
            Config& c = h.config;
            c.sack = rng.chance(0.7);
            c.timestamps = rng.chance(0.7);
            c.window_scaling = rng.chance(0.7);
            c.receive_buffer = static_cast<std::uint32_t>(rng.between(3000, 200000));
            c.mss = static_cast<std::uint16_t>(rng.between(100, 1460));
            c.ack_policy = static_cast<AckPolicy>(rng.below(3));
            c.hole_limit = static_cast<std::uint32_t>(rng.below(5));
            c.nagle = rng.chance(0.3);
            c.limited_transmit = rng.chance(0.7);
            c.count_plain_dupacks = rng.chance(0.3);
            c.congestion = static_cast<CongestionControl>(rng.below(4));
            c.ecn = static_cast<EcnMode>(rng.below(3));
            c.rack = rng.chance(0.7);
            c.tlp = rng.chance(0.7);
            c.prr = rng.chance(0.7);
            c.frto = rng.chance(0.7);
            c.undo = rng.chance(0.7);
            c.data_retries = 60;
            c.syn_retries = 30;
            c.rto_max = Duration::s(5);
            c.time_wait = Duration::s(30);
            h.unit = rng.chance(0.5) ? static_cast<std::uint32_t>(rng.between(50, 400)) : 0;
          }
        },
        rng.between(1, 120000));
    if (HasFatalFailure()) return;
  }
}

// E-27: the receiver forgets what it SACKed (a downgrade), and refuses segments that the layer
// above rejects (a CRC error). The sender survives both, with and without SACK.
// proves: E-27
TEST(LossyLink, SurvivesReceiversThatRenegeAndRefuse) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed * 31);
    Link link;
    link.loss = 0.03;
    link.reorder = 0.2;
    auto dice = std::make_shared<Rng>(seed);
    transfer(
        seed, link,
        [&](Simulation& sim) {
          for (Host& h : sim.host) {
            h.config.sack = rng.chance(0.8);
            h.config.data_retries = 60;
            h.config.syn_retries = 30;
            h.config.rto_max = Duration::s(5);
            h.immediate_dup_ack = rng.chance(0.5);
            h.ulp_drops = [dice](const Segment&) { return dice->chance(0.03); };
            h.forgets = [dice](const Segment&) { return dice->chance(0.03); };
          }
        },
        60000);
    if (HasFatalFailure()) return;
  }
}

// Two shortcuts to the same state (predict.h, run.h): all bytes sent and their times are the same.
struct ShortWay {
  std::uint64_t hash = 0, in_runs = 0;
};
ShortWay both_ways_full(std::uint64_t seed, bool predict, bool runs) {
  Rng rng(seed);
  Link link;
  link.loss = rng.chance(0.5) ? 0.02 : 0;
  link.reorder = rng.chance(0.5) ? 0.1 : 0;
  Simulation sim(seed, link);
  for (Host& h : sim.host) {
    h.predict = predict;
    h.in_runs = runs;
    h.unit = rng.chance(0.5) ? static_cast<std::uint32_t>(rng.between(2, 200)) * 2 : 0;
    h.config.timestamps = rng.chance(0.7);
    h.config.sack = rng.chance(0.7);
    h.config.ecn = static_cast<EcnMode>(rng.below(3));
    h.config.congestion = static_cast<CongestionControl>(rng.below(4));
    h.config.nagle = rng.chance(0.3);
    h.config.ack_policy = static_cast<AckPolicy>(rng.below(3));
    h.config.receive_buffer = static_cast<std::uint32_t>(rng.between(5000, 200000));
  }
  Host &a = sim.host[0], &b = sim.host[1];
  b.listening = true;
  a.connect(sim.now);
  a.write(100000, sim.now);
  for (int i = 0; i < 100 && !synchronized(b.tcb.state); ++i) sim.run(Duration::ms(50));
  b.write(60000, sim.now);
  sim.run(Duration::s(20));
  a.write(100000, sim.now);  // after a pause: RFC 5681 4.1
  a.shutdown(sim.now);
  sim.run(Duration::s(100));
  EXPECT_EQ(b.delivered, 200000u);
  EXPECT_EQ(a.delivered, 60000u);
  return {sim.hash, a.sent_in_runs};
}

// proves: E-24
TEST(LossyLink, PredictedSegmentsAndThoseOfARunAreTreatedLikeAllOthers) {
  std::uint64_t in_runs = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const ShortWay plain = both_ways_full(seed, false, false);
    ASSERT_EQ(both_ways_full(seed, true, false).hash, plain.hash);
    const ShortWay runs = both_ways_full(seed, false, true);
    ASSERT_EQ(runs.hash, plain.hash);
    in_runs += runs.in_runs;
  }
  EXPECT_GT(in_runs, 40u * 50);  // some were sent in runs
}

}  // namespace
}  // namespace urnic::tcp::test
