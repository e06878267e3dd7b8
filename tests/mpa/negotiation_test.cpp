// Tests the negotiation of src/mpa/negotiation.cpp.
#include <gtest/gtest.h>

#include <string>

#include "base/rng.h"
#include "mpa/frames.h"
#include "mpa/startup.h"

namespace urnic::mpa {
namespace {

// ---- negotiation: Request ----------------------------------------------------------------------

// proves: E-35
TEST(Request, DefaultIsTheSubsetEveryPeerAccepts) {
  EXPECT_EQ(to_hex(emit(make_request(depths(16, 16), {}))), to_hex(frame("rev2-request")));
}

TEST(Request, RevisionOneIsPlainRfc5044) {
  StartupOptions o;
  o.revision = 1;
  EXPECT_EQ(to_hex(emit(make_request(o, {}))), to_hex(frame("rev1-request")));
}

TEST(Request, CarriesTheUlpsPrivateDataBehindTheEnhancedWord) {
  const Bytes nvme = frame("nvme-request");
  EXPECT_EQ(to_hex(emit(make_request(depths(32, 1), ByteView(nvme).subspan(24)))), to_hex(nvme));
}

TEST(Request, ReadRtrNeedsASlotOfItsOwn_RFC6581_9_2) {
  EXPECT_EQ(make_request(depths(32, 0), {}).ord, 1);
  StartupOptions o = depths(32, 0);
  o.rtr = kRtrWrite;
  EXPECT_EQ(make_request(o, {}).ord, 0);
}

TEST(Request, WithoutAnRtrKindNoPeerToPeerIsOffered) {
  StartupOptions o;
  o.rtr = kRtrNone;
  EXPECT_FALSE(make_request(o, {}).peer_to_peer);
  o.rtr = kRtrWrite;
  o.peer_to_peer = false;
  const StartupFrame f = make_request(o, {});
  EXPECT_FALSE(f.peer_to_peer);
  EXPECT_EQ(f.rtr, kRtrNone);
}

TEST(Request, DepthsStayWithinTheLimitAndNeverEqualTheNoNegotiationValue) {
  StartupOptions o = depths(1000, 2000);
  EXPECT_EQ(make_request(o, {}).ird, 128);
  EXPECT_EQ(make_request(o, {}).ord, 128);
  o.ird = 0x8000;
  o.max_ird = 0xffff;
  EXPECT_EQ(make_request(o, {}).ird, 0x3ffe);
  o.ird = kNoNegotiation;
  EXPECT_EQ(make_request(o, {}).ird, kNoNegotiation);
}

// ---- negotiation: Reply ------------------------------------------------------------------------

TEST(Reply, AnswersTheGoldenRequests) {
  auto answer = [](const char* request, const StartupOptions& o, ByteView data) {
    return to_hex(emit(answer_request(parsed(frame(request), false), o, data).reply));
  };
  EXPECT_EQ(answer("rev1-request", {}, {}), to_hex(frame("rev1-reply")));
  EXPECT_EQ(answer("rev2-request", depths(16, 16), {}), to_hex(frame("rev2-reply-write")));
  StartupOptions read_only = depths(1, 32);
  read_only.rtr = kRtrRead;
  const Bytes nvme = frame("nvme-reply-read");
  EXPECT_EQ(answer("nvme-request", read_only, ByteView(nvme).subspan(24)), to_hex(nvme));
}

// proves: E-2
TEST(Reply, CrcIsOnUnlessBothEndsWantItOff) {
  for (const bool theirs : {false, true}) {
    for (const bool ours : {false, true}) {
      StartupOptions o;
      o.crc = ours;
      StartupFrame request = parsed(frame("rev2-request"), false);
      request.crc = theirs;
      const Answer a = answer_request(request, o, {});
      EXPECT_EQ(a.agreement.crc, theirs || ours);
      EXPECT_EQ(a.reply.crc, theirs || ours);
      // The initiator gets the same result, no matter which end wanted it.
      StartupFrame reply = a.reply;
      reply.crc = theirs;
      const StartupFrame sent = make_request(o, {});
      const auto read = read_reply(sent, reply, o);
      ASSERT_TRUE(read.ok());
      EXPECT_EQ(read->crc, ours || theirs);
    }
  }
}

// proves: E-2
TEST(Reply, SiwDefaultRequestIsAnsweredWithCrcAndNoRtr) {
  const Answer a = answer_request(parsed(frame("siw-request"), false), depths(16, 16), {});
  EXPECT_EQ(a.refusal, Refusal::None);
  EXPECT_EQ(to_hex(emit(a.reply)),
            to_hex(test::from_hex("4d504120494420526570204672616d65 50 02 0004 00100010")));
  EXPECT_TRUE(a.agreement.crc);
  EXPECT_EQ(a.agreement.rtr, kRtrNone);
}

// proves: R-80
TEST(Reply, EachEndSendsMarkersIfTheOtherAsksForThem_RFC5044_7_1) {
  for (const bool theirs : {false, true}) {
    for (const bool ours : {false, true}) {
      StartupOptions initiator, responder;
      initiator.policy = theirs ? Policy::Markers : Policy::NoMarkers;
      responder.policy = ours ? Policy::Markers : Policy::NoMarkers;
      const StartupFrame request = make_request(initiator, {});
      EXPECT_EQ(request.markers, theirs);
      const Answer a = answer_request(request, responder, {});
      ASSERT_EQ(a.refusal, Refusal::None);
      EXPECT_EQ(a.reply.markers, ours);
      EXPECT_EQ(a.agreement.receive, responder.policy);
      EXPECT_EQ(a.agreement.send, initiator.policy);
      const auto b = read_reply(request, parsed(emit(a.reply), true), initiator);
      ASSERT_TRUE(b.ok());
      EXPECT_EQ(b->receive, initiator.policy);
      EXPECT_EQ(b->send, responder.policy);
    }
  }
}

TEST(Reply, RevisionIsThatOfTheRequest_RFC6581_10) {
  for (const std::uint8_t revision : {0, 1, 2}) {
    StartupFrame request;
    request.revision = revision;
    const Answer a = answer_request(request, {}, {});
    EXPECT_EQ(a.refusal, Refusal::None);
    EXPECT_EQ(a.reply.revision, revision);
    EXPECT_FALSE(a.reply.enhanced);
    EXPECT_EQ(emit(a.reply).size(), kFrameHeader);
    EXPECT_FALSE(a.agreement.enhanced);
  }
}

TEST(Reply, RevisionOneOnlyResponderClosesOnRevisionTwo_RFC6581_10) {
  StartupOptions o;
  o.revision = 1;
  const Answer a = answer_request(parsed(frame("rev2-request"), false), o, {});
  EXPECT_EQ(a.refusal, Refusal::NotEnhanced);
  EXPECT_FALSE(a.send_reply);
}

TEST(Reply, ExactlyOneRtrKindWriteFirst) {
  const StartupFrame base = parsed(frame("rev2-request"), false);
  const auto chosen = [&](std::uint8_t offered, std::uint8_t taken) {
    StartupFrame request = base;
    request.rtr = offered;
    StartupOptions o;
    o.rtr = taken;
    const Answer a = answer_request(request, o, {});
    EXPECT_TRUE(a.reply.peer_to_peer);
    EXPECT_EQ(a.reply.rtr, a.agreement.rtr);
    return a.reply.rtr;
  };
  EXPECT_EQ(chosen(kRtrWrite | kRtrRead, kRtrWrite | kRtrRead), kRtrWrite);
  EXPECT_EQ(chosen(kRtrRead, kRtrWrite | kRtrRead), kRtrRead);
  EXPECT_EQ(chosen(kRtrWrite | kRtrRead, kRtrRead), kRtrRead);
  EXPECT_EQ(chosen(kRtrSend | kRtrRead, kRtrSend), kRtrSend);
  // If none matches, A=1 still requires a kind; the initiator ends the connection with 2/0/7.
  EXPECT_EQ(chosen(kRtrSend, kRtrWrite | kRtrRead), kRtrWrite);
  EXPECT_EQ(chosen(kRtrNone, kRtrWrite | kRtrRead), kRtrWrite);
}

TEST(Reply, DepthsFollowRfc6581_9_1) {
  struct Case {
    std::uint16_t their_ird, their_ord, our_ird, our_ord, reply_ird, reply_ord;
  };
  for (const Case& c : {
           Case{16, 16, 16, 16, 16, 16},     // as requested
           Case{4, 64, 16, 16, 64, 4},       // raised to the peer's ORD; ORD limited to the peer's
                                             // IRD
           Case{200, 200, 32, 32, 128, 32},  // only up to the limit
           Case{0, 0, 32, 32, 32, 0},
       }) {
    StartupFrame request = parsed(frame("rev2-request"), false);
    request.ird = c.their_ird;
    request.ord = c.their_ord;
    const Answer a = answer_request(request, depths(c.our_ird, c.our_ord), {});
    EXPECT_EQ(a.reply.ird, c.reply_ird);
    EXPECT_EQ(a.reply.ord, c.reply_ord);
    EXPECT_EQ(a.agreement.ird, c.reply_ird);
    EXPECT_EQ(a.agreement.ord, c.reply_ord);
    EXPECT_LE(a.reply.ord, c.their_ird);
  }
}

TEST(Reply, NoNegotiationIsAnsweredInKindAndLeavesLocalValues_RFC6581_9_1) {
  StartupFrame request = parsed(frame("rev2-request"), false);
  request.ird = request.ord = kNoNegotiation;  // equal: both mean "none"
  const Answer a = answer_request(request, depths(7, 9), {});
  EXPECT_EQ(a.reply.ird, kNoNegotiation);
  EXPECT_EQ(a.reply.ord, kNoNegotiation);
  EXPECT_EQ(a.agreement.ird, 7);
  EXPECT_EQ(a.agreement.ord, 9);
}

TEST(Reply, ReadRtrRaisesIrdToOne) {
  StartupFrame request = parsed(frame("rev2-request"), false);
  request.rtr = kRtrRead;
  request.ord = 0;
  const Answer a = answer_request(request, depths(0, 0), {});
  EXPECT_EQ(a.reply.rtr, kRtrRead);
  EXPECT_EQ(a.reply.ird, 1);
  EXPECT_EQ(a.agreement.ird, 1);
}

TEST(Reply, UnenhancedResponderHasASlotForAnRtrRead) {
  EXPECT_EQ(answer_request(parsed(frame("rev1-request"), false), depths(0, 0), {}).agreement.ird,
            1);
}

TEST(Reply, RejectKeepsTheFormOfTheRequest) {
  const StartupFrame request = parsed(frame("nvme-request"), false);
  const Bytes status = test::from_hex("0000 0100");
  const StartupFrame reject = parsed(emit(make_reject(request, status)), true);
  EXPECT_TRUE(reject.reject);
  EXPECT_EQ(reject.revision, 2);
  EXPECT_TRUE(reject.enhanced);
  EXPECT_TRUE(reject.peer_to_peer);
  EXPECT_EQ(reject.rtr, kRtrWrite);
  EXPECT_EQ(to_hex(reject.private_view()), "00000100");
}

// ---- negotiation: the initiator reads the Reply -----------------------------------------------

struct InitiatorTest : testing::Test {
  StartupOptions options = depths(16, 16);
  StartupFrame request = make_request(options, {});
  StartupFrame reply = answer_request(request, options, {}).reply;

