// The subcommands of `urnic` and the code they share for the command line.
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
  // Reads the file, then the environment, then the given options, and checks the result as a whole,
  // with the one device of the file that the command opens. A process without a configured name is
  // named after its command.
  Result<Config> load() const;
  // The same for a command that opens no device: the configuration of each device of the file as it
  // would be opened. A device without a name is the only one.
  struct OfDevice {
    std::string name;
    Config config;
  };
  Result<std::vector<OfDevice>> load_all() const;
  // The settings in force before a device is chosen.
  Result<Config> load_shared() const;
  // The default of `port`, for iWARP and for transport = roce.
  void default_port(std::string port, std::string over_roce) {
    default_port_ = std::move(port);
    default_roce_port_ = std::move(over_roce);
  }
  // The given options as URNIC_NAME=value, to pass them on to another process.
  std::map<std::string, std::string> environment() const;

 private:
  Result<Config> as_opened(Config config) const;

  std::string command_, file_, default_port_, default_roce_port_;
  std::map<std::string, std::string> given_;
};

// --cpu N, for every command that can be pinned.
void add_cpu_option(CLI::App* app, int* cpu);

// Each make_ function adds its subcommand to `app`; the returned object runs it and returns the
// exit code.
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

// `urnic` with all its subcommands, for the program itself and for its descriptions (manual.h,
// completion.h).
struct WholeCommand {
  std::unique_ptr<CLI::App> app;
  std::vector<std::unique_ptr<Command>> commands;  // in the order of the help
  WholeCommand();
  ~WholeCommand();
};

int run_cli(int argc, const char* const* argv);

}  // namespace urnic::cli
