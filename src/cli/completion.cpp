#include "cli/completion.h"

#include <map>
#include <set>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/option_text.h"

namespace urnic::cli {
namespace {

using Choices = std::map<std::string, std::vector<std::string>>;

// The choices of settings, by option. The configuration checks what the command itself does not
// check.
Choices choices_of_settings() {
  Choices all;
  for (const OptionText& s : settings_text()) {
    std::string name = s.names[0];
    for (char& c : name) {
      if (c == '_') c = '-';
    }
    all["--" + name] = s.choices;
  }
  return all;
}

std::vector<std::string> choices_of(const OptionText& option, const Choices& settings) {
  if (!option.is_setting) return option.choices;
  const auto found = settings.find(option.names.back());
  return found == settings.end() ? std::vector<std::string>{} : found->second;
}

std::string spaced(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : " ") + word;
  return all;
}

bool is_flag(const OptionText& o) {
  return o.value.empty() && o.choices.empty();
}
bool is_file(const OptionText& o) {
  return o.value == "FILE" || o.names.back() == "--capture" || o.names.back() == "--log-file";
}

// The values that may follow an option, as a line of `case` in bash; empty for a flag.
std::string bash_value(const std::string& command, const OptionText& o, const Choices& settings) {
  if (o.is_positional || is_flag(o)) return {};
  std::string patterns;
  for (const std::string& name : o.names) {
    patterns += (patterns.empty() ? "" : "|") + command + ":" + name;
  }
  const std::vector<std::string> choices = choices_of(o, settings);
  std::string action = "return 0";
  if (!choices.empty()) action = "words='" + spaced(choices) + "'";
  if (is_file(o)) action = "kind=file";
  if (o.value == "DIR") action = "kind=directory";
  return "    " + patterns + ") " + action + " ;;\n";
}

constexpr const char* kBashHead =
    R"sh(# bash completion of urnic, generated from the options of its commands.
_urnic() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}
  local words='' kind='' i
  COMPREPLY=()
  # --option=value is three words to bash.
  if [[ $cur == = ]]; then prev=${COMP_WORDS[COMP_CWORD-1]} cur=''
  elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}
  fi
  if [[ $command == run ]]; then
    for ((i = 2; i < COMP_CWORD; i++)); do
      [[ ${COMP_WORDS[i]} == -- ]] || continue
      if ((i + 1 == COMP_CWORD)); then mapfile -t COMPREPLY < <(compgen -c -- "$cur")
      elif declare -F _command_offset >/dev/null; then _command_offset $((i + 1))
      else mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      fi
      return 0
    done
  fi
)sh";

constexpr const char* kBashTail = R"sh(  if [[ $kind == file ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
  elif [[ $kind == directory ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -d -- "$cur")
  else
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
  fi
}
complete -F _urnic urnic
)sh";

// Escapes text for use inside '...' of a shell and inside [...] and :...: of _arguments.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_action(const OptionText& o, const Choices& settings) {
  const std::vector<std::string> choices = choices_of(o, settings);
  if (!choices.empty()) return "(" + spaced(choices) + ")";
  if (o.value == "DIR") return "_files -/";
  if (is_file(o) || o.is_positional) return "_files";
  return " ";
}

std::string zsh_specs(const CLI::App& command, const Choices& settings) {
  std::string out;
  for (const OptionText& o : options_of(command)) {
    if (o.is_positional) {
      out += std::string(" \\\n      '") + (o.takes_many ? "*" : "") +
             (o.is_required ? ":" : "::") + zsh_text(o.names[0]) + ":" + zsh_action(o, settings) +
             "'";
      continue;
    }
    const std::string value =
        is_flag(o) ? "" : ":" + zsh_text(o.value) + ":" + zsh_action(o, settings);
    for (const std::string& name : o.names) {
      out += std::string(" \\\n      '") + (o.takes_many ? "*" : "") + name + "[" +
             zsh_text(o.help) + "]" + value + "'";
    }
  }
  return out;
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  const Choices settings = choices_of_settings();
  std::vector<std::string> first = {"help"};
  std::string options, values, shared;
  std::set<std::string> known;
  for (const OptionText& o : options_of(app)) {
    first.insert(first.end(), o.names.begin(), o.names.end());
  }
  for (const CLI::App* command : commands_of(app)) {
    const std::string name = command->get_name();
    first.push_back(name);
    std::vector<std::string> own;
    for (const OptionText& o : options_of(*command)) {
      if (o.is_positional) continue;
      own.insert(own.end(), o.names.begin(), o.names.end());
      if (!o.is_setting) {
        values += bash_value(name, o, settings);
      } else if (known.insert(o.names.back()).second) {
        shared += bash_value("*", o, settings);
      }
    }
    options += "    " + name + ") words='" + spaced(own) + "' ;;\n";
  }
  std::string commands;
  for (const CLI::App* command : commands_of(app)) commands += " " + command->get_name();
  std::string out = kBashHead;
  out += "  if ((COMP_CWORD == 1)); then words='" + spaced(first) + "'\n";
  out += "  elif [[ $command == help ]]; then words='" + commands.substr(1) + "'\n";
  out += "  elif [[ $cur == -* && $prev != = ]]; then\n    case $command in\n" + options +
         "    esac\n";
  out += "  else\n    kind=file\n    case $command:$prev in\n" + values + shared +
         "    esac\n    [[ -z $words ]] || kind=''\n  fi\n";
  return out + kBashTail;
}

std::string zsh_completion(const CLI::App& app) {
  const Choices settings = choices_of_settings();
  std::string out =
      "#compdef urnic\n# Completion of urnic, generated from the options of its commands.\n"
      "local context state state_descr line\ntypeset -A opt_args\n"
      "_arguments -C '1:command:->command' '*::argument:->argument'" +
      zsh_specs(app, settings) + "\ncase $state in\n  command)\n    local -a commands=(\n";
  std::string cases;
  for (const CLI::App* command : commands_of(app)) {
    const std::string name = command->get_name();
    out += "      '" + name + ":" + zsh_text(command->get_description()) + "'\n";
    cases += "    " + name + ")\n    _arguments" + zsh_specs(*command, settings) + " ;;\n";
  }
  return out + "    )\n    _describe command commands ;;\n  argument)\n    case $line[1] in\n" +
         cases + "    esac ;;\nesac\n";
}

}  // namespace urnic::cli