  Refusal refused() {
    const auto a = read_reply(request, reply, options);
    return a.ok() ? Refusal::None : a.error();
  }
};

TEST_F(InitiatorTest, BothEndsAgree) {
  const Agreement responder = answer_request(request, options, {}).agreement;
  const auto a = read_reply(request, reply, options);
  ASSERT_TRUE(a.ok());
  EXPECT_EQ(a->crc, responder.crc);
  EXPECT_EQ(a->rtr, responder.rtr);
  EXPECT_EQ(a->enhanced, responder.enhanced);
  EXPECT_EQ(a->revision, responder.revision);
  EXPECT_LE(a->ord, responder.ird);
  EXPECT_GE(a->ird, responder.ord);
}

TEST_F(InitiatorTest, RejectedByThePeersUlp) {
  reply.reject = true;
  EXPECT_EQ(refused(), Refusal::Rejected);
}

// proves: E-35
TEST_F(InitiatorTest, ReplyOfAnotherRevisionOrForm) {
  reply.revision = 1;
  reply.enhanced = false;
  EXPECT_EQ(refused(), Refusal::NotEnhanced);
  reply.revision = 2;
  EXPECT_EQ(refused(), Refusal::NotEnhanced);
  options.revision = 1;
  request = make_request(options, {});
  reply = answer_request(request, options, {}).reply;
  EXPECT_EQ(refused(), Refusal::None);
  reply.revision = 2;
  EXPECT_EQ(refused(), Refusal::NotEnhanced);
}

TEST_F(InitiatorTest, NoMatchingRtr_RFC6581_9_2) {
  reply.rtr = kRtrSend;
  EXPECT_EQ(refused(), Refusal::NoMatchingRtr);
  reply.rtr = kRtrNone;
  EXPECT_EQ(refused(), Refusal::NoMatchingRtr);
  reply.rtr = kRtrWrite;
  reply.peer_to_peer = false;
  EXPECT_EQ(refused(), Refusal::NoMatchingRtr);
}

TEST_F(InitiatorTest, SeveralKindsInTheReplyGiveOneWriteFirst) {
  reply.rtr = kRtrSend | kRtrWrite | kRtrRead;
  EXPECT_EQ(read_reply(request, reply, options)->rtr, kRtrWrite);
  reply.rtr = kRtrRead;
  EXPECT_EQ(read_reply(request, reply, options)->rtr, kRtrRead);
  reply.ird = 0;  // accepts a Read but has no room for one
  EXPECT_EQ(refused(), Refusal::NoMatchingRtr);
}

TEST_F(InitiatorTest, RaisesItsIrdToTheRespondersOrdWithinTheLimit_RFC6581_9_1) {
  reply.ord = 100;
  EXPECT_EQ(read_reply(request, reply, options)->ird, 100);
  reply.ord = 129;
  EXPECT_EQ(refused(), Refusal::InsufficientIrd);
}

TEST_F(InitiatorTest, CutsItsOrdToTheRespondersIrd_RFC6581_9_1) {
  reply.ird = 3;
  EXPECT_EQ(read_reply(request, reply, options)->ord, 3);
  reply.ird = 1000;
  EXPECT_EQ(read_reply(request, reply, options)->ord, 16);
}

TEST_F(InitiatorTest, NoNegotiationLeavesLocalValues) {
  reply.ird = reply.ord = kNoNegotiation;  // equal: both mean "none"
  const auto a = read_reply(request, reply, options);
  ASSERT_TRUE(a.ok());
  EXPECT_EQ(a->ird, 16);
  EXPECT_EQ(a->ord, 16);
}

TEST_F(InitiatorTest, UnenhancedReplyLeavesLocalValues) {
  options.revision = 1;
  request = make_request(options, {});
  reply = answer_request(request, options, {}).reply;
  const auto a = read_reply(request, reply, options);
  ASSERT_TRUE(a.ok());
  EXPECT_EQ(a->ird, 16);
  EXPECT_EQ(a->ord, 16);
  EXPECT_EQ(a->rtr, kRtrNone);
  EXPECT_FALSE(a->enhanced);
}

// The agreements that two ends compute separately match.
TEST(Negotiation, TwoEndsAlwaysFitTogether) {
  for (std::uint64_t seed = 1; seed <= 20000; ++seed) {
    Rng rng(seed);
    const auto options = [&rng] {
      StartupOptions o;
      o.crc = rng.chance(0.5);
      o.revision = rng.chance(0.8) ? 2 : 1;
      o.peer_to_peer = rng.chance(0.7);
      o.rtr = static_cast<std::uint8_t>(rng.below(8));
      o.max_ird = static_cast<std::uint16_t>(rng.below(200));
      o.max_ord = static_cast<std::uint16_t>(rng.below(200));
      o.ird = rng.chance(0.1) ? kNoNegotiation : static_cast<std::uint16_t>(rng.below(200));
      o.ord = rng.chance(0.1) ? kNoNegotiation : static_cast<std::uint16_t>(rng.below(200));
      return o;
    };
    const StartupOptions us = options(), them = options();
    const StartupFrame request = make_request(us, {});
    const Answer answer = answer_request(parsed(emit(request), false), them, {});
    if (!answer.send_reply) continue;
    const auto a = read_reply(request, parsed(emit(answer.reply), true), us);
    if (!a.ok()) {
      ASSERT_TRUE(a.error() == Refusal::NoMatchingRtr || a.error() == Refusal::InsufficientIrd)
          << "seed " << seed;
      continue;
    }
    const Agreement& b = answer.agreement;
    ASSERT_EQ(a->crc, b.crc) << "seed " << seed;
    ASSERT_EQ(a->revision, b.revision) << "seed " << seed;
    ASSERT_EQ(a->enhanced, b.enhanced) << "seed " << seed;
    ASSERT_EQ(a->rtr, b.rtr) << "seed " << seed;
    if (!a->enhanced) continue;
    if (us.ord != kNoNegotiation) {
      ASSERT_LE(a->ord, b.ird) << "seed " << seed;
    }
    if (us.ird != kNoNegotiation) {
      ASSERT_LE(b.ord, a->ird) << "seed " << seed;
    }
    if (a->rtr == kRtrRead) {
      ASSERT_GE(a->ord, 1) << "seed " << seed;
      ASSERT_GE(b.ird, 1) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace urnic::mpa
