// The effect of the receiver's immediate duplicate ACK (section 7) on a sender without SACK.
// Segments are delivered one at a time, and the test counts the arrivals until the sender
// retransmits.
#include "tcp/loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/tcp/host.h"

namespace urnic::tcp::test {
namespace {

constexpr std::uint32_t kMss = 1000;

struct Pair {
  Host sender, receiver;
  Instant now = Instant::from_ns(1000000000);
  std::deque<Bytes> wire;  // from the sender, not delivered yet
  std::set<std::uint32_t> seen;
  std::vector<std::uint32_t> retransmitted;  // sequence numbers, in order

  explicit Pair(bool immediate) {
    for (Host* h : {&sender, &receiver}) {
      h->config.sack = h->config.timestamps = false;
      h->config.mss = kMss;
      h->config.initial_window = 20 * kMss;
      h->config.limited_transmit = false;
    }
    sender.stream = receiver.peer_stream = 0;
    receiver.stream = sender.peer_stream = 1;
    std::swap(receiver.local_port, receiver.remote_port);
    receiver.listening = true;
    receiver.immediate_dup_ack = immediate;
    sender.connect(now);
    while (take(), !wire.empty()) deliver();
    // A SYN's window is not scaled. One more segment is sent, so that the next ACK is not a window
    // update.
    sender.write(kMss, now);
    while (take(), !wire.empty()) deliver();
    first_ = sender.iss.value() + 1 + kMss;
  }
  // Collects what the sender has sent, and records retransmissions.
  void take() {
    for (; !sender.out.empty(); sender.out.pop_front()) {
      const Bytes& b = sender.out.front().bytes;
      if (b.size() > 60) {
        const std::uint32_t seq = load_be32(b.data() + 4);
        if (!seen.insert(seq).second) retransmitted.push_back(seq);
      }
      wire.push_back(b);
    }
  }
  // Delivers the oldest segment, and the receiver's replies to it.
  void deliver() {
    const Bytes b = wire.front();
    wire.pop_front();
    receiver.input(b, now);
    for (; !receiver.out.empty(); receiver.out.pop_front()) {
      sender.input(receiver.out.front().bytes, now);
    }
    take();
  }
  // The receiver's ULP drops each of these segments once; their numbers count from the next
  // segment.
  void drop(std::set<std::uint32_t> which) {
    receiver.ulp_drops = [this, which](const Segment& s) {
      const std::uint32_t index = index_of(s.seq.value());
      return !s.payload.empty() && which.contains(index) && dropped_.insert(index).second;
    };
  }
  std::uint32_t index_of(std::uint32_t seq) const { return (seq - first_) / kMss; }

 private:
  std::uint32_t first_ = 0;
  std::set<std::uint32_t> dropped_;
};

// Returns the arrivals until the first retransmission, when `of` segments are sent and the first
// one is dropped.
int arrivals_until_retransmission(bool immediate, std::uint32_t of) {
  Pair p(immediate);
  p.drop({0});
  p.sender.write(std::uint64_t{of} * kMss, p.now);
  p.take();
  for (int arrivals = 1; !p.wire.empty(); ++arrivals) {
    p.deliver();
    if (!p.retransmitted.empty()) {
      EXPECT_EQ(p.index_of(p.retransmitted[0]), 0u);
      return arrivals;
    }
  }
  return -1;
}

// A, B, C, D; A is dropped by its CRC (the time line of 7.5).
// proves: R-66
TEST(Loss, ADuplicateAckWithTheDropStartsFastRetransmitOneArrivalEarlier) {
  EXPECT_EQ(arrivals_until_retransmission(true, 4), 3) << "A, B, C";
  EXPECT_EQ(arrivals_until_retransmission(false, 4), 4) << "D as well";
  // With two segments after A, it decides between fast retransmit and the timer.
  EXPECT_EQ(arrivals_until_retransmission(true, 3), 3);
  EXPECT_EQ(arrivals_until_retransmission(false, 3), -1);
}

// A Reno sender leaves recovery with the ACK of A's retransmission, and needs three more duplicates
// for B. NewReno takes that partial ACK as the loss of B.
// proves: R-66
TEST(Loss, ANewRenoSenderRetransmitsTheSecondDropNoLater) {
  Pair p(true);
  p.drop({0, 2});
  p.sender.write(6 * kMss, p.now);
  p.take();
  while (!p.wire.empty() && p.retransmitted.size() < 2) {
    const bool was_first = p.retransmitted.size() == 1;
    const bool retransmission = was_first && p.index_of(load_be32(p.wire.front().data() + 4)) == 0;
    p.deliver();
    if (retransmission) break;
  }
  ASSERT_EQ(p.retransmitted.size(), 2u) << "with the partial ACK, without another arrival";
  EXPECT_EQ(p.index_of(p.retransmitted[1]), 2u);
  while (!p.wire.empty()) p.deliver();
  EXPECT_EQ(p.receiver.delivered, 7u * kMss);
  EXPECT_TRUE(p.receiver.content_ok);
}

}  // namespace
}  // namespace urnic::tcp::test
