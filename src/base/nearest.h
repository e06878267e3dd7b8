// Finds the known name that a misspelled one most likely means, for helpful error messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace urnic {

// The number of insertions, deletions, changes of a letter, and swaps of adjacent letters from `a`
// to `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The nearest of `known`, whatever its distance; empty if there is none.
std::string nearest_of(std::string_view name, const std::vector<std::string>& known);

// "; the nearest is 'x'" if one is close enough, else empty.
std::string nearest_hint(std::string_view name, const std::vector<std::string>& known);

}  // namespace urnic
