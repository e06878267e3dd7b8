// Files of `urnic sim`: scenarios, by path or by the name of one that is installed, and the program
// that draws.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace urnic::cli {

// Folder with scenarios/ and plot-sim: beside this program, ../share/urnic.
std::string share_folder();
// Names of the scenarios installed, sorted.
std::vector<std::string> installed_scenarios();
// The file meant by `name`: itself when it looks like a path, else an installed one.
std::string scenario_path(const std::string& name);
// All of a regular file of at most 1 MiB. The error is one line.
Outcome<std::string, std::string> read_scenario(const std::string& path);
// Gives `json` to plot-sim, which writes the picture (PNG or SVG by its ending). Empty, or one line
// that says why not.
std::string draw_plot(const std::string& json, const std::string& picture);

}  // namespace urnic::cli
