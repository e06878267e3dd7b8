// Deletes old parts that interrupted transfers with --resume have left (E-38).
#pragma once

#include <cstddef>
#include <cstdint>

namespace urnic::cli {

// The age in days, since the last change, after which a part is deleted.
// bound: days that the part of an interrupted transfer is kept; beyond: it is deleted; test:
// OldParts.AreDeletedAndYoungOnesAreKept
inline constexpr int kDaysOfAPart = 7;

// Deletes the parts in the folder, and with `below` also in the folders below it, that have not
// changed for kDaysOfAPart at `now` (wall clock, in seconds). A part is a regular file of this user
// under a temporary name that is not locked. Links are not followed. Returns the number of deleted
// files.
std::size_t remove_old_parts(int folder, std::int64_t now, bool below);

}  // namespace urnic::cli
