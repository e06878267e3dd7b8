// Moving what was planned, file by file over one connection, and saying what came of it.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "cli/transfer/client_options.h"
#include "cli/transfer/transfer_plan.h"

namespace urnic::cli {

// What several transfers over one connection amount to.
struct TransferSum {
  std::uint64_t files = 0, folders = 0, bytes = 0, there_already = 0, failed = 0;
  double seconds = 0;
  Transfer last;
  std::string error;  // the connection is of no use any more, or the only file failed
  struct One {
    std::string name;
    Transfer transfer;
  };
  std::vector<One> each;  // of the last round
};

// What is done with one of the plan.
struct TransferSteps {
  std::function<Result<Transfer>(const PlannedFile&, const ProgressFunction&)> file;
  std::function<Result<void>(const PlannedFile&)> folder;
};

// One that fails is told and the next one tried, as long as the connection lives.
TransferSum move_planned(const std::string& command, const TransferPlan& plan,
                         const TransferOptions& options, const TransferSteps& steps,
                         Initiator& client, bool json);

// The exit code of it. Results go to `out`; `from` and `to`: as a person calls them.
int conclude(const std::string& command, const std::string& from, const std::string& to,
             const TransferPlan& plan, const TransferSum& sum, Initiator& client, bool json,
             std::FILE* out);

// What would be moved, for --dry-run: the exit code.
int tell_plan(const std::string& command, const TransferPlan& plan, const std::string& to,
              bool json);

}  // namespace urnic::cli
