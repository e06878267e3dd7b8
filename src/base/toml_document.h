// Parses TOML files with toml++. Input that its assertions would not survive is rejected before:
// for any file, the result is a table or one line that describes the error.
//
// All code that reads TOML includes this header, never <toml++/toml.h>: the library's settings must
// be the same in every translation unit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

// Errors that the text check below does not detect are thrown instead of asserted, and caught in
// parse_toml().
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_EXCEPTIONS 1
#define TOML_ASSERT(expr) ((expr) ? void() : ::urnic::toml_tripped())
#define TOML_MAX_NESTED_VALUES 16
namespace urnic {
[[noreturn]] void toml_tripped();
}  // namespace urnic
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace urnic {

struct TomlError {
  std::uint32_t line = 0;  // from 1
  std::string what;
};

// `path`: the source name recorded in the nodes.
Outcome<toml::table, TomlError> parse_toml(std::string_view text, std::string_view path);

// Finds the first construct in `text` that is invalid in every TOML document and that the library
// cannot handle: invalid UTF-8, control characters, non-ASCII characters where a key or a value
// could begin, a table header without a key, keys with very many parts. Returns nothing if there is
// none; the text may still have errors that the library itself reports.
std::optional<TomlError> check_toml_text(std::string_view text);

}  // namespace urnic
