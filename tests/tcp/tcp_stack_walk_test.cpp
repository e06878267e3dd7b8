// A walk over the installed TCP library. Every call must have the same results, datagrams, reports
// and counts as the stack behind it; a twin stack gets the same calls.
// tests/tcp/stack_walk_test.cpp tests what that stack does.
#include <gtest/gtest.h>
#include <urnic/tcp.h>

#include <string>
#include <utility>

#include "tcp/stack.h"
#include "tests/support/walk.h"

namespace urnic {
namespace {

using test::agree;
using test::agree_on;
using test::Dice;

struct Told {
  std::uint64_t e = 0;
  std::uint32_t what = 0;
  bool operator==(const Told&) const = default;
};
struct Sent {
  std::vector<std::uint8_t> bytes;
  std::int64_t at = 0;
  bool operator==(const Sent&) const = default;
};

// The same machine twice.
struct Twin {
  std::unique_ptr<tcp::Stack> plain;
  TcpStack library;
  bool sink = false;
  std::vector<Told> plain_told, library_told;
  std::vector<Sent> into_sink;
  std::vector<std::uint64_t> endpoints;  // all that ever existed
};

constexpr const char* kAddresses[2][3] = {{"10.1.0.1", "fd01::1", "10.1.0.9"},
                                          {"10.2.0.2", "fd02::2", "10.2.0.7"}};
constexpr std::string_view kStates[] = {"CLOSED",     "SYN-SENT",   "SYN-RECEIVED", "ESTABLISHED",
                                        "FIN-WAIT-1", "FIN-WAIT-2", "CLOSE-WAIT",   "CLOSING",
                                        "LAST-ACK",   "TIME-WAIT"};

class TwinWalk : public test::Walk {
 public:
  explicit TwinWalk(Dice& dice) {
    for (unsigned i = 0; i < 2; ++i) start(i, dice.number());
  }

  void step(Dice& dice) override {
    if (dice.one_in(8)) crowd(dice, dice.below(2));
    for (unsigned n = dice.between(1, 6); n > 0; --n) call(dice, dice.below(2));
    const bool burst = dice.one_in(3);
    carry(dice, burst);
    if (dice.one_in(3)) pass(dice);
    for (unsigned i = 0; i < 2; ++i) compare(i);
  }
  void finish() override {
    for (unsigned i = 0; i < 2; ++i) {
      for (const std::uint64_t e : twin[i].endpoints) {
        status(twin[i].library.close(at(e), time()), twin[i].plain->close(in(e), now), "close");
      }
    }
    now = now + Duration::s(1000);
    for (unsigned i = 0; i < 2; ++i) {
      twin[i].plain->run(now);
      twin[i].library.run(time());
      compare(i);
    }
  }

 private:
  static TcpEndpoint at(std::uint64_t e) { return static_cast<TcpEndpoint>(e); }
  static tcp::Endpoint in(std::uint64_t e) { return static_cast<tcp::Endpoint>(e); }
  TcpTime time() const { return TcpTime(now.ns()); }
  static void status(TcpStatus is, tcp::Status twin, const std::string& what) {
    agree_on(static_cast<int>(is), static_cast<int>(twin), what);
  }
  static void io(TcpIo is, tcp::IoResult twin, const std::string& what) {
    status(is.status, twin.status, what);
    agree_on(is.bytes, twin.bytes, what);
  }

