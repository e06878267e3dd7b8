// A TCP for byte streams: IP datagrams in, IP datagrams out, endpoints in between. It uses the
// control blocks of tcp/tcb.h, as the RNIC engine does.
//
// No I/O, no clock, no threads, no locks, no globals. Every call gets `now` (monotonic; a value
// lower than in the previous call counts as that call's). It first fires the timers that were due
// before `now`, at their own times. When the call returns, everything it caused has been queued for
// output or given to the sink.
//
// Callbacks: the sink and the change callback run at the end of the call that caused them, when all
// state is settled. They may call any function of the stack except its destructor. Reports that
// those calls cause are delivered in order, after the current callback returns.
//
// One caller at a time. A handle is valid only for its own stack. A function given an invalid or
// closed handle returns Invalid and does nothing.
#pragma once

#include <cstdint>
#include <optional>

#include "tcp/stack_config.h"
#include "tcp/stack_core.h"
#include "tcp/stack_types.h"

namespace urnic::tcp {

class Stack : private StackCore {
 public:
  using StackCore::OnChange;
  using StackCore::Sink;

  explicit Stack(StackConfig config = {});
  ~Stack();  // sends nothing
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  void add_address(const IpAddress& address);
  // With a sink, next_output() never returns anything.
  void set_sink(Sink sink, void* context);
  void set_on_change(OnChange on_change, void* context);

  // ---- options ----------------------------------------------------------------------------------
  // For endpoints opened later.
  Status set_default(Option, std::int64_t value);
  // Any option may be set before connect() or listen(). On an open connection, only those for which
  // changeable_when_open() is true. On a listener, it applies to connections accepted later.
  Status set_option(Endpoint, Option, std::int64_t value, Instant now);
  std::optional<std::int64_t> option(Endpoint, Option) const;

  // ---- endpoints --------------------------------------------------------------------------------
  // Returns a new endpoint, not connected.
  Endpoint open();
  // Sets the address (may be the any-address) and port (0: chosen later) to use.
  Status bind(Endpoint, const SocketAddress& local);
  // Accepts connections to the bound address. `backlog` >= 1: established ones waiting for
  // accept().
  Status listen(Endpoint, unsigned backlog);
  // The oldest waiting connection; None if there is none. `peer` may be null.
  Endpoint accept(Endpoint listener, SocketAddress* peer, Instant now);
  // Returns InProgress; kConnected or kError follows.
  Status connect(Endpoint, const SocketAddress& remote, Instant now);

  // Ok with bytes > 0 (or if `dst` is empty), WouldBlock, EndOfStream, or the pending error.
  IoResult read(Endpoint, MutBytes dst, Instant now);
  // Like read(), from byte `skip` on, without consuming anything; errors stay pending.
  IoResult peek(Endpoint, MutBytes dst, std::size_t skip = 0) const;
  // Takes the bytes that fit below the send buffer's limit. `more`: more data will follow, so do
  // not send a small segment yet; push() or a write without `more` ends that.
  IoResult write(Endpoint, ByteView src, Instant now, bool more = false);
  Status push(Endpoint, Instant now);

  // No more writes. The FIN follows the data already written.
  Status shutdown_write(Endpoint, Instant now);
  // No more reads. Received data, now and later, is acknowledged and discarded.
  Status shutdown_read(Endpoint, Instant now);
  // Releases the handle. The stack finishes the stream (FIN, retransmissions, TIME-WAIT). With
  // unread data, data that arrives later, or Linger 0, it resets the connection instead. A listener
  // resets the connections that were not accepted.
  Status close(Endpoint, Instant now);
  // Releases the handle and resets the connection.
  Status abort(Endpoint, Instant now);

  // The error that ended the connection, reported once; Ok if there is none.
  Status take_error(Endpoint);
  Readiness readiness(Endpoint) const;
  std::optional<SocketAddress> local_address(Endpoint) const;
  std::optional<SocketAddress> peer_address(Endpoint) const;
  std::optional<Snapshot> snapshot(Endpoint, Instant now) const;

  // ---- wire -------------------------------------------------------------------------------------
  // Processes one whole IP datagram, up to 64 KiB, borrowed for the call: TCP to one of our
  // addresses, or an ICMP error about one of our segments.
  void input(ByteView ip_datagram, Instant now);
  // For several datagrams received together: between the two calls, ACKs that AckPolicy::PerBurst
  // may combine wait for the end.
  void begin_burst();
  void end_burst(Instant now);
  // An ICMP error that did not arrive through input().
  void icmp_error(const net::IcmpError&, Instant now);
  // The oldest datagram to send; false if there is none.
  bool next_output(Datagram* out);

  // ---- time -------------------------------------------------------------------------------------
  // The earliest timer; never() if none runs.
  Instant next_deadline() const;
  // Fires everything due up to `now`, in order of deadlines. A segment that a timer sends carries
  // that timer's deadline as its time.
  void run(Instant now);

  // ---- statistics -------------------------------------------------------------------------------
  StackCounters counters() const;
  // How many connections of a listener are half open, and how many wait for accept().
  std::optional<Backlog> backlog(Endpoint listener) const;
  // Entries in the list of timers.
  std::size_t timers() const { return timers_.size(); }
  // Includes those without a handle and in TIME-WAIT.
  std::size_t connections() const { return flows_.size() + time_wait_.size(); }
  std::size_t sockets() const { return sockets_.size(); }      // all endpoints, including listeners
  std::uint64_t granted() const { return grants_.granted(); }  // bytes of memory_limit granted
};

}  // namespace urnic::tcp
