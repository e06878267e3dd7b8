// The process' handler of SIGSEGV and SIGBUS while a device is open: faults of guarded accesses
// (base/guarded.h) end the access; all others go to the program's handler, as if ours did not
// exist. See docs/decisions/memory-that-goes.md.
#pragma once

namespace urnic::device {

// Installed with the first object, and removed with the last one if it is still the current
// handler.
class FaultHandler {
 public:
  FaultHandler();
  ~FaultHandler();
  FaultHandler(const FaultHandler&) = delete;
  FaultHandler& operator=(const FaultHandler&) = delete;

  // If the program has installed a handler of its own since, installs ours in front of it again.
  static void look_again();
};

}  // namespace urnic::device
