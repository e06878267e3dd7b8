#include "sim/traffic.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/rng.h"
#include "ib/ud.h"
#include "sim/sqe_drill.h"

namespace urnic::sim {
namespace {

// The run is complete when nothing has arrived for this time after the last message was handed out.
constexpr Duration kQuiet = Duration::ms(20);
constexpr std::uint32_t kAtomicBytes = 8;

const char* why_failed(verbs::Status s) {
  switch (s) {
    case verbs::Status::RetryExceeded:
      return "no response to any retransmission";
    case verbs::Status::RnrRetryExceeded:
      return "the peer posted no receive in time";
    case verbs::Status::RemoteAccess:
    case verbs::Status::RemoteOperation:
    case verbs::Status::RemoteInvalidRequest:
    case verbs::Status::RemoteInvalidRd:
      return "rejected by the peer";
    default:
      return "a work request failed";
  }
}

}  // namespace

Traffic::Traffic(Pair& pair, verbs::QueuePair& left, verbs::QueuePair& right, const WorkPlan& plan,
                 const RocePlan& roce, Instant begin, std::uint64_t seed, unsigned queues)
    : pair_(pair),
      left_(left),
      right_(right),
      plan_(plan),
      roce_(roce),
      queues_(queues),
      begin_(begin),
      next_post_(begin),
      next_receive_(begin),
      last_delivery_(begin) {
  if (plan_.op == Op::Atomic) plan_.sizes.assign(1, kAtomicBytes);
  if (roce_.on && roce_.service == verbs::Service::Ud) handle_ = address_of_right(pair);
  if (roce_.on && verbs::is_xrc(roce_.service)) {
    for (int i = 0; i < 2; ++i) {
      shared_.push_back(pair.right().make_xrc_queue(static_cast<std::uint32_t>(plan.receives)));
    }
  }
  slots_ = std::min(plan.depth, plan.count);
  largest_ = *std::max_element(plan_.sizes.begin(), plan_.sizes.end());
  Rng rng(seed * 77 + 5);
  source_.bytes.resize(largest_ * slots_);
  for (auto& byte : source_.bytes) byte = static_cast<std::uint8_t>(rng.next());
  Node& from = plan_.into_left() ? pair.right() : pair.left();
  Node& to = plan_.into_left() ? pair.left() : pair.right();
  std::uint8_t rights = verbs::kRemoteRead | verbs::kZeroBased;
  if (plan_.op == Op::Atomic) {
    source_.bytes.assign(kAtomicBytes, 0);  // one counter
    rights = verbs::kLocalWrite | verbs::kRemoteAtomic | verbs::kZeroBased;
  }
  source_.stag = from.register_memory(source_.bytes.data(), source_.bytes.size(), rights);
  if (plan_.op == Op::Send) {
    receive_.bytes.resize(receive_slot() * std::min(plan.receives, plan.count));
    receive_.stag = to.register_memory(receive_.bytes.data(), receive_.bytes.size(),
                                       verbs::kLocalWrite | verbs::kZeroBased);
  } else {
    sink_.bytes.assign(largest_ * slots_ + (plan_.embed ? WorkPlan::kEmbedded : 0), 0);
    sink_.stag = to.register_memory(sink_.bytes.data(), sink_.bytes.size(),
                                    verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kZeroBased);
    if (plan_.embed) embed();
  }
}

// Makes part of the messages a valid FPDU of the same stream, in case a receiver begins to parse
// there: length, header of a Write (RFC 5041 4.1, RFC 5040 4.1), payload, CRC; no padding is
// needed.
void Traffic::embed() {
  constexpr std::uint32_t kHeader = 14, kUlpdu = kHeader + WorkPlan::kEmbedded;
  std::uint8_t fpdu[2 + kUlpdu + 4];
  static_assert((2 + kUlpdu) % 4 == 0);
  if (WorkPlan::kEmbeddedAt + sizeof fpdu > largest_) return;
  store_be16(fpdu, kUlpdu);
  fpdu[2] = 0xc1;  // tagged, last, DDP version 1
  fpdu[3] = 0x40;  // RDMAP version 1, RDMA Write
  store_be32(fpdu + 4, sink_.stag);
  store_be64(fpdu + 8, source_.bytes.size());
  std::fill_n(fpdu + 2 + kHeader, WorkPlan::kEmbedded, std::uint8_t{0xee});
  store_le32(fpdu + 2 + kUlpdu, crc32c({fpdu, 2 + kUlpdu}));
  for (std::uint64_t slot = 0; slot < slots_; ++slot) {
    const std::uint64_t at = slot * largest_ + WorkPlan::kEmbeddedAt;
    std::copy_n(fpdu, sizeof fpdu, source_.bytes.begin() + static_cast<std::ptrdiff_t>(at));
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
  for (int n; (n = pair_.left().poll_send(batch, queues_)) > 0;) {
    for (int i = 0; i < n; ++i) {
      if (batch[i].completion.status != verbs::Status::Success) {
        ++n_.failed;
        const std::uint64_t id = batch[i].completion.wr_id;
        if (plan_.sqe_begin != Duration()) n_.posted = std::min(n_.posted, id);  // to be reposted
        const bool first =
            batch[i].completion.status != verbs::Status::Flushed && id != SqeDrill::kBadRequest;
        if (roce_.on && first && failure_.empty()) {
          failure_ = std::string("left: ") + why_failed(batch[i].completion.status);
        }
        continue;
      }
      if (plan_.op == Op::Atomic) check_atomic();
      if (plan_.op != Op::Send) n_.bytes += size_of(n_.completed);
      ++n_.completed;
      last_delivery_ = pair_.now();
    }
  }
  for (int n; (n = pair_.right().poll_receive(batch, queues_)) > 0;) {
    for (int i = 0; i < n; ++i) check_receive(batch[i].completion);
  }
}

void Traffic::check_receive(const verbs::Completion& c) {
  if (c.status != verbs::Status::Success) return;  // flushed: the stream has ended
  const std::uint64_t in_turn = n_.received++;
  // Messages of an unreliable service carry their number, because some may be lost.
  const std::uint64_t message = unreliable() ? c.immediate : in_turn;
  const std::uint64_t length = size_of(message);
  n_.bytes += length;
  last_delivery_ = pair_.now();
  const std::uint64_t receives = std::min(plan_.receives, plan_.count);
  const std::uint8_t* got = receive_.bytes.data() + (c.wr_id % receives) * receive_slot() + head();
  const std::uint8_t* sent = source_.bytes.data() + slot_of(message) * largest_;
  if (c.wr_id != in_turn || c.byte_len != length + head() || message >= plan_.count) {
    n_.wrong += length;
    return;
  }
  for (std::uint64_t i = 0; i < length; ++i) n_.wrong += got[i] != sent[i] ? 1 : 0;
}

// Each atomic must be executed once and in order: the value before it is the number of earlier
// ones.
void Traffic::check_atomic() {
  std::uint64_t was = 0;
  std::copy_n(sink_.bytes.data() + slot_of(n_.completed) * largest_, kAtomicBytes,
              reinterpret_cast<std::uint8_t*>(&was));
  if (was != n_.completed) n_.wrong += kAtomicBytes;
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
  while (n_.receives_posted < plan_.count && n_.receives_posted - n_.received < receives) {
    if (now < next_receive_) {
      pair_.wake_at(next_receive_);
      return;
    }
    const verbs::Sge sge{(n_.receives_posted % receives) * receive_slot(),
                         static_cast<std::uint32_t>(receive_slot()), receive_.stag};
    if (!post_receive({n_.receives_posted, {&sge, 1}}, now)) return;
    ++n_.receives_posted;
    if (plan_.receives_gap > Duration()) next_receive_ = now + plan_.receives_gap;
  }
}

bool Traffic::post_receive(const verbs::RecvWr& wr, Instant now) {
  if (shared_.empty()) return pair_.right().post_receive(right_, wr, now);
  return shared_[wr.wr_id % shared_.size()]->post(wr) == verbs::SharedReceiveQueue::Post::Ok;
}

void Traffic::post_work(Instant now) {
  if (left_.state == verbs::QpState::Sqe) return;
  while (n_.posted < plan_.count && n_.posted - n_.completed < plan_.depth) {
    if (now < next_post_) {
      pair_.wake_at(next_post_);
      return;
    }
    verbs::Sge sge;
    sge.addr = slot_of(n_.posted) * largest_;
    sge.length = size_of(n_.posted);
    sge.lkey = reads() || plan_.op == Op::Atomic ? sink_.stag : source_.stag;
    const verbs::SendWr wr = request(&sge);
    if (pair_.left().post_send(left_, wr, now) != verbs::Post::Ok) return;
    ++n_.posted;
    next_post_ = now + plan_.gap;
  }
}

verbs::SendWr Traffic::request(const verbs::Sge* sge) const {
  verbs::SendWr wr;
  wr.wr_id = n_.posted;
  wr.flags = verbs::kSignaled;
  wr.sges = {sge, 1};
  wr.remote_address = sge->addr;
  if (!shared_.empty()) wr.remote_srq = shared_[n_.posted % shared_.size()]->xrc.number;
  switch (plan_.op) {
    case Op::Write:
      wr.op = verbs::WrOp::Write;
      wr.rkey = sink_.stag;
      break;
    case Op::Read:
      wr.op = verbs::WrOp::Read;
      wr.rkey = source_.stag;
      break;
    case Op::Atomic:
      wr.op = verbs::WrOp::FetchAdd;
      wr.rkey = source_.stag;
      wr.remote_address = 0;
      wr.atomic.data = 1;
      break;
    case Op::Send:
      wr.op = unreliable() ? verbs::WrOp::SendImm : verbs::WrOp::Send;
      wr.remote_address = 0;
      wr.immediate = n_.posted;
      if (head() != 0) ib::set_destination(&wr, {handle_, right_.number(), kSimQkey});
      break;
  }
  return wr;
}

bool Traffic::complete() const {
  if (n_.completed != plan_.count) return false;
  if (unreliable()) {
    if (pair_.now() >= last_delivery_ + kQuiet) return true;
    pair_.wake_at(last_delivery_ + kQuiet);
    return delivered() == plan_.count;
  }
  if (delivered() != plan_.count) return false;
  // Over RoCE a request completes only when it is acknowledged.
  return roce_.on || (ddp::stream_of(left_).sender.idle() && ddp::stream_of(right_).sender.idle());
}

void Traffic::check_memory() {
  if (plan_.op == Op::Send) return;
  if (plan_.op == Op::Atomic) {
    std::uint64_t counter = 0;
    std::copy_n(source_.bytes.data(), kAtomicBytes, reinterpret_cast<std::uint8_t*>(&counter));
    if (counter < n_.completed || counter > n_.posted) n_.wrong += kAtomicBytes;
    return;
  }
  for (std::uint64_t slot = 0; slot < slots_; ++slot) {
    std::uint64_t length = 0;  // the longest message that has used this slot
    const std::uint64_t rounds = plan_.sizes.size();
    for (std::uint64_t m = slot, n = 0; m < n_.completed && n < rounds; m += slots_, ++n) {
      length = std::max<std::uint64_t>(length, size_of(m));
    }
    const std::uint64_t at = slot * largest_;
    for (std::uint64_t i = at; i < at + length; ++i)
      n_.wrong += sink_.bytes[i] != source_.bytes[i] ? 1 : 0;
  }
  for (std::uint64_t i = source_.bytes.size(); i < sink_.bytes.size(); ++i)
    n_.wrong += sink_.bytes[i] != 0 ? 1 : 0;
}

}  // namespace urnic::sim
