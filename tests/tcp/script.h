// Runs a script of segments against one control block: the segments that go in, those that must
// come out and when, and no others. scripts/README.md describes the language.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/tcp/host.h"
#include "tests/tcp/script_line.h"

namespace urnic::tcp::test {

class Script {
 public:
  // Initial sequence numbers. Scripts use relative numbers, so that each can run across the
  // wrap-around.
  Script(Seq ours, Seq theirs) : ours_(ours), theirs_(theirs) {
    host.iss = ours;
    host.stream = 0;
    host.peer_stream = 1;
    Config& c = host.config;
    c.sack = c.timestamps = c.window_scaling = false;
    c.mss = 1000;
    c.receive_buffer = 65535;
    c.quick_acks = 0;
    c.delayed_ack = Duration::ms(40);
    c.rto_min = Duration::ms(200);
    c.initial_window = 10000;
    // The oldest algorithms; scripts about the others turn them on.
    c.hystart = c.rack = c.tlp = c.prr = c.frto = c.undo = false;
  }

  void run(const std::string& path) {
    std::ifstream in(path);
    ASSERT_TRUE(in) << path;
    std::string text;
    for (int number = 1; std::getline(in, text); ++number) {
      SCOPED_TRACE(path + ":" + std::to_string(number) + ": " + text);
      if (const auto hash = text.find('#'); hash != std::string::npos) text.resize(hash);
      std::istringstream line(text);
      std::string word;
      if (!(line >> word)) continue;
      timed_ = word[0] == '+';
      if (timed_) {
        target_ = now_ + seconds(word.substr(1));
        ASSERT_TRUE(line >> word);
      } else {
        target_ = now_;
      }
      step(word, line);
      if (testing::Test::HasFailure()) return;
    }
    quiet();
  }

  Host host;

 private:
  static Duration seconds(const std::string& s) {
    return Duration::ns(static_cast<std::int64_t>(std::stod(s) * 1e9 + 0.5));
  }

  void step(const std::string& word, std::istringstream& line) {
    if (word == ">") {
      expect(line);
      return;
    }
    // No unexpected segment may have been sent before the next line.
    run_until(target_);
    quiet();
    now_ = target_;
    if (word == "<" || word == "<<") {
      inject(line, word == "<");
    } else if (word == "config") {
      std::string pair;
      while (line >> pair) configure(pair);
    } else {
      command(word, line);
    }
  }

  void run_until(Instant t) {
    for (int i = 0; i < 10000; ++i) {
      const Instant d = host.deadline();
      if (d > t) return;
      host.run_timers(std::max(d, now_));
    }
    FAIL() << "timers never end";
  }

  void quiet() { ASSERT_TRUE(host.out.empty()) << "unexpected: " << show(host.out.front()); }

  // ---- segments

  void inject(std::istringstream& in, bool end_burst) {
    const Line l = parse_line(in);
    Segment s;
    s.src_port = host.remote_port;
    s.dst_port = host.local_port;
    s.seq = theirs_ + l.begin;
    s.flags = flag_bits(l.flags);
    if (l.has_ack) s.ack = ours_ + l.ack;
    s.window = static_cast<std::uint16_t>(l.has_win ? l.win : 65535);
    s.opts = l.options;
    s.opts.corrupted = {ours_ + l.corrupted.first, ours_ + l.corrupted.second};
    for (const auto& [b, e] : l.sack) {
      s.opts.sack[s.opts.sack_count++] = {ours_ + b, ours_ + e};
    }
    Bytes bytes(kHeaderMax);
    bytes.resize(emit_header(s, bytes.data()));
    const std::uint64_t at = std::uint64_t{l.begin} + (s.has(kSyn) ? 1 : 0) - 1;
    for (std::uint32_t i = 0; i < l.len; ++i) bytes.push_back(pattern(at + i, host.peer_stream));
    store_be16(bytes.data() + 16,
               inet_checksum(std::uint64_t{Host::kPseudo} + bytes.size() + inet_sum(bytes)));
    host.input(bytes, now_, l.ce ? 3 : 0, end_burst);
  }

