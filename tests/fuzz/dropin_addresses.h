// The devices of the C library's fuzzer: the kernel's TCP and RoCE over its UDP, each connected
// with itself, and two devices at the ends of a memory wire.
#pragma once

#include <string>

#include "tests/support/loopback_network.h"

namespace urnic::fuzz {

inline std::string address_of(unsigned device) {
  if (device >= 2) return "10.79.0." + std::to_string(device - 1);
  return urnic::test::loopback_network() + (device == 0 ? "3" : "1");
}

inline std::string devices_text() {
  return "receive_window = \"1M\"\nstat = false\n[device.rocky]\nport = \"udp:bind=" +
         address_of(0) +
         ",mtu=5000\"\ntransport = \"roce\"\n[device.kernel]\nport = \"tcp:bind=" + address_of(1) +
         "\"\nidentity = \"ib-like\"\n[device.left]\nport = \"mem:name=wire\"\naddress = [\"" +
         address_of(2) +
         "/24\"]\nidentity = \"ib-like\"\n[device.right]\nport = "
         "\"mem:name=wire\"\naddress = [\"" +
         address_of(3) + "/24\"]\nidentity = \"ib-like\"\n";
}

}  // namespace urnic::fuzz
