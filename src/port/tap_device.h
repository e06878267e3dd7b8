// Opening a TAP interface: the rights, the name, what the kernel may leave to us.
#pragma once

#include <cstdint>
#include <optional>
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

// News of an interface coming and going, from the kernel (rtnetlink, RTM_NEWLINK): a TAP descriptor
// itself does not tell.
class LinkNews {
 public:
  // Of the interface of that name in this network namespace; nothing when that cannot be had.
  void watch(const std::string& name);
  int fd() const { return fd_.get(); }
  // What has been said last since the last call: usable or not (administratively up, with a
  // carrier).
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
  bool taken_over = false;  // the descriptor was given to us
  LinkNews news;            // watched by who wants them
};

// Creates the interface (or attaches to a persistent one), sets its MTU and brings it up. A
// descriptor given by the caller may belong to another network namespace, so its interface is left
// as it is. The error is one line that says what to do.
Outcome<TapDevice, std::string> open_tap(const TapOptions& options);

// Whether the interface is up; true when that cannot be found out.
bool tap_is_up(const TapDevice& device);

}  // namespace urnic::port
