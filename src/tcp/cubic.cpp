#include "tcp/cubic.h"

#include <algorithm>

namespace urnic::tcp {
namespace {

// beta_cubic = 0.7 and alpha_cubic = 3 (1 - beta) / (1 + beta) = 0.529 (4.6, 4.3), C = 0.4 (5.1).
constexpr std::uint32_t kBetaTenths = 7;
constexpr std::uint32_t kAlphaUnits = 542, kUnits = 1024;

std::uint32_t cube_root(std::uint64_t v) {
  std::uint32_t r = 0;
  for (int bit = 20; bit >= 0; --bit) {
    const std::uint64_t t = r | (1u << bit);
    if (t * t * t <= v) r = static_cast<std::uint32_t>(t);
  }
  return r;
}

void begin(Cubic& q, std::uint32_t cwnd, std::uint32_t smss, Instant now) {
  q.running = true;
  q.epoch_ns = q.seen_ns = now.ns();
  q.w_est = cwnd;
  q.est_credit = q.grow_credit = 0;
  q.k_ms = 0;
  if (q.after_timeout || q.w_max <= cwnd) {
    q.w_max = cwnd;
  } else {
    // K = cbrt((W_max - cwnd) / C) seconds, windows in segments.
    q.k_ms = cube_root(std::uint64_t{q.w_max - cwnd} * 2'500'000'000 / smss);
  }
  q.after_timeout = false;
}

// W_cubic(t) in bytes.
std::int64_t w_cubic(const Cubic& q, std::uint32_t smss, std::int64_t t_ms) {
  const std::int64_t d = std::clamp<std::int64_t>(t_ms - q.k_ms, -100'000, 100'000);
  return q.w_max + d * d * d / 1'000'000 * (smss * 2) / 5000;
}

}  // namespace

void cubic_exclude_interval(Cubic& q, Instant now) {
  if (!q.running) return;
  q.epoch_ns += now.ns() - q.seen_ns;
  q.seen_ns = now.ns();
}

std::uint32_t cubic_growth(Cubic& q, std::uint32_t cwnd, std::uint32_t smss, std::uint32_t acked,
                           Instant now, Duration srtt, bool no_queue) {
  if (!q.running) begin(q, cwnd, smss, now);
  // A pause longer than the gap between ACKs can be: the connection did not use the network then.
  const std::int64_t silence = now.ns() - q.seen_ns - 2 * srtt.count_ns();
  if (silence > 1'000'000'000) q.epoch_ns += silence;
  q.seen_ns = now.ns();

  // Reno-friendly region: alpha_cubic until the old window is reached again, then one (4.3).
  q.est_credit += std::uint64_t{acked} * smss * (q.w_est < q.w_prior ? kAlphaUnits : kUnits);
  const std::uint64_t est_step = std::uint64_t{cwnd} * kUnits;
  q.w_est += static_cast<std::uint32_t>(q.est_credit / est_step);
  q.est_credit %= est_step;

  // The target window one round trip from now, at most 1.5 times the current window (4.2).
  const std::int64_t t_ms = (now.ns() - q.epoch_ns + srtt.count_ns()) / 1'000'000;
  // Before the first cut there is no plateau to return to, and the curve grows very slowly. If slow
  // start was ended by a sign of congestion and not by a loss, the path may have room left. Growing
  // by 1/20 per round trip, while there is no queue, finds that room.
  const std::int64_t least = q.w_prior == 0 && no_queue ? cwnd + cwnd / 20 : cwnd;
  const auto target = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(w_cubic(q, smss, t_ms), least, std::int64_t{cwnd} * 3 / 2));
  q.grow_credit += std::uint64_t{target - cwnd} * acked;
  const auto grown = static_cast<std::uint32_t>(q.grow_credit / cwnd);
  q.grow_credit %= cwnd;
  return q.w_est > cwnd + grown ? q.w_est - cwnd : grown;
}

std::uint32_t cubic_cut(Cubic& q, std::uint32_t cwnd, std::uint32_t flight, std::uint32_t smss,
                        bool timeout) {
  q.old_w_max = q.w_max;
  // Fast convergence (4.7): a window that did not reach the last plateau leaves room for other
  // flows.
  q.w_max = cwnd < q.w_max
                ? static_cast<std::uint32_t>(std::uint64_t{cwnd} * (10 + kBetaTenths) / 20)
                : cwnd;
  q.w_prior = cwnd;
  q.running = false;
  q.after_timeout = timeout;
  return std::max(static_cast<std::uint32_t>(std::uint64_t{flight} * kBetaTenths / 10), 2 * smss);
}

void cubic_timeout(Cubic& q) {
  q.running = false;
  q.after_timeout = true;
}

void cubic_undo(Cubic& q) {
  q.w_max = q.old_w_max;
  q.running = q.after_timeout = false;
}

}  // namespace urnic::tcp
