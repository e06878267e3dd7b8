#include "cli/transfer/storage_token.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cli/transfer/storage_message.h"

namespace urnic::cli {
namespace {

using ::testing::HasSubstr;

class StorageTokenTest : public ::testing::Test {
 protected:
  StorageTokenTest() {
    char name[] = "/tmp/urnic-token-XXXXXX";
    root_ = mkdtemp(name);
  }
  ~StorageTokenTest() override { std::filesystem::remove_all(root_); }
  Result<StorageToken> load(const std::string& text) const {
    const std::string path = root_ + "/token";
    std::ofstream(path, std::ios::binary) << text;
    return StorageToken::load(path);
  }
  std::string root_;
};

// proves: AC-8
TEST_F(StorageTokenTest, IsTheContentOfTheFileWithoutItsLastLineFeed) {
  const TokenDigest plain = StorageToken::of("0123456789abcdef").digest();
  EXPECT_EQ(load("0123456789abcdef")->digest(), plain);
  EXPECT_EQ(load("0123456789abcdef\n")->digest(), plain);
  EXPECT_EQ(load("0123456789abcdef\r\n")->digest(), plain);
  EXPECT_NE(load("0123456789abcdef\n\n")->digest(), plain);
  EXPECT_NE(load(" 0123456789abcdef")->digest(), plain);
  EXPECT_TRUE(load(std::string(4096, 'a') + "\n").ok());
}

// `printf 'urnic storage token 1\n0123456789abcdef' | sha256sum` prints this digest, which both
// ends must agree on.
TEST_F(StorageTokenTest, TheDigestIsTheSha256OfPurposeAndToken) {
  const TokenDigest digest = StorageToken::of("0123456789abcdef").digest();
  std::string hex;
  for (const std::uint8_t b : digest) {
    hex += "0123456789abcdef"[b >> 4];
    hex += "0123456789abcdef"[b & 15];
  }
  EXPECT_EQ(hex, "a163204a5bd340336d95cee300e0299db5677b64c882de212e5391c3e738ceea");
}

// proves: AC-8
TEST_F(StorageTokenTest, AnInvalidTokenIsAnErrorOfOneLine) {
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("0123456789abcde\n"), std::string(4097, 'a'),
        std::string(100000, 'a')}) {
    const auto token = load(text);
    ASSERT_FALSE(token.ok()) << text.size();
    EXPECT_THAT(token.error().message, HasSubstr("16 to 4096 bytes"));
  }
  EXPECT_THAT(StorageToken::load(root_ + "/none").error().message, HasSubstr("No such file"));
  EXPECT_THAT(StorageToken::load(root_).error().message, HasSubstr("directory"));
}

// proves: AC-8
TEST_F(StorageTokenTest, ATokenWithOneOtherBitIsRejected) {
  const StorageToken token = StorageToken::of("0123456789abcdef");
  TokenDigest said = token.digest();
  EXPECT_TRUE(token.is(said));
  for (std::size_t bit = 0; bit < said.size() * 8; ++bit) {
    said[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    EXPECT_FALSE(token.is(said)) << bit;
    said[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
  }
  EXPECT_NE(StorageToken::of("0123456789abcdeg").digest(), said);
}

// It is read back completely from the private data, also if zeros follow or it is truncated.
// proves: AC-8
TEST_F(StorageTokenTest, FollowsTheGreeting) {
  const StorageToken token = StorageToken::of("0123456789abcdef");
  auto greeting = storage_greeting(&token.digest());
  EXPECT_EQ(check_greeting(greeting), "");
  EXPECT_LE(greeting.size(), 56u) << "what a REQ of RoCE has room for";
  EXPECT_EQ(token_said(greeting), token.digest());
  greeting.resize(56);
  EXPECT_EQ(token_said(greeting), token.digest());
  greeting.resize(39);
  EXPECT_EQ(token_said(greeting), TokenDigest{});
  EXPECT_EQ(token_said(storage_greeting()), TokenDigest{});
  EXPECT_EQ(token_said({}), TokenDigest{});
}

}  // namespace
}  // namespace urnic::cli
