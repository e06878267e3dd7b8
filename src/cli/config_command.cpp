// urnic config: what is in force and where each value came from.
#include <cstdio>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/file_queue.h"
#include "cli/runtime.h"
#include "cli/table.h"

namespace urnic::cli {
namespace {

// Text as a TOML value: numbers and switches bare, the rest quoted.
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

class ConfigCommand : public Command {
 public:
  explicit ConfigCommand(CLI::App* parent) {
    app =
        parent->add_subcommand("config", "show the configuration in force and where it came from");
    auto* matrix = app->add_flag("--matrix", matrix_,
                                 "the legal combinations of framing policy and InLogic variant");
    auto* json = app->add_flag("--json", json_, "as JSON");
    auto* toml = app->add_flag("--toml", toml_, "as a TOML file with explanations, to start from");
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
    auto config = settings_.load();
    if (!config) {
      complain("config", config.error().message);
      return kExitUsage;
    }
    if (json_) {
      nlohmann::ordered_json j;
      for (const Setting& s : config->settings()) {
        j[s.name] = {{"value", s.value}, {"origin", s.origin_detail}, {"help", s.help}};
      }
      std::printf("%s\n", j.dump(1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    } else if (toml_) {
      for (const Setting& s : config->settings()) {
        std::string help;
        for (const char c : wrapped(s.help, 0, 96)) help += c == '\n' ? "\n# " : std::string(1, c);
        std::printf("# %s\n", help.c_str());
        std::printf("%s%s = %s\n\n", s.origin == Origin::standard ? "# " : "", s.name.c_str(),
                    toml_value(s.value).c_str());
      }
    } else {
      Table table({{"setting", Table::Align::Left},
                   {"value", Table::Align::Left},
                   {"from", Table::Align::Left}});
      for (const Setting& s : config->settings()) {
        table.add({s.name, s.value.empty() ? "-" : s.value, s.origin_detail});
      }
      std::fputs(table.text().c_str(), stdout);
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
