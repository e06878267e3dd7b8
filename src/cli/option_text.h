// The descriptions of a command's options, read from the command itself. The manual pages and the
// shell completions are generated from them.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace urnic::cli {

struct OptionText {
  std::vector<std::string> names;    // as typed, the short ones first; for a positional its name
  std::string value;                 // the name of its value: FILE, N, ...; empty for a flag
  std::vector<std::string> choices;  // the only words allowed, if they are restricted
  std::string bounds;                // "1 to 32", if known
  std::string standard;              // its default, if it has one
  std::string help;
  bool is_setting = false, is_positional = false, is_required = false, takes_many = false;
};

// The name of a positional as shown: "FILE... TARGET". CLI11 (from 2.4 on) accepts no space in a
// name, so in the definition each space is a `_`.
std::string positional_name(const CLI::Option& option);

// All options in the order of the help, including hidden ones.
std::vector<OptionText> options_of(const CLI::App& command);

// The subcommands of `app`, in the order of the help.
std::vector<const CLI::App*> commands_of(const CLI::App& app);

// Every setting as an option, with texts that are the same on every machine.
std::vector<OptionText> settings_text();

}  // namespace urnic::cli
