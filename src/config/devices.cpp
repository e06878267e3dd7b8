// Several devices in one configuration: their names, and the settings of each.
#include <algorithm>
#include <utility>

#include "base/nearest.h"
#include "urnic/config.h"

namespace urnic {
namespace {

// Settings that two devices cannot share.
constexpr const char* kOfOneDevice[] = {"port", "address", "gateway", "mac", "capture"};

Error bad(std::string message) {
  return {Errc::invalid_argument, std::move(message)};
}

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

}  // namespace

std::vector<std::string> Config::devices() const {
  std::vector<std::string> names;
  for (const Section& s : sections_) names.push_back(s.name);
  return names;
}

Result<Config> Config::device(std::string_view name) const {
  const auto section = std::find_if(sections_.begin(), sections_.end(),
                                    [&](const Section& s) { return s.name == name; });
  const std::string quoted = "'" + std::string(name) + "'";
  if (section == sections_.end()) {
    if (sections_.empty()) {
      return bad("no device " + quoted + ": the configuration file has no section [device.NAME]");
    }
    return bad("no device " + quoted + nearest_hint(name, devices()) + "; the configuration has " +
               listed(devices()));
  }
  Config c = *this;
  c.sections_.clear();
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const Value& own = section->values[i];
    if (own.origin == Origin::file && values_[i].origin <= Origin::file) c.values_[i] = own;
  }
  c.device_ = name;
  const auto settings = c.settings();
  for (std::size_t i = 0; i < settings.size(); ++i) {
    // Processes are listed by name: each device of a process gets its own.
    if (settings[i].name == "name" && settings[i].origin == Origin::standard) {
      c.values_[i].text += "/" + c.device_;
    }
    if (settings[i].name == "device") c.values_[i].text = name;
  }
  return c;
}

Result<Config> Config::one() const {
  const std::string wanted = get("device");
  if (sections_.empty() && wanted == device_) return *this;
  if (!wanted.empty() || sections_.empty()) return device(wanted);
  if (sections_.size() == 1) return device(sections_.front().name);
  return bad("the configuration has several devices (" + listed(devices()) +
             "); choose one with the setting device");
}

// Checks a configuration with several devices of which none is chosen.
Result<void> Config::check_devices() const {
  for (const Setting& s : settings()) {
    const bool is_of_one = std::find(std::begin(kOfOneDevice), std::end(kOfOneDevice), s.name) !=
                           std::end(kOfOneDevice);
    if (is_of_one && s.origin != Origin::standard) {
      return bad(s.name + " (" + s.origin_detail +
                 ") applies to one device, but there are several (" + listed(devices()) +
                 "); set it in their sections, or choose one with device");
    }
  }
  std::vector<std::pair<std::string, std::string>> ports;  // port, and name of its device
  for (const Section& section : sections_) {
    auto c = device(section.name);
    if (!c) return c.error();
    const auto named = [&](const Error& e) {
      return bad("device " + section.name + ": " + e.message);
    };
    if (auto ok = c->check(); !ok) return named(ok.error());
    const std::string port = c->get("port");
    if (port.starts_with("mem:")) continue;  // both ends are in this process
    for (const auto& [other, whose] : ports) {
      if (other != port) continue;
      return named(bad("has the same port as device " + whose + ": " + port));
    }
    ports.emplace_back(port, section.name);
  }
  return {};
}

}  // namespace urnic
