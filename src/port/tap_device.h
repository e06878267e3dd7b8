// Opening a TAP interface: the rights, the name, what the kernel may leave to us.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "port/fd.h"

namespace urnic::port {

struct TapOptions {
  std::string name;       // empty: the kernel chooses urnic<n>
  int fd = -1;            // an open TAP descriptor to take over instead
  std::uint32_t mtu = 0;  // 0: leave the interface's
  bool offload = true;    // super-segments and partial checksums
};

struct TapDevice {
  Fd fd;
  std::string name;
  std::uint32_t mtu = 1500;
  bool has_header = true;  // every read and write begins with a virtio-net header
};

// Creates the interface (or attaches to a persistent one), sets its MTU and brings it up. A
// descriptor given by the caller may belong to another network namespace, so its interface is left
// as it is. The error is one line that says what to do.
Outcome<TapDevice, std::string> open_tap(const TapOptions& options);

// Whether the interface is up; true when that cannot be found out.
bool tap_is_up(const TapDevice& device);

}  // namespace urnic::port
