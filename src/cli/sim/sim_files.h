// Files of `urnic sim`: scenarios, given by path or by the name of an installed one, and the
// drawing program.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace urnic::cli {

// The folder with scenarios/ and plot-sim: ../share/urnic relative to this program.
std::string share_folder();
// Names of the installed scenarios, sorted.
std::vector<std::string> installed_scenarios();
// The file that `name` refers to: `name` itself if it looks like a path, else an installed
// scenario.
std::string scenario_path(const std::string& name);
// The content of a regular file of at most 1 MiB. The error is one line.
Outcome<std::string, std::string> read_scenario(const std::string& path);
// Passes `json` to plot-sim, which writes the picture (PNG or SVG, by its extension). Returns an
// empty text, or one line with the reason of the failure.
std::string draw_plot(const std::string& json, const std::string& picture);

}  // namespace urnic::cli