  void expect(std::istringstream& in) {
    const Line l = parse_line(in);
    if (host.out.empty()) run_until(target_);
    ASSERT_FALSE(host.out.empty()) << "nothing was sent";
    const Emitted e = host.out.front();
    host.out.pop_front();
    SCOPED_TRACE("was sent: " + show(e));
    EXPECT_LE(std::abs((e.at - target_).count_us()), 10) << "sent at the wrong time";
    now_ = std::max(now_, e.at);
    std::size_t n = 0;
    const auto parsed = parse_segment(e.bytes, &n);
    ASSERT_TRUE(parsed.ok());
    const Segment& s = *parsed;
    EXPECT_EQ(inet_checksum(std::uint64_t{Host::kPseudo} + e.bytes.size() + inet_sum(e.bytes)), 0);
    std::uint16_t want = flag_bits(l.flags), got = s.flags;
    if ((want & kPsh) == 0) got &= static_cast<std::uint16_t>(~kPsh);
    EXPECT_EQ(got, want) << "flags";
    const std::uint32_t len = static_cast<std::uint32_t>(e.bytes.size() - n);
    EXPECT_EQ(len, l.len) << "length";
    // A RST for a segment without an ACK has the absolute sequence number 0 (RFC 9293 3.10.7.1).
    if (l.flags == "R0.") {
      EXPECT_EQ(s.seq, Seq(0));
    } else {
      EXPECT_EQ(s.seq.value() - ours_.value(), l.begin) << "sequence number";
    }
    if (l.has_ack) {
      EXPECT_EQ(s.ack.value() - theirs_.value(), l.ack) << "ack";
    }
    if (l.has_win) {
      EXPECT_EQ(s.window, l.win) << "window";
    }
    EXPECT_EQ(e.ect != 0, l.ect) << "ECN codepoint";
    for (std::uint32_t i = 0; i < len; ++i) {
      ASSERT_EQ(e.bytes[n + i], pattern(l.begin - 1 + i, host.stream)) << "payload byte " << i;
    }
    expect_options(l, s);
  }

  void expect_options(const Line& l, const Segment& s) {
    const Options &want = l.options, &got = s.opts;
    if (l.has_options) {
      EXPECT_EQ(got.has_mss, want.has_mss);
      if (want.has_mss) {
        EXPECT_EQ(got.mss, want.mss);
      }
      EXPECT_EQ(got.has_wscale, want.has_wscale);
      if (want.has_wscale) {
        EXPECT_EQ(got.wscale, want.wscale);
      }
      EXPECT_EQ(got.sack_permitted, want.sack_permitted);
      EXPECT_EQ(got.corruption_permitted, want.corruption_permitted);
      EXPECT_EQ(got.has_ts, want.has_ts);
      if (want.has_ts && !l.any_ts) {
        EXPECT_EQ(got.tsval, want.tsval);
      }
      if (want.has_ts) {
        EXPECT_EQ(got.tsecr, want.tsecr);
      }
    }
    ASSERT_EQ(got.has_corrupted, want.has_corrupted) << "names a segment";
    if (want.has_corrupted) {
      EXPECT_EQ(got.corrupted.begin.value() - theirs_.value(), l.corrupted.first);
      EXPECT_EQ(got.corrupted.end.value() - theirs_.value(), l.corrupted.second);
    }
    ASSERT_EQ(got.sack_count, l.sack.size()) << "SACK blocks";
    for (std::size_t i = 0; i < l.sack.size(); ++i) {
      EXPECT_EQ(got.sack[i].begin.value() - theirs_.value(), l.sack[i].first) << "block " << i;
      EXPECT_EQ(got.sack[i].end.value() - theirs_.value(), l.sack[i].second) << "block " << i;
    }
  }

  std::string show(const Emitted& e) const {
    std::size_t n = 0;
    const auto parsed = parse_segment(e.bytes, &n);
    if (!parsed) return "garbage";
    const Segment& s = *parsed;
    std::string f;
    const std::pair<Flag, char> names[] = {{kSyn, 'S'}, {kFin, 'F'}, {kRst, 'R'}, {kPsh, 'P'},
                                           {kAck, '.'}, {kEce, 'E'}, {kCwr, 'W'}};
    for (const auto& [bit, c] : names) {
      if (s.has(bit)) f += c;
    }
    const std::uint32_t at = s.seq.value() - ours_.value();
    const std::size_t len = e.bytes.size() - n;
    std::ostringstream o;
    o << "+" << static_cast<double>((e.at - now_).count_us()) / 1e6 << " " << f << " " << at << ":"
      << at + len << "(" << len << ") ack " << s.ack.value() - theirs_.value() << " win "
      << s.window;
    for (std::uint8_t i = 0; i < s.opts.sack_count; ++i) {
      o << " sack " << s.opts.sack[i].begin.value() - theirs_.value() << ":"
        << s.opts.sack[i].end.value() - theirs_.value();
    }
    return o.str();
  }

  // ---- configuration, commands, checks ----------------------------------------------------------

