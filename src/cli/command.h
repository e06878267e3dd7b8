// The subcommands of `urnic` and what they have in common on the command line.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "urnic/config.h"

namespace CLI {
class App;
}

namespace urnic::cli {

// The group of options that are settings.
inline constexpr const char* kSettingsGroup =
    "Settings (the same names in urnic.toml, as URNIC_NAME in the environment, and here)";

// Every setting of the configuration as an option of a command: --max-recovery-attempts 3.
class SettingsOptions {
 public:
  void add_to(CLI::App* app);
  // File, environment, then the options given; checked as a whole, and with the one device of the
  // file that the command opens. A process that nobody named is called after its command.
  Result<Config> load() const;
  // The same for a command that opens none: of each device of the file, as it would be opened. The
  // one without a name is the only one.
  struct OfDevice {
    std::string name;
    Config config;
  };
  Result<std::vector<OfDevice>> load_all() const;
  // What is in force before a device is chosen.
  Result<Config> load_shared() const;
  // What `port` is when nobody says it, and with transport = roce.
  void default_port(std::string port, std::string over_roce) {
    default_port_ = std::move(port);
    default_roce_port_ = std::move(over_roce);
  }
  // The options given, as URNIC_NAME=value, so that another process has them.
  std::map<std::string, std::string> environment() const;

 private:
  Result<Config> as_opened(Config config) const;

  std::string command_, file_, default_port_, default_roce_port_;
  std::map<std::string, std::string> given_;
};

// --cpu N of every command that can be pinned.
void add_cpu_option(CLI::App* app, int* cpu);

// Each adds its subcommand to `app`; the returned function runs it and gives the exit code.
class Command {
 public:
  virtual ~Command() = default;
  virtual int run() = 0;
  CLI::App* app = nullptr;
};

std::unique_ptr<Command> make_target_command(CLI::App* app);
std::unique_ptr<Command> make_put_command(CLI::App* app);
std::unique_ptr<Command> make_get_command(CLI::App* app);
std::unique_ptr<Command> make_ls_command(CLI::App* app);
std::unique_ptr<Command> make_perf_command(CLI::App* app);
std::unique_ptr<Command> make_stat_command(CLI::App* app);
std::unique_ptr<Command> make_config_command(CLI::App* app);
std::unique_ptr<Command> make_wire_command(CLI::App* app);
std::unique_ptr<Command> make_sim_command(CLI::App* app);
std::unique_ptr<Command> make_switch_command(CLI::App* app);
std::unique_ptr<Command> make_run_command(CLI::App* app);

// `urnic` with all its subcommands, for who runs it and who describes it (manual.h, completion.h).
struct WholeCommand {
  std::unique_ptr<CLI::App> app;
  std::vector<std::unique_ptr<Command>> commands;  // in the order of the help
  WholeCommand();
  ~WholeCommand();
};

// The whole program.
int run_cli(int argc, const char* const* argv);

}  // namespace urnic::cli
