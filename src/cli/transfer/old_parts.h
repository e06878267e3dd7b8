// What interrupted transfers with --resume have left, and nobody has gone on with for long (E-38).
#pragma once

#include <cstddef>
#include <cstdint>

namespace urnic::cli {

// Days without a change after which what waits to be gone on with is not wanted any more.
// bound: days that the part of an interrupted transfer is kept; beyond: it is deleted; test:
// OldParts.GoAndYoungOnesStay
inline constexpr int kDaysOfAPart = 7;

// Takes away the parts in the folder, and with `below` in those below it, that have not changed for
// kDaysOfAPart at `now` (seconds of the wall clock): regular files under a temporary name, of this
// user, that nobody holds. Links are not followed. Returns how many went.
std::size_t remove_old_parts(int folder, std::int64_t now, bool below);

}  // namespace urnic::cli
