// For any TOML file, reading it ends with a table or a line of text: a library must not abort its
// program.
#include "base/toml_document.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/rng.h"
#include "tests/support/source_dir.h"

namespace urnic {
namespace {

TomlError error_of(std::string_view text) {
  const auto parsed = parse_toml(text, "test.toml");
  EXPECT_FALSE(parsed.ok()) << text;
  return parsed.ok() ? TomlError{} : parsed.error();
}

TEST(TomlDocument, InputThatTheLibraryCannotHandleIsAnError) {
  using namespace std::string_view_literals;
  for (const std::string_view text : {"[=]"sv,
                                      "[,"sv,
                                      "[)x"sv,
                                      "[\xc3\xa9]"sv,
                                      "[\0]"sv,
                                      "["sv,
                                      "[["sv,
                                      "[[=]]"sv,
                                      "[[a]"sv,
                                      "[a"sv,
                                      "[\n"sv,
                                      "[ \t"sv,
                                      "[]"sv,
                                      "[[]]"sv,
                                      "\xc3\xa9 = 1"sv,
                                      "a = \xc3\xa9"sv,
                                      "a\xc2\xa0= 1"sv,
                                      "a = \"\xff\""sv,
                                      "a = '\xed\xa0\x80'"sv,
                                      "a = '\xc0\x80'"sv,
                                      "a = '\xf5\x80\x80\x80'"sv,
                                      "a = '\xe2\x82"sv,
                                      "# \x01"sv,
                                      "a = \x7f"sv,
                                      "a = \r"sv,
                                      "a"sv,
                                      "a ="sv,
                                      "= 1"sv,
                                      "a.= 1"sv,
                                      "a = [1,"sv,
                                      "a = {b"sv,
                                      "a = \"\\"sv,
                                      "a = \"\"\""sv,
                                      "a = \"\\u"sv,
                                      "a = 1e"sv,
                                      "a = 0x"sv,
                                      "a = 1979-"sv,
                                      "a = tru"sv,
                                      "a = inff"sv,
                                      "a = +"sv,
                                      "a = 1\na = 2"sv,
                                      "[a]\n[a]"sv}) {
    const TomlError e = error_of(text);
    EXPECT_FALSE(e.what.empty()) << text;
    EXPECT_GE(e.line, 1u) << text;
  }
  EXPECT_EQ(error_of("a = 1\n\n[=]\n").line, 3u);
  EXPECT_EQ(error_of("a = 1\nb = \xff\n").line, 2u);
}

TEST(TomlDocument, DepthIsBounded) {
  const auto nested = [](std::string_view open, std::string_view shut, int n) {
    std::string s = "a = ";
    for (int i = 0; i < n; ++i) s += open;
    s += "1";
    for (int i = 0; i < n; ++i) s += shut;
    return s;
  };
  EXPECT_TRUE(parse_toml(nested("[", "]", 10), "").ok());
  error_of(nested("[", "]", 100000));
  error_of(nested("{b=", "}", 100000));
  std::string key = "a";
  for (int i = 0; i < 300000; ++i) key += ".a";
  error_of(key + " = 1");
  error_of("[" + key + "]");
  error_of(std::string(1 << 20, '['));
}

TEST(TomlDocument, ValidTomlIsRead) {
  const auto parsed = parse_toml(
      "# \xc3\xa9t\xc3\xa9\r\nport = \"memif:socket=\xc3\xa9\"\n'a b' = 'it\\'\n"
      "c = \"\"\"two \"\" \\\\ lines # no \xc3\xa9\n\"\"\"\"\nd = '''x\n'y''''\n"
      "list = [\n [1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5],\n [\"a#\"], # c\n]\n"
      "e.f.g = {h.i = true}\n[t.u]\nv = 1\n[[w]]\n[[w]]\n[ x . \"y.z\" ]\n",
      "test.toml");
  ASSERT_TRUE(parsed.ok()) << parsed.error().line << ": " << parsed.error().what;
  EXPECT_EQ((*parsed)["a b"].value_or<std::string>(""), "it\\");
  EXPECT_EQ((*parsed)["d"].value_or<std::string>(""), "x\n'y'");
  EXPECT_EQ((*parsed)["e"]["f"]["g"]["h"]["i"].value_or(false), true);
  EXPECT_EQ((*parsed)["w"].as_array()->size(), 2u);
}

// Real files, mutated: bytes changed, truncated, duplicated, joined.
TEST(TomlDocument, MutatedFilesGiveATableOrAnError) {
  std::vector<std::string> seeds = {
      "port = \"memif:socket=/run/u.sock\"\nmtu = 9000\nrtr = [\"write\", \"read\"]\nsack = true\n",
      "a.b = {c = [1, 2.5e3, 0xff], d = '''x'''}\n[t]\n\"q\" = 1979-05-27T07:32:00Z\n[[p]]\nx = "
      "-inf\n"};
  for (const char* name : {"/scenarios/which-drops.toml", "/scenarios/delivery-order.toml"}) {
    std::ifstream in(source_dir() + name);
    std::stringstream text;
    text << in.rdbuf();
    if (!text.str().empty()) seeds.push_back(text.str());
  }
  const std::string_view spice =
      "[]{}=.,'\"\\#\n\r\t \x01\x7f\xc3\xa9\xff"
      "0e+-_:tTaZu";
  Rng rng(7);
  const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(rng.next() % n); };
  int tables = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = seeds[pick(seeds.size())];
    if (text.size() > 600) text = text.substr(pick(text.size() - 600), 600);
    for (std::size_t n = 1 + pick(6); n > 0 && !text.empty(); --n) {
      const std::size_t at = pick(text.size());
      switch (pick(5)) {
        case 0:
          text[at] = static_cast<char>(rng.next());
          break;
        case 1:
          text[at] = spice[pick(spice.size())];
          break;
        case 2:
          text.erase(at, 1 + pick(8));
          break;
        case 3:
          text.insert(at, 1 + pick(3), spice[pick(spice.size())]);
          break;
        default:
          text.insert(at, text.substr(pick(text.size()), pick(40)));
          break;
      }
    }
    const auto parsed = parse_toml(text, "mutated");
    tables += parsed.ok();
    if (!parsed.ok()) {
      ASSERT_FALSE(parsed.error().what.empty()) << text;
    }
  }
  EXPECT_GT(tables, 100);  // not all files were rejected at once
}

}  // namespace
}  // namespace urnic
