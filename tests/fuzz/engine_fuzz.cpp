// Two engines in virtual time, each as initiator and listener with several connections, over a wire
// that the fuzzer controls: it delivers, changes, drops, duplicates, reorders and forges frames,
// makes peers disappear, sends ICMP errors, and takes away the link and the room to send. The
// programs at both ends connect, answer late or never, post, disconnect, abort and destroy at any
// moment.
//
// Requirements, besides the sanitizers' checks: an engine always becomes idle, and time always
// advances; a stored request never refers to another connection; the untouched connection delivers
// its data exactly once; and after everything was released and time has passed, all tables are
// empty.
#include <algorithm>
#include <optional>

#include "fault/tcp_frame.h"
#include "tests/fuzz/forge.h"
#include "tests/fuzz/spared.h"

namespace urnic::fuzz {
namespace {

constexpr std::size_t kMostInFlight = 128, kMostSeen = 32, kMostMoves = 1500;
constexpr std::uint32_t kMtu = 1500, kHeader = 14;

class World {
 public:
  explicit World(Input& in)
      : in_(in),
        hosts_{Host(options(in, 1), address(1), kMtu + kHeader),
               Host(options(in, 2), address(2), kMtu + kHeader)} {}

  void run() {
    begin();
    for (std::size_t n = 0; !in_.empty() && n < kMostMoves; ++n) {
      move();
      end_of_move();
    }
    calm_down();
    finish();
  }

 private:
  // Frames that one host has sent and the other has not received.
  struct Way {
    std::deque<Bytes> frames;
    std::vector<Bytes> seen;  // the last segments of victims
    bool vanished = false;    // all frames of the victims are dropped for a while
    int full = 0, down = 0;   // number of moves until there is room, or a link, again
  };

  static IpAddress address(std::uint8_t n) { return IpAddress::v4(10, 0, 0, n); }

  static engine::Options options(Input& in, std::uint8_t n) {
    engine::Options o;
    o.addresses = {"10.0.0." + std::to_string(n) + "/24"};
    o.seed = n;
    o.mtu = kMtu;
    const unsigned bits = in.u16();
    o.tcp.sack = (bits & 1) == 0;
    o.tcp.timestamps = (bits & 2) == 0;
    o.out_of_order =
        (bits & 4) == 0 ? engine::Options::OutOfOrder::Place : engine::Options::OutOfOrder::Store;
    if ((bits & 8) != 0) o.tcp.receive_buffer = 20000;
    if ((bits & 16) != 0) o.tcp.hole_limit = 1 + (bits >> 14);
    if ((bits & 32) != 0) o.completion_method = ddp::CompletionMethod::PerSend;
    if ((bits & 64) != 0) o.reassembly_pool = 1u << 16;
    if ((bits & 128) != 0) o.context.max_cut_frames = 2;
    o.tcp.ack_policy = (bits & 256) != 0   ? tcp::AckPolicy::Immediate
                       : (bits & 512) != 0 ? tcp::AckPolicy::EverySecond
                                           : tcp::AckPolicy::PerBurst;
    o.tcp.congestion = static_cast<tcp::CongestionControl>((bits >> 10) & 3);
    if ((bits & 4096) != 0) o.tcp.ecn = tcp::EcnMode::Request;
    if ((bits & 8192) != 0) o.real_time = true;
    o.tcp.data_retries = 6;
    o.tcp.syn_retries = 3;
    o.tcp.time_wait = Duration::s(1);
    return o;
  }

  Host& host(unsigned n) { return hosts_[n & 1]; }
  Way& from(unsigned n) { return ways_[n & 1]; }

  // ---- frames

  bool is_spared(const Bytes& frame) const {
    const auto v = fault::parse_tcp_frame(frame, static_cast<std::uint32_t>(frame.size()));
    return v && ((v->src_port == kSparedPort && v->dst_port == spared_port_) ||
                 (v->dst_port == kSparedPort && v->src_port == spared_port_));
  }
  static bool is_tcp(const Bytes& frame) {
    return fault::parse_tcp_frame(frame, static_cast<std::uint32_t>(frame.size())).has_value();
  }

