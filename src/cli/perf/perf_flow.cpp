// Streams of messages: bandwidth and message rate.
#include "cli/perf/perf_flow.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace urnic::cli {
namespace {

constexpr std::uint64_t wr_id(PerfTag tag, std::uint64_t number) {
  return static_cast<std::uint64_t>(tag) << 56 | number;
}
constexpr std::uint64_t kNumber = (std::uint64_t{1} << 56) - 1;

// splitmix64: one independent word for every position.
std::uint64_t word_at(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

void fill_pattern(std::uint64_t seed, std::uint64_t offset, std::span<std::uint8_t> out) {
  for (std::size_t i = 0; i < out.size();) {
    const std::uint64_t at = offset + i;
    const std::uint64_t word = word_at(seed, at / 8);
    const std::size_t skip = at % 8;
    const std::size_t n = std::min<std::size_t>(8 - skip, out.size() - i);
    std::memcpy(&out[i], reinterpret_cast<const std::uint8_t*>(&word) + skip, n);
    i += n;
  }
}

bool matches_pattern(std::uint64_t seed, std::uint64_t offset,
                     std::span<const std::uint8_t> bytes) {
  std::uint8_t expected[512];
  for (std::size_t i = 0; i < bytes.size(); i += sizeof expected) {
    const std::size_t n = std::min(sizeof expected, bytes.size() - i);
    fill_pattern(seed, offset + i, {expected, n});
    if (std::memcmp(expected, &bytes[i], n) != 0) return false;
  }
  return true;
}

std::uint32_t perf_stride(const PerfRun& run) {
  return (run.size + 63) / 64 * 64;
}

std::uint64_t perf_slots(const PerfRun& run, std::uint64_t buffer) {
  return std::max<std::uint64_t>(1, buffer / perf_stride(run));
}

// ---- sender

BandwidthSender::BandwidthSender(PerfSession* session, const PerfRun& run)
    : s_(session),
      run_(run),
      stride_(perf_stride(run)),
      // A completion must come before the queue is full.
      moderation_(std::clamp<std::uint32_t>(run.cq_moderation, 1, std::max(1u, run.depth / 2))),
      slots_(perf_slots(run, session->layout.buffer)),
      lanes_(session->qps.size()),
      batch_(run.post_list),
      sges_(run.post_list),
      pace_(run.limit) {
  expected_ = run.iterations * lanes_.size();
}

bool BandwidthSender::time_is_up(double now) const {
  return run_.iterations == 0 && now - began_ >= run_.duration_ms / 1000.0;
}

// How many messages the receiver can take: it writes the number to this memory.
std::uint64_t BandwidthSender::credits(std::uint32_t connection) const {
  if (run_.op != PerfOp::Send) return UINT64_MAX;
  const auto* word =
      reinterpret_cast<std::uint64_t*>(s_->memory.data() + s_->layout.credit(connection));
  return std::atomic_ref<const std::uint64_t>(*word).load(std::memory_order_acquire);
}

bool BandwidthSender::new_pass(std::uint32_t connection) {
  Lane& lane = lanes_[connection];
  const std::uint64_t pass = lane.posted / slots_;
  if (!run_.verify || run_.op != PerfOp::Send || pass == lane.pass) return true;
  if (lane.completed != lane.posted) return false;
  fill_pattern(run_.seed + pass, 0, {s_->data(connection), s_->layout.buffer});
  lane.pass = pass;
  return true;
}

bool BandwidthSender::post(std::uint32_t connection, double now) {
  Lane& lane = lanes_[connection];
  if (lane.stopped || !new_pass(connection)) return false;
  if (time_is_up(now)) {
    lane.stopped = true;
    if (lane.signaled == lane.posted) return false;
    // Post one more message, so that a completion covers the last ones.
  } else if (!pace_.may(now)) {
    return false;
  }
  const std::uint64_t left = lane.stopped           ? 1
                             : run_.iterations == 0 ? UINT64_MAX
                                                    : run_.iterations - lane.posted;
  const std::uint64_t room = run_.depth - (lane.posted - lane.completed);
  const std::uint64_t allowed = credits(connection);
  const std::uint64_t credit = allowed > lane.posted ? allowed - lane.posted : 0;
  const std::uint64_t n =
      std::min({left, room, credit, std::uint64_t{run_.post_list}, slots_ - lane.posted % slots_});
  if (n == 0) {
    if (lane.stopped) lane.stopped = false;  // try again when there is room
    return false;
  }
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t number = lane.posted + i;
    const std::uint64_t at = s_->layout.data(connection) + number % slots_ * stride_;
    const bool last = lane.stopped || number + 1 == run_.iterations ||
                      (run_.verify && (number + 1) % slots_ == 0);
    const bool signal = last || (number + 1) % moderation_ == 0;
    sges_[i] = s_->memory.sge(at, run_.size);
    SendRequest& r = batch_[i];
    r = {};
    r.wr_id = wr_id(PerfTag::Sender, number) | std::uint64_t{connection} << 40;
    r.opcode = run_.op == PerfOp::Write  ? Opcode::write
               : run_.op == PerfOp::Read ? Opcode::read
                                         : Opcode::send;
    r.flags = (signal ? send_signaled : 0u) |
              (run_.op != PerfOp::Read && run_.size <= run_.inline_size ? send_inline : 0u);
    r.sges = {&sges_[i], 1};
    r.remote_address = s_->remote_address + at;
    r.rkey = s_->remote_rkey;
  }
  Error why;
  const std::size_t taken = s_->qps[connection].post_send({batch_.data(), n}, &why);
  for (std::uint64_t i = 0; i < taken; ++i) {
    if ((batch_[i].flags & send_signaled) != 0) lane.signaled = lane.posted + i + 1;
  }
  lane.posted += taken;
  pace_.spend(taken * run_.size, now);
  if (taken < n && why.code != Errc::queue_full && s_->failure.empty()) s_->failure = why.message;
  if (lane.posted == run_.iterations) lane.stopped = true;
  return taken != 0;
}

bool BandwidthSender::step() {
  if (done_) return false;
  const double now = now_seconds();
  if (began_ == 0) began_ = mark_time_ = now;
  bool worked = false;
  bool all_done = true;
  for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
    while (post(i, now)) {
      worked = true;
      if (s_->layout.connections > 1) break;  // one connection after the other
    }
    all_done = all_done && lanes_[i].stopped && lanes_[i].completed == lanes_[i].posted;
  }
  note_rate(now);
  if (all_done) {
    done_ = true;
    ended_ = now_seconds();
    const double mean = static_cast<double>(completed_) * run_.size / std::max(seconds(), 1e-9);
    peak_ = std::max(peak_, mean);
  }
  return worked;
}

