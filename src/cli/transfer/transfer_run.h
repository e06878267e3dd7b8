// Moves the planned files one by one over one connection and reports the result.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "cli/transfer/client_options.h"
#include "cli/transfer/transfer_plan.h"

namespace urnic::cli {

// The total of several transfers over one connection.
struct TransferSum {
  std::uint64_t files = 0, folders = 0, bytes = 0, there_already = 0, failed = 0;
  double seconds = 0;
  Transfer last;
  std::string error;  // the connection is unusable, or the only file failed
  struct One {
    std::string name;
    Transfer transfer;
  };
  std::vector<One> each;  // of the last round
};

// How to move one file or folder of the plan.
struct TransferSteps {
  std::function<Result<Transfer>(const PlannedFile&, const ProgressFunction&)> file;
  std::function<Result<void>(const PlannedFile&)> folder;
};

// Reports a failed file and continues with the next one while the connection lives.
TransferSum move_planned(const std::string& command, const TransferPlan& plan,
                         const TransferOptions& options, const TransferSteps& steps,
                         Initiator& client, bool json);

// Prints the result to `out` and returns the exit code. `from` and `to`: as the user wrote them.
int conclude(const std::string& command, const std::string& from, const std::string& to,
             const TransferPlan& plan, const TransferSum& sum, Initiator& client, bool json,
             std::FILE* out);

// Prints what would be moved, for --dry-run; returns the exit code.
int tell_plan(const std::string& command, const TransferPlan& plan, const std::string& to,
              bool json);

}  // namespace urnic::cli
