// The end of a connection, orderly or not, and the reports to its queue pair and the consumer.
// verbs/qp_state.h has the table of states. Only code that has an Ending can end a connection; the
// steps of receiving and sending have none.
#pragma once

#include <memory>
#include <string>

#include "iwarp/flush.h"
#include "iwarp/side_state.h"
#include "iwarp/transport.h"

namespace urnic::iwarp {

class Ending {
 public:
  Ending(SideState* s, Transport* transport, Completions* completions)
      : s_(*s), transport_(*transport), completions_(*completions) {}

  // The RDMA stream ends with our Terminate, or with the peer's.
  void raise_terminate(Connection& c, ddp::Violation v, ByteView offending, Instant now);
  void take_terminate(Connection& c, Instant now);
  // No more work will be posted: our FIN follows the last byte.
  void begin_closing(Connection& c, Instant now);
  // The consumer destroys the queue pair. If the connection ends in order, or by a Terminate, this
  // takes over the queue pair: its work is sent, then the FIN, and nothing is reported (E-50).
  // Returns false, and takes over nothing, if the connection cannot end that way.
  bool leave(Connection& c, std::unique_ptr<verbs::QueuePair>& qp, Instant now);
  // Sends our FIN when nothing is left to be cut into segments.
  void try_finish_close(Connection& c, Instant now);
  // Processes the peer's FIN, from full operation on.
  void take_fin(Connection& c, Instant now);
  // The FIN was orderly, and has waited long enough (ConnectParams::close_wait_ms).
  void close_behind_peer(Connection& c, Instant now);
  // TCP has finished (TIME-WAIT counts): the queue pair is done, and TCP lingers alone.
  void take_closed(Connection& c, Instant now);
  // The stream has ended (or ends now, by RST): flushes and reports; TCP sends its RST if one is
  // pending. Without memory for that, the connection ends for its peer at once, and for the
  // consumer in finish_ends().
  void fail_connection(Connection& c, Errc code, std::string why, Instant now);
  // A step of `c` ran out of memory (guard_allocation.h): ends the connection.
  void out_of_memory(Connection& c, Instant now);
  // Tries again to report the ends that could not be reported.
  void finish_ends(Instant now);
  // Aborts without a report: the queue pair has no owner any more.
  void abort_silently(Connection& c, Instant now);
  // TCP's time is over. Sends a pending RST if the path is known, and waits for nothing more, so
  // that no peer, route or timer can keep the connection.
  void end_with_reset(Connection& c, Instant now);
  // Adds its counters to the totals: the connection continues without this stream.
  void count_stream(const ddp::Stream& stream);
  // Reports `e` to the queue pair, which then has no connection any more. Without memory it is
  // flushed and stays, and this is repeated later.
  void detach_qp(Connection& c, CmEvent e);

 private:
  // The last step of every connection. It may be called from anywhere, and repeatedly.
  void end_connection(Connection& c);
  void finish_failing(Connection& c, UnreportedEnd end, Instant now);

  SideState& s_;
  Transport& transport_;
  Completions& completions_;
};

}  // namespace urnic::iwarp
