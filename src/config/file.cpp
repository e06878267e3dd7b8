#include "config/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/toml_document.h"

namespace urnic::config {
namespace {

// bound: bytes of a configuration file; beyond: an error; test: ConfigTest.AFileIsLimitedToOneMiB
constexpr std::size_t kMostFile = 1 << 20;
// bound: devices of a configuration file; beyond: an error; test:
// ConfigDevicesTest.MalformedSectionsGiveOneLineWithTheirPosition
constexpr std::size_t kMostDevices = 32, kMostName = 32;

Result<std::string> read_all(const std::string& path, bool must_exist) {
  const auto cannot = [&](const char* what) {
    const Errc code = errno == EACCES                      ? Errc::permission
                      : errno == EMFILE || errno == ENFILE ? Errc::no_descriptors
                                                           : Errc::io;
    return Error{code, path + ": " + what};
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
  if (text.size() > kMostFile) return cannot("too large for a configuration file (limit 1 MiB)");
  return text;
}

// Converts one TOML value to the text that set() accepts.
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
    return Error{Errc::invalid_argument, "expected a non-empty array of strings"};
  }
  return Error{Errc::invalid_argument, "expected a string, a number or a boolean"};
}

std::string place(const std::string& path, const toml::source_region& where) {
  return path + ":" + std::to_string(where.begin.line);
}

Error wrong(const std::string& at, const std::string& what) {
  return {Errc::invalid_argument, at + ": " + what};
}

Result<Assignment> assignment_of(const toml::key& key, const toml::node& node,
                                 const std::string& path) {
  const std::string at = place(path, key.source());
  auto value = text_of(node);
  if (!value) return wrong(at, std::string(key.str()) + ": " + value.error().message);
  return Assignment{std::string(key.str()), std::move(*value), at};
}

bool is_device_name(std::string_view name) {
  return !name.empty() && name.size() <= kMostName &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-';
         });
}

Result<DeviceSection> section_of(const toml::key& key, const toml::node& node,
                                 const std::string& path) {
  const std::string name(key.str()), at = place(path, key.source());
  const toml::table* table = node.as_table();
  if (table == nullptr) {
    return wrong(
        at, "[device]: " + name + ": write each device as a section of its own, [device.NAME]");
  }
  if (!is_device_name(name)) {
    return wrong(
        at, "[device." + name + "]: a device name must have 1 to 32 letters, digits, '_' or '-'");
  }
  DeviceSection section{name, at, {}};
  for (const auto& [inner, value] : *table) {
    auto setting = assignment_of(inner, value, path);
    if (!setting) return setting.error();
    if (setting->name == "device") {
      return wrong(setting->at,
                   "[device." + name + "]: the setting device is not allowed in a section");
    }
    section.settings.push_back(std::move(*setting));
  }
  return section;
}

// Tables in TOML are sorted by name; this restores the order of the file.
Result<std::vector<DeviceSection>> sections_of(const toml::table& all, const std::string& path) {
  std::vector<std::pair<toml::source_position, DeviceSection>> found;
  for (const auto& [key, node] : all) {
    auto section = section_of(key, node, path);
    if (!section) return section.error();
    found.emplace_back(key.source().begin, std::move(*section));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<DeviceSection> sections;
  sections.reserve(found.size());
  for (auto& [where, section] : found) sections.push_back(std::move(section));
  if (sections.size() > kMostDevices) {
    return wrong(sections[kMostDevices].at, "too many devices (limit 32)");
  }
  return sections;
}

}  // namespace

Result<File> read_file(const std::string& path, bool must_exist) {
  auto text = read_all(path, must_exist);
  if (!text) return text.error();
  const auto parsed = parse_toml(*text, path);
  if (!parsed) {
    return wrong(path + ":" + std::to_string(parsed.error().line), parsed.error().what);
  }
  File file;
  for (const auto& [key, node] : *parsed) {
    const std::string name(key.str());
    if (name == "device" && node.is_table()) {
      auto devices = sections_of(*node.as_table(), path);
      if (!devices) return devices.error();
      file.devices = std::move(*devices);
      continue;
    }
    if (node.is_table()) {
      return wrong(place(path, key.source()), "[" + name +
                                                  "]: unknown section; put settings at the top, "
                                                  "only [device.NAME] sections are allowed");
    }
    auto setting = assignment_of(key, node, path);
    if (!setting) return setting.error();
    file.settings.push_back(std::move(*setting));
  }
  return file;
}

}  // namespace urnic::config
