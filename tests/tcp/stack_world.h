// Two byte-stream stacks and the wire between them, for walks. The wire can be cut, and can lose,
// duplicate, reorder and corrupt datagrams. It counts what it carries, and stores the reports to
// each end.
#pragma once

#include <map>
#include <memory>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "base/inet_checksum.h"
#include "net/ipv4.h"
#include "net/ipv6.h"
#include "tcp/datagram_queue.h"
#include "tcp/segment.h"
#include "tcp/stack.h"
#include "tests/support/walk.h"

namespace urnic::tcp::test {

using urnic::test::agree;
using urnic::test::agree_on;
using urnic::test::Dice;

struct Told {
  Endpoint e = Endpoint::None;
  std::uint32_t what = 0;
  Instant at;
};

// The wire's record of one end of a connection.
struct OnWire {
  // When the last datagram reached this end, except keepalive probes and repeated SYNs. Those lie
  // outside the window, and TCP answers them without using their contents.
  Instant came;
  Seq first;             // of the other end's SYN
  bool opened = false;   // that SYN has arrived
  Seq acked;             // the last acknowledgement of this end
  std::uint8_t tos = 0;  // of the last segment with payload from this end
  std::size_t most = 0;  // largest payload from this end
  bool payload = false;
};

struct Side {
  StackConfig config;
  std::unique_ptr<Stack> stack;
  std::vector<Told> told;
  Duration delay;       // of the datagrams it sends
  bool bursts = false;  // gets datagrams that arrive at one time as one burst
  std::map<std::pair<SocketAddress, SocketAddress>, OnWire> seen;  // by local and remote endpoint
  std::uint64_t fetched = 0, given = 0, spoiled = 0, foreign = 0;
  std::uint64_t resets_out = 0, resets_in = 0;
};

class World {
 public:
  Instant now = Instant::from_ns(7'000'000'000);
  Side side[2];
  bool up = true;
  double loss = 0, duplicate = 0, reorder = 0, spoil = 0;

  explicit World(std::uint64_t seed) : rng_(seed) {}

  // The machine of side `i` restarts without any earlier state.
  void start(int i) {
    Side& s = side[i];
    s.stack = std::make_unique<Stack>(s.config);
    s.told.clear();
    s.fetched = s.given = s.spoiled = s.foreign = s.resets_out = s.resets_in = 0;
    observers_[i] = {this, &s};
    s.stack->set_on_change(
        [](void* c, Endpoint e, std::uint32_t what) {
          const auto* o = static_cast<Observer*>(c);
          o->side->told.push_back({e, what, o->world->now});
        },
        &observers_[i]);
  }
  // Puts the sent datagrams onto the wire.
  void collect() {
    Datagram d;
    for (int i = 0; i < 2; ++i) {
      while (side[i].stack->next_output(&d)) leave(i, d);
    }
  }
  bool quiet() {
    collect();
    return wire_.empty();
  }
  void pass(Duration time) {
    const Instant end = now + time;
    for (;;) {
      collect();
      Instant next = wire_.empty() ? Instant::never() : wire_.top().at;
      for (const Side& s : side) next = earlier(next, s.stack->next_deadline());
      if (next > end) break;
      now = std::max(now, next);
      for (const Side& s : side) {
        if (s.stack->next_deadline() <= now) s.stack->run(now);
      }
      arrive();
    }
    now = end;
    for (const Side& s : side) s.stack->run(now);
    collect();
  }
  // A segment that no stack has sent.
  void forge(int to, const SocketAddress& from, const SocketAddress& at, Segment s) {
    s.src_port = from.port;
    s.dst_port = at.port;
    const std::size_t ip = ip_header(at.ip);
    std::vector<std::uint8_t> b(ip + kHeaderMax);
    const std::size_t n = emit_header(s, b.data() + ip);
    b.resize(ip + n);
    const ByteView l4 = ByteView(b).subspan(ip);
    store_be16(b.data() + ip + 16,
               inet_checksum(std::uint64_t{pseudo_sum(from.ip, at.ip)} + n + inet_sum(l4)));
    if (at.ip.is_v6()) {
      net::Ipv6Header h;
      h.payload_len = static_cast<std::uint16_t>(n);
      h.next_header = net::kProtoTcp;
      h.src = from.ip;
      h.dst = at.ip;
      net::emit_ipv6(h, b.data());
    } else {
      net::Ipv4Header h;
      h.total_len = static_cast<std::uint16_t>(b.size());
      h.protocol = net::kProtoTcp;
      h.src = from.ip;
      h.dst = at.ip;
      net::emit_ipv4(h, b.data());
    }
    ++side[to].given;
    if (s.has(kRst)) ++side[to].resets_in;
    side[to].stack->input(b, now);
    collect();
  }

 private:
  struct Observer {
    World* world = nullptr;
    Side* side = nullptr;
  };
  struct Flying {
    Instant at;
    std::uint64_t order = 0;
    int to = 0;
    bool spoiled = false;
    std::vector<std::uint8_t> bytes;
    bool operator<(const Flying& o) const { return at != o.at ? at > o.at : order > o.order; }
  };

  void leave(int from, const Datagram& d) {
    Side& s = side[from];
    ++s.fetched;
    agree(d.send_time <= now, "a datagram leaves before its time");
    Flying f;
    f.to = 1 - from;
    f.bytes.assign(d.bytes.begin(), d.bytes.end());
    const bool reset = look_at(s, f.bytes);
    if (!up) return;
    f.at = now + s.delay;
    // A RST is sent once. The walk decides with the cable whether it arrives.
    const bool noisy = !reset && loss + duplicate + reorder + spoil > 0;
    if (noisy && rng_.chance(loss)) return;
    if (noisy && rng_.chance(reorder)) {
      f.at = f.at + Duration::us(static_cast<std::int64_t>(rng_.below(5000)));
    }
    if (noisy && rng_.chance(duplicate)) {
      Flying again = f;
      again.at = again.at + Duration::us(static_cast<std::int64_t>(rng_.below(2000)));
      post(std::move(again));
    }
    if (noisy && rng_.chance(spoil)) {
      const std::size_t ip = f.bytes[0] >> 4 == 6 ? net::kIpv6Header : net::kIpv4Header;
      f.bytes[ip + rng_.below(f.bytes.size() - ip)] ^=
          static_cast<std::uint8_t>(1 << rng_.below(8));
      f.spoiled = true;
    }
    post(std::move(f));
  }
  void post(Flying f) {
    f.order = order_++;
    wire_.push(std::move(f));
  }
  // Checks that every datagram is complete with correct checksums. Returns true for a RST.
  static bool look_at(Side& s, const std::vector<std::uint8_t>& bytes) {
    const net::Classified c =
        net::classify_datagram(bytes, static_cast<std::uint32_t>(bytes.size()));
    agree(c.kind == net::FrameKind::Tcp, "what leaves is TCP");
    agree_on(unsigned{c.ttl}, unsigned{s.config.ttl}, "time to live");
    const ByteView l4 = ByteView(bytes).subspan(c.l4_offset, c.l4_len);
    agree(inet_checksum(std::uint64_t{c.pseudo_sum} + inet_sum(l4)) == 0, "checksum");
    std::size_t n = 0;
    const auto parsed = parse_segment(l4, &n);
    agree(parsed.ok(), "header");
    const SocketAddress local{c.src, parsed->src_port}, remote{c.dst, parsed->dst_port};
    OnWire& w = s.seen[{local, remote}];
    if (parsed->has(kAck)) w.acked = parsed->ack;
    if (l4.size() > n) {
      w.payload = true;
      w.tos = c.v6 ? static_cast<std::uint8_t>(load_be16(bytes.data()) >> 4) : bytes[1];
      w.most = std::max(w.most, l4.size() - n);
    }
    if (parsed->has(kRst)) ++s.resets_out;
    return parsed->has(kRst);
  }
  void arrive() {
    bool bursting[2] = {false, false};
    while (!wire_.empty() && wire_.top().at <= now) {
      const Flying f = wire_.top();
      wire_.pop();
      if (side[f.to].bursts && !bursting[f.to]) {
        bursting[f.to] = true;
        side[f.to].stack->begin_burst();
      }
      give(f.to, f.bytes, f.spoiled);
    }
    for (int i = 0; i < 2; ++i) {
      if (bursting[i]) side[i].stack->end_burst(now);
    }
  }
  void note_arrival(OnWire& w, const Segment& s, std::uint32_t payload) const {
    const std::uint32_t len = payload + s.seq_len();
    if (len == 0 && s.seq == w.acked - 1) return;
    if (s.has(kSyn) && w.opened && s.seq == w.first) return;  // repeated
    w.came = now;
    if (!s.has(kSyn)) return;
    w.first = s.seq;
    w.opened = true;
  }
  void give(int to, ByteView b, bool spoiled) {
    Side& s = side[to];
    ++s.given;
    if (spoiled) {
      ++s.spoiled;
    } else {
      const net::Classified c = net::classify_datagram(b, static_cast<std::uint32_t>(b.size()));
      std::size_t n = 0;
      const auto parsed = parse_segment(b.subspan(c.l4_offset, c.l4_len), &n);
      note_arrival(s.seen[{{c.dst, parsed->dst_port}, {c.src, parsed->src_port}}], *parsed,
                   static_cast<std::uint32_t>(c.l4_len - n));
      if (parsed->has(kRst)) ++s.resets_in;
    }
    s.stack->input(b, now);
  }

  Observer observers_[2];
  std::priority_queue<Flying> wire_;
  std::uint64_t order_ = 0;
  Rng rng_;
};

}  // namespace urnic::tcp::test
