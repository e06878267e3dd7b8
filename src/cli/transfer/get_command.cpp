// urnic get: fetches files from a target.
#include <errno.h>
#include <sys/stat.h>

#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/transfer/old_parts.h"
#include "cli/transfer/transfer_run.h"

namespace urnic::cli {
namespace {

class GetCommand : public Command {
 public:
  explicit GetCommand(CLI::App* parent) {
    app = parent->add_subcommand("get", "get files and folders from a target by RDMA Read");
    app->add_option(
           "SOURCE..._[FILE]", words_,
           "ADDRESS[:PORT]/NAME of each file, all on one target; NAME may contain * ? [...]. Then "
           "the destination, - for standard output; without it, or if it is a folder, files keep "
           "their names")
        ->type_name("");
    transfer_.add_to(app);
    options_.add_to(app);
  }
  int run() override {
    if (const int code = understand(); code != kExitOk) return code;
    several_ = sources_.size() > 1 || transfer_.recursive || is_pattern(sources_.front().name);
    return several_ ? get_several() : get_one();
  }

 private:
  int understand() {
    if (words_.empty()) return usage_error("get", "SOURCE is required (see urnic get --help)");
    if (words_.size() > 1) {
      to_ = words_.back();
      words_.pop_back();
    }
    for (const std::string& word : words_) {
      auto parsed = parse_storage_address(word);
      if (!parsed.ok()) return usage_error("get", parsed.error());
      if (parsed->name.empty() && !transfer_.recursive) {
        return usage_error("get", "'" + word + "' has no file name; write ADDRESS[:PORT]/NAME");
      }
      sources_.push_back(*parsed);
      if (!(parsed->endpoint == sources_.front().endpoint)) {
        return usage_error("get",
                           "'" + word + "' is on another target; name files of one target only");
      }
    }
    if (to_ == "-" && transfer_.repeated()) {
      return usage_error("get", "--repeat and --for cannot be combined with standard output");
    }
    if (to_ == "-" && transfer_.resume) {
      return usage_error("get", "--resume cannot be combined with standard output");
    }
    return kExitOk;
  }

  // The local path for a single file with this name at the target.
  std::string path_for(const std::string& name) const {
    if (to_ == "-" || !(to_.empty() || to_.back() == '/' || open_folder(to_).ok())) return to_;
    return (to_.empty() || to_.back() == '/' ? to_ : to_ + "/") + leaf_of(name);
  }

  int get_one() {
    const StorageAddress& from = sources_.front();
    // Check the local path before connecting.
    auto to = LocalDestination::open(path_for(from.name));
    if (!to.ok()) return failed("get", to.error());
    std::unique_ptr<Initiator> client;
    const int code = connect_client("get", options_, &transfer_, from, &client);
    return code == kExitOk ? fetch_one(*client, *to) : code;
  }

  int fetch_one(Initiator& client, const LocalDestination& to) const {
    const std::string &name = sources_.front().name, path = path_for(name);
    TransferPlan plan;
    plan.files.push_back({name, path, false, 0, 0});
    if (transfer_.dry_run) return tell_one(client, &plan);
    if (!to.is_stream()) remove_old_parts(to.folder(), std::time(nullptr), false);
    TransferSteps steps;
    steps.file = [&](const PlannedFile& f, const ProgressFunction& progress) {
      return client.get(f.from, to, transfer_.of_file(), progress);
    };
    const TransferSum sum = move_planned("get", plan, transfer_, steps, client, options_.json);
    // Standard output may receive the file itself.
    return conclude("get", client.endpoint() + "/" + name, path, plan, sum, client, options_.json,
                    path == "-" ? stderr : stdout);
  }

  int tell_one(Initiator& client, TransferPlan* plan) const {
    auto listed = client.list(plan->files.front().from);
    client.disconnect();
    if (!listed) return failed("get", listed.error().message);
    if (listed->empty() || listed->front().folder) {
      return failed("get", "target: " + plan->files.front().from + ": not a regular file");
    }
    plan->files.front().size = listed->front().size;
    return tell_plan("get", *plan, plan->files.front().to, options_.json);
  }

