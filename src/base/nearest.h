// The known name that a misspelt one most likely means, for errors that help.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace urnic {

// Insertions, deletions and changes of a letter, and swaps of two neighbours, from `a` to `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The nearest of `known`, whatever its distance; empty when there is none.
std::string nearest_of(std::string_view name, const std::vector<std::string>& known);

// "; the nearest is 'x'" when one is near enough to be meant, else nothing.
std::string nearest_hint(std::string_view name, const std::vector<std::string>& known);

}  // namespace urnic
