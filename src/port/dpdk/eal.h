// DPDK's environment abstraction layer inside somebody else's process. It starts once, when the
// first port is opened, and stays for the life of the process; ports come and go by hotplug.
//
// What it would do to its host is undone or prevented: the calling thread keeps its CPUs and its
// signal mask, EAL's own threads take no signals, nothing is printed, the host's openlog() stands.
#pragma once

#include <string>

#include "base/result.h"

namespace urnic::port::dpdk {

struct EalOptions {
  bool pci = false;         // look for NICs on the PCI bus
  bool huge_pages = false;  // needed by real NICs
  unsigned memory_mb = 256;
  std::string extra;  // more EAL arguments, separated by spaces; the last one wins
};

// Starts EAL unless it runs. One line on failure. Thread safe.
Outcome<bool, std::string> start_eal(const EalOptions& options);

// What EAL last complained about, one line; empty when it did not.
std::string last_complaint();

// False in a child forked after EAL started: its threads are not there.
bool eal_is_ours();

}  // namespace urnic::port::dpdk
