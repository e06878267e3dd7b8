// The negotiation of src/mpa/negotiation.cpp.
#include <gtest/gtest.h>

#include <string>

#include "base/rng.h"
#include "mpa/startup.h"
#include "support/golden.h"

namespace urnic::mpa {
namespace {

using test::Bytes;
using test::golden;
using test::to_hex;

Bytes emit(const StartupFrame& f) {
  Bytes b(kFrameHeader + kMaxPrivateData);
  b.resize(emit_frame(f, b.data()));
  return b;
}

Bytes frame(const std::string& name) {
  return golden("startup.txt", name).bytes;
}

StartupFrame parsed(const Bytes& b, bool reply) {
  auto f = parse_frame(b, reply);
  EXPECT_TRUE(f.ok());
  return f ? *f : StartupFrame{};
}

StartupOptions depths(std::uint16_t ird, std::uint16_t ord) {
  StartupOptions o;
  o.ird = ird;
  o.ord = ord;
  return o;
}

// ---- negotiation: Request ----------------------------------------------------------------------

TEST(Request, DefaultIsTheSubsetEveryPeerAccepts_E35) {
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

TEST(Request, WithoutAKindToOfferThereIsNoPeerToPeer) {
  StartupOptions o;
  o.rtr = kRtrNone;
  EXPECT_FALSE(make_request(o, {}).peer_to_peer);
  o.rtr = kRtrWrite;
  o.peer_to_peer = false;
  const StartupFrame f = make_request(o, {});
  EXPECT_FALSE(f.peer_to_peer);
  EXPECT_EQ(f.rtr, kRtrNone);
}

TEST(Request, DepthsKeepToTheLimitAndNeverMeanNoNegotiationByAccident) {
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

TEST(Reply, CrcIsOnUnlessBothEndsWantItOff_E2) {
  for (const bool theirs : {false, true}) {
    for (const bool ours : {false, true}) {
      StartupOptions o;
      o.crc = ours;
      StartupFrame request = parsed(frame("rev2-request"), false);
      request.crc = theirs;
      const Answer a = answer_request(request, o, {});
      EXPECT_EQ(a.agreement.crc, theirs || ours);
      EXPECT_EQ(a.reply.crc, theirs || ours);
      // And the initiator comes to the same, whoever wanted it.
      StartupFrame reply = a.reply;
      reply.crc = theirs;
      const StartupFrame sent = make_request(o, {});
      const auto read = read_reply(sent, reply, o);
      ASSERT_TRUE(read.ok());
      EXPECT_EQ(read->crc, ours || theirs);
    }
  }
}

TEST(Reply, SiwDefaultRequestIsAnsweredWithCrcAndNoRtr_E2) {
  const Answer a = answer_request(parsed(frame("siw-request"), false), depths(16, 16), {});
  EXPECT_EQ(a.refusal, Refusal::None);
  EXPECT_EQ(to_hex(emit(a.reply)),
            to_hex(test::from_hex("4d504120494420526570204672616d65 50 02 0004 00100010")));
  EXPECT_TRUE(a.agreement.crc);
  EXPECT_EQ(a.agreement.rtr, kRtrNone);
}

TEST(Reply, R80_EachEndSendsMarkersIfTheOtherAsksForThem_RFC5044_7_1) {
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

// ---- E2 and E3: the token

constexpr Policy kEvery[] = {Policy::NoMarkers, Policy::Markers, Policy::AbsoluteMarkers,
                             Policy::ModifiedLength};
using TokenKind = PolicyToken::Kind;

TEST(Token, D6_TheExtensionsAreAgreedOnOnlyWhenBothEndsAreSetAlike) {
  for (const Policy theirs : kEvery) {
    for (const Policy ours : kEvery) {
      if (!is_extension(theirs) && !is_extension(ours)) continue;
      StartupOptions initiator, responder;
      initiator.policy = theirs;
      responder.policy = ours;
      const StartupFrame request = parsed(emit(make_request(initiator, {})), false);
      const Answer a = answer_request(request, responder, {});
      const auto b = read_reply(request, parsed(emit(a.reply), true), initiator);
      SCOPED_TRACE(std::string(policy_name(theirs)) + " to " + std::string(policy_name(ours)));
      if (theirs == ours) {
        EXPECT_EQ(a.refusal, Refusal::None);
        ASSERT_TRUE(b.ok());
        EXPECT_EQ(a.agreement.send, ours);
        EXPECT_EQ(a.agreement.receive, ours);
        EXPECT_EQ(b->send, ours);
        EXPECT_EQ(b->receive, ours);
        continue;
      }
      EXPECT_EQ(a.refusal, is_extension(theirs) ? Refusal::PolicyDiffers : Refusal::PolicyUnknown);
      EXPECT_TRUE(a.send_reply && a.reply.reject);
      ASSERT_FALSE(b.ok());
      EXPECT_EQ(b.error(), Refusal::PolicyDiffers);
      EXPECT_EQ(parsed(emit(a.reply), true).token, (PolicyToken{TokenKind::Refuse, ours, 0}));
    }
  }
}

TEST(Token, D6_APeerThatDoesNotKnowItOrEchoesItIsNoPartner) {
  for (const Policy policy : {Policy::AbsoluteMarkers, Policy::ModifiedLength}) {
    StartupOptions o;
    o.policy = policy;
    const StartupFrame request = make_request(o, {});
    StartupFrame reply = answer_request(request, o, {}).reply;
    ASSERT_TRUE(read_reply(request, reply, o).ok());
    reply.token = request.token;  // an echo
    EXPECT_EQ(read_reply(request, reply, o).error(), Refusal::PolicyUnknown);
    reply.token = {};  // never heard of it
    EXPECT_EQ(read_reply(request, reply, o).error(), Refusal::PolicyUnknown);
    reply.reject = true;
    EXPECT_EQ(read_reply(request, reply, o).error(), Refusal::Rejected);
  }
}

TEST(Token, LiesBeforeTheUlpsPrivateDataAndIsNotShownToIt) {
  StartupOptions o;
  o.policy = Policy::ModifiedLength;
  const Bytes data = {1, 2, 3, 4, 5};
  StartupFrame request = make_request(o, data);
  Bytes wire = emit(request);
  ASSERT_EQ(wire.size(), kFrameHeader + kEnhancedWord + kTokenLength + 5);
  EXPECT_EQ(std::string(wire.begin() + 24, wire.begin() + 32), "urnicMPA");
  EXPECT_EQ(wire[32], 'O');
  EXPECT_EQ(wire[33], 3);
  const StartupFrame got = parsed(wire, false);
  EXPECT_EQ(got.token.kind, TokenKind::Offer);
  EXPECT_EQ(Bytes(got.private_view().begin(), got.private_view().end()), data);
}

TEST(Token, WhatIsNotWhollyATokenIsPrivateData) {
  StartupOptions o;
  o.policy = Policy::AbsoluteMarkers;
  StartupFrame request = make_request(o, {});
  request.token.filler = 2;
  const Bytes good = emit(request);
  ASSERT_EQ(parsed(good, false).token.filler, 2);
  const std::size_t begin = kFrameHeader + kEnhancedWord;
  for (std::size_t i = begin; i < good.size(); ++i) {
    if (i == begin + 10) continue;  // the filler's length may be another
    Bytes bad = good;
    bad[i] ^= 0x80;
    const StartupFrame got = parsed(bad, false);
    EXPECT_EQ(got.token.kind, TokenKind::None) << i;
    EXPECT_EQ(got.private_len, kTokenLength + 2) << i;
  }
}

TEST(Token, R77_TheFillerMakesFullOperationBeginAtAWord) {
  for (const bool reply : {false, true}) {
    for (std::uint32_t sn = 0xfffffffau; sn != 6; ++sn) {  // all four residues, across the wrap
      for (std::size_t pd = 0; pd < 9; ++pd) {
        StartupOptions o;
        o.policy = Policy::AbsoluteMarkers;
        StartupFrame f = make_request(o, Bytes(pd, 7));
        if (reply) f = answer_request(f, o, Bytes(pd, 7)).reply;
        set_filler(f, sn);
        const Bytes wire = emit(f);
        EXPECT_EQ((sn + wire.size()) % 4, 0u);
        EXPECT_EQ(wire.size(), emitted_length(f));
        EXPECT_EQ(parsed(wire, reply).private_len, pd);
        EXPECT_EQ(parsed(wire, reply).token.filler, f.token.filler);
      }
    }
  }
  StartupOptions o;
  o.policy = Policy::ModifiedLength;
  StartupFrame f = make_request(o, {});
  set_filler(f, 1);
  EXPECT_EQ(f.token.filler, 0) << "the grid of E3 begins where full operation does";
}

TEST(Token, PrivateDataIsCutToWhatIsLeft) {
  for (const Policy policy : {Policy::AbsoluteMarkers, Policy::ModifiedLength}) {
    StartupOptions o;
    o.policy = policy;
    StartupFrame f = make_request(o, Bytes(512, 9));
    EXPECT_EQ(f.private_len, max_private_data(true, policy));
    EXPECT_EQ(f.private_len, 493);
    set_filler(f, 1);
    EXPECT_LE(emit(f).size(), kFrameHeader + kMaxPrivateData);
    EXPECT_EQ(parsed(emit(f), false).private_len, 493);
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
  // None matches: A=1 still demands a kind; the initiator ends it with 2/0/7.
  EXPECT_EQ(chosen(kRtrSend, kRtrWrite | kRtrRead), kRtrWrite);
  EXPECT_EQ(chosen(kRtrNone, kRtrWrite | kRtrRead), kRtrWrite);
}

TEST(Reply, DepthsFollowRfc6581_9_1) {
  struct Case {
    std::uint16_t their_ird, their_ord, our_ird, our_ord, reply_ird, reply_ord;
  };
  for (const Case& c : {
           Case{16, 16, 16, 16, 16, 16},     // as asked
           Case{4, 64, 16, 16, 64, 4},       // raised to what they want; ORD cut to what they can
           Case{200, 200, 32, 32, 128, 32},  // to the limit, no further
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
  request.ird = request.ord = kNoNegotiation;
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

TEST_F(InitiatorTest, ReplyOfAnotherRevisionOrForm_E35) {
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
  reply.ird = 0;  // takes a Read and has no room for one
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
  reply.ird = reply.ord = kNoNegotiation;
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

// Any two ends: what they agree on separately fits together.
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
