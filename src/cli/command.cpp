#include "cli/command.h"

#include <cstdio>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/runtime.h"
#include "port/port.h"

#ifndef URNIC_VERSION
#define URNIC_VERSION "unknown"
#endif

namespace urnic::cli {
namespace {

constexpr const char* kSettingsGroup =
    "Settings (the same names in urnic.toml, as URNIC_NAME in the environment, and here)";

std::string dashed(std::string name) {
  for (char& c : name) {
    if (c == '_') c = '-';
  }
  return name;
}

}  // namespace

void SettingsOptions::add_to(CLI::App* app) {
  command_ = app->get_name();
  app->add_option("--config", file_, "TOML file with settings instead of the usual one")
      ->group(kSettingsGroup)
      ->type_name("FILE");
  for (const Setting& s : Config().settings()) {
    const std::string name = s.name;
    app->add_option_function<std::string>(
           "--" + dashed(name), [this, name](const std::string& v) { given_[name] = v; }, s.help)
        ->group(kSettingsGroup)
        ->type_name(s.value.empty() ? "" : "[" + s.value + "]");
  }
}

Result<Config> SettingsOptions::load() const {
  auto config = Config::load(file_);
  if (!config) return config;
  for (const auto& [name, value] : given_) {
    if (auto ok = config->set(name, value); !ok) {
      return Error{ok.error().code, "--" + dashed(name) + ": " + ok.error().message};
    }
  }
  for (const Setting& s : config->settings()) {
    if (s.name != "name" || s.origin != Origin::standard || command_ == "config") continue;
    if (auto ok = config->set("name", "urnic " + command_); !ok) return ok.error();
  }
  if (auto ok = config->check(); !ok) return ok.error();
  if (const std::string wrong = port::Port::check(config->get("port")); !wrong.empty()) {
    return Error{Errc::invalid_argument, "port = " + config->get("port") + ": " + wrong};
  }
  return config;
}

int run_cli(int argc, const char* const* argv) {
  CLI::App app(
      "urnic: an RNIC in user space. RDMA over iWARP without RDMA hardware, kernel modules "
      "or privileges.",
      "urnic");
  app.set_version_flag("--version", "urnic " URNIC_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  app.footer("Every command has --help. Documentation: docs/cli.md, docs/config.md.");

  std::vector<std::unique_ptr<Command>> commands;
  for (auto make : {make_target_command, make_put_command, make_get_command, make_ls_command,
                    make_perf_command, make_stat_command, make_config_command, make_wire_command,
                    make_sim_command, make_switch_command}) {
    commands.push_back(make(&app));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForAllHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForVersion& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    std::string command;
    for (const auto& c : commands) {
      if (c->app->parsed()) command = c->app->get_name();
    }
    if (command.empty() && argc > 1 && argv[1][0] != '-') {
      complain("", "'" + std::string(argv[1]) + "' is not a command (see urnic --help)");
      return kExitUsage;
    }
    complain(command, std::string(e.what()) + " (see urnic " +
                          (command.empty() ? "" : command + " ") + "--help)");
    return kExitUsage;
  }
  install_stop_signals();
  for (const auto& c : commands) {
    if (c->app->parsed()) return c->run();
  }
  return kExitUsage;
}

}  // namespace urnic::cli