// Records the best rate of all intervals that are long enough to be meaningful.
void BandwidthSender::note_rate(double now) {
  const std::uint64_t enough =
      std::max<std::uint64_t>(expected_ / 16, std::uint64_t{run_.depth} * lanes_.size());
  if (completed_ - mark_count_ < enough || now - mark_time_ < 0.005) return;
  const double rate =
      static_cast<double>(completed_ - mark_count_) * run_.size / (now - mark_time_);
  peak_ = std::max(peak_, rate);
  mark_time_ = now;
  mark_count_ = completed_;
}

void BandwidthSender::on_completion(const Completion& c) {
  const std::uint64_t number = c.wr_id & ((std::uint64_t{1} << 40) - 1);
  const auto connection = static_cast<std::uint32_t>((c.wr_id & kNumber) >> 40);
  if (connection >= lanes_.size()) return;
  Lane& lane = lanes_[connection];
  // Completions arrive in the order of posting: this one also completes the unsignaled messages
  // before it.
  const std::uint64_t done = number + 1;
  if (done > lane.completed) {
    completed_ += done - lane.completed;
    lane.completed = done;
  }
}

// ---- receiver of Sends

SendReceiver::SendReceiver(PerfSession* session, const PerfRun& run)
    : s_(session),
      run_(run),
      stride_(perf_stride(run)),
      depth_(std::clamp<std::uint32_t>(2 * run.depth, 64, 2 * kPerfMaxDepth)),
      slots_(perf_slots(run, session->layout.buffer)),
      lanes_(session->qps.size()) {}

Result<void> SendReceiver::start() {
  for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
    for (std::uint32_t k = 0; k < depth_; ++k) {
      const std::uint64_t at = s_->layout.data(i) + lanes_[i].posted % slots_ * stride_;
      const Sge sge = s_->memory.sge(at, run_.size);
      if (auto ok = s_->qps[i].post_receive({wr_id(PerfTag::Receiver, i), {&sge, 1}}); !ok) {
        return ok;
      }
      ++lanes_[i].posted;
    }
    give_credit(i);
  }
  return {};
}

void SendReceiver::give_credit(std::uint32_t i) {
  Lane& lane = lanes_[i];
  if (lane.credits_open >= 32) return;  // the next credit includes this one
  const std::uint64_t value = lane.posted;
  const Sge sge{reinterpret_cast<std::uint64_t>(&value), sizeof value, 0};
  SendRequest r;
  r.wr_id = wr_id(PerfTag::Credit, i);
  r.opcode = Opcode::write;
  r.flags = send_signaled | send_inline;
  r.sges = {&sge, 1};
  r.remote_address = s_->remote_address + s_->layout.credit(i);
  r.rkey = s_->remote_rkey;
  if (auto ok = s_->qps[i].post_send(r); !ok) {
    if (ok.error().code != Errc::queue_full && failure_.empty()) failure_ = ok.error().message;
    return;
  }
  ++lane.credits_open;
  lane.granted = value;
}

void SendReceiver::on_completion(const Completion& c) {
  const auto i = static_cast<std::uint32_t>(c.wr_id & kNumber);
  if (i >= lanes_.size()) return;
  Lane& lane = lanes_[i];
  if (static_cast<PerfTag>(c.wr_id >> 56) == PerfTag::Credit) {
    --lane.credits_open;
    return;
  }
  const std::uint64_t slot = lane.received % slots_;
  if (run_.verify) {
    const std::uint64_t at = slot * stride_;
    const std::uint64_t seed = run_.seed + lane.received / slots_;
    if (c.byte_len != run_.size || !matches_pattern(seed, at, {s_->data(i) + at, run_.size})) {
      ++errors_;
    }
  }
  ++lane.received;
  ++received_;
  const Sge sge = s_->memory.sge(s_->layout.data(i) + lane.posted % slots_ * stride_, run_.size);
  if (auto ok = s_->qps[i].post_receive({wr_id(PerfTag::Receiver, i), {&sge, 1}}); !ok) {
    if (failure_.empty()) failure_ = ok.error().message;
    return;
  }
  ++lane.posted;
  if (lane.posted - lane.granted >= depth_ / 4) give_credit(i);
}

}  // namespace urnic::cli
