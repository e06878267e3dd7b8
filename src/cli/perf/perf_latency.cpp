// Ping-pong of single messages (half round trips; for RDMA Read full round trips).
#include <algorithm>
#include <atomic>
#include <chrono>

#include "cli/perf/perf_flow.h"

namespace urnic::cli {
namespace {

constexpr std::uint64_t kSignalEvery = 32;
constexpr std::uint64_t kReceives = 64;
constexpr std::uint64_t kLatency = 1ull << 56;

using Clock = std::chrono::steady_clock;

}  // namespace

LatencyLoop::LatencyLoop(PerfSession* session, const PerfRun& run, bool first)
    : s_(session), run_(run), first_(first) {
  if (first) samples_.reserve(run.iterations == 0 ? 1'000'000 : run.iterations);
}

// Checks every 4096 spins that the connections are alive. The server also checks for the end of the
// test.
bool LatencyLoop::healthy() {
  if ((++spins_ & 0xfff) != 0) return true;
  if (!s_->alive(last_progress_)) return false;
  if (!first_) {
    auto message = s_->control->receive();
    if (!message) s_->failure = message.error().message;
    if (message && *message) {
      if ((*message)->kind != PerfKind::Done)
        s_->failure = "protocol error: unexpected message from the client";
      control_waiting_ = true;
      done_ = std::move(**message);
      return false;
    }
  }
  return s_->failure.empty();
}

bool LatencyLoop::post(Opcode opcode) {
  const Sge sge = s_->memory.sge(s_->layout.data(0), run_.size);
  SendRequest r;
  r.wr_id = kLatency;
  r.opcode = opcode;
  const bool signal = opcode == Opcode::read || ++posted_ % kSignalEvery == 0;
  r.flags = (signal ? send_signaled : 0u) |
            (opcode != Opcode::read && run_.size <= run_.inline_size ? send_inline : 0u);
  r.sges = {&sge, 1};
  r.remote_address =
      s_->remote_address + s_->layout.data(0) + (opcode == Opcode::write ? perf_stride(run_) : 0);
  r.rkey = s_->remote_rkey;
  if (auto ok = s_->qps[0].post_send(r); !ok) {
    s_->failure = ok.error().message;
    return false;
  }
  return true;
}

// The peer's writes land one stride after the memory that we write from.
bool LatencyLoop::wait_for_mark(std::uint8_t mark) {
  std::uint8_t& last = *(s_->data(0) + perf_stride(run_) + run_.size - 1);
  const std::atomic_ref<std::uint8_t> seen(last);
  while (seen.load(std::memory_order_acquire) != mark) {
    s_->device.progress();
    if (!healthy()) return false;
  }
  return true;
}

bool LatencyLoop::drain() {
  Completion batch[16];
  const int n = s_->cq.poll(batch);
  for (int i = 0; i < n; ++i) {
    if (batch[i].status != WcStatus::success) {
      if (s_->failure.empty()) s_->failure = to_string(batch[i].status);
      return false;
    }
    if (batch[i].opcode == Opcode::receive) {
      ++receives_ready_;
      const Sge sge = s_->memory.sge(s_->layout.data(0) + perf_stride(run_), run_.size);
      if (auto ok = s_->qps[0].post_receive({0, {&sge, 1}}); !ok) {
        s_->failure = ok.error().message;
        return false;
      }
    } else if (batch[i].opcode == Opcode::read) {
      ++open_;
    }
  }
  return true;
}

bool LatencyLoop::wait_completion(bool receive) {
  std::uint64_t& ready = receive ? receives_ready_ : open_;
  while (ready == 0) {
    if (!drain() || !healthy()) return false;
  }
  --ready;
  return true;
}

Result<void> LatencyLoop::prepare() {
  std::fill_n(s_->data(0), std::size_t{2} * perf_stride(run_), std::uint8_t{0});
  if (run_.op != PerfOp::Send) return {};
  const Sge sge = s_->memory.sge(s_->layout.data(0) + perf_stride(run_), run_.size);
  for (std::uint64_t i = 0; i < kReceives; ++i) {
    if (auto ok = s_->qps[0].post_receive({0, {&sge, 1}}); !ok) return ok;
  }
  return {};
}

bool LatencyLoop::run() {
  last_progress_ = now_seconds();
  return first_ ? measure() : serve();
}

bool LatencyLoop::measure() {
  std::uint8_t mark = 0;
  const std::uint64_t warm_up = run_.warm_up;
  Clock::time_point began{};
  std::uint8_t& out = *(s_->data(0) + run_.size - 1);
  for (std::uint64_t i = 0;; ++i) {
    if (i == warm_up) began = Clock::now();
    const auto start = Clock::now();
    if (i > warm_up) {
      const bool enough = run_.iterations != 0
                              ? i - warm_up >= run_.iterations
                              : start - began >= std::chrono::milliseconds(run_.duration_ms);
      if (enough) break;
    }
    bool ok = false;
    switch (run_.op) {
      case PerfOp::Write:
        std::atomic_ref<std::uint8_t>(out).store(++mark, std::memory_order_relaxed);
        ok = post(Opcode::write) && wait_for_mark(mark);
        break;
      case PerfOp::Read:
        ok = post(Opcode::read) && wait_completion(false);
        break;
      case PerfOp::Send:
        ok = post(Opcode::send) && wait_completion(true);
        break;
    }
    if (!ok) return false;
    const auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start);
    if (i >= warm_up) samples_.add(took.count() / (run_.op == PerfOp::Read ? 1 : 2));
    if ((i & 31) == 0 && run_.op == PerfOp::Write && !drain()) return false;
    if ((i & 255) == 0) last_progress_ = now_seconds();
    if (i >= warm_up) ++count_;
  }
  seconds_ = std::chrono::duration<double>(Clock::now() - began).count();
  return true;
}

// Answers until the client reports that it is done.
bool LatencyLoop::serve() {
  std::uint8_t& out = *(s_->data(0) + run_.size - 1);
  std::uint8_t mark = 0;
  for (;;) {
    bool ok = false;
    switch (run_.op) {
      case PerfOp::Write:
        ++mark;
        if (!(ok = wait_for_mark(mark))) break;
        std::atomic_ref<std::uint8_t>(out).store(mark, std::memory_order_relaxed);
        ok = post(Opcode::write);
        break;
      case PerfOp::Send:
        ok = wait_completion(true) && post(Opcode::send);
        break;
      case PerfOp::Read:  // the engine answers
        ok = drain() && healthy();
        s_->device.progress();
        break;
    }
    if (control_waiting_) return true;
    if (!ok) return false;
    if ((++count_ & 31) == 0 && run_.op == PerfOp::Write && !drain()) return false;
    if ((count_ & 255) == 0) last_progress_ = now_seconds();
  }
}

}  // namespace urnic::cli
