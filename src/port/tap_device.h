// Opens a TAP interface: rights, name, and offloads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "port/fd.h"

namespace urnic::port {

struct TapOptions {
  std::string name;       // empty: the kernel chooses urnic<n>
  int fd = -1;            // an open TAP descriptor to use instead
  std::uint32_t mtu = 0;  // 0: keep the interface's
  bool offload = true;    // super-segments and partial checksums
};

// Reports when an interface goes up or down, from the kernel (rtnetlink, RTM_NEWLINK). A TAP
// descriptor does not report that itself.
class LinkNews {
 public:
  // Watches the interface with that name in this network namespace. If that is impossible, nothing
  // is reported.
  void watch(const std::string& name);
  int fd() const { return fd_.get(); }
  // The latest report since the last call: usable or not (administratively up, with a carrier).
  std::optional<bool> take();

 private:
  Fd fd_;
  unsigned index_ = 0;
};

struct TapDevice {
  Fd fd;
  std::string name;
  std::uint32_t mtu = 1500;
  bool has_header = true;   // every read and write begins with a virtio-net header
  bool taken_over = false;  // the descriptor was created by another program
  LinkNews news;            // watched on demand
};

// Creates the interface (or attaches to a persistent one), sets its MTU and brings it up. A
// descriptor from the caller may belong to another network namespace, so its interface is not
// changed. The error is one line that says what to do.
Outcome<TapDevice, std::string> open_tap(const TapOptions& options);

// True if the interface is up, or if that cannot be determined.
bool tap_is_up(const TapDevice& device);

}  // namespace urnic::port
