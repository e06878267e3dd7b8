// Tests the token in the private data that negotiates E2 and E3 (D6).
#include <gtest/gtest.h>

#include <string>

#include "base/rng.h"
#include "mpa/frames.h"
#include "mpa/startup.h"

namespace urnic::mpa {
namespace {

constexpr Policy kEvery[] = {Policy::NoMarkers, Policy::Markers, Policy::AbsoluteMarkers,
                             Policy::ModifiedLength};
using TokenKind = PolicyToken::Kind;

TEST(Token, D6_TheExtensionsAreNegotiatedOnlyIfBothEndsAreConfiguredAlike) {
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

TEST(Token, D6_APeerThatIgnoresOrEchoesTheTokenIsRefused) {
  for (const Policy policy : {Policy::AbsoluteMarkers, Policy::ModifiedLength}) {
    StartupOptions o;
    o.policy = policy;
    const StartupFrame request = make_request(o, {});
    StartupFrame reply = answer_request(request, o, {}).reply;
    ASSERT_TRUE(read_reply(request, reply, o).ok());
    reply.token = request.token;  // an echo
    EXPECT_EQ(read_reply(request, reply, o).error(), Refusal::PolicyUnknown);
    reply.token = {};  // the peer does not know the token
    EXPECT_EQ(read_reply(request, reply, o).error(), Refusal::PolicyUnknown);
    reply.reject = true;
    EXPECT_EQ(read_reply(request, reply, o).error(), Refusal::Rejected);
  }
}

TEST(Token, PrecedesTheUlpsPrivateDataAndIsHiddenFromTheUlp) {
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

TEST(Token, AnIncompleteTokenIsTreatedAsPrivateData) {
  StartupOptions o;
  o.policy = Policy::AbsoluteMarkers;
  StartupFrame request = make_request(o, {});
  request.token.filler = 2;
  const Bytes good = emit(request);
  ASSERT_EQ(parsed(good, false).token.filler, 2);
  const std::size_t begin = kFrameHeader + kEnhancedWord;
  for (std::size_t i = begin; i < good.size(); ++i) {
    if (i == begin + 10) continue;  // the filler's length may vary
    Bytes bad = good;
    bad[i] ^= 0x80;
    const StartupFrame got = parsed(bad, false);
    EXPECT_EQ(got.token.kind, TokenKind::None) << i;
    EXPECT_EQ(got.private_len, kTokenLength + 2) << i;
  }
}

// proves: R-77
TEST(Token, TheFillerMakesFullOperationBeginAtAWord) {
  for (const bool reply : {false, true}) {
    for (std::uint32_t sn = 0xfffffffau; sn != 6; ++sn) {  // all four residues, across the
                                                           // wrap-around
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

TEST(Token, PrivateDataIsCutToTheRoomLeft) {
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

}  // namespace
}  // namespace urnic::mpa
