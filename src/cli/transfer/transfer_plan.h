// Determines which files a put or get moves, and their names at the other end. A folder name that
// ends in a slash means its content, as in rsync.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/transfer/storage_message.h"

namespace urnic::cli {

struct PlannedFile {
  std::string from, to;  // for a get, "to" is relative to the destination folder
  bool folder = false;
  std::uint32_t permissions = 0;  // for a folder
  std::uint64_t size = 0;         // if known in advance
};

struct TransferPlan {
  std::vector<PlannedFile> files;     // a folder precedes its content
  std::vector<std::string> left_out;  // lines about requested files that are not moved
  bool several = false;               // not just one file with one name
};

// Plans a put. `sources` are local paths, all of which must exist. `name` is the name at the
// target. It is a folder if it is empty or ends in a slash, or if there are several files. The
// error is one line.
Outcome<TransferPlan, std::string> plan_put(const std::vector<std::string>& sources,
                                            const std::string& name, bool recursive);

// True if the name is a pattern: it contains * ? or [.
bool is_pattern(std::string_view name);
// The folder to list for a pattern: it contains all possible matches. For other names, the name
// itself.
std::string listed_for(std::string_view name);
// Adds the files that `name` (a pattern, or a folder to fetch recursively) matches to the plan,
// from the target's listing. The error is one line; a listing with entries that were not requested
// is an error.
Outcome<bool, std::string> plan_get(const std::string& name, const std::vector<ListEntry>& listed,
                                    bool recursive, TransferPlan* plan);

// If two files would get the same name at the other end: one line about them, else empty.
std::string clash_in(const TransferPlan& plan);

}  // namespace urnic::cli
