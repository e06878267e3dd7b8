// Where settings come from besides the command line: one TOML file and the environment (D12, E-34).
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/toml_document.h"
#include "config/keys.h"
#include "urnic/config.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): not in every <unistd.h>

namespace urnic {
namespace {

constexpr std::size_t kMostFile = 1 << 20;

// Variables that begin like settings but say something else.
constexpr const char* kOtherVariables[] = {"URNIC_CONFIG", "URNIC_PLUGIN_DIR"};

// The usual place; empty when the environment names none.
std::string usual_path() {
  if (const char* home = std::getenv("XDG_CONFIG_HOME"); home != nullptr && home[0] == '/') {
    return std::string(home) + "/urnic/urnic.toml";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') {
    return std::string(home) + "/.config/urnic/urnic.toml";
  }
  return {};
}

Result<std::string> read_all(const std::string& path, bool must_exist) {
  const auto cannot = [&](const char* what) {
    return Error{errno == EACCES ? Errc::permission : Errc::io, path + ": " + what};
  };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    if ((errno == ENOENT || errno == ENOTDIR) && !must_exist) return std::string();
    return cannot(std::strerror(errno));
  }
  struct stat st {};
  std::string text;
  if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
    errno = EISDIR;
  else
    errno = 0;
  char buffer[16384];
  ssize_t n = 0;
  while (errno == 0 && text.size() <= kMostFile && (n = ::read(fd, buffer, sizeof buffer)) > 0) {
    text.append(buffer, static_cast<std::size_t>(n));
  }
  const int wrong = errno;
  ::close(fd);
  errno = wrong;
  if (wrong != 0) return cannot(std::strerror(wrong));
  if (text.size() > kMostFile) return cannot("longer than 1 MiB, not a configuration");
  return text;
}

// One TOML value as the text set() would take.
Result<std::string> text_of(const toml::node& node) {
  if (const auto* s = node.as_string()) return s->get();
  if (const auto* b = node.as_boolean()) return std::string(b->get() ? "on" : "off");
  if (const auto* i = node.as_integer()) return std::to_string(i->get());
  if (const auto* array = node.as_array()) {
    std::string out;
    for (const toml::node& item : *array) {
      const auto* s = item.as_string();
      if (s == nullptr) break;
      out += (out.empty() ? "" : ",") + s->get();
      if (&item == &array->back()) return out;
    }
    return Error{Errc::invalid_argument, "expected an array of strings that is not empty"};
  }
  return Error{Errc::invalid_argument, "expected a string, a number or a boolean"};
}

std::string place(const std::string& path, const toml::source_region& where) {
  return path + ":" + std::to_string(where.begin.line);
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
  if (variable.starts_with("URNIC_TEST_")) return true;  // of the test scripts
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
    auto text = read_all(path, must_exist);
    if (!text) return text.error();
    const auto parsed = parse_toml(*text, path);
    if (!parsed) {
      return Error{Errc::invalid_argument,
                   path + ":" + std::to_string(parsed.error().line) + ": " + parsed.error().what};
    }
    for (const auto& [key, node] : *parsed) {
      const std::string at = place(path, key.source());
      const std::string name(key.str());
      if (node.is_table()) {
        return Error{Errc::invalid_argument,
                     at + ": [" + name + "]: settings stand at the top, there are no sections"};
      }
      auto value = text_of(node);
      if (!value)
        return Error{Errc::invalid_argument, at + ": " + name + ": " + value.error().message};
      if (auto ok = c.put(name, *value, Origin::file, at); !ok) {
        return Error{ok.error().code, at + ": " + ok.error().message};
      }
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
                                               "; the nearest known one is " +
                                               variable_of(config::nearest_key(name))};
    }
    if (auto ok = c.put(name, entry.substr(equals + 1), Origin::environment, variable); !ok) {
      return Error{ok.error().code, "environment " + variable + ": " + ok.error().message};
    }
  }
  return c;
}

}  // namespace urnic
