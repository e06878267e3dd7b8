// The probe of a READ: it requests one packet if the READ has been partly answered, all of it if
// nothing has arrived, and the rest if nothing follows the response to a probe. A peer that serves
// requests one after the other, like Linux rxe, is not made to send all of it again at each pause.
#include <gmock/gmock.h>

#include <algorithm>
#include <deque>

#include "ib/probe.h"
#include "ib/requester_bench.h"

namespace urnic::ib {
namespace {

using ::testing::ElementsAre;
using verbs::Status;
using verbs::WrOp;

class ReadProbe : public RequesterBench {
 protected:
  ReadProbe() {
    qp.probe = true;
    qp.ack_timeout = 15;  // 134 ms
  }
  Response data_at(Operation o, std::uint32_t psn, std::uint8_t value) {
    return data(o, psn, bytes_of(kPmtu, value));
  }
  // A READ of `packets` packets, the first of which has arrived, and whose probe has been sent.
  SentPacket probe_behind_first(std::uint32_t packets) {
    post(WrOp::Read, packets * kPmtu, 4096);
    leave();
    data_at(Operation::ReadResponseFirst, 100, 1);
    pass_until_due();
    const auto probe = leave();
    EXPECT_EQ(psns(probe), std::vector<std::uint32_t>{101});
    return probe.empty() ? SentPacket{} : probe[0];
  }
};

// proves: S-5
TEST_F(ReadProbe, RequestsOnePacketOfAPartlyAnsweredRead) {
  const SentPacket probe = probe_behind_first(3);
  EXPECT_EQ(probe.h.reth.length, kPmtu);
  EXPECT_EQ(probe.h.reth.address, 0x10000u + kPmtu);
  data_at(Operation::ReadResponseMiddle, 101, 2);  // the first response was only slow
  EXPECT_EQ(data_at(Operation::ReadResponseOnly, 101, 2), Response::Duplicate);
  data_at(Operation::ReadResponseLast, 102, 3);
  EXPECT_THAT(done(), ElementsAre(1));
  EXPECT_EQ(memory[4096 + 2 * kPmtu], 3);
}

// Part of a READ that the peer has never seen would be a new request there, and counted.
// proves: S-5
TEST_F(ReadProbe, RequestsTheWholeReadWhenNothingHasArrived) {
  post(WrOp::Read, 3 * kPmtu, 4096);
  leave();
  pass_until_due();
  const auto probe = leave();
  ASSERT_THAT(psns(probe), ElementsAre(100));
  EXPECT_EQ(probe[0].h.reth.length, 3 * kPmtu);
  EXPECT_EQ(data_at(Operation::ReadResponseOnly, 100, 1), Response::Bad);
}

// proves: S-5
TEST_F(ReadProbe, ItsResponseIsTheNextPacketOfTheRead) {
  probe_behind_first(4);
  EXPECT_EQ(data_at(Operation::ReadResponseOnly, 101, 2), Response::ReadData);
  EXPECT_EQ(data_at(Operation::ReadResponseMiddle, 102, 3), Response::ReadData);
  EXPECT_EQ(data_at(Operation::ReadResponseLast, 103, 4), Response::ReadData);
  EXPECT_THAT(done(), ElementsAre(1));
  EXPECT_EQ(memory[4096 + kPmtu], 2);
  EXPECT_EQ(memory[4096 + 3 * kPmtu], 4);
}

// proves: S-5
TEST_F(ReadProbe, ItsResponseMayBeALast) {
  probe_behind_first(4);
  EXPECT_EQ(data_at(Operation::ReadResponseLast, 101, 2), Response::ReadData);
  EXPECT_EQ(data_at(Operation::ReadResponseMiddle, 102, 3), Response::ReadData);
}

// A peer that has not got further answers with the rest, from there on.
// proves: S-5
TEST_F(ReadProbe, ItsResponseMayBeginTheRest) {
  probe_behind_first(4);
  EXPECT_EQ(data_at(Operation::ReadResponseFirst, 101, 2), Response::ReadData);
  EXPECT_EQ(data_at(Operation::ReadResponseMiddle, 102, 3), Response::ReadData);
}

// proves: S-5
TEST_F(ReadProbe, ALastAtAnotherPsnFailsTheRead) {
  probe_behind_first(4);
  EXPECT_EQ(data_at(Operation::ReadResponseMiddle, 101, 2), Response::ReadData);
  EXPECT_EQ(data_at(Operation::ReadResponseLast, 102, 3), Response::Bad);
  EXPECT_THAT(statuses(), ElementsAre(Status::BadResponse));
}

TEST_F(ReadProbe, AnOnlyAtAPsnOfTheNextReadFailsIt) {
  probe_behind_first(2);
  post(WrOp::Read, 3 * kPmtu, 8192);
  leave();
  EXPECT_EQ(data_at(Operation::ReadResponseOnly, 101, 2), Response::ReadData);
  EXPECT_EQ(data_at(Operation::ReadResponseOnly, 102, 3), Response::Bad);
}

// proves: S-5
TEST_F(ReadProbe, SilenceAfterItsResponseRequestsTheRest) {
  probe_behind_first(6);
  post(WrOp::Send, 1);
  leave();
  data_at(Operation::ReadResponseOnly, 101, 2);
  EXPECT_TRUE(leave().empty()) << "the rest may be on its way";
  EXPECT_EQ(r().due(), now + Duration::ms(1));
  pass_until_due();
  const auto rest = leave();
  ASSERT_THAT(psns(rest), ElementsAre(102, 106)) << "with what stands behind it";
  EXPECT_EQ(rest[0].h.reth.length, 4 * kPmtu);
  EXPECT_EQ(rest[0].h.reth.address, 0x10000u + 2 * kPmtu);
  EXPECT_EQ(r().counters().probe_losses, 1u);
  EXPECT_EQ(r().state().retries.retries_left(), 7) << "at no cost";
  // The rest does not arrive at once either: a probe for one packet again.
  pass_until_due();
  const auto probe = leave();
  ASSERT_THAT(psns(probe), ElementsAre(102));
  EXPECT_EQ(probe[0].h.reth.length, kPmtu);
}

// proves: S-5
TEST_F(ReadProbe, IfTheStreamContinuedTheNextProbeRequestsOnePacketAgain) {
  probe_behind_first(6);
  data_at(Operation::ReadResponseOnly, 101, 2);
  data_at(Operation::ReadResponseMiddle, 102, 3);
  pass_until_due();
  const auto probe = leave();
  ASSERT_THAT(psns(probe), ElementsAre(103));
  EXPECT_EQ(probe[0].h.reth.length, kPmtu);
}

// A NAK came first: the rest that it made the requester ask for is not requested again.
// proves: S-5
TEST_F(ReadProbe, ARestThatIsAlreadyRequestedIsNotRequestedAgain) {
  probe_behind_first(6);
  data_at(Operation::ReadResponseOnly, 101, 2);
  EXPECT_EQ(data_at(Operation::ReadResponseMiddle, 103, 4), Response::ImpliedNak);
  ASSERT_THAT(psns(leave()), ElementsAre(102));
  pass_until_due();
  const auto probe = leave();
  ASSERT_THAT(psns(probe), ElementsAre(102));
  EXPECT_EQ(probe[0].h.reth.length, kPmtu);
  EXPECT_EQ(r().counters().probe_losses, 0u);
}

// ---- a peer that serves one request to its end after another

class SerialPeer : public ReadProbe {
 protected:
  static constexpr std::uint32_t kPackets = 200;

