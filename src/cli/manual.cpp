#include "cli/manual.h"

#include <cctype>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/option_text.h"

namespace urnic::cli {
namespace {

// Escapes text so that roff does not treat any character as a command.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if ((out.empty() || out.back() == '\n') && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '`' || c == '\'') {
      out += c == '`' ? "\\(ga" : "\\(aq";
    } else {
      out += c;
    }
  }
  return out;
}

std::string sentence(std::string text) {
  if (text.empty()) return text;
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text.back() == '.' ? text : text + ".";
}

std::string bold(const std::string& text) {
  return "\\fB" + plain(text) + "\\fR";
}
std::string italic(const std::string& text) {
  return "\\fI" + plain(text) + "\\fR";
}

std::string title(const std::string& name, int section, const std::string& version,
                  const std::string& what) {
  std::string capitals = name;
  for (char& c : capitals) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return ".TH \"" + plain(capitals) + "\" " + std::to_string(section) + " \"\" \"urnic " +
         plain(version) + "\" \"urnic\"\n.nh\n.SH NAME\n" + plain(name) + " \\- " + plain(what) +
         "\n";
}

std::string joined(const std::vector<std::string>& words, const std::string& by) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : by) + word;
  return all;
}

// "Default: 16. One of ..., from 1 to 32."
std::string bounds_of(const OptionText& option) {
  std::string out;
  if (!option.standard.empty()) out += " Default: " + option.standard + ".";
  if (option.is_setting && !option.choices.empty()) {
    out += " Values: " + joined(option.choices, ", ") + ".";
  }
  const bool told = option.help.find(option.bounds) != std::string::npos;
  if (!option.bounds.empty() && !told) out += " From " + option.bounds + ".";
  return out;
}

std::string entry(const OptionText& option) {
  std::string out = ".TP\n";
  for (std::size_t i = 0; i < option.names.size(); ++i) {
    const std::string& name = option.names[i];
    out += (i == 0 ? "" : ", ") + (option.is_positional ? italic(name) : bold(name));
  }
  const std::string follows =
      option.choices.empty() || option.is_setting ? option.value : joined(option.choices, "|");
  if (!option.is_positional && !follows.empty()) out += " " + italic(follows);
  return out + "\n" + plain(sentence(option.help) + bounds_of(option)) + "\n";
}

std::string synopsis(const CLI::App& command, const std::vector<OptionText>& options) {
  std::string out =
      ".SH SYNOPSIS\n" + bold("urnic " + command.get_name()) + " [" + italic("OPTION") + "]...";
  for (const OptionText& o : options) {
    if (!o.is_positional && o.is_required)
      out += " " + bold(o.names.back()) + " " + italic(o.value);
  }
  for (const OptionText& o : options) {
    if (!o.is_positional) continue;
    const bool said = o.names[0].find("...") != std::string::npos;
    const std::string name = italic(o.names[0]) + (o.takes_many && !said ? "..." : "");
    out += o.is_required ? " " + name : " [" + name + "]";
  }
  return out + "\n";
}

// The command's own footer. Without this check CLI11 returns the program's footer for a command
// that has none.
std::string footer_of(const CLI::App& app) {
  const CLI::App* program = app.get_parent();
  const bool own = program == nullptr || app.get_footer() != program->get_footer();
  return app.get_footer().empty() || !own
             ? ""
             : ".SH NOTES\n.nf\n" + plain(app.get_footer()) + "\n.fi\n";
}

constexpr const char* kExitStatus =
    ".SH EXIT STATUS\n"
    ".TP\n0\nIt worked.\n"
    ".TP\n1\nThe command failed; one line on standard error gives the reason.\n"
    ".TP\n2\nThe arguments or the configuration are invalid; nothing was done.\n";

constexpr const char* kExitOfProgram =
    ".PP\nOtherwise the exit status of the program; 126 if it cannot run on urnic, 127 if it "
    "was not found.\n";

constexpr const char* kSettings =
    ".SH SETTINGS\n"
    "Each setting of\n.BR urnic.toml (5)\n"
    "is also an option of this command, with dashes in its name; it overrides the file and "
    "the environment:\n";

}  // namespace

std::string manual_of_program(const CLI::App& app, const std::string& version) {
  std::string out = title("urnic", 1, version, "an RNIC in user space");
  out += ".SH SYNOPSIS\n" + bold("urnic") + " " + italic("COMMAND") + " [" + italic("OPTION") +
         "]...\n";
  const std::string about = app.get_description();
  out += ".SH DESCRIPTION\n" + plain(about) + "\n.SH COMMANDS\n";
  std::string see;
  for (const CLI::App* c : commands_of(app)) {
    out += ".TP\n" + bold(c->get_name()) + "\n" + plain(sentence(c->get_description())) +
           " See\n.BR " + plain("urnic-" + c->get_name()) + " (1).\n";
    see += ".BR " + plain("urnic-" + c->get_name()) + " (1),\n";
  }
  out += ".SH OPTIONS\n";
  for (const OptionText& o : options_of(app)) out += entry(o);
  out += kExitStatus;
  return out + ".SH SEE ALSO\n" + see + ".BR urnic.toml (5)\n";
}

std::string manual_of_command(const CLI::App& command, const std::string& version) {
  const std::string name = "urnic-" + command.get_name();
  const std::vector<OptionText> options = options_of(command);
  std::string out = title(name, 1, version, command.get_description()) + synopsis(command, options);
  std::string own, settings;
  for (const OptionText& o : options) {
    if (!o.is_setting) {
      own += entry(o);
    } else {
      settings += (settings.empty() ? "" : ",\n") + bold(o.names.back());
    }
  }
  out += ".SH OPTIONS\n" + own;
  if (!settings.empty()) out += kSettings + settings + ".\n";
  out += footer_of(command) + kExitStatus;
  if (command.get_name() == "run") out += kExitOfProgram;
  return out + ".SH SEE ALSO\n.BR urnic (1),\n.BR urnic.toml (5)\n";
}

std::string manual_of_settings(const std::string& version) {
  std::string out = title("urnic.toml", 5, version, "settings of urnic");
  out += ".SH SYNOPSIS\n.nf\n" + italic("$XDG_CONFIG_HOME/urnic/urnic.toml") + "\n" +
         italic("~/.config/urnic/urnic.toml") + "\n.fi\n.SH DESCRIPTION\n";
  out +=
      plain(
          "A setting takes its value from the last of these that sets it: its default; this file; "
          "the environment (URNIC_ and the name in capitals); the command line (with dashes in the "
          "name). --config or $URNIC_CONFIG names another file. Unknown names and values out of "
          "range are errors.") +
      "\n.PP\n" +
      plain(
          "In this file switches are true or false and lists are arrays; elsewhere switches are on "
          "or off and lists are separated by commas. Sizes take K, M and G. A section "
          "[device.NAME] has the settings of one device, if there are several.") +
      "\n.SH SETTINGS\n";
  for (const OptionText& o : settings_text()) out += entry(o);
  return out + ".SH SEE ALSO\n.BR urnic (1),\n.BR urnic\\-config (1)\n";
}

}  // namespace urnic::cli
