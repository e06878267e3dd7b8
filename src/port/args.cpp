// Parses "key=value,key=value": the part of a port's name after "kind:" (E-34).
#include <charconv>
#include <string>
#include <string_view>

#include "base/nearest.h"
#include "port/port.h"

namespace urnic::port {
namespace {

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

// Takes one item off the front of `text`. A comma inside double quotes belongs to the value. False
// if a quote is not closed.
bool take_item(std::string_view& text, std::string_view& item) {
  bool quoted = false;
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (text[i] == ',' && !quoted) break;
  }
  item = text.substr(0, i);
  text.remove_prefix(i < text.size() ? i + 1 : i);
  return !quoted;
}

std::string unquoted(std::string_view s) {
  std::string out;
  for (char c : s) {
    if (c != '"') out += c;
  }
  return out;
}

std::string quote(std::string_view s) {
  return "'" + std::string(s) + "'";
}

}  // namespace

Args::Args(std::string_view text) {
  text = trimmed(text);
  while (!text.empty()) {
    std::string_view item;
    if (!take_item(text, item)) {
      if (error_.empty()) error_ = "missing closing double quote in " + quote(item);
      return;
    }
    item = trimmed(item);
    if (item.empty()) continue;
    const std::size_t eq = item.find('=');
    if (eq == std::string_view::npos || trimmed(item.substr(0, eq)).empty()) {
      if (error_.empty()) error_ = "expected key=value, got " + quote(item);
      continue;
    }
    Item it{std::string(trimmed(item.substr(0, eq))), unquoted(trimmed(item.substr(eq + 1)))};
    if (has(it.key)) {
      if (error_.empty()) error_ = "key " + quote(it.key) + " is given twice";
      continue;
    }
    items_.push_back(std::move(it));
  }
}

bool Args::has(std::string_view key) const {
  for (const Item& it : items_) {
    if (it.key == key) return true;
  }
  return false;
}

std::string Args::str(std::string_view key, std::string_view otherwise) {
  known_.emplace_back(key);
  for (Item& it : items_) {
    if (it.key == key) {
      it.used = true;
      return it.value;
    }
  }
  return std::string(otherwise);
}

std::uint64_t Args::num(std::string_view key, std::uint64_t otherwise, std::uint64_t lo,
                        std::uint64_t hi) {
  const std::string text = str(key);
  if (!has(key)) return otherwise;
  std::uint64_t v = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (ec != std::errc() || end != text.data() + text.size() || text.empty() || v < lo || v > hi) {
    if (error_.empty()) {
      error_ = std::string(key) + "=" + text + ": must be a whole number from " +
               std::to_string(lo) + " to " + std::to_string(hi);
    }
    return otherwise;
  }
  return v;
}

bool Args::on_off(std::string_view key, bool otherwise) {
  const std::string text = str(key, otherwise ? "on" : "off");
  if (text == "on" || text == "yes" || text == "1" || text == "true") return true;
  if (text == "off" || text == "no" || text == "0" || text == "false") return false;
  if (error_.empty()) error_ = std::string(key) + "=" + text + ": must be on or off";
  return otherwise;
}

std::string Args::finish() const {
  if (!error_.empty()) return error_;
  for (const Item& it : items_) {
    if (it.used) continue;
    std::string all;
    for (const std::string& k : known_) all += (all.empty() ? "" : ", ") + k;
    return "unknown key " + quote(it.key) + nearest_hint(it.key, known_) +
           "; keys of this port: " + all;
  }
  return {};
}

}  // namespace urnic::port
