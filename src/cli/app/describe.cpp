// urnic_describe FOLDER VERSION: writes the manual pages of the command to FOLDER/man and its
// completions below FOLDER, in the layout of an installation. The build runs it.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/completion.h"
#include "cli/manual.h"
#include "cli/option_text.h"

namespace {

namespace fs = std::filesystem;

bool write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) std::cerr << "urnic_describe: " << file << " could not be written\n";
  return static_cast<bool>(out);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const fs::path folder = argv[1];
  const std::string version = argv[2];
  const urnic::cli::WholeCommand whole;
  const CLI::App& app = *whole.app;
  const fs::path man = folder / "man";
  fs::remove_all(man);  // removes pages of commands that no longer exist
  bool ok = write(man / "man1/urnic.1", urnic::cli::manual_of_program(app, version)) &&
            write(man / "man5/urnic.toml.5", urnic::cli::manual_of_settings(version)) &&
            write(folder / "bash-completion/completions/urnic", urnic::cli::bash_completion(app)) &&
            write(folder / "zsh/vendor-completions/_urnic", urnic::cli::zsh_completion(app));
  for (const CLI::App* command : urnic::cli::commands_of(app)) {
    ok = ok && write(man / ("man1/urnic-" + command->get_name() + ".1"),
                     urnic::cli::manual_of_command(*command, version));
  }
  return ok ? 0 : 1;
}
