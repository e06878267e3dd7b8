// urnic sim: runs two engines over a described network in virtual time.
#include <cstdio>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/runtime.h"
#include "cli/sim/sim_files.h"
#include "cli/sim/sim_text.h"
#include "cli/table.h"
#include "sim/experiment.h"

namespace urnic::cli {
namespace {

class SimCommand : public Command {
 public:
  explicit SimCommand(CLI::App* parent) {
    app = parent->add_subcommand(
        "sim", "simulate two engines and the network between them in virtual time");
    app->footer(
        "SCENARIO is a TOML file, or the name of an installed one (--list). The same scenario and "
        "seed\n"
        "print the same bytes on every machine. --set replaces a value of the scenario in every\n"
        "variant: --set wire.corrupt=0.01 --set right.max_recovery_attempts=3 --set "
        "phase.1.begin=5ms.\n"
        "--keys lists the keys; docs/sim.md explains them.");
    app->add_option("scenario", scenario_, "scenario to run: a TOML file or an installed name")
        ->type_name("SCENARIO");
    app->add_option("--seed", seed_, "seed for all random choices, instead of the scenario's")
        ->type_name("N");
    app->add_option("--set", set_, "override a value of the scenario (repeatable)")
        ->type_name("KEY=VALUE")
        ->take_all();
    app->add_flag("--json", json_, "print all results as JSON, with integers only");
    app->add_option("--plot", plot_,
                    "also draw the results to FILE.png or FILE.svg (needs Python with matplotlib)")
        ->type_name("FILE");
    app->add_flag("--list", list_, "list the installed scenarios");
    app->add_flag("--keys", keys_, "list the keys of a scenario");
  }

  int run() override {
    if (list_) return list();
    if (keys_) return keys();
    if (scenario_.empty()) return wrong("SCENARIO is required (see urnic sim --list)");
    if (!plot_.empty() && !plot_.ends_with(".png") && !plot_.ends_with(".svg")) {
      return wrong("--plot " + plot_ + ": must end with .png or .svg");
    }
    std::vector<sim::Override> overrides;
    for (const std::string& s : set_) {
      const auto equals = s.find('=');
      if (equals == std::string::npos || equals == 0) {
        return wrong("--set " + s + ": expected KEY=VALUE");
      }
      overrides.push_back({s.substr(0, equals), s.substr(equals + 1)});
    }
    if (!seed_.empty()) overrides.push_back({"seed", seed_});
    const std::string path = scenario_path(scenario_);
    auto text = read_scenario(path);
    if (!text) {
      complain("sim", text.error() + (path == scenario_ ? "" : " (urnic sim --list)"));
      return kExitFailed;
    }
    const auto scenario = sim::parse_scenario(*text, path, overrides);
    if (!scenario) return wrong(scenario.error());
    return run_scenario(*scenario);
  }

 private:
  static int wrong(const std::string& message) {
    complain("sim", message);
    return kExitUsage;
  }

  int run_scenario(const sim::Scenario& scenario) {
    const auto results = sim::run_scenario(scenario, stop_requested);
    if (stop_requested()) {
      complain("sim", "stopped");
      return kExitFailed;
    }
    const bool need_json = json_ || !plot_.empty();
    const std::string json = need_json ? sim::to_json(scenario, results) : "";
    const std::string shown = json_ ? json : sim_text(scenario, results);
    const bool printed = std::fwrite(shown.data(), 1, shown.size(), stdout) == shown.size() &&
                         std::fflush(stdout) == 0;
    if (!printed) {
      complain("sim", "cannot write the output");
      return kExitFailed;
    }
    if (plot_.empty()) return kExitOk;
    if (const std::string why = draw_plot(json, plot_); !why.empty()) {
      complain("sim", "--plot " + plot_ + ": " + why);
      return kExitFailed;
    }
    return kExitOk;
  }

  static int list() {
    Table table({{"", Table::Align::Left}, {"", Table::Align::Left}});
    for (const std::string& name : installed_scenarios()) {
      const std::string path = scenario_path(name);
      const auto text = read_scenario(path);
      const auto scenario = text ? sim::parse_scenario(*text, path)
                                 : Outcome<sim::Scenario, std::string>(fail(text.error()));
      table.add({name, scenario ? scenario->title : scenario.error()});
    }
    if (table.empty()) {
      complain("sim", "no scenarios found in " + share_folder() + "/scenarios");
      return kExitFailed;
    }
    std::fputs(table.text().c_str(), stdout);
    return kExitOk;
  }

  static int keys() {
    Table table({{"", Table::Align::Left}, {"", Table::Align::Left}});
    for (const sim::KeyHelp& k : sim::scenario_keys()) {
      table.add({std::string(k.key), std::string(k.help)});
    }
    table.add({"phase.begin", "[[phase]]: start time of the phase; its other keys as wire.*"});
    table.add({"phase.name", "name of the phase in the timeline"});
    std::fputs(table.text().c_str(), stdout);
    std::fputs(
        "wire.KEY sets both directions, wire.to_right.KEY and wire.to_left.KEY one direction.\n"
        "both.KEY sets both nodes, left.KEY and right.KEY one node.\n"
        "[[variant]] has a name and the keys that differ from the rest of the file.\n",
        stdout);
    return kExitOk;
  }

  std::string scenario_, plot_, seed_;
  std::vector<std::string> set_;
  bool json_ = false, list_ = false, keys_ = false;
};

}  // namespace

std::unique_ptr<Command> make_sim_command(CLI::App* parent) {
  return std::make_unique<SimCommand>(parent);
}

}  // namespace urnic::cli
