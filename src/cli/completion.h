// Shell completions, generated from the definitions of the commands.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace urnic::cli {

// For bash. Needs no function of the bash-completion package, only that it loads the file.
std::string bash_completion(const CLI::App& app);
// For zsh: the content of a file `_urnic` in $fpath.
std::string zsh_completion(const CLI::App& app);

}  // namespace urnic::cli
