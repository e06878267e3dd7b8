#include "mpa/startup.h"

#include <gtest/gtest.h>

#include <string>

#include "base/rng.h"
#include "mpa/frames.h"
#include "support/random_bytes.h"

namespace urnic::mpa {
namespace {

TEST(StartupFrames, GoldenFramesParseAndEmitByteForByte_RFC5044_7_1) {
  for (const auto& g : test::read_golden("startup.txt")) {
    SCOPED_TRACE(g.name);
    const bool reply = g.name.find("reply") != std::string::npos;
    const auto length = frame_length(g.bytes, reply);
    ASSERT_TRUE(length.ok() && length->has_value());
    EXPECT_EQ(**length, g.bytes.size());
    const StartupFrame f = parsed(g.bytes, reply);
    EXPECT_EQ(f.reply, reply);
    EXPECT_EQ(to_hex(emit(f)), to_hex(g.bytes));
    // A Request instead of a Reply means that both ends are initiators.
    EXPECT_EQ(parse_frame(g.bytes, !reply).error(), StartupError::BadKey);
  }
}

TEST(StartupFrames, FieldsOfAnEnhancedFrame_RFC6581_9) {
  const StartupFrame f = parsed(frame("nvme-request"), false);
  EXPECT_FALSE(f.markers);
  EXPECT_TRUE(f.crc);
  EXPECT_FALSE(f.reject);
  EXPECT_TRUE(f.enhanced);
  EXPECT_EQ(f.revision, 2);
  EXPECT_TRUE(f.peer_to_peer);
  EXPECT_EQ(f.rtr, kRtrWrite | kRtrRead);
  EXPECT_EQ(f.ird, 32);
  EXPECT_EQ(f.ord, 1);
  ASSERT_EQ(f.private_len, 32);
  EXPECT_EQ(to_hex(f.private_view().first(8)), "0000010080007f00");
}

TEST(StartupFrames, LengthIsKnownOnceTheHeaderIsComplete) {
  const Bytes b = frame("nvme-reply-read");
  for (std::size_t n = 0; n <= b.size(); ++n) {
    const auto length = frame_length(ByteView(b).first(n), true);
    ASSERT_TRUE(length.ok()) << n;
    EXPECT_EQ(length->has_value(), n >= kFrameHeader) << n;
    EXPECT_EQ(parse_frame(ByteView(b).first(n), true).ok(), n == b.size()) << n;
  }
}

TEST(StartupFrames, ErrorsAreFoundAsEarlyAsTheBytesAllow_RFC5044_7_1) {
  Bytes b = frame("rev2-request");
  for (std::size_t i = 0; i < 16; ++i) {
    Bytes bad = b;
    bad[i] ^= 0x20;
    EXPECT_TRUE(frame_length(ByteView(bad).first(i), false).ok()) << i;
    EXPECT_EQ(frame_length(ByteView(bad).first(i + 1), false).error(), StartupError::BadKey) << i;
  }
  b[17] = 3;
  EXPECT_EQ(frame_length(ByteView(b).first(18), false).error(), StartupError::BadRevision);
  b[17] = 2;
  b[18] = 4;  // at least 1024
  EXPECT_EQ(frame_length(ByteView(b).first(19), false).error(), StartupError::BadPrivateData);
}

TEST(StartupFrames, PrivateDataLengthLimits) {
  Bytes b = frame("rev1-request");
  b.resize(kFrameHeader + 513);
  store_be16(b.data() + 18, 512);
  EXPECT_EQ(**frame_length(b, false), 532u);
  EXPECT_EQ(parse_frame(b, false).error(), StartupError::BadPrivateData);  // one byte too many
  b.resize(kFrameHeader + 512);
  EXPECT_EQ(parsed(b, false).private_len, 512);
  store_be16(b.data() + 18, 513);
  EXPECT_EQ(frame_length(b, false).error(), StartupError::BadPrivateData);
}

TEST(StartupFrames, EnhancedFrameNeedsItsFourBytes_RFC6581_9) {
  Bytes b = frame("rev2-request");
  for (std::uint16_t n = 0; n < 4; ++n) {
    store_be16(b.data() + 18, n);
    EXPECT_EQ(frame_length(b, false).error(), StartupError::BadPrivateData) << n;
  }
  // In revisions 0 and 1 the same bit is reserved and has no meaning.
  for (const std::uint8_t revision : {0, 1}) {
    b[17] = revision;
    store_be16(b.data() + 18, 4);
    const StartupFrame f = parsed(b, false);
    EXPECT_FALSE(f.enhanced);
    EXPECT_EQ(f.private_len, 4);
  }
}

TEST(StartupFrames, RevisionTwoWithoutSIsAnUnenhancedFrame_RFC6581_6) {
  Bytes b = frame("rev2-request");
  b[16] &= 0xef;
  const StartupFrame f = parsed(b, false);
  EXPECT_FALSE(f.enhanced);
  EXPECT_EQ(f.private_len, 4);
  EXPECT_EQ(to_hex(emit(f)), to_hex(b));
}

TEST(StartupFrames, WithoutPeerToPeerTheRtrKindsAreIgnored_RFC6581_9_2) {
  Bytes b = frame("rev2-request");
  b[20] = 0x40;  // B without A; C and D follow in the ORD word
  const StartupFrame f = parsed(b, false);
  EXPECT_FALSE(f.peer_to_peer);
  EXPECT_EQ(f.rtr, kRtrNone);
  EXPECT_EQ(f.ird, 16);
}

TEST(StartupFrames, ReservedBitsAreKeptApartAndNeverSent) {
  Bytes b = frame("rev1-request");
  b[16] |= 0x0f;
  const StartupFrame f = parsed(b, false);
  EXPECT_EQ(f.reserved, 0x0f);
  EXPECT_EQ(emit(f)[16], 0x40);
}

TEST(StartupFrames, EveryFieldSurvivesTheRoundTrip) {
  for (std::uint64_t seed = 1; seed <= 5000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    StartupFrame f;
    f.reply = rng.chance(0.5);
    f.markers = rng.chance(0.5);
    f.crc = rng.chance(0.5);
    f.reject = rng.chance(0.5);
    f.revision = static_cast<std::uint8_t>(rng.below(3));
    f.enhanced = f.revision == 2 && rng.chance(0.8);
    if (f.enhanced) {
      f.peer_to_peer = rng.chance(0.8);
      f.rtr = f.peer_to_peer ? static_cast<std::uint8_t>(rng.below(8)) : 0;
      f.ird = static_cast<std::uint16_t>(rng.below(0x4000));
      f.ord = static_cast<std::uint16_t>(rng.below(0x4000));
    }
    f.private_len = static_cast<std::uint16_t>(rng.below(max_private_data(f.enhanced) + 1));
    for (std::size_t i = 0; i < f.private_len; ++i) {
      f.private_data[i] = static_cast<std::uint8_t>(rng.next());
    }
    const StartupFrame g = parsed(emit(f), f.reply);
    ASSERT_EQ(g.markers, f.markers);
    ASSERT_EQ(g.crc, f.crc);
    ASSERT_EQ(g.reject, f.reject);
    ASSERT_EQ(g.revision, f.revision);
    ASSERT_EQ(g.enhanced, f.enhanced);
    ASSERT_EQ(g.peer_to_peer, f.peer_to_peer);
    ASSERT_EQ(g.rtr, f.rtr);
    ASSERT_EQ(g.ird, f.ird);
    ASSERT_EQ(g.ord, f.ord);
    ASSERT_EQ(to_hex(g.private_view()), to_hex(f.private_view()));
  }
}

TEST(StartupFrames, TooMuchPrivateDataIsCutToTheFrame) {
  const Bytes data(600, 0xab);
  EXPECT_EQ(make_request({}, data).private_len, 508);
  StartupOptions rev1;
  rev1.revision = 1;
  EXPECT_EQ(make_request(rev1, data).private_len, 512);
  StartupFrame f = make_request({}, {});
  f.private_len = 600;  // invalid, but no buffer may be overrun
  EXPECT_EQ(emit(f).size(), kFrameHeader + kMaxPrivateData);
}

TEST(StartupFrames, HostileBytesNeverOverrunAndAgreeWithTheEarlyCheck) {
  const auto seeds = test::read_golden("startup.txt");
  Rng rng(6581);
  std::uint64_t accepted = 0;
  for (int i = 0; i < 200000; ++i) {
    Bytes b = test::mutate(rng, seeds[rng.below(seeds.size())].bytes);
    if (rng.chance(0.1)) b = test::random_bytes(rng, rng.below(40));
    const bool reply = rng.chance(0.5);
    const auto length = frame_length(b, reply);
    const auto f = parse_frame(b, reply);
    ASSERT_EQ(f.ok(), length.ok() && length->has_value() && **length == b.size());
    // After an error, more bytes do not make it valid. A length, once known, does not change.
    const auto prefix = frame_length(ByteView(b).first(rng.below(b.size() + 1)), reply);
    if (!prefix.ok()) {
      ASSERT_FALSE(length.ok());
    } else if (prefix->has_value()) {
      ASSERT_EQ(*prefix, *length);
    }
    if (!f.ok()) continue;
    ++accepted;
    Bytes again = emit(*f);
    ASSERT_EQ(again.size(), b.size());
    // Every accepted frame can be answered and read.
    const Answer a = answer_request(*f, {}, {});
    ASSERT_LE(emit(a.reply).size(), kFrameHeader + kMaxPrivateData);
    (void)read_reply(make_request({}, {}), *f, {});
  }
  EXPECT_GT(accepted, 10000u);
}

}  // namespace
}  // namespace urnic::mpa