  void configure(const std::string& pair) {
    const auto eq = pair.find('=');
    ASSERT_NE(eq, std::string::npos) << pair;
    const std::string key = pair.substr(0, eq), text = pair.substr(eq + 1);
    Config& c = host.config;
    if (key == "ack") {
      c.ack_policy = text == "burst"    ? AckPolicy::PerBurst
                     : text == "second" ? AckPolicy::EverySecond
                                        : AckPolicy::Immediate;
      return;
    }
    if (key == "ecn") {
      c.ecn = text == "request"  ? EcnMode::Request
              : text == "accept" ? EcnMode::Accept
                                 : EcnMode::Off;
      return;
    }
    if (key == "cc") {
      c.congestion = text == "reno"    ? CongestionControl::Reno
                     : text == "cubic" ? CongestionControl::Cubic
                     : text == "dctcp" ? CongestionControl::Dctcp
                                       : CongestionControl::NewReno;
      return;
    }
    if (key == "unit") {
      host.unit = static_cast<std::uint32_t>(std::stoul(text));
      return;
    }
    using Number = std::uint32_t;
    using U8 = std::uint8_t;
    using U16 = std::uint16_t;
    static const std::map<std::string, void (*)(Config&, Number)> kNumbers = {
        {"sack", [](Config& k, Number n) { k.sack = n != 0; }},
        {"dsack", [](Config& k, Number n) { k.dsack = n != 0; }},
        {"ts", [](Config& k, Number n) { k.timestamps = n != 0; }},
        {"ws", [](Config& k, Number n) { k.window_scaling = n != 0; }},
        {"shift", [](Config& k, Number n) { k.window_shift = static_cast<U8>(n); }},
        {"mss", [](Config& k, Number n) { k.mss = static_cast<U16>(n); }},
        {"clamp", [](Config& k, Number n) { k.mss_clamp = static_cast<U16>(n); }},
        {"ip_header", [](Config& k, Number n) { k.ip_header = static_cast<U8>(n); }},
        {"buffer", [](Config& k, Number n) { k.receive_buffer = n; }},
        {"iw", [](Config& k, Number n) { k.initial_window = n; }},
        {"nagle", [](Config& k, Number n) { k.nagle = n != 0; }},
        {"limited", [](Config& k, Number n) { k.limited_transmit = n != 0; }},
        {"rack", [](Config& k, Number n) { k.rack = n != 0; }},
        {"name", [](Config& k, Number n) { k.name_corrupted = n != 0; }},
        {"tlp", [](Config& k, Number n) { k.tlp = n != 0; }},
        {"prr", [](Config& k, Number n) { k.prr = n != 0; }},
        {"frto", [](Config& k, Number n) { k.frto = n != 0; }},
        {"hystart", [](Config& k, Number n) { k.hystart = n != 0; }},
        {"black_hole", [](Config& k, Number n) { k.black_hole = n != 0; }},
        {"undo", [](Config& k, Number n) { k.undo = n != 0; }},
        {"restart", [](Config& k, Number n) { k.restart_after_idle = n != 0; }},
        {"plain_dupacks", [](Config& k, Number n) { k.count_plain_dupacks = n != 0; }},
        {"holes", [](Config& k, Number n) { k.hole_limit = n; }},
        {"quick", [](Config& k, Number n) { k.quick_acks = static_cast<U8>(n); }},
        {"L", [](Config& k, Number n) { k.slow_start_segments = static_cast<U8>(n); }},
        {"syn_retries", [](Config& k, Number n) { k.syn_retries = static_cast<U8>(n); }},
        {"data_retries", [](Config& k, Number n) { k.data_retries = static_cast<U8>(n); }},
        {"keepalive_probes", [](Config& k, Number n) { k.keepalive_probes = static_cast<U8>(n); }},
        {"ts_offset", [](Config& k, Number n) { k.ts_offset = n; }},
    };
    static const std::map<std::string, Duration Config::*> kTimes = {
        {"rto_initial", &Config::rto_initial}, {"rto_min", &Config::rto_min},
        {"rto_max", &Config::rto_max},         {"user_timeout", &Config::user_timeout},
        {"keepalive", &Config::keepalive},     {"keepalive_interval", &Config::keepalive_interval},
        {"delayed_ack", &Config::delayed_ack}, {"time_wait", &Config::time_wait},
    };
    if (const auto n = kNumbers.find(key); n != kNumbers.end()) {
      n->second(c, static_cast<Number>(std::stoul(text)));
    } else if (const auto d = kTimes.find(key); d != kTimes.end()) {
      c.*d->second = seconds(text);
    } else {
      ADD_FAILURE() << "unknown setting " << key;
    }
  }

