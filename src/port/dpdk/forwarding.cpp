#include "port/dpdk/forwarding.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "port/fd.h"

namespace urnic::port::dpdk {

std::string driver_argument(const std::string& arguments, const std::string& key) {
  std::size_t at = 0;
  while (at < arguments.size()) {
    const std::size_t end = std::min(arguments.find(',', at), arguments.size());
    if (arguments.compare(at, key.size() + 1, key + "=") == 0) {
      return arguments.substr(at + key.size() + 1, end - at - key.size() - 1);
    }
    at = end + 1;
  }
  return {};
}

std::string forwarding_complaint(const std::string& interface) {
  // The name becomes part of a path.
  if (interface.empty() || interface.find('/') != std::string::npos || interface[0] == '.')
    return {};
  for (const char* family : {"ipv4", "ipv6"}) {
    const std::string path =
        std::string("/proc/sys/net/") + family + "/conf/" + interface + "/forwarding";
    const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    char value = '0';
    if (file && read(file.get(), &value, 1) == 1 && value != '0') {
      return "IP forwarding is on (net." + std::string(family) + ".conf." + interface +
             ".forwarding = 1), so the kernel would forward frames meant for urnic: set it to 0, "
             "or add the drop rule of docs/ports.md and set drop_rule=on";
    }
  }
  return {};
}

}  // namespace urnic::port::dpdk
