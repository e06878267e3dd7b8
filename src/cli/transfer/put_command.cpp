// urnic put: copies files to a target.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/transfer/transfer_run.h"

namespace urnic::cli {
namespace {

class PutCommand : public Command {
 public:
  explicit PutCommand(CLI::App* parent) {
    app = parent->add_subcommand("put", "put files and folders to a target by RDMA Write");
    app->add_option("FILE..._TARGET", words_,
                    "files to put (- for standard input; folders with -r), then the destination "
                    "ADDRESS[:PORT][/NAME]; without NAME, or if NAME ends in a slash, files keep "
                    "their names")
        ->type_name("");
    transfer_.add_to(app);
    options_.add_to(app);
  }
  int run() override {
    StorageAddress to;
    if (const int code = understand(&to); code != kExitOk) return code;
    // Check the local files before connecting.
    std::optional<LocalSource> input;  // the only file, which may be standard input
    auto plan = plan_put(words_, to.name, transfer_.recursive);
    if (!plan.ok()) return failed("put", plan.error());
    if (const std::string wrong = clash_in(*plan); !wrong.empty()) return failed("put", wrong);
    if (!plan->several) {
      auto from = LocalSource::open(words_.front());
      if (!from.ok()) return failed("put", from.error());
      input = std::move(*from);
    }
    std::unique_ptr<Initiator> client;
    const int code = connect_client("put", options_, &transfer_, to, &client);
    if (code != kExitOk) return code;
    const std::string shown =
        client->endpoint() + "/" + (plan->several ? to.name : plan->files.front().to);
    if (plan->several && client->read_only()) {
      client->disconnect();
      return failed("put", std::string("target: ") + describe(Status::ReadOnly));
    }
    if (transfer_.dry_run) {
      client->disconnect();
      if (!plan->several) {
        const std::string& name = plan->files.front().to;
        const std::string wrong = check_name(name);
        if (!wrong.empty()) return failed("put", "'" + name + "': " + wrong);
      }
      if (client->read_only()) {
        return failed("put", std::string("target: ") + describe(Status::ReadOnly));
      }
      return tell_plan("put", *plan, shown, options_.json);
    }
    TransferSteps steps;
    steps.folder = [&](const PlannedFile& f) { return client->make_folder(f.to, f.permissions); };
    steps.file = [&](const PlannedFile& f, const ProgressFunction& progress) -> Result<Transfer> {
      if (input) return client->put(*input, f.to, transfer_.of_file(), progress);
      auto from = LocalSource::open(f.from);
      if (!from.ok()) return Error{Errc::io, from.error()};
      return client->put(*from, f.to, transfer_.of_file(), progress);
    };
    const TransferSum sum = move_planned("put", *plan, transfer_, steps, *client, options_.json);
    return conclude("put", words_.front(), shown, *plan, sum, *client, options_.json, stdout);
  }

 private:
  // Takes the target from the end of the words; returns an exit code.
  int understand(StorageAddress* to) {
    if (words_.empty()) return usage_error("put", "FILE is required (see urnic put --help)");
    if (words_.size() == 1) {
      return usage_error("put", "FILE and TARGET are required (see urnic put --help)");
    }
    auto parsed = parse_storage_address(words_.back());
    if (!parsed.ok()) return usage_error("put", parsed.error());
    *to = *parsed;
    words_.pop_back();
    if (std::find(words_.begin(), words_.end(), "") != words_.end()) {
      return usage_error("put", "the name of FILE is empty");
    }
    if (std::find(words_.begin(), words_.end(), "-") == words_.end()) return kExitOk;
    if (words_.size() > 1)
      return usage_error("put", "standard input cannot be combined with other files");
    if (to->name.empty() || to->name.back() == '/') {
      return usage_error("put",
                         "standard input needs a name on the target: write ADDRESS[:PORT]/NAME");
    }
    return kExitOk;
  }

  ClientOptions options_;
  TransferOptions transfer_;
  std::vector<std::string> words_;
};

}  // namespace

std::unique_ptr<Command> make_put_command(CLI::App* app) {
  return std::make_unique<PutCommand>(app);
}

}  // namespace urnic::cli