  void command(const std::string& word, std::istringstream& in) {
    Tcb& t = host.tcb;
    const std::map<std::string, std::function<void()>> plain = {
        {"connect", [&] { host.connect(now_); }},
        {"listen", [&] { host.listening = true; }},
        {"shutdown", [&] { host.shutdown(now_); }},
        {"abort", [&] { host.abort_now(now_); }},
        {"forget", [&] { forget_out_of_order(t); }},
        {"probe",
         [&] {
           probe_peer(t, now_);
           host.poll(now_);
         }},
        {"burst", [&] { host.finish_burst(now_); }},
        {"wait", [] {}},  // the given time has passed, and nothing was sent
    };
    if (const auto found = plain.find(word); found != plain.end()) {
      found->second();
      return;
    }
    std::string arg;
    std::uint32_t seq = 0;
    ASSERT_TRUE(in >> arg) << word;
    in >> seq;
    const std::map<std::string, std::function<void()>> with_argument = {
        {"write", [&] { host.write(std::stoull(arg), now_); }},
        {"read", [&] { host.read_now(std::stoull(arg), now_); }},
        {"autoread", [&] { host.auto_read = arg == "on"; }},
        {"more",
         [&] {
           host.more = arg == "on";
           if (!host.more) host.poll(now_);
         }},
        {"ulp",
         [&] {
           host.immediate_dup_ack = arg == "drop-ack" || arg == "corrupt";
           host.names_drops = arg == "corrupt";
           host.ulp_drops = nullptr;
           if (arg != "take") host.ulp_drops = [](const Segment&) { return true; };
         }},
        {"too_big",
         [&] {
           packet_too_big(t, static_cast<std::uint32_t>(std::stoul(arg)), ours_ + seq, now_);
           host.poll(now_);
         }},
        {"unreachable",
         [&] {
           unreachable(t, arg == "hard", ours_ + seq, now_);
           host.poll(now_);
         }},
    };
    if (const auto found = with_argument.find(word); found != with_argument.end()) {
      found->second();
    } else {
      check_state(word, arg);
    }
  }

  void check_state(const std::string& word, const std::string& arg) {
    const Tcb& t = host.tcb;
    static const char* const kStates[] = {"Closed",   "SynSent",  "SynReceived", "Established",
                                          "FinWait1", "FinWait2", "CloseWait",   "Closing",
                                          "LastAck",  "TimeWait"};
    static const char* const kReasons[] = {"None",     "Refused", "Reset",
                                           "TimedOut", "Aborted", "Unreachable"};
    static const char* const kRecovery[] = {"Open", "Disorder", "Cwr", "Recovery", "Loss"};
    const auto text_of = [](Duration d) { return std::to_string(d.count_us()); };
    const std::map<std::string, std::function<std::string()>> values = {
        {"state", [&] { return kStates[static_cast<int>(t.state)]; }},
        {"reason", [&] { return kReasons[static_cast<int>(t.close_reason)]; }},
        {"recovery", [&] { return kRecovery[static_cast<int>(t.loss.state)]; }},
        {"cwnd", [&] { return std::to_string(t.cc.cwnd); }},
        {"ssthresh",
         [&] {
           return t.cc.ssthresh == Congestion::kInfinite ? "inf" : std::to_string(t.cc.ssthresh);
         }},
        {"delivered", [&] { return std::to_string(host.delivered); }},
        {"holes", [&] { return std::to_string(t.rcv.holes.size()); }},
        {"eof", [&] { return host.end_of_stream ? "yes" : "no"; }},
        {"emss", [&] { return std::to_string(emss(t)); }},
        {"pipe", [&] { return std::to_string(loss_pipe(t)); }},
        {"reordering", [&] { return std::to_string(t.loss.reordering); }},
        {"una", [&] { return std::to_string(t.snd.una.value() + 1); }},
    };
    EXPECT_TRUE(host.content_ok);
    if (word == "rto" || word == "srtt") {
      EXPECT_EQ(text_of(word == "rto" ? t.rtt.rto : t.rtt.srtt), text_of(seconds(arg)));
    } else if (const auto found = values.find(word); found != values.end()) {
      EXPECT_EQ(found->second(), arg);
    } else {
      ADD_FAILURE() << "unknown command " << word;
    }
  }

  Seq ours_, theirs_;
  Instant now_ = Instant::from_ns(5000000000000);
  Instant target_;
  bool timed_ = false;
};

}  // namespace urnic::tcp::test