  // Puts the hosts' frames on the wire. Frames that the fuzzer must not change are delivered at
  // once: those of the untouched connection, and those for address resolution.
  void collect() {
    for (unsigned n = 0; n < 2; ++n) {
      for (Bytes& f : host(n).wire.take()) {
        if (!is_tcp(f)) {
          if (arp_answers_) host(n).wire.put(stranger_arp(f));
          host(n + 1).wire.put(f);
        } else if (is_spared(f)) {
          host(n + 1).wire.put(f);
        } else {
          Way& w = from(n);
          w.seen.push_back(f);
          if (w.seen.size() > kMostSeen) w.seen.erase(w.seen.begin());
          if (!w.vanished && w.frames.size() < kMostInFlight) w.frames.push_back(std::move(f));
        }
      }
    }
  }
  // Delivers a frame that the fuzzer may have changed; never one of the untouched connection.
  void deliver(unsigned to, const Bytes& frame) {
    if (!frame.empty() && frame.size() <= kMtu + kHeader && !is_spared(frame))
      host(to).wire.put(frame);
  }
  void settle() {
    for (int i = 0; i < 200; ++i) {
      for (Host& h : hosts_) h.settle(now_);
      collect();
      if (hosts_[0].wire.nothing_to_receive() && hosts_[1].wire.nothing_to_receive()) return;
      now_ = now_ + Duration::us(1);
    }
  }
  // Delivers everything on the wire, and the answers.
  void deliver_all(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      bool any = false;
      for (unsigned n = 0; n < 2; ++n) {
        for (Bytes& f : std::exchange(from(n).frames, {})) {
          deliver(n + 1, f);
          any = true;
        }
      }
      now_ = now_ + Duration::us(1);
      settle();
      if (!any) return;
    }
  }

  // ---- time

  Instant next_deadline() {
    return earlier(host(0).engine().next_deadline(), host(1).engine().next_deadline());
  }
  // Advances to the next deadline, at most to `limit`. False if there is none before it.
  bool step_time(Instant limit) {
    const Instant next = next_deadline();
    if (next > limit) {
      now_ = limit;
      settle();
      return false;
    }
    // A passed deadline that does not change is no progress; the engines may need a few polls for
    // it.
    stuck_ = next <= now_ ? stuck_ + 1 : 0;
    if (stuck_ > 1000) fail("a deadline has passed, and nothing is done about it");
    now_ = std::max(next, now_ + Duration::ns(1));
    settle();
    return true;
  }
  void pass(Duration d, bool delivering) {
    const Instant limit = now_ + d;
    for (int i = 0; i < 20000 && now_ < limit; ++i) {
      if (delivering) deliver_all(20);
      if (!step_time(limit)) break;
    }
    now_ = std::max(now_, limit);
  }

  // ---- the run

  void begin() {
    for (Host& h : hosts_) {
      h.make_region(SparedStream::kRegion);
      h.make_pair(64);
      h.make_region(8000);
      auto victim = h.engine().iwarp().listen(kVictimPort, 4);
      require(victim.ok(), "nobody can listen");
      h.listeners.push_back(victim.value());
    }
    auto spared = host(1).engine().iwarp().listen(kSparedPort, 2);
    require(spared.ok(), "nobody can listen");
    verbs::QueuePair& a = *host(0).pairs[0]->qp;
    verbs::QueuePair& b = *host(1).pairs[0]->qp;
    forward_.prepare(now_);
    back_.prepare(now_);
    require(
        host(0)
            .engine()
            .iwarp()
            .connect(a, {address(2), kSparedPort}, host(0).engine().iwarp().default_params(), now_)
            .ok(),
        "no way to the other end");
    for (int i = 0; i < 100 && host(1).requests.empty(); ++i) {
      deliver_all(1);
      hear();
    }
    require(!host(1).requests.empty(), "the spared connection does not come up");
    const Request r = host(1).requests.front();
    host(1).requests.clear();
    require(host(1)
                .engine()
                .iwarp()
                .accept(r.id, b, host(1).engine().iwarp().default_params(), now_)
                .ok(),
            "the spared connection is not accepted");
    for (int i = 0; i < 100 && !(established_[0] && established_[1]); ++i) {
      deliver_all(1);
      hear();
    }
    require(established_[0] && established_[1], "the spared connection does not come up");
    spared_port_ = r.peer.port;
    host(1).engine().iwarp().close_listener(spared.value(), now_);
  }

  void hear() {
    for (unsigned n = 0; n < 2; ++n) host(n).hear(host(n).pairs[0]->qp, &established_[n]);
  }

  void end_of_move() {
    for (unsigned n = 0; n < 2; ++n) {
      Way& w = from(n);
      if (w.full > 0 && --w.full == 0) host(n).wire.set_full(false);
      if (w.down > 0 && --w.down == 0) host(n).wire.set_link(true);
    }
    settle();
    hear();
    forward_.listen(now_);
    back_.listen(now_);
  }

  void move() {
    const unsigned what = in_.u8();
    const unsigned n = what & 1;
    Way& w = from(n);
    if (what < 80) return deliver_all(1 + static_cast<int>(what) / 2);
    if (what < 144) return host(n).move(host(n + 1), in_, now_);
    if (what < 160) return let_time_pass(what / 2 % 8);
    if (what < 168) return (n == 0 ? forward_ : back_).say(now_);
    if (what < 180) return change_conditions(n, w);
    if (what < 204) return invent(n, w);
    if (!w.frames.empty()) treat(n, w, what);
  }

