// urnic run: runs an unmodified verbs program on urnic. The libraries of src/dropin take precedence
// over the system's, the settings are passed in the environment, and the program replaces this
// process.
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/dropin.h"
#include "cli/runtime.h"
#include "cli/sysfs_view.h"
#include "fault/verbs_plan.h"

namespace urnic::cli {
namespace {

// The exit codes that a shell uses.
constexpr int kExitNotRunnable = 126, kExitNotFound = 127;

std::string search_path(const std::string& program) {
  if (program.find('/') != std::string::npos) return program;
  const char* path = std::getenv("PATH");
  std::string rest = path != nullptr ? path : "/usr/bin:/bin";
  while (true) {
    const std::size_t colon = rest.find(':');
    const std::string folder = rest.substr(0, colon);
    std::string file = (folder.empty() ? "." : folder) + "/" + program;
    struct stat s;
    if (access(file.c_str(), X_OK) == 0 && stat(file.c_str(), &s) == 0 && S_ISREG(s.st_mode)) {
      return file;
    }
    if (colon == std::string::npos) return {};
    rest.erase(0, colon + 1);
  }
}

// A connection over the kernel's TCP takes a descriptor, unlike one of a hardware RNIC. A program
// with many connections may therefore need more descriptors than its limit allows.
void raise_descriptor_limit() {
  constexpr rlim_t kEnough = 65536;  // more slows programs that close all descriptors
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t most = std::min(limit.rlim_max, kEnough);
  if (limit.rlim_cur >= most) return;
  limit.rlim_cur = most;
  setrlimit(RLIMIT_NOFILE, &limit);
}

class RunCommand : public Command {
 public:
  explicit RunCommand(CLI::App* parent) {
    app = parent->add_subcommand(
        "run", "run an unmodified verbs program on urnic: urnic run [settings] -- PROGRAM ARGS");
    app->add_flag(
        "--env", env_,
        "print the environment variables for such a program as NAME=VALUE lines; run nothing");
    app->add_option("program", words_, "program to run and its arguments, after --")
        ->type_name("PROGRAM ARGS");
    app->add_flag(
        "--sockets", sockets_,
        "carry the program's TCP sockets over RDMA (rsockets); the peer must run with --sockets "
        "too, or use rsockets itself");
    app->add_flag(
        "--sysfs", sysfs_,
        "show the device in /sys/class/infiniband and /dev/infiniband, for programs that look "
        "there instead of calling the libraries");
    app->add_option(
           "--verbs-faults", faults_,
           "make the program's verbs fail: see docs/verbs-faults.md; may be given several times")
        ->allow_extra_args(false)
        ->type_name("PLAN");
    app->add_option("--verbs-faults-log", faults_log_,
                    "append one line for each of these faults to FILE (default: standard error)")
        ->type_name("FILE");
    settings_.default_port("tcp", "udp");
    settings_.add_to(app);
  }

  int run() override {
    if (auto ok = settings_.load_all(); !ok) return refuse(ok.error().message, kExitUsage);
    const std::string folder = dropin_folder();
    if (folder.empty()) {
      return refuse(
          "drop-in libraries not found: install the package urnic-verbs, or build urnic with "
          "libibverbs-dev and librdmacm-dev installed",
          kExitFailed);
    }
    std::map<std::string, std::string> variables = settings_.environment();
    const char* old = std::getenv("LD_LIBRARY_PATH");
    variables["LD_LIBRARY_PATH"] =
        folder + (old != nullptr && *old != 0 ? ":" + std::string(old) : "");
    if (env_ && !words_.empty())
      return refuse("--env cannot be combined with a program", kExitUsage);
    if (const std::string wrong = add_verbs_faults(&variables); !wrong.empty()) {
      return refuse(wrong, kExitUsage);
    }
    if (!env_ && words_.empty()) {
      return refuse("PROGRAM is required: urnic run [settings] -- PROGRAM ARGS", kExitUsage);
    }
    if (sysfs_) {
      auto files = write_sysfs(folder, variables);
      if (!files) return refuse(files.error().message, kExitFailed);
      variables["URNIC_SYSFS"] = *files;
      preload(sysfs_library(folder), &variables);
    }
    if (sockets_) preload(sockets_library(folder), &variables);
    if (env_) {
      for (const auto& [name, value] : variables) {
        std::printf("%s=%s\n", name.c_str(), value.c_str());
      }
      return kExitOk;
    }
    const std::string file = search_path(words_[0]);
    if (file.empty()) return refuse("program not found: '" + words_[0] + "'", kExitNotFound);
    if (access(file.c_str(), F_OK) != 0 && errno == ENOENT) {
      return refuse(file + ": " + std::strerror(ENOENT), kExitNotFound);
    }
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    if (const std::string wrong = cannot_be_run(file, folder); !wrong.empty()) {
      return refuse(wrong, kExitNotRunnable);
    }
    std::vector<char*> arguments;
    for (std::string& word : words_) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    restore_signals();
    raise_descriptor_limit();
    execv(file.c_str(), arguments.data());
    const int error = errno;
    return refuse(file + ": " + std::strerror(error),
                  error == ENOENT ? kExitNotFound : kExitNotRunnable);
  }

 private:
  // Empty, or what is wrong with the options. Faults reach only the program that is started here
  // and what it starts: they are no setting, and --env does not print them.
  std::string add_verbs_faults(std::map<std::string, std::string>* variables) const {
    if (faults_.empty()) {
      return faults_log_.empty() ? "" : "--verbs-faults-log needs --verbs-faults";
    }
    if (env_) return "--env cannot be combined with --verbs-faults";
    std::string all;
    for (const std::string& plan : faults_) all += (all.empty() ? "" : ";") + plan;
    if (const auto plans = fault::parse_verbs_plans(all); !plans.ok()) return plans.error();
    (*variables)["URNIC_VERBS_FAULTS"] = all;
    if (faults_log_.empty()) return {};
    std::error_code error;
    const auto file = std::filesystem::absolute(faults_log_, error);
    (*variables)["URNIC_VERBS_FAULTS_LOG"] = error ? faults_log_ : file.string();
    return {};
  }
  // Put it before the libraries that the user or urnic already preloads.
  static void preload(const std::string& library, std::map<std::string, std::string>* variables) {
    std::string& all = (*variables)["LD_PRELOAD"];
    if (const char* users = std::getenv("LD_PRELOAD"); all.empty() && users != nullptr) all = users;
    all = library + (all.empty() ? "" : ":" + all);
  }
  static int refuse(const std::string& why, int code) {
    complain("run", why);
    return code;
  }

  bool env_ = false, sockets_ = false, sysfs_ = false;
  std::vector<std::string> words_, faults_;
  std::string faults_log_;
  SettingsOptions settings_;
};

}  // namespace

std::unique_ptr<Command> make_run_command(CLI::App* app) {
  return std::make_unique<RunCommand>(app);
}

}  // namespace urnic::cli
