// Sends through the kernel's TCP: FPDUs as pieces of memory, one record for each segment (E-31).
#pragma once

#include "iwarp/flush.h"
#include "iwarp/transmitter.h"

namespace urnic::iwarp {

class KernelSender {
 public:
  KernelSender(SideState* s, Completions* completions) : s_(*s), completions_(*completions) {}

  Sent transmit(Connection& c, Instant now);
  // Sends our FIN when everything was passed to the kernel. Returns true if the peer's FIN has
  // arrived as well: the socket is closed.
  bool finish(Connection& c, Instant now);
  // Queues the connection for reading.
  void enqueue_read(Connection& c);

 private:
  bool send_burst(Connection& c, Instant now, Found* found);
  kernel_tcp::Moved pass_burst(KernelLink& l, std::span<const iovec> pieces, Instant now);
  bool pass_on(Connection& c, Instant now);
  bool transmit_faulty(Connection& c, Instant now, Found* found);
  void break_off(Connection& c, int error);
  bool build_burst(Connection& c);
  void keep_rest(KernelLink& l, std::size_t taken);

  SideState& s_;
  Completions& completions_;
};

}  // namespace urnic::iwarp
