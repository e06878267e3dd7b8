#include "cli/command.h"

#include <sched.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/nearest.h"
#include "cli/option_text.h"
#include "cli/runtime.h"
#include "port/port.h"

#ifndef URNIC_VERSION
#define URNIC_VERSION "unknown"
#endif

namespace urnic::cli {
namespace {

constexpr int kMostCpus = CPU_SETSIZE;

std::string dashed(std::string name) {
  for (char& c : name) {
    if (c == '_') c = '-';
  }
  return name;
}

}  // namespace

void SettingsOptions::add_to(CLI::App* app) {
  command_ = app->get_name();
  app->add_option("--config", file_, "TOML file to read settings from, instead of the default file")
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

namespace {

// Rejects frame settings given on the command line of a process whose port is `tcp` or `udp`: such
// a port has no frames. In a file they are allowed, because the file may serve other ports too.
Result<void> check_kernel_port(const Config& config) {
  const std::string port = config.get("port"), kind = port.substr(0, port.find(':'));
  if (kind != "tcp" && kind != "udp") return {};
  for (const Setting& s : config.settings()) {
    const bool of_frames = (s.name == "mtu" && kind == "tcp") || s.name == "vlan" ||
                           s.name == "mac" || s.name == "gateway" || s.name == "address";
    if (!of_frames || s.origin != Origin::command_line) continue;
    return Error{Errc::invalid_argument,
                 "--" + s.name + " is set by the kernel with --port " + kind + "; leave it out" +
                     (s.name == "address" ? ", or use --port " + kind + ":bind=ADDRESS" : "")};
  }
  return {};
}

}  // namespace

Result<Config> SettingsOptions::load_shared() const {
  auto config = Config::load(file_);
  if (!config) return config;
  for (const auto& [name, value] : given_) {
    if (auto ok = config->set(name, value); !ok) {
      return Error{ok.error().code, "--" + dashed(name) + ": " + ok.error().message};
    }
  }
  return config;
}

Result<Config> SettingsOptions::as_opened(Config config) const {
  for (const Setting& s : config.settings()) {
    if (s.name != "port" || s.origin != Origin::standard || default_port_.empty()) continue;
    const bool roce = config.get("transport") == "roce";
    if (auto ok = config.set("port", roce ? default_roce_port_ : default_port_); !ok) {
      return ok.error();
    }
  }
  for (const Setting& s : config.settings()) {
    if (s.name != "name" || s.origin != Origin::standard || command_ == "config") continue;
    if (auto ok = config.set("name", "urnic " + command_); !ok) return ok.error();
  }
  if (auto ok = config.check(); !ok) return ok.error();
  if (auto ok = check_kernel_port(config); !ok) return ok.error();
  if (const std::string wrong = port::Port::check(config.get("port")); !wrong.empty()) {
    return Error{Errc::invalid_argument, "port = " + config.get("port") + ": " + wrong};
  }
  return config;
}

Result<Config> SettingsOptions::load() const {
  auto shared = load_shared();
  if (!shared) return shared;
  if (!shared->devices().empty()) {  // must come before defaults are filled in
    if (auto ok = shared->check(); !ok) return ok.error();
  }
  auto config = shared->one();
  return config ? as_opened(std::move(*config)) : config;
}

Result<std::vector<SettingsOptions::OfDevice>> SettingsOptions::load_all() const {
  auto shared = load_shared();
  if (!shared) return shared.error();
  std::vector<std::string> names = shared->devices();
  if (names.empty() || !shared->get("device").empty()) {
    auto config = load();
    if (!config) return config.error();
    return std::vector<OfDevice>{{config->get("device"), std::move(*config)}};
  }
  if (auto ok = shared->check(); !ok) return ok.error();
  std::vector<OfDevice> all;
  for (const std::string& name : names) {
    auto config = shared->device(name);
    if (!config) return config.error();
    auto opened = as_opened(std::move(*config));
    if (!opened)
      return Error{opened.error().code, "device " + name + ": " + opened.error().message};
    all.push_back({name, std::move(*opened)});
  }
  return all;
}

std::map<std::string, std::string> SettingsOptions::environment() const {
  std::map<std::string, std::string> out;
  if (!file_.empty()) out["URNIC_CONFIG"] = std::filesystem::absolute(file_).string();
  for (const auto& [name, value] : given_) {
    std::string variable = "URNIC_" + name;
    for (char& c : variable) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    out[variable] = value;
  }
  return out;
}

void add_cpu_option(CLI::App* app, int* cpu) {
  app->add_option("--cpu", *cpu, "CPU to run on")
      ->check(CLI::Range(0, kMostCpus - 1))
      ->type_name("N");
}

namespace {

// The words of the command line without the program name.
using Words = std::vector<std::string>;

const CLI::Option* option_of(const CLI::App& app, const std::string& name) {
  for (const CLI::Option* o : app.get_options()) {
    if (o->check_name(name)) return o;
  }
  return nullptr;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::Option* o : app.get_options()) {
    for (const std::string& name : o->get_lnames()) out.push_back("--" + name);
  }
  return out;
}

// The first word from `at` on that looks like an option but is not one; empty if there is none. It
// is reported before missing arguments, because it was most likely meant to be one of them.
std::string misspelt(const CLI::App& app, const Words& words, std::size_t at) {
  for (; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (word == "--") break;
    if (word.size() < 2 || word[0] != '-') continue;
    const bool is_long = word[1] == '-';
    const std::size_t equals = word.find('=');
    const std::string name = is_long ? word.substr(0, equals) : word.substr(0, 2);
    const CLI::Option* option = option_of(app, name);
    if (option == nullptr) {
      const std::string shown = is_long ? name : word;
      const std::string where = app.get_parent() == nullptr ? "urnic" : "urnic " + app.get_name();
      return "'" + shown + "' is not an option of " + where +
             nearest_hint(shown, option_names(app)) + " (see " + where + " --help)";
    }
    // Its value may begin with a dash.
    const bool given = is_long ? equals != std::string::npos : word.size() > 2;
    if (option->get_items_expected_min() > 0 && !given) ++at;
  }
  return {};
}

// The help lists only these settings and mentions the others in one line.
bool often_used(const std::string& name) {
  return name == "config" || name == "port" || name == "address" || name == "mtu";
}

void print_help(CLI::App* app, bool with_settings) {
  bool hidden = false;
  for (CLI::Option* o : app->get_options()) {
    if (with_settings || o->get_group() != kSettingsGroup) continue;
    if (!o->get_lnames().empty() && often_used(o->get_lnames().front())) continue;
    o->group("");
    hidden = true;
  }
  std::string text = app->help(app->get_parent() == nullptr ? "" : "urnic");
  if (hidden) {
    text += "\nAll other settings are options too; list them with urnic " + app->get_name() +
            " --help-all or urnic config\n";
  }
  std::fputs(text.c_str(), stdout);
}

CLI::App* command_of(CLI::App* app, const std::string& name) {
  for (CLI::App* c : app->get_subcommands([](const CLI::App*) { return true; })) {
    if (c->get_name() == name) return c;
  }
  return nullptr;
}

std::string command_names(const CLI::App& app, Words* names) {
  std::string all;
  for (const CLI::App* c : app.get_subcommands([](const CLI::App*) { return true; })) {
    names->push_back(c->get_name());
    all += (all.empty() ? "" : ", ") + c->get_name();
  }
  return all;
}

// Handles `urnic help [COMMAND]`, -h, --help and --help-all. Returns true if one of them was given;
// *code is then the exit code.
bool helped(CLI::App* app, const Words& words, int* code) {
  *code = kExitOk;
  const auto end = std::find(words.begin(), words.end(), "--");
  const auto asked = [&](const char* word) { return std::find(words.begin(), end, word) != end; };
  const bool all = asked("--help-all");
  const bool by_word = !words.empty() && words[0] == "help";
  if (!all && !by_word && !asked("--help") && !asked("-h")) return false;
  Words rest(words.begin() + (by_word ? 1 : 0), words.end());
  CLI::App* which = app;
  if (!rest.empty() && rest[0][0] != '-') which = command_of(app, rest[0]);
  if (which == nullptr) {
    Words names;
    command_names(*app, &names);
    complain("", "'" + rest[0] + "' is not a command" + nearest_hint(rest[0], names) +
                     " (see urnic --help)");
    *code = kExitUsage;
    return true;
  }
  print_help(which, all);
  return true;
}

// The name of a positional that takes several words shows it: "FILE... TARGET".
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    return positional ? positional_name(*option) : Formatter::make_option_name(option, false);
  }
  std::string make_option_usage(const CLI::Option* option) const override {
    return is_several(option) ? positional_name(*option) : Formatter::make_option_usage(option);
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return is_several(option) ? "" : Formatter::make_option_opts(option);
  }

