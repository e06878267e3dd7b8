// One configuration (D12): a TOML file, the environment and the command line say the same things
// by the same names. Precedence: default < file < environment < command line (set()).
//
// Names are the TOML keys ("port", "mtu", "max_recovery_attempts"); the environment variable is
// URNIC_ and the name in capitals (URNIC_PORT); the command-line option is --name with dashes
// (--max-recovery-attempts). Unknown names and bad values are refused, never ignored.
//
// A Config is a plain value: copyable, not thread safe while it is changed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "urnic/status.h"

namespace urnic {

enum class Origin { standard, file, environment, command_line };

// One setting as `urnic config` shows it.
struct Setting {
  std::string name, value, origin_detail, help;
  Origin origin = Origin::standard;
};

class URNIC_API Config {
 public:
  // All defaults.
  Config();

  // Defaults, then the file (`path`; empty: $URNIC_CONFIG, else $XDG_CONFIG_HOME/urnic/urnic.toml
  // or
  // ~/.config/urnic/urnic.toml if present), then the URNIC_* environment.
  // Errors name file, line and key.
  static Result<Config> load(std::string_view path = {});

  // Set one value as the command line does (strongest). Errors: unknown name (with the nearest
  // known one), value out of range (with the range).
  Result<void> set(std::string_view name, std::string_view value);

  // Consistency of the whole: legal combinations of framing, InLogic variant and recovery limit
  // (E-3), addresses of one family pair, identity. Called by Device::open as well.
  Result<void> check() const;

  // Every setting with value and origin, in a fixed order.
  std::vector<Setting> settings() const;
  // Value as text; empty string for an unknown name.
  std::string get(std::string_view name) const;
  std::int64_t get_int(std::string_view name) const;
  bool get_bool(std::string_view name) const;

  // The legal combinations of framing policy and InLogic variant, one line each (E-3).
  static std::vector<std::string> matrix();

 private:
  struct Value {
    std::string text, origin_detail;
    Origin origin = Origin::standard;
  };
  std::vector<Value> values_;
  Result<void> put(std::string_view name, std::string_view value, Origin, std::string_view detail);
};

}  // namespace urnic
