#include "ib/send_progress.h"

#include <algorithm>

#include "ib/selective.h"

namespace urnic::ib {

using verbs::awaits_response;
using verbs::SendWqe;
using verbs::Status;

std::uint32_t wqe_at(const SendState& s, Psn at) {
  const std::uint32_t ahead = at - s.una.psn;
  std::uint32_t found = s.una.wqe, behind = s.wqes.queue().started();
  while (behind - found > 1) {
    const std::uint32_t middle = found + (behind - found) / 2;
    if (s.wqes.part(middle).psn - s.una.psn <= ahead) {
      found = middle;
    } else {
      behind = middle;
    }
  }
  return found;
}

Psn awaited_psn(const SendState& s) {
  const std::uint32_t oldest = s.awaiting.oldest;
  return oldest == s.una.wqe ? s.una.psn : s.wqes.part(oldest).psn;
}

// ---- forward

namespace {

// `n` packets or responses of the request at una are answered.
void advance(SendState& s, std::uint32_t n) {
  SendWqe& w = s.wqes.wqe(s.una.wqe);
  s.una.packet += n;
  s.una.psn += n;
  if (s.una.packet != s.wqes.packets(w)) return;
  w.done = true;
  if (w.op == verbs::WrOp::Read) s.messages.read_bytes += w.length;
  ++s.una.wqe;
  s.una.packet = 0;
}

void acknowledge_packets(SendState& s, std::uint32_t n) {
  s.in_flight -= n;
  advance(s, n);
}

}  // namespace

void settle(SendState& s) {
  while (s.una.wqe != s.wqes.queue().started() && s.wqes.wqe(s.una.wqe).done) ++s.una.wqe;
}

bool acknowledge(SendState& s, Psn end) {
  const Psn before = s.una.psn;
  while (s.una.psn != end) {
    const SendWqe& w = s.wqes.wqe(s.una.wqe);
    if (awaits_response(w.op)) break;
    acknowledge_packets(s, std::min(end - s.una.psn, s.wqes.packets(w) - s.una.packet));
    settle(s);
  }
  return s.una.psn != before;
}

bool acknowledge_messages(SendState& s, Msn msn) {
  const Psn before = s.una.psn;
  while (s.una.wqe != s.wqes.queue().started()) {
    const SendWqe& w = s.wqes.wqe(s.una.wqe);
    if (awaits_response(w.op) || msn.before(s.wqes.part(s.una.wqe).ssn)) break;
    if (s.una.wqe == s.fresh.wqe) break;  // part of it has not been sent yet
    acknowledge_packets(s, s.wqes.packets(w) - s.una.packet);
    settle(s);
  }
  return s.una.psn != before;
}

void answered(SendState& s) {
  Awaiting& a = s.awaiting;
  advance(s, 1);
  if (s.una.wqe == a.oldest) return;
  a.is_resumed = a.is_probed = false;
  if (--a.count != 0) {
    do {
      ++a.oldest;
    } while (!awaits_response(s.wqes.wqe(a.oldest).op));
  }
  settle(s);
}

void made_progress(SendState& s, Instant now) {
  s.log.passed(s.una.psn, now);
  s.congestion.acknowledged(s.una.psn, s.fresh.psn, now);
  s.retries.reload();
  s.repeating = false;
  if (s.rnr.refused.before(s.una.psn)) s.rnr.until = Instant::never();
  s.credits.answered(s.una.psn);
  ++s.counters.acks;
  check_stuck(s);
}

// A reduced window moves on in quarters: as one piece it would stall for a round trip each time
// (S-10).
std::uint32_t ack_every(const SendState& s) {
  if (!s.congestion.closed()) return s.rules.ack_every;
  return std::clamp<std::uint32_t>(s.congestion.packets() / 4, 1, s.rules.ack_every);
}

void expect_answer(SendState& s, Psn end, Instant now) {
  const bool newest = !s.expecting() || end - s.una.psn > s.expected_end - s.una.psn;
  if (newest) s.expected_end = end;
  s.timer.start(now);
  s.probe.start(now);
}

void rearm(SendState& s, Instant now) {
  s.probe.answered(s.una.psn, now);
  if (s.expecting() && !s.rnr.on()) {
    s.timer.restart(now);
    s.probe.restart(now);
  } else {
    s.timer.stop();
    s.probe.stop();
  }
}

void heard(SendState& s, Instant now) {
  if (!s.probe.due().is_never()) s.probe.restart(now);
}

// ---- back

namespace {

// The timer starts with the first repeated packet that requests a response.
void go_back(SendState& s) {
  s.next = s.una;
  s.awaiting.alone = false;
  s.timer.stop();
  s.probe.go_back();
  s.log.clear();
  s.congestion.went_back(s.una.psn);
}

bool take_retry(SendState& s) {
  if (s.retries.take_retry()) return true;
  ++s.counters.retries_exhausted;
  fail(s, s.una.wqe, Status::RetryExceeded);
  return false;
}

}  // namespace

void repeat_by_nak(SendState& s, Instant now) {
  if (!take_retry(s)) return;
  s.congestion.lost(1, s.fresh.psn, now);
  s.repeating = true;
  go_back(s);
}

void repeat_by_timeout(SendState& s, Instant now) {
  ++s.counters.timeouts;
  if (!take_retry(s)) return;
  s.congestion.timed_out(now);
  s.repeating = false;
  go_back(s);
}

void repeat_by_probe(SendState& s, Instant now) {
  ++s.counters.probe_losses;
  s.congestion.lost(1, s.fresh.psn, now);
  s.repeating = true;
  go_back(s);
}

void wait_for_receive(SendState& s, Psn refused, std::uint8_t code, Instant now) {
  if (!s.retries.take_rnr_retry()) {
    ++s.counters.rnr_retries_exhausted;
    fail(s, wqe_at(s, refused), Status::RnrRetryExceeded);
    return;
  }
  s.rnr = {now + rnr_wait(code), refused};
  if (repeats_alone(s) && refused == s.una.psn) {  // the peer keeps the packets after it
    s.log.mark_lost(refused);
    s.timer.stop();
    s.probe.go_back();
  } else {
    go_back(s);
  }
}

void repeat_after_wait(SendState& s, Instant now) {
  s.rnr.until = Instant::never();
  // An older SACK may have reported meanwhile that the refused packet is kept: the timers decide.
  if (repeats_alone(s)) {
    s.log.mark_lost(s.una.psn);
    s.timer.start(now);
    s.probe.start(now);
    return;
  }
  s.repeating = true;
  go_back(s);
}

// ---- to its end

void fail(SendState& s, std::uint32_t wqe, Status status) {
  if (s.failure.set) return;
  s.failure = {true, wqe, status};
  s.log.clear();
  s.ahead.clear();
  s.hole = {};
  s.timer.stop();
  s.probe.stop();
  s.rnr.until = Instant::never();
}

void mark_stuck(SendState& s, std::uint32_t wqe, Status status) {
  if (s.stuck.set) return;
  s.stuck = {true, wqe, status};
  check_stuck(s);
}

void check_stuck(SendState& s) {
  if (!s.stuck.set) return;
  const auto ahead = static_cast<std::int32_t>(s.stuck.wqe - s.una.wqe);
  if (ahead == 0) fail(s, s.stuck.wqe, s.stuck.status);
  if (ahead < 0) s.stuck.set = false;
}

}  // namespace urnic::ib
