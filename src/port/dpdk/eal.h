// DPDK's environment abstraction layer inside another program's process. It starts once, when the
// first port is opened, and runs until the process ends; ports come and go by hotplug.
//
// Its side effects on the program are prevented or undone: the calling thread keeps its CPUs and
// its signal mask, EAL's threads receive no signals, nothing is printed, the program's openlog()
// stays in effect.
#pragma once

#include <string>

#include "base/result.h"

namespace urnic::port::dpdk {

struct EalOptions {
  bool pci = false;         // look for NICs on the PCI bus
  bool huge_pages = false;  // required by physical NICs
  unsigned memory_mb = 256;
  std::string extra;  // more EAL arguments, separated by spaces; they override earlier ones
};

// Starts EAL if it is not running. On failure returns one line. Thread safe.
Outcome<bool, std::string> start_eal(const EalOptions& options);

// The last line that EAL logged; empty if there is none.
std::string last_complaint();

// False in a child forked after EAL started, because its threads do not exist there.
bool eal_is_ours();

}  // namespace urnic::port::dpdk
