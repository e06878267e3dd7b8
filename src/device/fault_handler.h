// The process' handler of SIGSEGV and SIGBUS while a device is open: faults of guarded accesses
// (base/guarded.h) end the access; all others go to the handler that the program had, as if ours
// were not there. docs/decisions/memory-that-goes.md.
#pragma once

namespace urnic::device {

// Installed with the first one, and given back with the last one if it is still in its place.
class FaultHandler {
 public:
  FaultHandler();
  ~FaultHandler();
  FaultHandler(const FaultHandler&) = delete;
  FaultHandler& operator=(const FaultHandler&) = delete;

  // The program may have installed a handler of its own since: ours goes before it again.
  static void look_again();
};

}  // namespace urnic::device
