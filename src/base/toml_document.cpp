#include "base/toml_document.h"

#include <exception>

namespace urnic {
namespace {

// The maximum number of parts of a dotted key: each is a nested table, destroyed recursively.
// bound: parts of a dotted key in a file; beyond: an error with the line; test:
// TomlDocument.DepthIsBounded
constexpr unsigned kMostParts = 8;

struct Tripped : std::exception {};

// The length of the UTF-8 sequence at the front of `s`; 0 if it is invalid (RFC 3629).
std::size_t utf8_length(std::string_view s) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char a = at(0);
  if (a < 0x80) return 1;
  const std::size_t n = a >= 0xc2 && a <= 0xdf   ? 2
                        : (a & 0xf0) == 0xe0     ? 3
                        : a >= 0xf0 && a <= 0xf4 ? 4
                                                 : 0;
  if (n == 0 || s.size() < n) return 0;
  for (std::size_t i = 1; i < n; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, values above U+10FFFF.
  if ((a == 0xe0 && at(1) < 0xa0) || (a == 0xed && at(1) > 0x9f) || (a == 0xf0 && at(1) < 0x90) ||
      (a == 0xf4 && at(1) > 0x8f)) {
    return 0;
  }
  return n;
}

bool begins_key(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '"' || c == '\'';
}

// Tracks strings and comments of a text while it is valid TOML. After the first error it may lose
// track, which is harmless, because the library stops there.
class Walk {
 public:
  explicit Walk(std::string_view text) : text_(text) {}

  const char* first_fault() {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
    while (at_ < text_.size()) {
      if (const char* fault = step()) return fault;
    }
    return nullptr;
  }
  std::uint32_t line() const { return line_; }

 private:
  bool looking_at(std::string_view what) const { return text_.substr(at_).starts_with(what); }

  const char* step() {
    const std::size_t n = utf8_length(text_.substr(at_));
    if (n == 0) return "not UTF-8";
    const char c = text_[at_];
    const auto u = static_cast<unsigned char>(c);
    if ((u < 0x20 && c != '\t' && c != '\n' && !(c == '\r' && looking_at("\r\n"))) || u == 0x7f) {
      return "a control character";
    }
    const bool line_begins = line_begins_;
    if (c == '\n') {
      ++line_;
      line_begins_ = true;
      if (quote_.size() == 1) quote_ = {};  // an error: single-line strings end here
      comment_ = false;
      parts_ = 1;
    } else if (c != ' ' && c != '\t') {
      line_begins_ = false;
    }
    at_ += n;
    if (comment_) return nullptr;
    if (!quote_.empty()) {
      in_string(c);
      return nullptr;
    }
    if (n > 1) return "a character outside ASCII: it can stand in strings and comments only";
    return outside(c, line_begins);
  }

  void in_string(char c) {
    if (c == '\\' && quote_[0] == '"') {
      // The next character does not end the string; the library checks whether it is a valid
      // escape.
      if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\\')) ++at_;
      return;
    }
    --at_;
    if (!looking_at(quote_)) {
      ++at_;
      return;
    }
    at_ += quote_.size();
    // Up to two quotes may directly precede the three that end a string.
    for (int i = 0; quote_.size() == 3 && i < 2 && at_ < text_.size() && text_[at_] == quote_[0];
         ++i) {
      ++at_;
    }
    quote_ = {};
  }

  const char* outside(char c, bool line_begins) {
    switch (c) {
      case '#':
        comment_ = true;
        return nullptr;
      case '"':
      case '\'':
        quote_ =
            c == '"' ? (looking_at("\"\"") ? "\"\"\"" : "\"") : (looking_at("''") ? "'''" : "'");
        at_ += quote_.size() - 1;
        return nullptr;
      case '.':
        return ++parts_ > kMostParts ? "a key of more than 8 parts" : nullptr;
      case '=':
      case ',':
        parts_ = 1;
        return nullptr;
      case '}':
      case ']':
        parts_ = 1;
        if (depth_ != 0) --depth_;
        return nullptr;
      case '{':
      case '[':
        parts_ = 1;
        return depth_++ == 0 && line_begins && c == '[' ? header() : nullptr;
      default:
        return nullptr;
    }
  }

  const char* header() const {
    std::size_t at = at_;
    while (at < text_.size() && (text_[at] == '[' || text_[at] == ' ' || text_[at] == '\t')) ++at;
    // The library has its own messages for an empty header and one that ends with the file.
    if (at == text_.size() || text_[at] == ']' || begins_key(text_[at])) return nullptr;
    return "a table header without a key";
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  unsigned parts_ = 1;      // of the current key
  unsigned depth_ = 0;      // of open brackets and braces
  std::string_view quote_;  // the end of the current string; empty outside of strings
  bool comment_ = false, line_begins_ = true;
};

}  // namespace

void toml_tripped() {
  throw Tripped();
}

std::optional<TomlError> check_toml_text(std::string_view text) {
  Walk walk(text);
  if (const char* fault = walk.first_fault()) return TomlError{walk.line(), fault};
  return std::nullopt;
}

Outcome<toml::table, TomlError> parse_toml(std::string_view text, std::string_view path) {
  if (auto fault = check_toml_text(text)) return fail(std::move(*fault));
  try {
    return toml::parse(text, path);
  } catch (const toml::parse_error& e) {
    return fail(TomlError{e.source().begin.line, std::string(e.description())});
  } catch (const Tripped&) {
    return fail(TomlError{1, "not TOML"});
  } catch (const std::bad_alloc&) {
    return fail(TomlError{1, "no memory to read it"});
  }
}

}  // namespace urnic
