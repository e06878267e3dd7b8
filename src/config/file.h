// The content of a configuration file: settings as text with their positions, at the top level and
// in the section of each device.
#pragma once

#include <string>
#include <vector>

#include "urnic/status.h"

namespace urnic::config {

struct Assignment {
  std::string name, value;
  std::string at;  // "urnic.toml:7"
};

struct DeviceSection {
  std::string name, at;
  std::vector<Assignment> settings;
};

struct File {
  std::vector<Assignment> settings;
  std::vector<DeviceSection> devices;  // in the order of the file, names are unique
};

// Returns nothing if the file is missing and not required. Errors: permission, io, and
// invalid_argument for invalid TOML or other kinds of sections. Names of settings are not checked.
Result<File> read_file(const std::string& path, bool must_exist);

}  // namespace urnic::config
