// The MPA start-up state machine: two of them connected, with every cut and every error (E-1,
// E-35).
#include "iwarp/startup.h"

#include <gtest/gtest.h>

namespace urnic::iwarp {
namespace {

using What = Startup::What;

std::vector<std::uint8_t> bytes(const char* s) {
  return {s, s + std::char_traits<char>::length(s)};
}

TEST(Startup, TwoEndsAgreeOnRevision2WithCrcAndRtr) {
  mpa::StartupOptions options;
  Startup a = Startup::active(options, bytes("hello")), b = Startup::passive(options);
  const auto request = a.request_bytes();
  Startup::Step step = b.feed(request);
  ASSERT_EQ(step.what, What::Request);
  EXPECT_EQ(step.consumed, request.size());
  EXPECT_EQ(std::string(b.request().private_view().begin(), b.request().private_view().end()),
            "hello");
  mpa::Refusal refusal;
  const auto reply = b.accept(options, bytes("hi"), &refusal);
  ASSERT_EQ(refusal, mpa::Refusal::None);
  step = a.feed(reply);
  ASSERT_EQ(step.what, What::Established);
  EXPECT_TRUE(a.agreement().crc);
  EXPECT_NE(a.agreement().rtr, mpa::kRtrNone);
  EXPECT_EQ(a.agreement().rtr, b.agreement().rtr);
  EXPECT_LE(a.agreement().ord, b.agreement().ird);
}

// proves: E-1
TEST(Startup, ReplyCutIntoSingleBytesAndFollowedByAnFpdu) {
  mpa::StartupOptions options;
  Startup a = Startup::active(options, {}), b = Startup::passive(options);
  const auto request = a.request_bytes();
  for (std::size_t n = 0; n < request.size(); ++n) {
    ASSERT_EQ(b.feed({request.data(), n}).what, What::NeedMore) << n;
  }
  ASSERT_EQ(b.feed(request).what, What::Request);
  mpa::Refusal refusal;
  auto reply = b.accept(options, {}, &refusal);
  const std::size_t frame = reply.size();
  reply.insert(reply.end(), {0x00, 0x0e, 0xc1, 0x40});
  for (std::size_t n = 0; n < frame; ++n) {
    ASSERT_EQ(a.feed({reply.data(), n}).what, What::NeedMore) << n;
  }
  const Startup::Step step = a.feed(reply);
  ASSERT_EQ(step.what, What::Established);
  EXPECT_EQ(step.consumed, frame);
}

TEST(Startup, RejectReachesTheConnectorWithPrivateData) {
  mpa::StartupOptions options;
  Startup a = Startup::active(options, {}), b = Startup::passive(options);
  ASSERT_EQ(b.feed(a.request_bytes()).what, What::Request);
  const auto reply = b.reject(bytes("full"));
  EXPECT_EQ(a.feed(reply).what, What::Rejected);
  EXPECT_EQ(a.reply().private_view().size(), 4u);
}

TEST(Startup, GarbageInsteadOfARequestFailsAtOnce) {
  Startup b = Startup::passive({});
  const auto garbage = bytes("GET / HTTP/1.1\r\n\r\n\r\n");
  const Startup::Step step = b.feed(garbage);
  EXPECT_EQ(step.what, What::Fail);
  EXPECT_EQ(step.violation, ddp::Violation::MpaStartup);
}

TEST(Startup, ARequestInsteadOfAReplyIsACollision) {
  Startup a = Startup::active({}, {}), b = Startup::active({}, {});
  a.request_bytes();
  EXPECT_EQ(a.feed(b.request_bytes()).what, What::Fail);
}

// proves: E-35
TEST(Startup, RevisionOneReplyToAnEnhancedRequestAsksForARetry) {
  mpa::StartupOptions options, old;
  old.revision = 1;
  old.peer_to_peer = false;
  Startup a = Startup::active(options, {});
  a.request_bytes();
  // A responder that knows only RFC 5044 answers revision 1 without the enhanced word.
  mpa::StartupFrame reply;
  reply.reply = true;
  reply.crc = true;
  reply.revision = 1;
  std::uint8_t frame[mpa::kFrameHeader + mpa::kMaxPrivateData];
  const std::uint32_t n = mpa::emit_frame(reply, frame);
  EXPECT_EQ(a.feed({frame, n}).what, What::RetryRevision1);
}

TEST(Startup, RevisionOneBothWaysEstablishesWithoutRtr) {
  mpa::StartupOptions options;
  options.revision = 1;
  Startup a = Startup::active(options, {}), b = Startup::passive({});
  ASSERT_EQ(b.feed(a.request_bytes()).what, What::Request);
  mpa::Refusal refusal;
  const auto reply = b.accept({}, {}, &refusal);
  ASSERT_EQ(a.feed(reply).what, What::Established);
  EXPECT_EQ(a.agreement().rtr, mpa::kRtrNone);
  EXPECT_TRUE(a.agreement().crc);
}

// proves: R-77
TEST(Startup, BothFramesEndAtAWordForAllInitialSequenceNumbers) {
  for (std::uint32_t own = 0; own < 4; ++own) {
    for (std::uint32_t peer = 0; peer < 4; ++peer) {
      mpa::StartupOptions options;
      options.policy = mpa::Policy::AbsoluteMarkers;
      Startup a = Startup::active(options, bytes("abc")), b = Startup::passive(options);
      a.set_first_sns(0xfffffffeu + own, 100 + peer);
      b.set_first_sns(100 + peer, 0xfffffffeu + own);
      const auto request = a.request_bytes();
      EXPECT_EQ((0xfffffffeu + own + request.size()) % 4, 0u);
      EXPECT_EQ(a.sent_bytes(), request.size());
      ASSERT_EQ(b.feed(request).what, What::Request);
      mpa::Refusal refusal;
      const auto reply = b.accept(options, bytes("de"), &refusal);
      EXPECT_EQ((100 + peer + reply.size()) % 4, 0u);
      ASSERT_EQ(a.feed(reply).what, What::Established);
      EXPECT_EQ(a.agreement().send, mpa::Policy::AbsoluteMarkers);
      EXPECT_EQ(b.agreement().receive, mpa::Policy::AbsoluteMarkers);
    }
  }
}

// proves: R-77
TEST(Startup, AFrameThatDoesNotEndAtAWordIsMalformed) {
  mpa::StartupOptions options;
  options.policy = mpa::Policy::AbsoluteMarkers;
  Startup a = Startup::active(options, {}), b = Startup::passive(options);
  a.set_first_sns(8, 0);
  b.set_first_sns(0, 9);  // the bytes arrived at another sequence number than the sender assumes
  const Startup::Step step = b.feed(a.request_bytes());
  EXPECT_EQ(step.what, What::Fail);
  EXPECT_EQ(step.violation, ddp::Violation::MpaStartup);
}

TEST(Startup, D6_TwoIncompatiblePoliciesFailWithTheReason) {
  mpa::StartupOptions extension, plain;
  extension.policy = mpa::Policy::ModifiedLength;
  {
    Startup a = Startup::active(extension, {}), b = Startup::passive(plain);
    ASSERT_EQ(b.feed(a.request_bytes()).what, What::Request);
    mpa::Refusal refusal;
    const auto reply = b.accept(plain, {}, &refusal);
    EXPECT_EQ(refusal, mpa::Refusal::PolicyDiffers);
    const Startup::Step step = a.feed(reply);
    EXPECT_EQ(step.what, What::Rejected);
    EXPECT_EQ(step.refusal, mpa::Refusal::PolicyDiffers);
    EXPECT_EQ(a.reply().token.policy, mpa::Policy::NoMarkers);
  }
  {
    Startup a = Startup::active(plain, {}), b = Startup::passive(extension);
    ASSERT_EQ(b.feed(a.request_bytes()).what, What::Request);
    mpa::Refusal refusal;
    const auto reply = b.accept(extension, {}, &refusal);
    EXPECT_EQ(refusal, mpa::Refusal::PolicyUnknown);
    EXPECT_EQ(a.feed(reply).refusal, mpa::Refusal::PolicyDiffers);
    EXPECT_EQ(a.reply().token.policy, mpa::Policy::ModifiedLength);
  }
}

}  // namespace
}  // namespace urnic::iwarp
