// What a configuration file says: settings as text with their places, at the top and in the section
// of each device.
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
  std::vector<DeviceSection> devices;  // in the order of the file, no name twice
};

// Nothing where the file is missing and need not exist. Errors: permission, io, and
// invalid_argument for what is no TOML or has sections of other kinds; names of settings are not
// looked at.
Result<File> read_file(const std::string& path, bool must_exist);

}  // namespace urnic::config
