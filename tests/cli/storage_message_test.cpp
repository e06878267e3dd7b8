#include "cli/transfer/storage_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace urnic::cli {
namespace {

using testing::HasSubstr;

std::vector<std::uint8_t> encoded(const Message& m) {
  std::vector<std::uint8_t> out(kMaxMessage, 0xee);
  out.resize(encode(m, out));
  return out;
}

Message full(MessageKind kind) {
  Message m;
  m.kind = kind;
  m.transfer = 0x01020304;
  m.status = Status::NoSpace;
  m.slots = 16;
  m.chunk = 1 << 18;
  m.rkey = 0xdeadbeef;
  m.address = 0x7fffffff12345678;
  m.read_only = true;
  m.mode = OpenMode::List;
  m.permissions = 0640;
  m.size = std::uint64_t{5} << 40;
  m.slot = 7;
  m.length = 4097;
  m.hole = true;
  m.resume = true;
  m.whole_only = true;
  m.allocated = std::uint64_t{4} << 40;
  m.modified = {-5, 123456789};
  m.offset = std::uint64_t{3} << 33;
  for (std::size_t i = 0; i < m.hash.size(); ++i) m.hash[i] = static_cast<std::uint8_t>(i + 1);
  m.bytes_fast = 11;
  m.bytes_slow = 12;
  m.downgrades = 13;
  m.upgrades = 14;
  m.recoveries = 15;
  m.text = "folder/name with blanks";
  return m;
}

TEST(StorageMessage, EveryKindSurvivesEncodingAndDecoding) {
  for (int k = 1; k <= static_cast<int>(MessageKind::Begin); ++k) {
    const Message m = full(static_cast<MessageKind>(k));
    const auto bytes = encoded(m);
    auto back = decode(bytes);
    ASSERT_TRUE(back.ok()) << k << ": " << back.error();
    EXPECT_EQ(encoded(*back), bytes) << k;
    EXPECT_EQ(back->transfer, m.transfer);
    EXPECT_EQ(back->status, m.status);
    EXPECT_EQ(static_cast<int>(back->kind), k);
  }
}

TEST(StorageMessage, FieldsOfTheMessagesKindSurvive) {
  const Message welcome = *decode(encoded(full(MessageKind::Welcome)));
  EXPECT_EQ(welcome.rkey, 0xdeadbeef);
  EXPECT_EQ(welcome.address, 0x7fffffff12345678u);
  EXPECT_TRUE(welcome.read_only);
  const Message open = *decode(encoded(full(MessageKind::Open)));
  EXPECT_EQ(open.text, "folder/name with blanks");
  EXPECT_EQ(open.mode, OpenMode::List);
  EXPECT_EQ(open.size, std::uint64_t{5} << 40);
  EXPECT_EQ(open.permissions, 0640u);
  EXPECT_TRUE(open.resume);
  for (const MessageKind kind : {MessageKind::Open, MessageKind::Opened}) {
    const Message of = *decode(encoded(full(kind)));
    EXPECT_EQ(of.allocated, std::uint64_t{4} << 40);
    EXPECT_EQ(of.modified, (FileTime{-5, 123456789}));
    EXPECT_EQ(of.offset, std::uint64_t{3} << 33);
  }
  EXPECT_TRUE(decode(encoded(full(MessageKind::Opened)))->whole_only);
  const Message have = *decode(encoded(full(MessageKind::Have)));
  EXPECT_EQ(have.offset, std::uint64_t{3} << 33);
  EXPECT_EQ(have.hash, full(MessageKind::Have).hash);
  EXPECT_EQ(decode(encoded(full(MessageKind::Begin)))->offset, std::uint64_t{3} << 33);
  const Message chunk = *decode(encoded(full(MessageKind::Chunk)));
  EXPECT_EQ(chunk.slot, 7u);
  EXPECT_EQ(chunk.length, 4097u);
  EXPECT_TRUE(chunk.hole);
  EXPECT_EQ(chunk.offset, std::uint64_t{3} << 33);
  const Message result = *decode(encoded(full(MessageKind::Result)));
  EXPECT_EQ(result.hash, full(MessageKind::Result).hash);
  EXPECT_EQ(result.recoveries, 15u);
  EXPECT_EQ(result.text, "folder/name with blanks");
}

// E-38: the layout is fixed. These bytes are version 3; a change requires a new version.
TEST(StorageMessage, TheLayoutOfVersion3IsFixed) {
  Message m;
  m.kind = MessageKind::Chunk;
  m.transfer = 2;
  m.slot = 3;
  m.length = 0x1000;
  m.offset = 0x123456789a;
  const std::vector<std::uint8_t> expected = {
      'U', 'R', 'N', 'S', 3, 5, 0,    32, 0, 0, 0, 2,    0,    0,    0,    0,
      0,   3,   0,   0,   0, 0, 0x10, 0,  0, 0, 0, 0x12, 0x34, 0x56, 0x78, 0x9a};
  EXPECT_EQ(encoded(m), expected);
  auto hole = expected;
  hole[19] = 1;
  m.hole = true;
  EXPECT_EQ(encoded(m), hole);
  const auto result = encoded(full(MessageKind::Result));
  ASSERT_EQ(result.size(), 16 + 88 + full(MessageKind::Result).text.size());
  EXPECT_EQ(result[16 + 8], 1) << "the first byte of the hash";
  EXPECT_EQ(result[16 + 23], 16) << "the last byte of the hash";
  EXPECT_EQ(result[16 + 31], 11) << "FAST bytes";
  EXPECT_EQ(result[16 + 63], 15) << "recovery attempts";
  EXPECT_EQ(result[16 + 65], full(MessageKind::Result).text.size());
}

TEST(StorageMessage, PermissionsLoseSetUid) {
  Message m = full(MessageKind::Open);
  m.permissions = 06755;
  EXPECT_EQ(decode(encoded(m))->permissions, 0755u);
}

TEST(StorageMessage, LongTextsAreCutToTheirLimit) {
  Message m = full(MessageKind::Result);
  m.text = std::string(5000, 'x');
  const auto bytes = encoded(m);
  EXPECT_LE(bytes.size(), kMaxMessage);
  EXPECT_EQ(decode(bytes)->text.size(), kMaxText);
  m.kind = MessageKind::Open;
  EXPECT_EQ(decode(encoded(m))->text.size(), kMaxName);
}

TEST(StorageMessage, TextForTheTerminalHasNoControlCharacters) {
  Message m = full(MessageKind::Result);
  m.text = "a\x1b[31mred\n";
  EXPECT_EQ(decode(encoded(m))->text, "a?[31mred?");
}

TEST(StorageMessage, EveryCutMessageIsRefused) {
  for (int k = 1; k <= static_cast<int>(MessageKind::Begin); ++k) {
    const auto bytes = encoded(full(static_cast<MessageKind>(k)));
    for (std::size_t n = 0; n < bytes.size(); ++n) {
      EXPECT_FALSE(decode({bytes.data(), n}).ok()) << k << " " << n;
    }
    auto longer = bytes;
    longer.push_back(0);
    EXPECT_FALSE(decode(longer).ok()) << k;
  }
}

TEST(StorageMessage, OtherVersionsAndForeignMessagesAreReported) {
  auto bytes = encoded(full(MessageKind::Taken));
  bytes[4] = 1;
  EXPECT_THAT(decode(bytes).error(), HasSubstr("version 1"));
  bytes[4] = kStorageVersion;
  bytes[5] = 12;
  EXPECT_THAT(decode(bytes).error(), HasSubstr("kind 12"));
  bytes[0] = 'X';
  EXPECT_THAT(decode(bytes).error(), HasSubstr("wrong magic number"));
}

TEST(StorageMessage, RandomBytesNeverDoHarm) {
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 rng(seed);
  for (int i = 0; i < 200000; ++i) {
    auto bytes = encoded(full(static_cast<MessageKind>(1 + rng() % 11)));
    for (unsigned n = rng() % 4; n > 0; --n)
      bytes[rng() % bytes.size()] = static_cast<std::uint8_t>(rng());
    if (rng() % 4 == 0) bytes.resize(rng() % (bytes.size() + 1));
    const auto m = decode(bytes);
    if (m.ok()) {
      EXPECT_LE(m->text.size(), kMaxName);
      EXPECT_LT(m->status, Status::kCount);
    }
    (void)decode_listing(bytes);
  }
}

TEST(StorageMessage, TheGreetingDistinguishesVersions) {
  auto g = storage_greeting();
  EXPECT_EQ(check_greeting(g), "");
  g[4] = 9;
  EXPECT_THAT(check_greeting(g), HasSubstr("version 9"));
  EXPECT_NE(check_greeting({}), "");
  g[0] = 0;
  EXPECT_NE(check_greeting(g), "");
}

TEST(StorageListing, SurvivesEncodingAndTruncatedOnesAreRefused) {
  const std::vector<ListEntry> entries = {
      {"a", 0, 0}, {"dir/b", std::uint64_t{1} << 50, -5, true, 0750}, {"", 1, 2}};
  const auto bytes = encode_listing(entries);
  EXPECT_EQ(*decode_listing(bytes), entries);
  EXPECT_TRUE(decode_listing({})->empty());
  std::size_t refused = 0;
  for (std::size_t n = 1; n < bytes.size(); ++n)
    refused += decode_listing({bytes.data(), n}).ok() ? 0 : 1;
  EXPECT_EQ(refused, bytes.size() - 1 - 2) << "only whole entries are listings";
}

// proves: E-38
TEST(StorageName, NamesCannotLeaveTheFolder) {
  for (const char* good : {"a", "a/b", "..a", "a..", "...", "a/...", "-", "a b", "\xc3\xa4"}) {
    EXPECT_EQ(check_name(good), "") << good;
  }
  for (const std::string bad : {"", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/../b",
                                "a/./b", "./a", "a\nb", "a\x7f", ".urnic-abc.part", "a/.urnic-x"}) {
    EXPECT_NE(check_name(bad), "") << bad;
  }
  EXPECT_NE(check_name(std::string("a\0b", 3)), "");
  EXPECT_NE(check_name(std::string(256, 'x')), "");
  EXPECT_EQ(check_name(std::string(255, 'x')), "");
  std::string deep;
  while (deep.size() < kMaxName) deep += "d/";
  EXPECT_NE(check_name(deep + "x"), "");
  std::string most = "d";
  for (std::size_t i = 1; i < kMaxComponents; ++i) most += "/d";
  EXPECT_EQ(check_name(most), "");
  EXPECT_NE(check_name(most + "/d"), "") << "deeper than a quota looks";
}

TEST(StorageAddress, AllDocumentedFormsAreParsed) {
  const auto parsed = [](const char* text) {
    auto a = parse_storage_address(text);
    return a.ok() ? a->endpoint.to_string() + " " + a->name : "error";
  };
  EXPECT_EQ(parsed("10.77.0.1"), "10.77.0.1:18700 ");
  EXPECT_EQ(parsed("10.77.0.1/a/b"), "10.77.0.1:18700 a/b");
  EXPECT_EQ(parsed("10.77.0.1:7/x"), "10.77.0.1:7 x");
  EXPECT_EQ(parsed("[fd77::1]:7/x"), "[fd77::1]:7 x");
  EXPECT_EQ(parsed("[fd77::1]/x"), "[fd77::1]:18700 x");
  EXPECT_EQ(parsed("fd77::1"), "[fd77::1]:18700 ");
  EXPECT_EQ(parsed("[fe80::1%7]:7/x"), "[fe80::1%7]:7 x");
  EXPECT_EQ(parsed("[fe80::1%7]/x"), "[fe80::1%7]:18700 x");
  EXPECT_EQ(parsed("fe80::1%7"), "[fe80::1%7]:18700 ");
  EXPECT_EQ(parsed("host/x"), "host:18700 x");
  EXPECT_EQ(parsed("a.example.:7/x"), "a.example.:7 x");
  for (const char* bad :
       {"", "/x", "10.77.0/x", "10.77.0.300", "ho st/x", "-h/x", "host:x/y", "a:b:c/x",
        "10.77.0.1:0/x", "10.77.0.1:99999", ":7", "[fd77::1%7]/x", "[fe80::1%]/x", "host%7/x"}) {
    EXPECT_EQ(parsed(bad), "error") << bad;
  }
}

}  // namespace
}  // namespace urnic::cli