 private:
  static bool is_several(const CLI::Option* option) {
    return option->get_positional() && positional_name(*option).find("... ") != std::string::npos;
  }
};

int run_commands(int argc, const char* const* argv) {
  const WholeCommand whole;
  CLI::App& app = *whole.app;
  const Words words(argv + 1, argv + argc);
  const auto end_of_options = std::find(words.begin(), words.end(), "--");
  complain_as_json(std::find(words.begin(), end_of_options, "--json") != end_of_options);
  Words names;
  const std::string all = command_names(app, &names);
  const CLI::App* chosen = &app;
  std::size_t at = 0;
  if (!words.empty() && !words[0].empty() && words[0][0] != '-' && words[0] != "help") {
    chosen = command_of(&app, words[0]);
    if (chosen == nullptr) {
      complain("", "'" + words[0] + "' is not a command" + nearest_hint(words[0], names) +
                       " (see urnic --help)");
      return kExitUsage;
    }
    at = 1;
  }
  if (int code = 0; helped(&app, words, &code)) return code;
  if (words.empty() || words[0].empty()) {
    complain("", "command required: " + all + " (see urnic --help)");
    return kExitUsage;
  }
  if (const std::string wrong = misspelt(*chosen, words, at); !wrong.empty()) {
    complain(chosen == &app ? "" : chosen->get_name(), wrong);
    return kExitUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForVersion& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    const std::string command = chosen == &app ? "" : chosen->get_name();
    complain(command, std::string(e.what()) + " (see urnic " +
                          (command.empty() ? "" : command + " ") + "--help)");
    return kExitUsage;
  }
  install_stop_signals();
  for (const auto& c : whole.commands) {
    if (c->app->parsed()) return c->run();
  }
  return kExitUsage;
}

}  // namespace

