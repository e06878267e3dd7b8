// The table of settings: every key of the configuration with its default, one line of help and the
// check of its value. The order is that of `urnic config`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace urnic::config {

enum class Kind : std::uint8_t {
  Text,       // anything without control characters
  Number,     // lo..hi; also "auto" if it is in `choices`
  Size,       // bytes in lo..hi, with the suffixes K, M, G (powers of 1024)
  Switch,     // on | off (also yes/no, true/false, 1/0)
  Choice,     // one of `choices`
  Set,        // some of `choices`, separated by commas
  Addresses,  // "auto", or address/prefix,...
  Gateway,    // empty, or one address of each family
  Mac,        // "auto", or a unicast MAC address
  Prefixes,   // empty, or address[/prefix],...
  Port,       // kind:key=value,...
};

struct Key {
  const char* name;
  Kind kind;
  const char* standard;  // default as text; nullptr: computed by default_text()
  const char* help;
  const char* choices = "";  // "a|b|c"
  std::int64_t lo = 0, hi = 0;
};

std::span<const Key> keys();
// The position in keys(), or -1.
int find_key(std::string_view name);
// The known key most similar to `name`.
std::string nearest_key(std::string_view name);
std::string default_text(const Key& key);
// Converts `text` to its canonical form ("on", plain decimal numbers, no blanks), or returns the
// error.
Outcome<std::string, std::string> normalise(const Key& key, std::string_view text);

}  // namespace urnic::config
