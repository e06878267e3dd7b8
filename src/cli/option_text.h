// What an option of a command says of itself, read out of the command: for the manual pages and the
// completion of shells, which say nothing of their own.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace urnic::cli {

struct OptionText {
  std::vector<std::string> names;    // as typed, the short ones first; of a positional its name
  std::string value;                 // what follows it: FILE, N, ...; empty: nothing does
  std::vector<std::string> choices;  // where only these words may follow
  std::string bounds;                // "1 to 32", where they are known
  std::string standard;              // its default, where it has one
  std::string help;
  bool is_setting = false, is_positional = false, is_required = false, takes_many = false;
};

// In the order of the help; hidden ones, too.
std::vector<OptionText> options_of(const CLI::App& command);

// The subcommands of `app`, in the order of the help.
std::vector<const CLI::App*> commands_of(const CLI::App& app);

// Every setting as an option, in words that are the same on every machine.
std::vector<OptionText> settings_text();

}  // namespace urnic::cli