  // All settings differ from the defaults, and between the two.
  void start(unsigned i, std::uint64_t seed) {
    TcpSettings s;
    s.addresses = {kAddresses[i][0], "nobody", kAddresses[i][1]};
    s.seed = seed;
    s.verify_checksums = i == 0;
    s.ttl = static_cast<std::uint8_t>(61 + 16 * i);
    s.port_first = static_cast<std::uint16_t>(20000 + 1000 * i);
    s.port_last = static_cast<std::uint16_t>(20007 + 1000 * i);
    s.memory_limit = 150'000 + 50'000 * i;
    tcp::StackConfig c;
    for (unsigned n = 0; n < 2; ++n) c.addresses.push_back(*IpAddress::parse(kAddresses[i][n]));
    c.seed = s.seed;
    c.verify_checksums = s.verify_checksums;
    c.ttl = s.ttl;
    c.port_first = s.port_first;
    c.port_last = s.port_last;
    c.memory_limit = s.memory_limit;
    twin[i].plain = std::make_unique<tcp::Stack>(c);
    twin[i].library = TcpStack(s);
    usually(i, "syn-backlog", tcp::Option::SynBacklog, 1 + i);
    usually(i, "ack-policy", tcp::Option::AckPolicy, i == 0 ? 2 : 0);
    usually(i, "auto-tune", tcp::Option::AutoTune, 1 - i);
    listen_to_changes(i);
  }
  void usually(unsigned i, std::string_view name, tcp::Option o, std::int64_t value) {
    status(twin[i].library.set_default(name, value), twin[i].plain->set_default(o, value),
           "default");
  }
  void listen_to_changes(unsigned i) {
    Twin& t = twin[i];
    t.plain->set_on_change(
        [](void* c, tcp::Endpoint e, std::uint32_t what) {
          static_cast<Twin*>(c)->plain_told.push_back({static_cast<std::uint64_t>(e), what});
        },
        &t);
    t.library.set_on_change(
        [](void* c, TcpEndpoint e, std::uint32_t what) {
          static_cast<Twin*>(c)->library_told.push_back({static_cast<std::uint64_t>(e), what});
        },
        &t);
  }

