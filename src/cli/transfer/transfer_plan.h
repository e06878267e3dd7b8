// Which files a put or a get of several moves, and what they are called at the other end. A folder
// whose name ends in a slash means what is in it, as rsync has it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/transfer/storage_message.h"

namespace urnic::cli {

struct PlannedFile {
  std::string from, to;  // "to" of a get is below the folder that it goes to
  bool folder = false;
  std::uint32_t permissions = 0;  // of a folder
  std::uint64_t size = 0;         // as far as it is known before
};

struct TransferPlan {
  std::vector<PlannedFile> files;     // a folder before what is in it
  std::vector<std::string> left_out;  // lines on what is not moved though it was asked for
  bool several = false;               // it is not about one file with one name
};

// What is put: `sources` are local paths, of which each must be there. `name` is the target's, and
// a folder when it is empty or ends in a slash, or where there are several files. The error is one
// line.
Outcome<TransferPlan, std::string> plan_put(const std::vector<std::string>& sources,
                                            const std::string& name, bool recursive);

// Whether a name is a pattern: it has * ? or [ in it.
bool is_pattern(std::string_view name);
// The folder that everything lies in that a pattern may mean; of a name that is none itself.
std::string listed_for(std::string_view name);
// Adds what `name` (a pattern, or a folder that is got with all that is below) means to the plan,
// from what the target has listed for it. The error is one line; a target that lists what was not
// asked for is one.
Outcome<bool, std::string> plan_get(const std::string& name, const std::vector<ListEntry>& listed,
                                    bool recursive, TransferPlan* plan);

// Two files that would have one name at the other end: a line on them, or empty.
std::string clash_in(const TransferPlan& plan);

}  // namespace urnic::cli
