#include "cli/option_text.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "cli/command.h"

namespace urnic::cli {
namespace {

std::vector<std::string> split(const std::string& text, const std::string& by) {
  std::vector<std::string> parts;
  for (std::size_t at = 0;;) {
    const std::size_t end = text.find(by, at);
    parts.push_back(text.substr(at, end - at));
    if (end == std::string::npos) return parts;
    at = end + by.size();
  }
}

// Parses CLI11's description of a type. "[16]" is a default; any other first part is the name of
// the value. After colons follow the descriptions of the checks: "{auto,always}", "INT in [1 -
// 32]".
void read_type(const std::string& type, OptionText* text) {
  const std::vector<std::string> parts = split(type, ":");
  const std::string& first = parts.front();
  const bool is_default = first.size() > 2 && first.front() == '[' && first.back() == ']';
  if (is_default) {
    text->standard = first.substr(1, first.size() - 2);
  } else {
    text->value = first;
  }
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string& check = parts[i];
    if (check.size() > 2 && check.front() == '{' && check.back() == '}') {
      text->choices = split(check.substr(1, check.size() - 2), ",");
    }
    // "INT in [1 - 32]"
    const std::size_t in = check.find(" in [");
    if (in == std::string::npos || check.back() != ']') continue;
    const std::vector<std::string> ends = split(check.substr(in + 5, check.size() - in - 6), " - ");
    if (ends.size() == 2) text->bounds = ends[0] + " to " + ends[1];
  }
  if (text->value.empty()) text->value = text->bounds.empty() ? "VALUE" : "N";
}

// Sets an invalid value to obtain the allowed values from the error message.
void read_refusal(const std::string& name, OptionText* text) {
  Config config;
  const auto refused = config.set(name, "?");
  if (refused) return;
  const std::string& why = refused.error().message;
  static const std::string kExpected = "expected ", kNumber = "a whole number from ",
                           kMany = "one or more of ";
  std::size_t at = why.find(kExpected);
  if (at == std::string::npos) return;
  std::string words = why.substr(at + kExpected.size());
  if (words.starts_with(kNumber)) {
    text->bounds = words.substr(kNumber.size());
    text->value = "N";
    return;
  }
  if (words.starts_with(kMany)) return;
  for (const std::string& some : split(words, ", ")) {
    for (const std::string& word : split(some, " or ")) {
      if (word.empty() || word.find(' ') != std::string::npos) return text->choices.clear();
      text->choices.push_back(word);
    }
  }
}

OptionText text_of(const CLI::Option& option) {
  OptionText text;
  text.help = option.get_description();
  text.is_setting = option.get_group() == kSettingsGroup && !option.check_lname("config");
  text.is_required = option.get_required();
  text.takes_many = option.get_items_expected_max() > 1;
  for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  if (text.names.empty()) {
    text.names = {positional_name(option)};
    text.is_positional = true;
  }
  if (option.get_items_expected_max() > 0) read_type(option.get_type_name(), &text);
  return text;
}

}  // namespace

std::string positional_name(const CLI::Option& option) {
  std::string name = option.get_name(true);
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::vector<OptionText> options_of(const CLI::App& command) {
  std::vector<OptionText> all;
  for (const CLI::Option* option : command.get_options()) all.push_back(text_of(*option));
  return all;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<OptionText> settings_text() {
  std::vector<OptionText> all;
  for (const Setting& s : Config().settings()) {
    OptionText text;
    text.names = {s.name};
    text.value = "VALUE";
    text.help = s.help;
    text.is_setting = true;
    // Skip defaults that differ between users (paths) or that the help already mentions.
    const bool is_own = s.value.find('/') != std::string::npos || s.name == "name";
    if (!is_own) text.standard = s.value;
    read_refusal(s.name, &text);
    all.push_back(text);
  }
  return all;
}

}  // namespace urnic::cli
