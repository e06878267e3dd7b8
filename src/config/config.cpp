// Config (D12): values by name, each with its origin. keys.cpp has the table of names, load.cpp
// reads file and environment, devices.cpp handles several devices, and check.cpp checks the
// consistency of the whole.
#include "urnic/config.h"

#include <charconv>
#include <cstring>

#include "config/keys.h"

namespace urnic {

Config::Config() {
  for (const config::Key& key : config::keys()) {
    values_.push_back({config::default_text(key), "default", Origin::standard});
  }
}

Result<void> Config::put(std::string_view name, std::string_view value, Origin origin,
                         std::string_view detail) {
  const int i = config::find_key(name);
  if (i < 0) {
    return Error{Errc::invalid_argument, "unknown setting '" + std::string(name) +
                                             "'; did you mean '" + config::nearest_key(name) +
                                             "'?"};
  }
  const config::Key& key = config::keys()[static_cast<std::size_t>(i)];
  auto normal = config::normalise(key, value);
  if (!normal.ok()) {
    return Error{Errc::invalid_argument,
                 std::string(name) + " = '" + std::string(value) + "': " + normal.error()};
  }
  Value& v = values_[static_cast<std::size_t>(i)];
  v.text = std::move(normal.value());
  v.origin = origin;
  v.origin_detail = detail;
  return {};
}

Result<void> Config::set(std::string_view name, std::string_view value) {
  return put(name, value, Origin::command_line, "command line");
}

std::vector<Setting> Config::settings() const {
  std::vector<Setting> out;
  const auto keys = config::keys();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Value& v = values_[i];
    out.push_back({keys[i].name, v.text, v.origin_detail, keys[i].help, v.origin});
  }
  return out;
}

std::string Config::get(std::string_view name) const {
  const int i = config::find_key(name);
  return i < 0 ? std::string() : values_[static_cast<std::size_t>(i)].text;
}

std::int64_t Config::get_int(std::string_view name) const {
  const std::string text = get(name);
  std::int64_t v = 0;
  std::from_chars(text.data(), text.data() + text.size(), v);  // "auto" is 0
  return v;
}

bool Config::get_bool(std::string_view name) const {
  return get(name) == "on";
}

}  // namespace urnic
