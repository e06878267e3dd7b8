// The untouched connection: whatever happens to the connections beside it, its data arrives once,
// in order and intact. Each message is a Write into a slot of the peer's memory and a Send that
// announces it.
#pragma once

#include <array>

#include "tests/fuzz/host.h"

namespace urnic::fuzz {

// One direction of it. It owns the first pair and the first region of either host.
class SparedStream {
 public:
  SparedStream(Host& from, Host& to) : from_(from), to_(to) {}

  // Posts receives before the first message.
  void prepare(Instant now) {
    while (receives_ < kSlots) post_receive(now);
  }
  // Sends one more message if slots are free.
  void say(Instant now) {
    if (sent_ - heard_ >= kSlots / 2) return;
    Region& r = from_.regions[0];
    const std::uint64_t slot = sent_ % kSlots;
    std::uint8_t* data = r.bytes.get() + slot * kSlot;
    const std::uint32_t length = length_of(sent_);
    for (std::uint32_t i = 0; i < length; ++i) data[i] = byte(sent_, i);
    const verbs::Sge sge{r.to() + slot * kSlot, length, r.stag};
    verbs::SendWr wr;
    wr.wr_id = sent_;
    wr.sges = {&sge, 1};
    wr.op = verbs::WrOp::Write;
    wr.rkey = to_.regions[0].stag;
    wr.remote_address = to_.regions[0].to() + kArea + slot * kSlot;
    from_.post_send(*from_.pairs[0], wr, now);
    wr.op = verbs::WrOp::Send;
    wr.flags = verbs::kSignaled;
    from_.post_send(*from_.pairs[0], wr, now);
    ++sent_;
  }
  // Received messages must be those sent, in order.
  void listen(Instant now) {
    verbs::Cqe done[8];
    Pair& p = *to_.pairs[0];
    for (int n; (n = p.receive->poll(done)) > 0;) {
      for (int i = 0; i < n; ++i) {
        take(done[i].completion);
        post_receive(now);
      }
    }
    while ((from_.pairs[0]->send->poll(done)) > 0) {
    }
  }
  bool all_heard() const { return heard_ == sent_; }

  // The layout of a region: first the source of outgoing messages, then the receives, then the
  // destination of incoming Writes.
  static constexpr std::uint32_t kSlots = 16, kSlot = 3000, kArea = kSlots * kSlot;
  static constexpr std::uint32_t kRegion = 3 * kArea;

 private:
  static std::uint32_t length_of(std::uint64_t n) {
    return 1 + static_cast<std::uint32_t>(n * 977 % kSlot);
  }
  std::uint8_t byte(std::uint64_t n, std::uint32_t i) const {
    return static_cast<std::uint8_t>(n * 31 + i * 7 + (i >> 8) + (&from_ < &to_ ? 1 : 0));
  }
  void post_receive(Instant now) {
    Region& r = to_.regions[0];
    const verbs::Sge sge{r.to() + 2 * kArea + receives_ % kSlots * kSlot, kSlot, r.stag};
    to_.post_receive(*to_.pairs[0], {receives_, {&sge, 1}}, now);
    ++receives_;
  }
  void take(const verbs::Completion& c) {
    require(c.status == verbs::Status::Success, "a message of the spared connection was flushed");
    require(heard_ < sent_, "a message arrived that was never sent");
    require(c.wr_id == heard_, "a receive completed out of turn");
    require(c.byte_len == length_of(heard_), "a message arrived with another length");
    const std::uint8_t* r = to_.regions[0].bytes.get();
    const std::uint64_t slot = heard_ % kSlots * kSlot;
    for (std::uint32_t i = 0; i < c.byte_len; ++i) {
      require(r[2 * kArea + slot + i] == byte(heard_, i), "a Send arrived with other bytes");
      require(r[kArea + slot + i] == byte(heard_, i), "a Write arrived with other bytes");
    }
    ++heard_;
  }

  Host &from_, &to_;
  std::uint64_t sent_ = 0, heard_ = 0, receives_ = 0;
};

}  // namespace urnic::fuzz
