// Parses one segment line of a script (scripts/README.md).
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tcp/segment.h"

namespace urnic::tcp::test {

struct Line {
  std::string flags;
  std::uint32_t begin = 0, end = 0, len = 0;
  bool has_ack = false, has_win = false, has_options = false;
  std::uint32_t ack = 0, win = 0;
  bool ect = false, ce = false, any_ts = false;
  Options options;
  std::vector<std::string> option_names;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> sack;
  std::pair<std::uint32_t, std::uint32_t> corrupted;
};

inline void parse_options(std::string text, Line* l) {
  l->has_options = true;
  const auto close = text.find('>');
  EXPECT_NE(close, std::string::npos);
  std::istringstream list(text.substr(0, close));
  std::string item;
  while (std::getline(list, item, ',')) {
    std::istringstream in(item);
    std::string name;
    if (!(in >> name)) continue;
    l->option_names.push_back(name);
    unsigned v = 0;
    if (name == "mss") {
      in >> v;
      l->options.has_mss = true;
      l->options.mss = static_cast<std::uint16_t>(v);
    } else if (name == "wscale") {
      in >> v;
      l->options.has_wscale = true;
      l->options.wscale = static_cast<std::uint8_t>(v);
    } else if (name == "sackOK") {
      l->options.sack_permitted = true;
    } else if (name == "ts") {
      l->options.has_ts = true;
      std::string a, b;
      in >> a >> b;
      l->any_ts = a == "*";
      if (!l->any_ts) l->options.tsval = static_cast<std::uint32_t>(std::stoul(a));
      l->options.tsecr = static_cast<std::uint32_t>(std::stoul(b));
    } else if (name == "corruptOK") {
      l->options.corruption_permitted = true;
    } else if (name == "corrupt") {
      char colon;
      l->options.has_corrupted = true;
      in >> l->corrupted.first >> colon >> l->corrupted.second;
    } else if (name == "sack") {
      std::uint32_t b, e;
      char colon;
      while (in >> b >> colon >> e) l->sack.emplace_back(b, e);
    } else {
      EXPECT_EQ(name, "nop");
    }
  }
}

inline Line parse_line(std::istringstream& in) {
  Line l;
  std::string range, word;
  in >> l.flags >> range;
  char c1, c2, c3;
  std::istringstream r(range);
  r >> l.begin >> c1 >> l.end >> c2 >> l.len >> c3;
  EXPECT_TRUE(r && c1 == ':' && c2 == '(' && c3 == ')') << range;
  EXPECT_EQ(l.end - l.begin, l.len) << range;
  while (in >> word) {
    if (word == "ack") {
      l.has_ack = true;
      in >> l.ack;
    } else if (word == "win") {
      l.has_win = true;
      in >> l.win;
    } else if (word == "ect") {
      l.ect = true;
    } else if (word == "ce") {
      l.ce = true;
    } else if (word[0] == '<') {
      std::string rest;
      std::getline(in, rest);
      parse_options(word.substr(1) + rest, &l);
    } else {
      ADD_FAILURE() << "what is " << word;
    }
  }
  return l;
}

inline std::uint16_t flag_bits(const std::string& text) {
  std::uint16_t f = 0;
  for (const char c : text) {
    switch (c) {
      case 'S':
        f |= kSyn;
        break;
      case 'F':
        f |= kFin;
        break;
      case 'R':
        f |= kRst;
        break;
      case 'P':
        f |= kPsh;
        break;
      case '.':
        f |= kAck;
        break;
      case 'E':
        f |= kEce;
        break;
      case 'W':
        f |= kCwr;
        break;
      case 'U':
        f |= kUrg;
        break;
      case '0':
        break;  // see expect()
      default:
        ADD_FAILURE() << "flag " << c;
    }
  }
  return f;
}

}  // namespace urnic::tcp::test
