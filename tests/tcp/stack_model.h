// The model for a walk over two byte-stream stacks: each connection as two ends, with the bytes
// each has written, received and read, how it may end and when.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/tcp/stack_world.h"

namespace urnic::tcp::test {

inline constexpr std::size_t kAllOptions = static_cast<std::size_t>(Option::SynCookies) + 1;
using Values = std::array<std::int64_t, kAllOptions>;

inline Values usual_values() {
  Values v{};
  const EndpointOptions o;
  for (std::size_t i = 0; i < kAllOptions; ++i) v[i] = get_option(o, static_cast<Option>(i));
  return v;
}
inline std::int64_t of(const Values& v, Option o) {
  return v[static_cast<std::size_t>(o)];
}
inline Duration time_of(const Values& v, Option o) {
  return Duration::us(of(v, o));
}

// An event happens between two times.
struct Span {
  Instant from = Instant::never(), to = Instant::never();
  bool set() const { return !from.is_never(); }
  Span after(Duration d) const { return {from + d, to + d}; }
  void or_sooner(const Span& o) {
    from = earlier(from, o.from);
    to = earlier(to, o.to);
  }
};

enum class Life : std::uint8_t { Opening, Open, TimeWait, Over };

struct Half {
  Endpoint e = Endpoint::None;
  bool held = false;    // held by a program
  bool queued = false;  // waits for accept()
  Life life = Life::Opening;
  Status error = Status::Ok;
  Values values{};
  std::uint64_t written = 0, read = 0;
  std::uint64_t got = 0;  // of the bytes the other end has written
  bool write_closed = false, read_closed = false;
  bool fin_done = false;    // its FIN is acknowledged
  bool fin_came = false;    // the other end's FIN arrived
  unsigned fin_batch = 0;   // when its FIN left
  unsigned shut_batch = 0;  // when it was requested
  bool reset_sent = false;  // in this batch, over a wire that carries
  bool may_be_reset = false;
  Instant soft_at;             // when an ICMP error gave a reason for the silence
  bool full = false;           // a write was short
  Instant keep_from, keep_to;  // keepalive began between these
  Span stall;                  // start of the wait of bytes for a window
  Span lingers;                // TIME-WAIT, or FIN-WAIT-2 without a handle
  Span gone;                   // keepalive detects that the other end is gone
  Span ends;                   // the earliest of all
  bool ends_badly = false;
  // In this batch:
  bool opened = false, failed = false, fin_now = false, arrived = false, accepted_late = false;

  bool alive() const { return life != Life::Over; }
  bool orphan() const { return life == Life::Open && !held && !queued; }
  std::uint64_t unread() const { return read_closed ? 0 : got - read; }
  bool wants_fin() const { return write_closed && !fin_done; }
};

struct Conn {
  std::uint64_t id = 0;
  int active = 0;
  SocketAddress at[2];
  Half end[2];
  Endpoint listener = Endpoint::None;
  unsigned batch = 0;    // in which it was opened
  bool dirty = false;    // changed in this batch
  bool frozen = false;   // must not be changed again in this batch
  bool crossed = false;  // opened in a crowd or over a bad wire: some negotiated values are not
                         // certain
  bool settled = false;  // was opened

  std::uint64_t waiting(int from) const { return end[from].written - end[1 - from].got; }
  bool idle() const { return waiting(0) == 0 && waiting(1) == 0; }
};

struct Listener {
  int side = 0;
  Endpoint e = Endpoint::None;
  SocketAddress at;
  unsigned backlog = 0;
  Values values{};
  unsigned came = 0;       // in this batch
  unsigned asked = 0;      // the batch of the last connection attempt to it
  unsigned asked_for = 0;  // the number of attempts in that batch
};

struct Fresh {
  int side = 0;
  Endpoint e = Endpoint::None;
  Values values{};
};

inline std::uint8_t byte_of(const Conn& c, int from, std::uint64_t at) {
  return static_cast<std::uint8_t>(
      ((at + 1) * (4 * c.id + 2 * static_cast<std::uint64_t>(from) + 3) * 0x9e3779b97f4a7c15ULL) >>
      40);
}

// How long an unanswered SYN is resent.
inline Duration syn_patience(const Values& v) {
  Duration all = Duration::zero();
  Duration rto = std::min(time_of(v, Option::RtoInitial), time_of(v, Option::RtoMax));
  for (std::int64_t n = of(v, Option::SynRetries); n >= 0; --n) {
    all = all + rto;
    rto = std::min(rto * 2, time_of(v, Option::RtoMax));
  }
  const Duration user = time_of(v, Option::UserTimeout);
  return user == Duration::zero() ? all : std::min(all, user);
}

// When a silent peer is given up, for each possible reason. `stalled`: since when data is in
// flight; unset if there is none. `cut`: since when the wire carries nothing.
inline Span patience(const Half& h, const Span& stalled, Instant came, Instant cut) {
  Span s;
  const Duration keepalive = time_of(h.values, Option::Keepalive);
  if (keepalive != Duration::zero()) {
    const Duration all = keepalive + time_of(h.values, Option::KeepaliveInterval) *
                                         of(h.values, Option::KeepaliveProbes);
    const Instant from = stalled.set() ? came : std::max(came, h.keep_from);
    s.or_sooner({from + all, std::max(came, h.keep_to) + all});
  }
  if (!stalled.set()) return s;
  Duration user = time_of(h.values, Option::UserTimeout);
  if (user == Duration::zero() && h.orphan()) user = time_of(h.values, Option::OrphanTimeout);
  if (user != Duration::zero()) s.or_sooner(stalled.after(user));
  const std::int64_t retries = of(h.values, Option::DataRetries);
  const Duration least = time_of(h.values, Option::RtoMin),
                 most = time_of(h.values, Option::RtoMax);
  s.or_sooner({cut + least * retries, cut + most * (retries + 4)});
  return s;
}

struct Agreed {
  bool sack = false, timestamps = false, scaling = false, ecn = false;
  std::int64_t own_mss = 0, peer_mss = 0, send_mss = 0;
};
inline std::int64_t mss_of(const Values& v, bool v6) {
  return std::max<std::int64_t>(48, of(v, Option::Mtu) - (v6 ? 60 : 40));
}
// The values that end `i` has agreed on with the other end.
inline Agreed agreed(const Conn& c, int i) {
  const Values& own = c.end[i].values;
  const Values& other = c.end[1 - i].values;
  const auto both = [&](Option o) { return of(own, o) != 0 && of(other, o) != 0; };
  Agreed a;
  a.sack = both(Option::Sack);
  a.timestamps = both(Option::Timestamps);
  a.scaling = both(Option::WindowScaling);
  a.ecn = both(Option::Ecn) && of(c.end[c.active].values, Option::Ecn) == 2;
  const bool v6 = c.at[0].ip.is_v6();
  a.own_mss = mss_of(own, v6);
  a.peer_mss = mss_of(other, v6);
  std::int64_t mss = std::min(a.own_mss, a.peer_mss);
  if (of(own, Option::MssClamp) != 0) mss = std::min(mss, of(own, Option::MssClamp));
  a.send_mss = std::max<std::int64_t>(48, mss) - (a.timestamps ? 12 : 0);
  return a;
}

}  // namespace urnic::tcp::test
