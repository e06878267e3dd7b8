// urnic config: shows the settings in force and the origin of each value.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/file_queue.h"
#include "cli/runtime.h"
#include "cli/table.h"

namespace urnic::cli {
namespace {

// Formats text as a TOML value: numbers and booleans bare, everything else quoted.
std::string toml_value(const std::string& v) {
  if (v == "on") return "true";
  if (v == "off") return "false";
  if (!v.empty() && v.find_first_not_of("0123456789") == std::string::npos) return v;
  std::string out = "\"";
  for (const char c : v) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

using Devices = std::vector<SettingsOptions::OfDevice>;

// The settings of a device that differ from the shared ones, without its name, which is already
// printed.
std::vector<Setting> own_of(const Config& device, const Config& shared) {
  const std::vector<Setting> all = shared.settings();
  std::vector<Setting> own;
  for (std::size_t i = 0; const Setting& s : device.settings()) {
    const Setting& of_all = all[i++];
    const bool same = s.value == of_all.value && s.origin_detail == of_all.origin_detail;
    if (!same && s.name != "device") own.push_back(s);
  }
  return own;
}

nlohmann::ordered_json as_json(const std::vector<Setting>& settings) {
  nlohmann::ordered_json j;
  for (const Setting& s : settings) {
    j[s.name] = {{"value", s.value}, {"origin", s.origin_detail}, {"help", s.help}};
  }
  return j;
}

void print_toml(const std::vector<Setting>& settings) {
  for (const Setting& s : settings) {
    if (s.name == "device") continue;  // not a setting of a file
    std::string help;
    for (const char c : wrapped(s.help, 0, 96)) help += c == '\n' ? "\n# " : std::string(1, c);
    std::printf("# %s\n", help.c_str());
    std::printf("%s%s = %s\n\n", s.origin == Origin::standard ? "# " : "", s.name.c_str(),
                toml_value(s.value).c_str());
  }
}

std::string as_table(const std::vector<Setting>& settings) {
  Table table({{"setting", Table::Align::Left},
               {"value", Table::Align::Left},
               {"from", Table::Align::Left}});
  for (const Setting& s : settings) {
    table.add({s.name, s.value.empty() ? "-" : s.value, s.origin_detail});
  }
  return table.text();
}

class ConfigCommand : public Command {
 public:
  explicit ConfigCommand(CLI::App* parent) {
    app = parent->add_subcommand("config",
                                 "show the active configuration and the source of each value");
    auto* matrix =
        app->add_flag("--matrix", matrix_, "print the valid combinations of framing and in_logic");
    auto* json = app->add_flag("--json", json_, "print as JSON");
    auto* toml = app->add_flag("--toml", toml_, "print a commented TOML file to start from");
    json->excludes(toml)->excludes(matrix);
    toml->excludes(matrix);
    settings_.add_to(app);
  }

  int run() override {
    if (matrix_) {
      std::printf("framing           in_logic\n");
      for (const std::string& line : Config::matrix()) std::printf("%s\n", line.c_str());
      return kExitOk;
    }
    auto all = settings_.load_all();
    if (!all) {
      complain("config", all.error().message);
      return kExitUsage;
    }
    // With several devices: the shared settings, then the differences of each device.
    auto shared = all->size() > 1 ? settings_.load_shared() : Result<Config>(all->front().config);
    if (!shared) return kExitUsage;  // unlikely: it was read a moment ago
    const bool several = all->size() > 1;
    if (json_) {
      nlohmann::ordered_json j = as_json(shared->settings());
      for (const auto& [name, config] : several ? *all : Devices()) {
        j["devices"][name] = as_json(own_of(config, *shared));
      }
      std::printf("%s\n", j.dump(1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    } else if (toml_) {
      print_toml(shared->settings());
      for (const auto& [name, config] : several ? *all : Devices()) {
        std::printf("[device.%s]\n", name.c_str());
        for (const Setting& s : own_of(config, *shared)) {
          if (s.origin != Origin::file) continue;
          std::printf("%s = %s\n", s.name.c_str(), toml_value(s.value).c_str());
        }
        std::printf("\n");
      }
    } else {
      std::fputs(as_table(shared->settings()).c_str(), stdout);
      for (const auto& [name, config] : several ? *all : Devices()) {
        std::printf("\ndevice %s\n%s", name.c_str(), as_table(own_of(config, *shared)).c_str());
      }
      std::printf("\nfiles by %s\n", FileQueue(8).backend().c_str());
    }
    return kExitOk;
  }

 private:
  SettingsOptions settings_;
  bool matrix_ = false, json_ = false, toml_ = false;
};

}  // namespace

std::unique_ptr<Command> make_config_command(CLI::App* app) {
  return std::make_unique<ConfigCommand>(app);
}

}  // namespace urnic::cli