WholeCommand::~WholeCommand() = default;
WholeCommand::WholeCommand()
    : app(std::make_unique<CLI::App>("urnic: an RNIC in user space. RDMA over iWARP and RoCEv2 "
                                     "without RDMA hardware, kernel modules "
                                     "or privileges.",
                                     "urnic")) {
  app->set_version_flag("-V,--version", "urnic " URNIC_VERSION);
  app->require_subcommand(1);
  app->formatter(std::make_shared<HelpFormatter>());
  app->get_formatter()->column_width(34);
  app->footer(
      "urnic help COMMAND, or urnic COMMAND --help. Documentation: docs/cli.md, docs/config.md.");
  for (auto make : {make_target_command, make_put_command, make_get_command, make_ls_command,
                    make_perf_command, make_stat_command, make_config_command, make_wire_command,
                    make_sim_command, make_switch_command, make_run_command}) {
    commands.push_back(make(app.get()));
    // helped() handles this flag before anything is parsed.
    commands.back()->app->add_flag_function(
        "--help-all", [](std::int64_t) {}, "print this help with all settings");
  }
}

int run_cli(int argc, const char* const* argv) {
  try {
    return run_commands(argc, argv);
  } catch (const std::exception& e) {
    complain("", std::string("internal error: ") + e.what());
    return kExitFailed;
  }
}

}  // namespace urnic::cli
