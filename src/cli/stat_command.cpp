// urnic stat: shows the counters of running urnic processes.
#include <poll.h>

#include <cstdio>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/runtime.h"
#include "cli/stat_client.h"
#include "cli/sysfs_view.h"
#include "cli/units.h"

namespace urnic::cli {
namespace {

using Json = nlohmann::ordered_json;

class StatCommand : public Command {
 public:
  explicit StatCommand(CLI::App* parent) {
    app = parent->add_subcommand("stat", "show the counters of running urnic processes");
    auto* pid = app->add_option("PID", pid_, "process to show (default: all of this user)")
                    ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{INT32_MAX}))
                    ->type_name("");
    auto* json = app->add_flag("--json", json_, "print a JSON array with one object per engine");
    auto* prometheus =
        app->add_flag("--prometheus", prometheus_, "print in Prometheus text format");
    json->excludes(prometheus);
    app->add_option("--sysfs", tree_,
                    "print nothing; write the counters into this folder, URNIC_SYSFS of urnic run "
                    "--sysfs --env")
        ->type_name("DIR")
        ->excludes(json)
        ->excludes(prometheus)
        ->excludes(pid);
    app->add_option("--watch", watch_, "print again at this interval, until interrupted")
        ->type_name("TIME")
        ->expected(0, 1)
        ->default_str("1s");
  }

  int run() override {
    std::uint64_t interval = 0;
    if (app->count("--watch") != 0) {
      const auto parsed = parse_duration_ms(watch_.empty() ? "1s" : watch_);
      if (!parsed || *parsed < 10) {
        complain("stat", "--watch " + watch_ + ": must be a time of at least 10ms");
        return kExitUsage;
      }
      interval = *parsed;
    }
    for (;;) {
      const int code = tree_.empty() ? once() : write_tree();
      if (interval == 0 || code != kExitOk) return code;
      pollfd p{stop_fd(), POLLIN, 0};
      if (::poll(&p, 1, static_cast<int>(interval)) > 0) return kExitOk;
      if (!json_ && !prometheus_ && tree_.empty()) std::printf("\n");
    }
  }

 private:
  int write_tree() {
    const auto ok = refresh_counters(tree_);
    if (ok) return kExitOk;
    complain("stat", ok.error().message);
    return kExitFailed;
  }

  int once() {
    std::vector<std::string> texts;
    std::vector<EngineStats> engines;
    std::vector<std::uint64_t> silent;
    std::string why = pid_ != 0 ? "process " + std::to_string(pid_) +
                                      " is not a urnic process of this user (see urnic stat)"
                                : "no urnic process of this user is running";
    for (const StatSocket& socket : find_stat_sockets(stats_directory(), pid_)) {
      auto text = read_stat_socket(socket.path);
      if (!text) {
        why = text.error().message;
        if (text.error().code == Errc::timed_out) silent.push_back(socket.pid);
        continue;
      }
      auto stats = stats_from_json(*text);
      if (!stats) {
        why = socket.path + ": " + stats.error().message;
        continue;
      }
      texts.push_back(std::move(*text));
      engines.push_back(std::move(*stats));
    }
    if (engines.empty()) {
      complain("stat", why + " (sockets in " + stats_directory() + ")");
      return kExitFailed;
    }
    if (json_) {
      Json all = Json::array();
      for (const std::string& text : texts) all.push_back(Json::parse(text, nullptr, false));
      std::printf("%s\n", all.dump(1, ' ', false, Json::error_handler_t::replace).c_str());
    } else if (prometheus_) {
      std::fputs(stat_prometheus(engines).c_str(), stdout);
    } else {
      for (std::size_t i = 0; i < engines.size(); ++i) {
        std::printf("%s%s", i == 0 ? "" : "\n", stat_table(engines[i]).c_str());
      }
    }
    std::fflush(stdout);
    for (const std::uint64_t pid : silent) {
      complain("stat",
               "process " + std::to_string(pid) + " does not respond; it may be stopped (SIGSTOP)");
    }
    return silent.empty() ? kExitOk : kExitFailed;
  }

  std::uint64_t pid_ = 0;
  bool json_ = false, prometheus_ = false;
  std::string watch_ = "1s", tree_;
};

}  // namespace

std::unique_ptr<Command> make_stat_command(CLI::App* app) {
  return std::make_unique<StatCommand>(app);
}

}  // namespace urnic::cli
