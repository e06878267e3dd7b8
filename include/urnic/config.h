// One configuration (D12): a TOML file, the environment and the command line say the same things
// by the same names. Precedence: default < file < environment < command line (set()).
//
// Names are the TOML keys ("port", "mtu", "max_recovery_attempts"); the environment variable is
// URNIC_ and the name in capitals (URNIC_PORT); the command-line option is --name with dashes
// (--max-recovery-attempts). Unknown names and bad values are refused, never ignored.
//
// A file may name several devices, each in a section of its own ([device.lab]). What stands above
// the sections is for all of them. One device is opened with the configuration of one of them: see
// devices(), device() and one().
//
// A Config is a plain value: copyable, and a Device copies what it needs of it. Any number of
// threads may read one; none while another changes it. Nothing here throws; what is returned by
// value is the caller's. Units stand in the help of each setting: `urnic config` and docs/config.md
// show them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "urnic/status.h"

namespace urnic {

// Where a value comes from, the weakest first.
enum class Origin { standard, file, environment, command_line };

// One setting as `urnic config` shows it.
struct Setting {
  std::string name;           // the TOML key
  std::string value;          // as text
  std::string origin_detail;  // "/etc/x.toml:7", "URNIC_MTU", "command line", "default"
  std::string help;           // one line: what it does, its unit, its item of the specification
  Origin origin = Origin::standard;
};

class URNIC_API Config {
 public:
  // All defaults. Reads neither files nor the environment.
  Config();

  // Defaults, then the file, then the URNIC_* environment. `path`; empty: $URNIC_CONFIG, else
  // $XDG_CONFIG_HOME/urnic/urnic.toml or ~/.config/urnic/urnic.toml if present. Not while another
  // thread changes the environment. Errors name file, line and key: invalid_argument (no TOML, an
  // unknown key with the nearest known one, a value out of range with the range), permission and io
  // (the file cannot be read, one that is named does not exist, or it is longer than 1 MiB).
  static Result<Config> load(std::string_view path = {});

  // Set one value as the command line does (strongest); `value` as in the file, without quotes. On
  // an error nothing has changed. Errors: invalid_argument: unknown name (with the nearest known
  // one), value out of range (with the range).
  Result<void> set(std::string_view name, std::string_view value);

  // Consistency of the whole: legal combinations of framing, InLogic variant and recovery limit
  // (E-3), addresses of one family pair. Of several devices, each, and that no two have the same
  // port. Called by Device::open as well. Errors: invalid_argument.
  Result<void> check() const;

  // Names of the devices that the file has sections for, in its order: 1 to 32 of [A-Za-z0-9_-].
  // Empty: the configuration is one device's, without a name.
  std::vector<std::string> devices() const;
  // The configuration of that one: above the defaults and what the file says for all stands its
  // section, above that the environment and what was set. Its setting `device` is the name.
  // Errors: invalid_argument (no such device; names the nearest).
  Result<Config> device(std::string_view name) const;
  // What Device::open opens: the device that the setting `device` names, else the only one, else
  // this. Errors: invalid_argument (no such device, or several and none is named).
  Result<Config> one() const;

  // Every setting with value and origin, in a fixed order.
  std::vector<Setting> settings() const;
  // Value as text; empty string for an unknown name.
  std::string get(std::string_view name) const;
  // Value as a number in the setting's own unit; 0 for what is no number, "auto" among them.
  std::int64_t get_int(std::string_view name) const;
  // True for "on", which is how true, yes and 1 read back; false for all else.
  bool get_bool(std::string_view name) const;

  // The legal combinations of framing policy and InLogic variant, one line each (E-3).
  static std::vector<std::string> matrix();

 private:
  struct Value {
    std::string text, origin_detail;
    Origin origin = Origin::standard;
  };
  // What the file says of one device: values that have Origin::file.
  struct Section {
    std::string name;
    std::vector<Value> values;
  };
  std::vector<Value> values_;
  std::vector<Section> sections_;
  std::string device_;  // whose section `values_` has
  Result<void> check_devices() const;
  Result<void> put(std::string_view name, std::string_view value, Origin, std::string_view detail);
};

}  // namespace urnic
