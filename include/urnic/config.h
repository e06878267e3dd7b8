// One configuration (D12): a TOML file, the environment and the command line set the same values
// under the same names. Precedence: default < file < environment < command line (set()).
//
// Names are the TOML keys ("port", "mtu", "max_recovery_attempts"); the environment variable is
// URNIC_ and the name in capitals (URNIC_PORT); the command-line option is --name with dashes
// (--max-recovery-attempts). Unknown names and bad values are errors; they are never ignored.
//
// A file may name several devices, each in a section of its own ([device.lab]). Settings above the
// sections apply to all of them. Each device is opened with its own configuration: see devices(),
// device() and one().
//
// A Config is a plain value: copyable, and a Device copies what it needs of it. Any number of
// threads may read a Config as long as no thread changes it. No function throws; the caller owns
// returned values. The help of each setting gives its unit: see `urnic config` and docs/config.md.
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

  // Applies the defaults, then the file, then the URNIC_* environment. `path`; empty:
  // $URNIC_CONFIG, else $XDG_CONFIG_HOME/urnic/urnic.toml or ~/.config/urnic/urnic.toml if present.
  // No other thread may change the environment during the call. Errors name file, line and key:
  // invalid_argument (not TOML, an unknown key with the nearest known one, a value out of range
  // with the range), permission and io (the file cannot be read, a named file does not exist, or it
  // is longer than 1 MiB).
  static Result<Config> load(std::string_view path = {});

  // Sets one value as the command line does (strongest); `value` as in the file, without quotes. On
  // an error nothing has changed. Errors: invalid_argument: unknown name (with the nearest known
  // one), value out of range (with the range).
  Result<void> set(std::string_view name, std::string_view value);

  // Checks that the values fit together: legal combinations of framing, InLogic variant and
  // recovery limit (E-3), addresses of one family pair. With several devices: checks each, and that
  // no two have the same port. Device::open calls it as well. Errors: invalid_argument.
  Result<void> check() const;

  // Names of the devices that the file has sections for, in the order of the file: 1 to 32 of
  // [A-Za-z0-9_-]. Empty: the configuration is for a single device without a name.
  std::vector<std::string> devices() const;
  // The configuration of that device. Precedence: default < common part of the file < the device's
  // section < environment < set(). Its setting `device` is the name. Errors: invalid_argument (no
  // such device; names the nearest).
  Result<Config> device(std::string_view name) const;
  // The configuration that Device::open uses: that of the device named by the setting `device`,
  // else of the only device, else this one. Errors: invalid_argument (no such device, or there are
  // several and none is named).
  Result<Config> one() const;

  // Every setting with value and origin, in a fixed order.
  std::vector<Setting> settings() const;
  // Value as text; empty string for an unknown name.
  std::string get(std::string_view name) const;
  // Value as a number in the setting's own unit; 0 for a value that is not a number, such as
  // "auto".
  std::int64_t get_int(std::string_view name) const;
  // True for "on" (true, yes and 1 are read back as "on"); false for everything else.
  bool get_bool(std::string_view name) const;

  // The legal combinations of framing policy and InLogic variant, one line each (E-3).
  static std::vector<std::string> matrix();

 private:
  struct Value {
    std::string text, origin_detail;
    Origin origin = Origin::standard;
  };
  // The values that the file sets for one device; their origin is Origin::file.
  struct Section {
    std::string name;
    std::vector<Value> values;
  };
  std::vector<Value> values_;
  std::vector<Section> sections_;
  std::string device_;  // the device whose section `values_` includes
  Result<void> check_devices() const;
  Result<void> put(std::string_view name, std::string_view value, Origin, std::string_view detail);
};

}  // namespace urnic