  int get_several() {
    if (to_ == "-" && !(sources_.size() == 1 && !transfer_.recursive)) {
      return usage_error("get", "only one file can go to standard output");
    }
    const std::string folder = to_.empty() ? "." : to_;
    std::unique_ptr<Initiator> client;
    const int code = connect_client("get", options_, &transfer_, sources_.front(), &client);
    if (code != kExitOk) return code;
    TransferPlan plan;
    plan.several = true;
    for (const StorageAddress& from : sources_) {
      const std::string wrong = add_to_plan(from.name, *client, &plan);
      if (wrong.empty()) continue;
      client->disconnect();
      return failed("get", wrong);
    }
    // The name of one file that only looks like a pattern.
    if (sources_.size() == 1 && !transfer_.recursive && plan.files.size() == 1 &&
        plan.files.front().from == sources_.front().name) {
      auto to = LocalDestination::open(path_for(sources_.front().name));
      return to.ok() ? fetch_one(*client, *to) : failed("get", to.error());
    }
    if (to_ == "-")
      return failed("get", "a pattern cannot be used with standard output; name one file");
    if (const std::string wrong = clash_in(plan); !wrong.empty()) return failed("get", wrong);
    if (transfer_.dry_run) {
      client->disconnect();
      return tell_plan("get", plan, folder, options_.json);
    }
    // If several files are fetched, create the last component of the destination folder.
    if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) {
      return failed("get", folder + ": " + std::strerror(errno));
    }
    auto opened = open_folder(folder);
    if (!opened.ok()) return failed("get", opened.error().text);
    remove_old_parts(opened->get(), std::time(nullptr), false);
    TransferSteps steps;
    steps.folder = [&](const PlannedFile& f) -> Result<void> {
      auto made = make_folder(opened->get(), f.to, f.permissions);
      if (!made.ok()) return Error{Errc::io, folder + "/" + made.error().text};
      if (!*made) {  // it existed already: parts of it may exist too
        auto there = open_folder(folder + "/" + f.to);
        if (there.ok()) remove_old_parts(there->get(), std::time(nullptr), false);
      }
      return {};
    };
    steps.file = [&](const PlannedFile& f, const ProgressFunction& progress) -> Result<Transfer> {
      auto to = LocalDestination::below(opened->get(), folder, f.to);
      if (!to.ok()) return Error{Errc::io, to.error()};
      return client->get(f.from, *to, transfer_.of_file(), progress);
    };
    const TransferSum sum = move_planned("get", plan, transfer_, steps, *client, options_.json);
    return conclude("get", client->endpoint() + "/" + sources_.front().name, folder, plan, sum,
                    *client, options_.json, stdout);
  }

  // Returns one line with the reason of a failure; empty on success.
  std::string add_to_plan(const std::string& name, Initiator& client, TransferPlan* plan) const {
    if (!transfer_.recursive && !is_pattern(name)) {
      plan->files.push_back({name, leaf_of(name), false, 0, 0});
      return check_name(name).empty() ? "" : "'" + name + "': " + check_name(name);
    }
    const std::string below = listed_for(name);
    if (!below.empty()) {
      const std::string wrong = check_name(below);
      if (!wrong.empty()) return "'" + name + "': " + wrong;
    }
    auto listed = client.list(below);
    if (!listed) return listed.error().message;
    if (listed->size() >= kMostEntries) {
      return client.endpoint() + "/" + below + ": more than " + std::to_string(kMostEntries) +
             " files are below it; name a folder further down";
    }
    auto found = plan_get(name, *listed, transfer_.recursive, plan);
    if (!found.ok()) return client.endpoint() + ": " + found.error();
    if (!*found && is_pattern(name)) return "target: no file matches '" + name + "'";
    return {};
  }

  ClientOptions options_;
  TransferOptions transfer_;
  std::vector<std::string> words_;
  std::vector<StorageAddress> sources_;
  std::string to_;
  bool several_ = false;
};

}  // namespace

std::unique_ptr<Command> make_get_command(CLI::App* app) {
  return std::make_unique<GetCommand>(app);
}

}  // namespace urnic::cli
