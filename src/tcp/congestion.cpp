#include "tcp/congestion.h"

#include <algorithm>

namespace urnic::tcp {
namespace {

// TCP allows no larger window (RFC 7323 2.3).
constexpr std::uint32_t kMaxWindow = 1u << 30;

void grow(Congestion& c, std::uint32_t bytes) {
  c.cwnd = std::min(c.cwnd + bytes, kMaxWindow);
}

}  // namespace

std::uint32_t initial_window(const Config& cfg, std::uint32_t smss) {
  if (cfg.initial_window != 0) return std::max(cfg.initial_window, smss);
  return std::min(10 * smss, std::max(2 * smss, 14600u));
}

void cc_open(Congestion& c, const Config& cfg, std::uint32_t smss, bool syn_lost) {
  c = Congestion{};
  c.algorithm = cfg.congestion;
  if (c.algorithm == CongestionControl::Dctcp) dctcp_open(c.dctcp);
  c.smss = smss;
  c.cwnd = syn_lost ? smss : initial_window(cfg, smss);
}

void cc_sent(Congestion& c, StreamOffset una, StreamOffset nxt) {
  const auto flight = static_cast<std::uint32_t>(nxt - una);
  if (una >= c.used_until || flight > c.used) {
    c.used = flight;
    c.used_until = nxt;
  }
}

void cc_acked(Congestion& c, const Config& cfg, std::uint32_t bytes, AckTime at) {
  if (c.cwnd < c.ssthresh) {
    // Slow start. A window that is only half used still grows. Otherwise the bursts of a program
    // that waits for replies would never find the capacity of the path.
    if (c.cwnd / 2 > c.used) return;
    std::uint32_t most = std::max<std::uint32_t>(cfg.slow_start_segments, 1) * c.smss;
    if (c.ssthresh == Congestion::kInfinite && cfg.hystart) {
      most = std::max(most, 8 * c.smss);  // RFC 9406 4.3: L
      switch (hystart_on_ack(c.hystart, at.una, at.nxt, at.rtt, at.now, c.cwnd / c.smss)) {
        case HyStartSays::Grow:
          break;
        case HyStartSays::GrowQuarter:
          if (c.hystart.by_train && !at.sack) {
            c.ssthresh = c.cwnd;
            return;
          }
          most = std::min(most, bytes) / 4;
          break;
        case HyStartSays::EndSlowStart:
          c.ssthresh = c.cwnd;
          return;
      }
    }
    // Grow up to ssthresh, and beyond it by at most the one segment that any ACK may add.
    grow(c, std::min({bytes, most, std::max(c.ssthresh - c.cwnd, c.smss)}));
    return;
  }
  const bool unused = c.cwnd > c.used + c.smss;
  if (c.algorithm == CongestionControl::Cubic) {
    if (unused) {
      cubic_exclude_interval(c.cubic, at.now);
    } else {
      grow(c, cubic_growth(c.cubic, c.cwnd, c.smss, bytes, at.now, at.srtt,
                           at.sack && cfg.hystart && !hystart_rtt_is_inflated(c.hystart, at.srtt)));
    }
    return;
  }
  if (unused) return;
  // Congestion avoidance by counting bytes (RFC 5681 3.1): a segment per window.
  c.counted += bytes;
  if (c.counted >= c.cwnd) {
    c.counted -= c.cwnd;
    if (c.counted > c.cwnd) c.counted = 0;  // at most one segment per round trip
    grow(c, c.smss);
  }
}

void cc_ecn_feedback(Congestion& c, std::uint32_t bytes, bool ece, StreamOffset una,
                     StreamOffset nxt) {
  if (c.algorithm == CongestionControl::Dctcp) dctcp_acked(c.dctcp, bytes, ece, una, nxt);
}

void cc_reduce(Congestion& c, std::uint32_t flight, Cut why) {
  c.prior_cwnd = c.cwnd;
  c.prior_ssthresh = c.ssthresh;
  c.counted = 0;
  switch (c.algorithm) {
    case CongestionControl::Cubic:
      c.ssthresh = cubic_cut(c.cubic, c.cwnd, flight, c.smss, why == Cut::Timeout);
      return;
    case CongestionControl::Dctcp:
      if (why == Cut::Mark) {
        c.ssthresh = std::max(dctcp_cut(c.dctcp, c.cwnd), 2 * c.smss);
        return;
      }
      break;
    case CongestionControl::NewReno:
    case CongestionControl::Reno:
      break;
  }
  c.ssthresh = std::max(flight / 2, 2 * c.smss);  // RFC 5681 (4)
}

void cc_timeout_in_recovery(Congestion& c, std::uint32_t flight) {
  c.ssthresh = std::min(c.ssthresh, std::max(flight / 2, 2 * c.smss));
  c.counted = 0;
  if (c.algorithm == CongestionControl::Cubic) cubic_timeout(c.cubic);
}

void cc_undo(Congestion& c) {
  if (c.prior_cwnd == 0) return;
  c.cwnd = std::max(c.cwnd, c.prior_cwnd);
  c.ssthresh = std::max(c.ssthresh, c.prior_ssthresh);
  c.prior_cwnd = 0;
  if (c.algorithm == CongestionControl::Cubic) cubic_undo(c.cubic);
}

void cc_enter_recovery(Congestion& c, bool sack) {
  c.cwnd = c.ssthresh + (sack ? 0 : 3 * c.smss);
}

void cc_inflate(Congestion& c) {
  grow(c, c.smss);
}

void cc_partial_ack(Congestion& c, std::uint32_t bytes) {
  c.cwnd -= std::min(bytes, c.cwnd);
  if (bytes >= c.smss) grow(c, c.smss);
  c.cwnd = std::max(c.cwnd, c.smss);
}

void cc_exit_recovery(Congestion& c, bool sack, std::uint32_t flight) {
  // RFC 6582 3.2 step 3 (1): do not send at once everything that the ACK released.
  c.cwnd = sack ? c.ssthresh : std::min(c.ssthresh, std::max(flight, c.smss) + c.smss);
  c.counted = 0;
}

void cc_timeout(Congestion& c) {
  c.cwnd = c.smss;
  c.counted = 0;
}

void cc_restart(Congestion& c, const Config& cfg) {
  c.cwnd = std::min(c.cwnd, initial_window(cfg, c.smss));
  c.counted = 0;
}

}  // namespace urnic::tcp