  // Each response takes 20 us, and sometimes the peer pauses for longer than a probe waits. The
  // wire loses its responses from `lost` up to `and_on`.
  void run_to_end(std::uint32_t lost = 0, std::uint32_t and_on = 0) {
    lost_ = lost;
    and_on_ = and_on;
    for (std::uint32_t tick = 0; tick < 20'000 && finished_ == 0; ++tick) {
      for (const SentPacket& p : leave()) queue_.push_back({p.h.bth.psn, p.h.reth.length});
      const bool pause = served_ % 16 == 15 && paused_ < 150;
      paused_ = pause ? paused_ + 1 : 0;
      if (!pause) serve();
      pass(Duration::us(20));
      finished_ += done().size();
      ASSERT_FALSE(r().failed());
    }
    ASSERT_EQ(finished_, 1u);
    while (!queue_.empty()) serve();  // repeated requests first
    for (std::uint32_t k = 0; k < kPackets; ++k) {
      ASSERT_EQ(memory[k * kPmtu], static_cast<std::uint8_t>(k + 1)) << k;
    }
  }

  std::uint32_t served_ = 0;

 private:
  struct Asked {
    Psn psn;
    std::uint32_t length;
    std::uint32_t sent = 0;
  };
  void serve() {
    if (queue_.empty()) return;
    Asked& a = queue_.front();
    const std::uint32_t left = a.length - a.sent * kPmtu;
    const Psn psn = a.psn + a.sent;
    const std::uint32_t k = psn - Psn(100);
    // Like rxe: in the middle of the READ there is neither a First nor an Only.
    Operation o = Operation::ReadResponseMiddle;
    if (k == 0) o = Operation::ReadResponseFirst;
    if (left <= kPmtu) o = Operation::ReadResponseLast;
    ++a.sent;
    ++served_;
    if (left <= kPmtu) queue_.pop_front();
    if (served_ > lost_ && served_ <= and_on_) return;
    data_at(o, psn.value(), static_cast<std::uint8_t>(k + 1));
  }

  std::deque<Asked> queue_;
  std::uint32_t paused_ = 0, lost_ = 0, and_on_ = 0;
  std::size_t finished_ = 0;
};

// proves: S-5
TEST_F(SerialPeer, EachPauseCostsOnePacket) {
  post(WrOp::Read, kPackets * kPmtu);
  run_to_end();
  const std::uint64_t probes = r().counters().probes;
  EXPECT_GE(probes, 10u) << "it was silent for longer than a probe waits";
  EXPECT_LE(served_, kPackets + probes);
  EXPECT_EQ(r().counters().repeated, probes);
}

// A loss costs the stream in progress and the rest, no more.
// proves: S-5
TEST_F(SerialPeer, ALossIsRequestedOnce) {
  post(WrOp::Read, kPackets * kPmtu);
  run_to_end(50, 51);
  EXPECT_LE(served_, 2 * kPackets - 50 + r().counters().probes);
  EXPECT_EQ(r().counters().probe_losses, 0u) << "its NAK is enough";
  EXPECT_EQ(r().counters().timeouts, 0u);
}

// proves: S-5
TEST_F(SerialPeer, ALossAtTheEndIsRequestedAfterOneProbe) {
  post(WrOp::Read, kPackets * kPmtu);
  run_to_end(100, kPackets + 5);
  EXPECT_EQ(r().counters().probe_losses, 1u);
  EXPECT_LE(served_, 100 + kPackets + r().counters().probes);
  EXPECT_EQ(r().counters().timeouts, 0u);
}

}  // namespace
}  // namespace urnic::ib