  // ---- calls
  void call(Dice& dice, unsigned i) {
    Twin& t = twin[i];
    const std::uint64_t* any = dice.any(t.endpoints);
    const std::uint64_t e = any == nullptr || dice.one_in(30) ? dice.below(1000) : *any;
    switch (dice.below(18)) {
      case 0:
        return open(dice, i);
      case 1:
        return connect(dice, i);
      case 2:
        return of_the_stack(dice, i);
      case 3:
        return options(dice, i, e);
      case 4: {
        const tcp::Endpoint p = t.plain->accept(in(e), nullptr, now);
        agree_on(static_cast<std::uint64_t>(t.library.accept(at(e), time())),
                 static_cast<std::uint64_t>(p), "accept");
        if (p != tcp::Endpoint::None) t.endpoints.push_back(static_cast<std::uint64_t>(p));
        return;
      }
      default:
        return of_one(dice, t, e);
    }
  }
  void of_one(Dice& dice, Twin& t, std::uint64_t e) {
    switch (dice.below(14)) {
      case 0:
        return status(t.library.push(at(e), time()), t.plain->push(in(e), now), "push");
      case 1:
        return status(t.library.shutdown_write(at(e), time()), t.plain->shutdown_write(in(e), now),
                      "shutdown_write");
      case 2:
        return status(t.library.shutdown_read(at(e), time()), t.plain->shutdown_read(in(e), now),
                      "shutdown_read");
      case 3:
        return status(t.library.close(at(e), time()), t.plain->close(in(e), now), "close");
      case 4:
        return status(t.library.abort(at(e), time()), t.plain->abort(in(e), now), "abort");
      case 5:
        return status(t.library.take_error(at(e)), t.plain->take_error(in(e)), "take_error");
      case 6:
      case 7:
      case 8: {
        std::vector<std::uint8_t> a(dice.below(20000)), b(a.size());
        const std::size_t skip = dice.below(200);
        io(t.library.peek(at(e), a, skip), t.plain->peek(in(e), b, skip), "peek");
        agree(a == b, "bytes peeked");
        io(t.library.read(at(e), a, time()), t.plain->read(in(e), b, now), "read");
        agree(a == b, "bytes read");
        return;
      }
      default: {
        const auto a = dice.bytes(dice.below(20000));
        const bool more = dice.one_in(3);
        return io(t.library.write(at(e), a, time(), more), t.plain->write(in(e), a, now, more),
                  "write");
      }
    }
  }
  void bind(Twin& t, std::uint64_t e, const std::string& where) {
    const auto a = SocketAddress::parse(where);
    const TcpStatus s = t.library.bind(at(e), where);
    status(s, a ? t.plain->bind(in(e), *a) : tcp::Status::Invalid, "bind to " + where);
  }
  std::uint64_t new_one(Twin& t) {
    const auto e = static_cast<std::uint64_t>(t.plain->open());
    agree_on(static_cast<std::uint64_t>(t.library.open()), e, "open");
    t.endpoints.push_back(e);
    return e;
  }
  static std::string text(const std::string& ip, unsigned port) {
    return (ip.find(':') == std::string::npos ? ip : "[" + ip + "]") + ":" + std::to_string(port);
  }
  void open(Dice& dice, unsigned i) {
    const char* const kWhere[] = {"0.0.0.0",        "::",      kAddresses[i][0], kAddresses[i][1],
                                  kAddresses[i][2], "10.9.9.9"};
    const std::string where = text(kWhere[dice.below(6)], dice.one_in(4) ? 0 : 80 + dice.below(2));
    Twin& t = twin[i];
    const std::uint64_t e = new_one(t);
    bind(t, e, dice.one_in(8) ? "nowhere" : where);
    const unsigned backlog = dice.below(5);
    status(t.library.listen(at(e), backlog), t.plain->listen(in(e), backlog), "listen");
    tell("listen at " + where);
  }
  void connect(Dice& dice, unsigned i) {
    Twin& t = twin[i];
    const std::uint64_t e = new_one(t);
    if (dice.one_in(2)) options(dice, i, e);
    if (dice.one_in(3)) bind(t, e, text(kAddresses[i][dice.below(3)], 5000 + dice.below(3)));
    std::string where = text(kAddresses[1 - i][dice.below(3)], 80 + dice.below(3));
    if (dice.one_in(10)) where = "10.2.0.2";
    const auto a = SocketAddress::parse(where);
    const TcpStatus s = t.library.connect(at(e), where, time());
    status(s, a ? t.plain->connect(in(e), *a, now) : tcp::Status::Invalid, "connect");
    tell("connect to " + where);
  }
  // Opens more connections than the other side has half-open places for, so that it sends cookies.
  // Not every cookie is answered.
  void crowd(Dice& dice, unsigned i) {
    Twin& t = twin[i];
    const std::string where = text(kAddresses[1 - i][dice.below(2)], 80 + dice.below(2));
    for (unsigned n = dice.between(4, 7); n > 0; --n) {
      const std::uint64_t e = new_one(t);
      status(t.library.connect(at(e), where, time()),
             t.plain->connect(in(e), *SocketAddress::parse(where), now), "connect of a crowd");
      if (!dice.one_in(3)) continue;
      take_all(i);
      give(dice, 1 - i, std::exchange(wire[i], {}), false);
      status(t.library.abort(at(e), time()), t.plain->abort(in(e), now), "abort of a crowd");
    }
    tell("a crowd to " + where);
  }
  void options(Dice& dice, unsigned i, std::uint64_t e) {
    Twin& t = twin[i];
    const std::vector<TcpOption> all = tcp_options();
    const std::size_t n = dice.below(all.size());
    const auto o = static_cast<tcp::Option>(n);
    const tcp::OptionBounds bounds = tcp::option_bounds(o);
    agree(all[n].name == tcp::option_name(o) && all[n].least == bounds.least &&
              all[n].most == bounds.most && all[n].changeable == tcp::changeable_when_open(o),
          "an option as it is listed");
    std::int64_t value = bounds.least - 1 + static_cast<std::int64_t>(dice.below(9));
    if (dice.one_in(2)) value = static_cast<std::int64_t>(dice.below(60'000));
    if (dice.one_in(3)) {
      status(t.library.set_default(all[n].name, value), t.plain->set_default(o, value), "default");
    }
    status(t.library.set_option(at(e), all[n].name, value, time()),
           t.plain->set_option(in(e), o, value, now), "set_option");
    agree(t.library.option(at(e), all[n].name) == t.plain->option(in(e), o), "option");
    agree(!t.library.option(at(e), "hue"), "an option that is none");
  }
  // Calls on the stack itself: moves it, adds an address, sets or removes the sink.
  void of_the_stack(Dice& dice, unsigned i) {
    Twin& t = twin[i];
    if (dice.one_in(3)) {
      TcpStack moved = std::move(t.library);
      t.library = std::move(moved);
    } else if (dice.one_in(2)) {
      agree(t.library.add_address(kAddresses[i][2]), "add_address");
      t.plain->add_address(*IpAddress::parse(kAddresses[i][2]));
    } else {
      t.sink = !t.sink;
      take_all(i);
      const auto into = [](void* c, const TcpDatagram& d) {
        static_cast<Twin*>(c)->into_sink.push_back(
            {{d.bytes.begin(), d.bytes.end()}, d.time.count()});
      };
      t.library.set_sink(t.sink ? into : TcpStack::Sink{}, &t);
      tell(t.sink ? "a sink" : "no sink");
    }
  }

  // ---- wire and time
  // Compares what both have sent.
  void take_all(unsigned i) {
    Twin& t = twin[i];
    std::vector<Sent> of_plain, of_library = std::exchange(t.into_sink, {});
    tcp::Datagram d;
    while (t.plain->next_output(&d)) {
      of_plain.push_back({{d.bytes.begin(), d.bytes.end()}, d.send_time.ns()});
    }
    TcpDatagram l;
    while (t.library.next_output(&l)) {
      of_library.push_back({{l.bytes.begin(), l.bytes.end()}, l.time.count()});
    }
    agree(of_plain == of_library, "what is sent");
    for (Sent& s : of_plain) wire[i].push_back(std::move(s.bytes));
  }
  void carry(Dice& dice, bool burst) {
    for (int round = 0; round < 30; ++round) {
      for (unsigned i = 0; i < 2; ++i) take_all(i);
      if (wire[0].empty() && wire[1].empty()) return;
      now = now + Duration::us(dice.between(1, 900));
      for (unsigned i = 0; i < 2; ++i) give(dice, 1 - i, std::exchange(wire[i], {}), burst);
    }
  }
  void give(Dice& dice, unsigned to, std::vector<std::vector<std::uint8_t>> all, bool burst) {
    Twin& t = twin[to];
    if (burst) t.plain->begin_burst();
    if (burst) t.library.begin_burst();
    for (auto& b : all) {
      if (dice.one_in(40)) continue;
      if (dice.one_in(40)) b[20 + dice.below(b.size() - 20)] ^= 4;
      t.plain->input(b, now);
      t.library.input(b, time());
    }
    if (burst) t.plain->end_burst(now);
    if (burst) t.library.end_burst(time());
  }
  void pass(Dice& dice) {
    const Instant end = now + Duration::ms(dice.one_in(4) ? dice.below(90'000) : dice.below(900));
    for (int n = 0; n < 300; ++n) {
      Instant next = end;
      for (const Twin& t : twin) next = earlier(next, t.plain->next_deadline());
      now = std::max(now, next);
      for (Twin& t : twin) {
        t.plain->run(now);
        t.library.run(time());
      }
      if (now >= end) return;
      if (dice.one_in(2)) carry(dice, false);
    }
  }

  // ---- reports
  void compare(unsigned i) {
    take_all(i);
    Twin& t = twin[i];
    agree(std::exchange(t.plain_told, {}) == std::exchange(t.library_told, {}), "what is told");
    agree_on(t.library.next_deadline().count(), t.plain->next_deadline().ns(), "deadline");
    for (const std::uint64_t e : t.endpoints) compare_one(t, e);
    counters(t.library.counters(), t.plain->counters());
  }
  void compare_one(Twin& t, std::uint64_t e) {
    const TcpReadiness a = t.library.readiness(at(e));
    const tcp::Readiness b = t.plain->readiness(in(e));
    agree_on(a.readable, b.readable, "readable");
    agree_on(a.writable, b.writable, "writable");
    agree_on(a.acceptable, b.acceptable, "acceptable");
    agree_on(a.connected, b.connected, "connected");
    agree_on(a.peer_closed, b.peer_closed, "peer closed");
    agree_on(a.error, b.error, "error");
    const auto as_text = [](const std::optional<SocketAddress>& s) {
      return s ? std::optional(s->to_string()) : std::nullopt;
    };
    agree(t.library.local_address(at(e)) == as_text(t.plain->local_address(in(e))), "local");
    agree(t.library.peer_address(at(e)) == as_text(t.plain->peer_address(in(e))), "peer");
    const auto v = t.library.info(at(e), time());
    const auto s = t.plain->snapshot(in(e), now);
    agree_on(v.has_value(), s.has_value(), "is there information");
    if (v) figures(*v, *s);
  }
  static void figures(const TcpInfo& v, const tcp::Snapshot& s) {
    agree(v.state == kStates[static_cast<std::size_t>(s.state)], "state");
    agree_on(v.acked, s.acked, "acked");
    agree_on(v.delivered, s.delivered, "delivered");
    agree_on(v.cwnd, s.cwnd, "cwnd");
    agree_on(v.ssthresh, s.ssthresh, "ssthresh");
    agree_on(v.in_flight, s.in_flight, "in flight");
    agree_on(v.lost, s.lost, "lost");
    agree_on(v.sacked, s.sacked, "sacked");
    agree_on(v.send_window, s.snd_wnd, "send window");
    agree_on(v.receive_window, s.rcv_wnd, "receive window");
    agree_on(v.retransmissions, s.retransmissions, "retransmissions");
    agree_on(v.srtt.count(), s.rtt_measured ? s.srtt.count_ns() : 0, "srtt");
    agree_on(v.rttvar.count(), s.rtt_measured ? s.rttvar.count_ns() : 0, "rttvar");
    agree_on(v.rto.count(), s.rto.count_ns(), "rto");
    agree_on(v.send_mss, s.send_mss, "MSS");
    agree_on(v.sack, s.sack, "SACK");
    agree_on(v.timestamps, s.timestamps, "timestamps");
    agree_on(v.ecn, s.ecn, "ECN");
    agree_on(v.window_scaling, s.window_scaling, "window scaling");
    agree_on(v.unsent, s.unsent, "unsent");
    agree_on(v.unread, s.unread, "unread");
  }
  static void counters(const TcpCounters& a, const tcp::StackCounters& b) {
    agree_on(a.datagrams_in, b.datagrams_in, "datagrams in");
    agree_on(a.datagrams_out, b.datagrams_out, "datagrams out");
    agree_on(a.dropped_ip, b.dropped_ip, "dropped: IP");
    agree_on(a.dropped_checksum, b.dropped_checksum, "dropped: checksum");
    agree_on(a.dropped_header, b.dropped_header, "dropped: header");
    agree_on(a.dropped_backlog, b.dropped_backlog, "dropped: backlog");
    agree_on(a.cookies_sent, b.cookies_sent, "cookies sent");
    agree_on(a.cookies_accepted, b.cookies_accepted, "cookies taken");
    agree_on(a.no_connection, b.no_connection, "no connection");
    agree_on(a.resets_sent, b.resets_sent, "resets sent");
    agree_on(a.resets_received, b.resets_received, "resets received");
    agree_on(a.challenge_acks, b.challenge_acks, "challenge ACKs");
    agree_on(a.challenge_acks_withheld, b.challenge_acks_withheld, "challenge ACKs withheld");
    agree_on(a.opened_active, b.opened_active, "opened");
    agree_on(a.opened_passive, b.opened_passive, "accepted");
    agree_on(a.retransmissions, b.retransmissions, "retransmissions");
  }

  Twin twin[2];
  std::vector<std::vector<std::uint8_t>> wire[2];
  Instant now = Instant::from_ns(3'000'000'000);
};

TEST(TcpStackWalk, TheLibraryBehavesLikeItsStack) {
  test::WalkPlan plan;
  plan.episodes = 500;
  plan.steps = 60;
  plan.make = [](Dice& dice) { return std::make_unique<TwinWalk>(dice); };
  test::walk(plan);
}

}  // namespace
}  // namespace urnic