  // Handles one frame on the wire.
  void treat(unsigned n, Way& w, unsigned what) {
    const std::size_t at = in_.below(static_cast<std::uint32_t>(w.frames.size()));
    Bytes frame = w.frames[at];
    const auto place = w.frames.begin() + static_cast<std::ptrdiff_t>(at);
    if (what < 212) {  // deliver now, before the others
      w.frames.erase(place);
      return deliver(n + 1, frame);
    }
    if (what < 220) {  // drop
      w.frames.erase(place);
      return;
    }
    if (what < 226) {  // duplicate
      w.frames.push_back(frame);
      return;
    }
    if (what < 234) {  // deliver in two pieces
      w.frames.erase(place);
      for (const Bytes& piece : cut(frame, in_)) deliver(n + 1, piece);
      return;
    }
    Bytes changed = mutate(std::move(frame), in_);
    if (in_.often(128)) w.frames.erase(place);  // instead of the original, or before it
    deliver(n + 1, changed);
  }

  void invent(unsigned n, Way& w) {
    const unsigned kind = in_.below(8);
    if (kind == 0) {
      return deliver(n, stranger_syn(host(n).engine().interface().mac(),
                                     address(static_cast<std::uint8_t>(n + 1)), kVictimPort, in_));
    }
    if (w.seen.empty()) return;
    const Bytes& seen =
        w.seen[w.seen.size() - 1 - in_.below(static_cast<std::uint32_t>(w.seen.size()))];
    if (kind == 1) return deliver(n, forge_icmp(seen, in_));
    const bool back = in_.often(128);
    deliver(back ? n : n + 1, forge(seen, back, in_));
  }

  void change_conditions(unsigned n, Way& w) {
    switch (in_.below(6)) {
      case 0:
        w.vanished = true;
        w.frames.clear();
        return;
      case 1:
      case 2:
        w.vanished = false;
        return;
      case 3:
        w.full = static_cast<int>(1 + in_.below(6));
        host(n).wire.set_full(true);
        return;
      case 4:
        w.down = static_cast<int>(1 + in_.below(4));
        host(n).wire.set_link(false);
        w.frames.clear();
        return;
      default:
        arp_answers_ = !arp_answers_;
        return;
    }
  }

  void let_time_pass(unsigned how) {
    // With the link down or no room to send, only a moment: otherwise the untouched connection
    // gives up too.
    const bool hindered = from(0).down + from(0).full + from(1).down + from(1).full != 0;
    if (hindered) return pass(Duration::ms(20), false);
    switch (how) {
      case 0:
      case 1:
      case 2:
        step_time(now_ + Duration::s(10));
        return;
      case 3:
        return pass(Duration::us(in_.u8()), false);
      case 4:
        return pass(Duration::ms(in_.u8()), false);
      case 5:
        return pass(Duration::ms(200), true);
      case 6:
        return pass(Duration::s(1 + in_.below(15)), false);
      default:
        return pass(Duration::s(1 + in_.below(15)), true);
    }
  }

  // ---- the end

  void calm_down() {
    for (unsigned n = 0; n < 2; ++n) {
      host(n).wire.set_full(false);
      host(n).wire.set_link(true);
      from(n) = {};
    }
    forward_.say(now_);
    back_.say(now_);
    for (int i = 0; i < 600 && !(forward_.all_heard() && back_.all_heard()); ++i) {
      pass(Duration::ms(200), true);
      hear();
      forward_.listen(now_);
      back_.listen(now_);
    }
    require(forward_.all_heard() && back_.all_heard(),
            "the spared connection has not delivered all within two minutes");
  }

  void finish() {
    for (Host& h : hosts_) h.give_back(now_);
    pass(Duration::s(150), true);
    for (Host& h : hosts_) {
      if (const std::string left = h.leftovers(); !left.empty()) fail("left behind: " + left);
    }
  }

  Input& in_;
  std::array<Host, 2> hosts_;
  std::array<Way, 2> ways_;
  SparedStream forward_{hosts_[0], hosts_[1]}, back_{hosts_[1], hosts_[0]};
  bool established_[2] = {false, false};
  bool arp_answers_ = false;
  std::uint16_t spared_port_ = 0;
  int stuck_ = 0;
  Instant now_ = Instant::from_ns(1000000000);
};

}  // namespace
}  // namespace urnic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  urnic::fuzz::Input in(data, size);
  urnic::fuzz::World(in).run();
  return 0;
}
