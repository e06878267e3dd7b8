// The kernel's TCP as the way out: FPDUs as pieces of memory, one record for each segment (E-31).
#pragma once

#include "iwarp/flush.h"
#include "iwarp/transmitter.h"

namespace urnic::iwarp {

class KernelSender {
 public:
  KernelSender(SideState* s, Completions* completions) : s_(*s), completions_(*completions) {}

  Sent transmit(Connection& c);
  // Our FIN when everything is in the kernel's hands. True when the peer's has come as well: the
  // socket is closed.
  bool finish(Connection& c);
  // Waits for its turn at reading.
  void enqueue_read(Connection& c);

 private:
  bool send_burst(Connection& c, Found* found);
  void break_off(Connection& c, int error);
  bool build_burst(Connection& c);
  void keep_rest(KernelLink& l, std::size_t taken);

  SideState& s_;
  Completions& completions_;
};

}  // namespace urnic::iwarp
