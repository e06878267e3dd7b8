// An ordinary TCP that carries bytes: IP datagrams in, IP datagrams out, endpoints in between. The
// control blocks are those of tcp/tcb.h, which the RNIC engine runs too.
//
// No I/O, no clock, no threads, no locks, no globals. Every entry is given `now` (monotonic; an
// earlier one than before counts as the one before) and first fires the timers that were due before
// it, at their own times. What an entry causes has been queued for output, or been given to the
// sink, when it returns.
//
// Call-backs. The sink and the change call-back run at the end of the entry that caused them, when
// all state is settled. They may call any function of the stack except its destructor; what those
// calls cause is delivered after the call-back that made them, in order.
//
// One caller at a time. Handles of one stack mean nothing to another. Functions given a handle that
// is not (or no longer) valid return Invalid and do nothing.
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
  ~Stack();  // nothing is sent
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  void add_address(const IpAddress& address);
  // With a sink, next_output() never has anything.
  void set_sink(Sink sink, void* context);
  void set_on_change(OnChange on_change, void* context);

  // ---- options ----------------------------------------------------------------------------------
  // Of endpoints opened later.
  Status set_default(Option, std::int64_t value);
  // Before connect() or listen() any option; on an open connection those that
  // changeable_when_open(); on a listener, for connections it accepts later.
  Status set_option(Endpoint, Option, std::int64_t value, Instant now);
  std::optional<std::int64_t> option(Endpoint, Option) const;

  // ---- endpoints --------------------------------------------------------------------------------
  // A new one, not connected.
  Endpoint open();
  // Address (may be the any-address) and port (0: chosen later) it will use.
  Status bind(Endpoint, const SocketAddress& local);
  // Accept connections to the bound address. `backlog` >= 1: finished ones waiting for accept().
  Status listen(Endpoint, unsigned backlog);
  // The oldest waiting connection; None when there is none. `peer` may be null.
  Endpoint accept(Endpoint listener, SocketAddress* peer, Instant now);
  // InProgress; kConnected or kError follows.
  Status connect(Endpoint, const SocketAddress& remote, Instant now);

  // Ok with bytes > 0 (or a `dst` of none), WouldBlock, EndOfStream, or the pending error.
  IoResult read(Endpoint, MutBytes dst, Instant now);
  // As read(), from `skip` bytes on, taking nothing; errors stay pending.
  IoResult peek(Endpoint, MutBytes dst, std::size_t skip = 0) const;
  // Takes what fits below the send buffer's limit. `more`: what follows belongs to it, do not send
  // a small segment yet; push() or a write without `more` ends that.
  IoResult write(Endpoint, ByteView src, Instant now, bool more = false);
  Status push(Endpoint, Instant now);

  // No more writes: the FIN follows what was written.
  Status shutdown_write(Endpoint, Instant now);
  // No more reads: what is there and what comes is acknowledged and discarded.
  Status shutdown_read(Endpoint, Instant now);
  // Gives the handle back. The stream is finished inside (FIN, retransmissions, TIME-WAIT); with
  // unread data, or data that comes later, or Linger 0, it is reset instead. A listener resets what
  // nobody accepted.
  Status close(Endpoint, Instant now);
  // Gives the handle back and resets the connection.
  Status abort(Endpoint, Instant now);

  // The error that ended the connection, once; Ok when there is none.
  Status take_error(Endpoint);
  Readiness readiness(Endpoint) const;
  std::optional<SocketAddress> local_address(Endpoint) const;
  std::optional<SocketAddress> peer_address(Endpoint) const;
  std::optional<Snapshot> snapshot(Endpoint, Instant now) const;

  // ---- wire -------------------------------------------------------------------------------------
  // One whole IP datagram, up to 64 KiB; borrowed for the call. TCP for any own address, and ICMP
  // errors about own segments.
  void input(ByteView ip_datagram, Instant now);
  // Several datagrams received together: between the two calls, ACKs that AckPolicy::PerBurst may
  // join wait for the end.
  void begin_burst();
  void end_burst(Instant now);
  // An ICMP error that came some other way than input().
  void icmp_error(const net::IcmpError&, Instant now);
  // Oldest datagram to send; false when there is none.
  bool next_output(Datagram* out);

  // ---- time -------------------------------------------------------------------------------------
  // Earliest timer; never() when none runs.
  Instant next_deadline() const;
  // Fire everything due up to `now`, in order of deadlines; what a timer sends carries its
  // deadline.
  void run(Instant now);

  // ---- looking on -------------------------------------------------------------------------------
  StackCounters counters() const;
  // How many connections of a listener are half open, and how many wait for accept().
  std::optional<Backlog> backlog(Endpoint listener) const;
  // Entries in the list of timers.
  std::size_t timers() const { return timers_.size(); }
  // Those without a handle, and in TIME-WAIT, too.
  std::size_t connections() const { return flows_.size() + time_wait_.size(); }
  std::size_t sockets() const { return sockets_.size(); }      // all there is, listeners too
  std::uint64_t granted() const { return grants_.granted(); }  // bytes of memory_limit given out
};

}  // namespace urnic::tcp
