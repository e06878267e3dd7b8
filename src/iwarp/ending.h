// The end of a connection, orderly or not, and what its queue pair and the consumer learn of it.
// verbs/qp_state.h has the table of states. Whoever holds an Ending may end a connection; the steps
// of receiving and sending hold none.
#pragma once

#include <memory>
#include <new>
#include <string>

#include "iwarp/flush.h"
#include "iwarp/side_state.h"
#include "iwarp/transport.h"

namespace urnic::iwarp {

class Ending {
 public:
  Ending(SideState* s, Transport* transport, Completions* completions)
      : s_(*s), transport_(*transport), completions_(*completions) {}

  // The RDMA stream ends with our Terminate, or the peer's.
  void raise_terminate(Connection& c, ddp::Violation v, ByteView offending, Instant now);
  void take_terminate(Connection& c, Instant now);
  // Nothing more will be posted: our FIN follows the last byte.
  void begin_closing(Connection& c, Instant now);
  // The consumer destroys the queue pair. One that ends in order, or by a Terminate, is taken over:
  // what it was given goes out, then the FIN, and nobody hears of it (E-50). False, and nothing is
  // taken: it cannot end that way.
  bool leave(Connection& c, std::unique_ptr<verbs::QueuePair>& qp, Instant now);
  // Our FIN goes when nothing is left to be cut into segments.
  void try_finish_close(Connection& c, Instant now);
  // The peer's FIN, from full operation on.
  void take_fin(Connection& c, Instant now);
  // It was orderly, and has waited long enough (ConnectParams::close_wait_ms).
  void close_behind_peer(Connection& c, Instant now);
  // TCP has finished (TIME-WAIT counts): the queue pair is done, TCP lingers alone.
  void take_closed(Connection& c, Instant now);
  // The stream is gone (or goes now, by RST): flush and report; TCP sends its RST if it owes one.
  // Without memory for that it is over for its peer at once, and for the consumer by finish_ends().
  void fail_connection(Connection& c, Errc code, std::string why, Instant now);
  // A step of `c`. What it had begun stays half done when memory runs out in the middle: the
  // connection ends, and nothing else does (docs/decisions/out-of-memory.md).
  template <class F>
  void guard(Connection& c, Instant now, F&& step) {
    try {
      step();
    } catch (const std::bad_alloc&) {
      out_of_memory(c, now);
    }
  }
  void out_of_memory(Connection& c, Instant now);
  // Of those whose end could not be told: tried again.
  void finish_ends(Instant now);
  // The same without a word: the queue pair is nobody's any more.
  void abort_silently(Connection& c, Instant now);
  // TCP has had its time. The RST it owes goes if its way is known; nothing waits for anything
  // more, so that no peer, no route and no timer can keep the connection.
  void end_with_reset(Connection& c, Instant now);
  // Counted for good: the connection goes on without it.
  void count_stream(const ddp::Stream& stream);
  // The queue pair hears `e` and has no connection any more. Without memory it is flushed and
  // stays: to be done once more.
  void detach_qp(Connection& c, CmEvent e);

 private:
  // The last thing that happens to a connection, wherever it is called from, and as often as it is.
  void end_connection(Connection& c);
  void finish_failing(Connection& c, UnreportedEnd end, Instant now);

  SideState& s_;
  Transport& transport_;
  Completions& completions_;
};

}  // namespace urnic::iwarp
