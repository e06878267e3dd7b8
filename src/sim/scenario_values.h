// The flat form of a scenario file between TOML and Scenario: "wire.to_right.loss" -> "0.01", with
// its line number and TOML type.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace urnic::sim {

enum class ValueType : std::uint8_t { Text, Whole, Real, Flag, List, Given };  // Given: --set

struct Value {
  ValueType type = ValueType::Text;
  std::string text;                // not for List
  std::vector<std::string> items;  // List: strings and numbers as text
  std::uint32_t line = 0;          // 0: from the command line
};

// Sorted by key, so that the same file always gives the same first error.
using Values = std::map<std::string, Value>;

struct ScenarioValues {
  Values common;               // outside of [[variant]] and [[phase]]
  std::vector<Values> phases;  // [[phase]], in order
  struct Variant {
    Values values;               // override the common ones
    std::vector<Values> phases;  // if any, replace the common ones
    std::uint32_t line = 0;
  };
  std::vector<Variant> variants;
};

// The error is "PATH:LINE: description".
Outcome<ScenarioValues, std::string> read_values(std::string_view text, const std::string& path);

}  // namespace urnic::sim
