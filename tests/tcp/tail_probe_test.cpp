// A tail loss probe that is due while the port has no room (RFC 8985 7.2, 7.3): whether it is sent
// later, and the data written after it.
#include <gtest/gtest.h>

#include "tests/tcp/host.h"

namespace urnic::tcp::test {
namespace {

constexpr std::uint32_t kMss = 1000;

// One segment is in flight and its probe is due, but the port was full at that time: the timer has
// expired and nothing was sent.
struct DueProbe : testing::Test {
  Host sender, receiver;
  Instant now = Instant::from_ns(1000000000);

  DueProbe() {
    for (Host* h : {&sender, &receiver}) {
      h->config.mss = kMss;
      h->config.timestamps = false;  // so that this many bytes are one segment
    }
    sender.stream = receiver.peer_stream = 0;
    receiver.stream = sender.peer_stream = 1;
    std::swap(receiver.local_port, receiver.remote_port);
    receiver.listening = true;
    sender.connect(now);
    exchange();
    sender.write(4 * kMss, now);  // the round trip is measured
    exchange();
    sender.write(kMss, now);
    in_flight = sender.out.front().bytes;
    sender.out.clear();
    now = sender.deadline();
    on_deadline(sender.tcb, now);
  }
  void exchange() {
    for (int i = 0; i < 100 && !(sender.out.empty() && receiver.out.empty()); ++i) {
      now = now + Duration::us(100);
      for (; !sender.out.empty(); sender.out.pop_front()) {
        receiver.input(sender.out.front().bytes, now);
      }
      answer_while_full();
      sender.poll(now);
    }
  }
  // Delivers the receiver's segments while there is no room for replies.
  void answer_while_full() {
    for (; !receiver.out.empty(); receiver.out.pop_front()) {
      sender.input(receiver.out.front().bytes, now, 0, false);
    }
  }
  Bytes in_flight;
};

// proves: E-51
TEST_F(DueProbe, AnUnneededProbeDoesNotTakeTheTurnOfNewData) {
  ASSERT_TRUE(sender.tcb.loss.rack.probe_due);
  receiver.input(in_flight, now);
  if (receiver.out.empty()) receiver.run_timers(receiver.deadline());  // the pending ACK
  answer_while_full();
  ASSERT_TRUE(sender.tcb.sent_segments.empty());
  sender.source_end += kMss;
  sender.poll(now);  // there is room now; nothing will request this again
  ASSERT_EQ(sender.out.size(), 1u);
  EXPECT_EQ(sender.out.front().bytes.size(), in_flight.size());
  exchange();
  EXPECT_EQ(receiver.delivered, 6u * kMss);
  EXPECT_TRUE(receiver.content_ok);
}

TEST_F(DueProbe, RFC8985_7_3_ANeededProbeLeavesWhenThereIsRoom) {
  ASSERT_TRUE(sender.tcb.loss.rack.probe_due);
  sender.poll(now);
  ASSERT_EQ(sender.out.size(), 1u);
  EXPECT_EQ(load_be32(sender.out.front().bytes.data() + 4), load_be32(in_flight.data() + 4));
  exchange();
  EXPECT_EQ(receiver.delivered, 5u * kMss);
}

}  // namespace
}  // namespace urnic::tcp::test
