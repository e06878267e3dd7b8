// Golden data of tests/golden: lines `name | remark | hex`; see the README there.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "tests/support/source_dir.h"

namespace urnic::test {

using Bytes = std::vector<std::uint8_t>;

// Converts "00 1d41*3" to 00 1d 41 41 41. Anything else in the text fails the test.
inline Bytes from_hex(std::string_view text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  Bytes out;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == ' ') {
      ++i;
    } else if (text[i] == '*' && !out.empty()) {
      std::size_t n = 0;
      while (++i < text.size() && text[i] >= '0' && text[i] <= '9') n = n * 10 + (text[i] - '0');
      const std::uint8_t byte = out.back();
      out.pop_back();
      out.insert(out.end(), n, byte);
    } else if (i + 1 < text.size() && digit(text[i]) >= 0 && digit(text[i + 1]) >= 0) {
      out.push_back(static_cast<std::uint8_t>(digit(text[i]) << 4 | digit(text[i + 1])));
      i += 2;
    } else {
      ADD_FAILURE() << "not hex: " << text;
      return {};
    }
  }
  return out;
}

inline std::string to_hex(ByteView bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string s;
  for (const std::uint8_t b : bytes) {
    s += kDigits[b >> 4];
    s += kDigits[b & 15];
  }
  return s;
}

struct Golden {
  std::string name, remark;
  Bytes bytes;
};

inline std::string golden_path(const std::string& file) {
  return source_dir() + "/tests/golden/" + file;
}

inline std::vector<Golden> read_golden(const std::string& file) {
  const auto trim = [](std::string s) {
    const auto first = s.find_first_not_of(' ');
    if (first == std::string::npos) return std::string();
    return s.substr(first, s.find_last_not_of(' ') - first + 1);
  };
  std::ifstream in(golden_path(file));
  EXPECT_TRUE(in) << "cannot read " << golden_path(file);
  std::vector<Golden> all;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const auto a = line.find('|'), b = line.rfind('|');
    if (a == std::string::npos || a == b) {
      ADD_FAILURE() << file << ": " << line;
      continue;
    }
    all.push_back({trim(line.substr(0, a)), trim(line.substr(a + 1, b - a - 1)),
                   from_hex(trim(line.substr(b + 1)))});
  }
  EXPECT_FALSE(all.empty()) << file;
  return all;
}

// The entry `name` of `file`; if it is missing, the test fails and an empty one is returned.
inline Golden golden(const std::string& file, const std::string& name) {
  for (Golden& g : read_golden(file)) {
    if (g.name == name) return g;
  }
  ADD_FAILURE() << file << " has no " << name;
  return {};
}

}  // namespace urnic::test
