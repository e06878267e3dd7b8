// Loads settings from one TOML file (file.cpp) and the environment (D12, E-34).
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "config/file.h"
#include "config/keys.h"
#include "urnic/config.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): not in every <unistd.h>

namespace urnic {
namespace {

// Variables with the prefix of settings that have another meaning.
constexpr const char* kOtherVariables[] = {"URNIC_CONFIG", "URNIC_PLUGIN_DIR", "URNIC_SYSFS",
                                           "URNIC_VERBS_FAULTS", "URNIC_VERBS_FAULTS_LOG"};

// The default path; empty if the environment does not provide one.
std::string usual_path() {
  if (const char* home = std::getenv("XDG_CONFIG_HOME"); home != nullptr && home[0] == '/') {
    return std::string(home) + "/urnic/urnic.toml";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') {
    return std::string(home) + "/.config/urnic/urnic.toml";
  }
  return {};
}

std::string variable_of(std::string_view name) {
  std::string out = "URNIC_";
  for (const char c : name) out += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return out;
}

std::string name_of(std::string_view variable) {
  std::string out;
  for (const char c : variable.substr(6)) {
    out += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  return out;
}

bool is_other(std::string_view variable) {
  if (variable.starts_with("URNIC_TEST_")) return true;  // used by the test scripts
  for (const char* other : kOtherVariables) {
    if (variable == other) return true;
  }
  return false;
}

}  // namespace

Result<Config> Config::load(std::string_view given) {
  Config c;
  std::string path(given);
  bool must_exist = true;
  if (path.empty()) {
    if (const char* named = std::getenv("URNIC_CONFIG"); named != nullptr && *named != 0) {
      path = named;
    } else {
      path = usual_path();
      must_exist = false;
    }
  }
  if (!path.empty()) {
    auto file = config::read_file(path, must_exist);
    if (!file) return file.error();
    for (const config::Assignment& a : file->settings) {
      if (auto ok = c.put(a.name, a.value, Origin::file, a.at); !ok) {
        return Error{ok.error().code, a.at + ": " + ok.error().message};
      }
    }
    for (const config::DeviceSection& section : file->devices) {
      Config of_file;
      for (const config::Assignment& a : section.settings) {
        if (auto ok = of_file.put(a.name, a.value, Origin::file, a.at); !ok) {
          return Error{ok.error().code, a.at + ": " + ok.error().message};
        }
      }
      c.sections_.push_back({section.name, std::move(of_file.values_)});
    }
  }
  for (char** e = environ; e != nullptr && *e != nullptr; ++e) {
    const std::string_view entry(*e);
    const std::size_t equals = entry.find('=');
    if (!entry.starts_with("URNIC_") || equals == std::string_view::npos) continue;
    const std::string variable(entry.substr(0, equals));
    if (is_other(variable)) continue;
    const std::string name = name_of(variable);
    if (variable_of(name) != variable || config::find_key(name) < 0) {
      return Error{Errc::invalid_argument, "environment: unknown setting " + variable +
                                               "; did you mean " +
                                               variable_of(config::nearest_key(name)) + "?"};
    }
    if (auto ok = c.put(name, entry.substr(equals + 1), Origin::environment, variable); !ok) {
      return Error{ok.error().code, "environment " + variable + ": " + ok.error().message};
    }
  }
  return c;
}

}  // namespace urnic
