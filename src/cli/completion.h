// Completion of shells, made of what the command says of itself.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace urnic::cli {

// For bash: needs nothing of the bash-completion package but to be loaded by it.
std::string bash_completion(const CLI::App& app);
// For zsh: a file `_urnic` of $fpath.
std::string zsh_completion(const CLI::App& app);

}  // namespace urnic::cli
