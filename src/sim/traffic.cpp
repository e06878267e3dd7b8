#include "sim/traffic.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/rng.h"

namespace urnic::sim {

Traffic::Traffic(Pair& pair, verbs::QueuePair& left, verbs::QueuePair& right, const WorkPlan& plan,
                 Instant begin, std::uint64_t seed)
    : pair_(pair), left_(left), right_(right), plan_(plan), begin_(begin), next_post_(begin) {
  slots_ = std::min(plan.depth, plan.count);
  largest_ = *std::max_element(plan.sizes.begin(), plan.sizes.end());
  Rng rng(seed * 77 + 5);
  source_.octets.resize(largest_ * slots_);
  for (auto& octet : source_.octets) octet = static_cast<std::uint8_t>(rng.next());
  Node& from = plan_.into_left() ? pair.right() : pair.left();
  Node& to = plan_.into_left() ? pair.left() : pair.right();
  source_.stag = from.register_memory(source_.octets.data(), source_.octets.size(),
                                      verbs::kRemoteRead | verbs::kZeroBased);
  if (plan_.op == Op::Send) {
    receive_.octets.resize(largest_ * std::min(plan.receives, plan.count));
    receive_.stag = to.register_memory(receive_.octets.data(), receive_.octets.size(),
                                       verbs::kLocalWrite | verbs::kZeroBased);
  } else {
    sink_.octets.assign(source_.octets.size() + (plan_.embed ? WorkPlan::kEmbedded : 0), 0);
    sink_.stag = to.register_memory(sink_.octets.data(), sink_.octets.size(),
                                    verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kZeroBased);
    if (plan_.embed) embed();
  }
}

// Octets of our messages that are a valid FPDU of the same stream, if anybody begins to read there:
// length, a Write's header (RFC 5041 4.1, RFC 5040 4.1), payload, CRC; no pad is needed.
void Traffic::embed() {
  constexpr std::uint32_t kHeader = 14, kUlpdu = kHeader + WorkPlan::kEmbedded;
  std::uint8_t fpdu[2 + kUlpdu + 4];
  static_assert((2 + kUlpdu) % 4 == 0);
  if (WorkPlan::kEmbeddedAt + sizeof fpdu > largest_) return;
  store_be16(fpdu, kUlpdu);
  fpdu[2] = 0xc1;  // tagged, last, DDP version 1
  fpdu[3] = 0x40;  // RDMAP version 1, RDMA Write
  store_be32(fpdu + 4, sink_.stag);
  store_be64(fpdu + 8, source_.octets.size());
  std::fill_n(fpdu + 2 + kHeader, WorkPlan::kEmbedded, std::uint8_t{0xee});
  store_le32(fpdu + 2 + kUlpdu, crc32c({fpdu, 2 + kUlpdu}));
  for (std::uint64_t slot = 0; slot < slots_; ++slot) {
    const std::uint64_t at = slot * largest_ + WorkPlan::kEmbeddedAt;
    std::copy_n(fpdu, sizeof fpdu, source_.octets.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

void Traffic::step() {
  take_completions();
  look_for_the_end();
  if (!failure_.empty()) return;
  post_receives(pair_.now());
  post_work(pair_.now());
}

void Traffic::take_completions() {
  verbs::Cqe batch[64];
  for (int n; (n = pair_.left().poll_send(batch)) > 0;) {
    for (int i = 0; i < n; ++i) {
      if (batch[i].completion.status != verbs::Status::Success) {
        ++failed_;
        continue;
      }
      if (plan_.op != Op::Send) delivered_octets_ += size_of(completed_);
      ++completed_;
    }
  }
  for (int n; (n = pair_.right().poll_receive(batch)) > 0;) {
    for (int i = 0; i < n; ++i) check_receive(batch[i].completion);
  }
}

void Traffic::check_receive(const verbs::Completion& c) {
  if (c.status != verbs::Status::Success) return;  // flushed: the stream is over
  const std::uint64_t message = received_++;
  const std::uint64_t length = size_of(message);
  delivered_octets_ += length;
  const std::uint64_t receives = std::min(plan_.receives, plan_.count);
  const std::uint8_t* got = receive_.octets.data() + (c.wr_id % receives) * largest_;
  const std::uint8_t* sent = source_.octets.data() + slot_of(message) * largest_;
  if (c.wr_id != message || c.byte_len != length) {
    wrong_ += length;
    return;
  }
  for (std::uint64_t i = 0; i < length; ++i) wrong_ += got[i] != sent[i] ? 1 : 0;
}

void Traffic::look_for_the_end() {
  for (Node* node : {&pair_.left(), &pair_.right()}) {
    for (const engine::CmEvent& e : node->events) {
      const bool over =
          e.kind == engine::CmEvent::Kind::Failed || e.kind == engine::CmEvent::Kind::Disconnected;
      if (over && failure_.empty()) {
        failure_ = std::string(node == &pair_.left() ? "left: " : "right: ") + e.message;
      }
    }
  }
}

void Traffic::post_receives(Instant now) {
  if (plan_.op != Op::Send) return;
  if (now < begin_ + plan_.receives_begin) {
    pair_.wake_at(begin_ + plan_.receives_begin);
    return;
  }
  const std::uint64_t receives = std::min(plan_.receives, plan_.count);
  while (receives_posted_ < plan_.count && receives_posted_ - received_ < receives) {
    const verbs::Sge sge{(receives_posted_ % receives) * largest_,
                         static_cast<std::uint32_t>(largest_), receive_.stag};
    if (!pair_.right().post_receive(right_, {receives_posted_, {&sge, 1}}, now)) return;
    ++receives_posted_;
  }
}

void Traffic::post_work(Instant now) {
  while (posted_ < plan_.count && posted_ - completed_ < plan_.depth) {
    if (now < next_post_) {
      pair_.wake_at(next_post_);
      return;
    }
    const std::uint64_t at = slot_of(posted_) * largest_;
    verbs::Sge sge;
    sge.addr = at;
    sge.length = size_of(posted_);
    sge.lkey = plan_.op == Op::Read ? sink_.stag : source_.stag;
    verbs::SendWr wr;
    wr.wr_id = posted_;
    wr.flags = verbs::kSignaled;
    wr.sges = {&sge, 1};
    wr.op = plan_.op == Op::Write  ? verbs::WrOp::Write
            : plan_.op == Op::Read ? verbs::WrOp::Read
                                   : verbs::WrOp::Send;
    if (plan_.op != Op::Send) {
      wr.remote_address = at;
      wr.rkey = plan_.op == Op::Write ? sink_.stag : source_.stag;
    }
    if (pair_.left().post_send(left_, wr, now) != verbs::Post::Ok) return;
    ++posted_;
    next_post_ = now + plan_.gap;
  }
}

bool Traffic::complete() const {
  return delivered() == plan_.count && completed_ == plan_.count &&
         ddp::stream_of(left_).sender.idle() && ddp::stream_of(right_).sender.idle();
}

void Traffic::check_memory() {
  if (plan_.op == Op::Send) return;
  for (std::uint64_t slot = 0; slot < slots_; ++slot) {
    std::uint64_t length = 0;  // of the longest message that has gone through this slot
    const std::uint64_t rounds = plan_.sizes.size();
    for (std::uint64_t m = slot, n = 0; m < completed_ && n < rounds; m += slots_, ++n) {
      length = std::max<std::uint64_t>(length, size_of(m));
    }
    const std::uint64_t at = slot * largest_;
    for (std::uint64_t i = at; i < at + length; ++i)
      wrong_ += sink_.octets[i] != source_.octets[i] ? 1 : 0;
  }
  for (std::uint64_t i = source_.octets.size(); i < sink_.octets.size(); ++i)
    wrong_ += sink_.octets[i] != 0 ? 1 : 0;
}

}  // namespace urnic::sim
