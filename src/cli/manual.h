// Manual pages in the man(7) format, generated from the definitions of the commands.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace urnic::cli {

// urnic(1).
std::string manual_of_program(const CLI::App& app, const std::string& version);
// urnic-NAME(1): one subcommand.
std::string manual_of_command(const CLI::App& command, const std::string& version);
// urnic.toml(5): every setting.
std::string manual_of_settings(const std::string& version);

}  // namespace urnic::cli
