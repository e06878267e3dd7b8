#include "cli/manual.h"
#include "cli/option_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/completion.h"
#include "cli/option_text.h"

namespace urnic::cli {
namespace {

using ::testing::HasSubstr;

class Described : public ::testing::Test {
 protected:
  const CLI::App& command(const std::string& name) const {
    return *whole_.app->get_subcommand(name);
  }
  std::string page(const std::string& name) const {
    return manual_of_command(command(name), "1.2.3");
  }
  // The name of an option as it appears in bold: with dashes.
  static std::string dashes(const std::string& name) {
    std::string out;
    for (const char c : name) out += c == '-' ? std::string("\\-") : std::string(1, c);
    return out;
  }
  // The line of a `case` statement that begins with this text.
  static std::string line_of(const std::string& script, const std::string& begin) {
    std::istringstream lines(script);
    for (std::string line; std::getline(lines, line);) {
      if (line.find(begin) != std::string::npos) return line;
    }
    return {};
  }
  WholeCommand whole_;
};

TEST_F(Described, EveryOptionOfEveryCommandIsInItsPageAndInBothCompletions) {
  const std::string bash = bash_completion(*whole_.app), zsh = zsh_completion(*whole_.app);
  int options = 0;
  for (const CLI::App* c : commands_of(*whole_.app)) {
    const std::string name = c->get_name(), text = page(name);
    const std::string words = line_of(bash, "    " + name + ") words='") + " ";
    const std::size_t at = zsh.find("    " + name + ")\n    _arguments");
    ASSERT_NE(at, std::string::npos) << name;
    const std::string specs = zsh.substr(at, zsh.find(" ;;\n", at) - at);
    for (const CLI::Option* o : c->get_options()) {
      std::vector<std::string> names;
      for (const std::string& n : o->get_snames()) names.push_back("-" + n);
      for (const std::string& n : o->get_lnames()) names.push_back("--" + n);
      for (const std::string& n : names) {
        EXPECT_THAT(text, HasSubstr("\\fB" + dashes(n) + "\\fR")) << name;
        EXPECT_TRUE(words.find(" " + n + " ") != std::string::npos ||
                    words.find("'" + n + " ") != std::string::npos ||
                    words.find(" " + n + "'") != std::string::npos)
            << name << " " << n;
        EXPECT_THAT(specs, HasSubstr(n + "[")) << name;
        ++options;
      }
      if (names.empty()) {
        EXPECT_THAT(text, HasSubstr("\\fI" + dashes(positional_name(*o)))) << name;
      }
    }
  }
  EXPECT_GT(options, 500);  // most commands have the settings as options
}

TEST_F(Described, TheProgramsPageNamesEveryCommandAndItsPage) {
  const std::string text = manual_of_program(*whole_.app, "1.2.3");
  EXPECT_THAT(text, HasSubstr("urnic 1.2.3"));
  for (const auto& c : whole_.commands) {
    EXPECT_THAT(text, HasSubstr(".BR urnic\\-" + c->app->get_name() + " (1)"));
  }
  EXPECT_THAT(text, HasSubstr("\\fB\\-\\-version\\fR"));
}

TEST_F(Described, EverySettingIsInThePageOfTheFileWithItsValues) {
  const std::string text = manual_of_settings("1.2.3");
  for (const Setting& s : Config().settings()) {
    EXPECT_THAT(text, HasSubstr(".TP\n\\fB" + dashes(s.name) + "\\fR")) << s.name;
  }
  EXPECT_THAT(text, HasSubstr("Default: iwarp. Values: iwarp, roce, both."));
  EXPECT_THAT(text, HasSubstr("Default: 32. From 0 to 1000000."));
  EXPECT_THAT(text, HasSubstr("Values: on, off."));
}

TEST_F(Described, APageContainsNothingSpecificToThisMachine) {
  const std::string text = manual_of_settings("1.2.3");
  EXPECT_EQ(text.find("/run/user"), std::string::npos);
  EXPECT_EQ(text.find(".sock"), std::string::npos);
}

TEST_F(Described, DefaultsBoundsAndChoicesAreDocumented) {
  const std::string put = page("put");
  EXPECT_THAT(
      put, HasSubstr("\\fB\\-\\-slots\\fR \\fIN\\fR\nChunks in flight at a time, 1 to 32. Default: "
                     "16.\n"));
  EXPECT_THAT(put, HasSubstr("\\fB\\-\\-bar\\fR \\fIauto|always|never\\fR"));
  EXPECT_THAT(page("ls"), HasSubstr("\\fBurnic ls\\fR [\\fIOPTION\\fR]... \\fITARGET\\fR\n"));
  EXPECT_THAT(page("run"), HasSubstr("[\\fIprogram\\fR...]"));
  EXPECT_THAT(page("stat"), HasSubstr("[\\fIPID\\fR]"));
  EXPECT_THAT(page("target"), HasSubstr("\\fB\\-\\-export\\fR \\fIDIR\\fR"));
}

TEST_F(Described, NotesBelongToTheirCommandOnly) {
  EXPECT_THAT(page("switch"), HasSubstr(".SH NOTES\n.nf\nMembers:"));
  EXPECT_EQ(page("put").find(".SH NOTES"), std::string::npos);
  EXPECT_THAT(page("run"), HasSubstr("126 if it cannot run"));
  EXPECT_EQ(page("put").find("126"), std::string::npos);
}

TEST_F(Described, NoLineOfTextIsInterpretedByRoff) {
  CLI::App app("has .TH and\n.SH in its text\n'x and \\n too", "odd");
  app.footer(".ig\n'de x");
  const std::string text = manual_of_command(app, "1");
  EXPECT_THAT(text, HasSubstr("\n\\&.SH in its text\n\\&\\(aqx and \\en too"));
  EXPECT_THAT(text, HasSubstr("\n\\&.ig\n\\&\\(aqde x\n"));
}

TEST_F(Described, TheFirstWordIsACommandOrAnOptionOfTheProgram) {
  const std::string line = line_of(bash_completion(*whole_.app), "COMP_CWORD == 1");
  for (const auto& c : whole_.commands) EXPECT_THAT(line, HasSubstr(" " + c->app->get_name()));
  EXPECT_THAT(line, HasSubstr("--version"));
  EXPECT_THAT(line, HasSubstr("'help "));
}

}  // namespace
}  // namespace urnic::cli
