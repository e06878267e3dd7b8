// TOML files, by toml++, with input kept away from the library that its assertions do not survive:
// whatever a file holds, the answer is a table or one line that says what is wrong.
//
// All who read TOML include this header, never <toml++/toml.h>: the library's settings must be the
// same in every translation unit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

// What the text check below does not foresee is thrown, not asserted, and caught in parse_toml().
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

// `path` is what the nodes say they come from.
Outcome<toml::table, TomlError> parse_toml(std::string_view text, std::string_view path);

// The first thing in `text` that no TOML document has and that the library must not meet: bytes
// that are no UTF-8, control characters, characters outside ASCII where a key or a value could
// begin, a table header without a key, keys of very many parts. No value: none of them; the text
// may still be wrong in ways the library reports itself.
std::optional<TomlError> check_toml_text(std::string_view text);

}  // namespace urnic
