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
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/chunk_pool.h"
#include "base/flow_hash.h"
#include "base/hash_map.h"
#include "base/ip_address.h"
#include "base/ring.h"
#include "base/siphash.h"
#include "net/classify.h"
#include "net/icmp.h"
#include "tcp/host_keys.h"
#include "tcp/port_choice.h"
#include "tcp/stack_options.h"
#include "tcp/stack_types.h"
#include "tcp/tcb.h"

namespace urnic::tcp {

// What is injected so that a run can be repeated byte for byte, or tuned. Those left empty follow
// from `seed` alone.
struct StackConfig {
  std::vector<IpAddress> addresses;  // own ones; add_address() adds more
  EndpointOptions options;           // of endpoints to come
  std::uint64_t seed = 1;            // of every key and choice below; secret in production
  bool verify_checksums = true;      // of received TCP and ICMP
  std::uint8_t ttl = 64;
  std::uint16_t port_first = 32768, port_last = 60999;  // ephemeral ports
  std::uint8_t challenge_acks = 10;  // of each connection in 5 s, less a random share (RFC 5961 7)
  // Octets the buffers of all endpoints with Option::AutoTune may grow to together. When it is
  // reached a new connection gets 4 KiB each way all the same.
  std::uint64_t memory_limit = 256u << 20;

  std::function<Seq(const SocketAddress& local, const SocketAddress& remote, Instant)> isn;
  std::function<std::uint32_t(const SocketAddress& local, const SocketAddress& remote)> ts_offset;
  // The `attempt`-th candidate; called until one is free or attempts run out.
  std::function<std::uint16_t(const IpAddress& local, const SocketAddress& remote,
                              unsigned attempt)>
      ephemeral_port;
};

class Stack {
 public:
  using Sink = void (*)(void* context, ByteView datagram, Instant send_time);
  using OnChange = void (*)(void* context, Endpoint, std::uint32_t changes);

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
  // As read(), from `skip` octets on, taking nothing; errors stay pending.
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
  const StackCounters& counters() const { return counters_; }
  std::size_t connections() const { return flows_.size(); }  // those without a handle too
  std::size_t sockets() const { return live_; }              // all there is, listeners too
  std::uint64_t granted() const { return granted_; }         // octets of memory_limit given out

 private:
  struct Socket;  // tcp/stack_socket.h
  struct FlowKey {
    IpAddress local, remote;
    std::uint16_t local_port = 0, remote_port = 0;
    bool operator==(const FlowKey&) const = default;
  };
  struct FlowHash {
    SipKey key;
    std::uint64_t operator()(const FlowKey& k) const {
      return keyed_flow_hash(key, k.local, k.local_port, k.remote, k.remote_port);
    }
  };
  struct Timer {
    Instant at;
    std::uint32_t slot = 0;
    std::uint32_t generation = 0;
  };
  struct Packet {
    Instant send_time;
    std::vector<std::uint8_t> bytes;
  };
  class Entry;  // brackets every public call

  // stack_tuning.cpp
  std::uint32_t grant(std::uint32_t have, std::uint64_t want);
  void grant_first(Socket&);
  void take_back(Socket&);
  void tune_receive(Socket&, std::uint64_t octets, Instant now);
  void tune_send(Socket&);
  // stack.cpp, stack_close.cpp, stack_report.cpp: endpoints
  Socket* find(Endpoint) const;
  Socket& new_socket();
  void free_socket(Socket&);
  Endpoint handle(const Socket&) const;
  std::size_t first_listener(std::uint16_t port) const;
  bool port_in_use(const SocketAddress& local) const;
  std::uint16_t choose_port(const IpAddress& local, const SocketAddress& remote);
  std::optional<IpAddress> choose_source(const IpAddress& remote) const;
  Config connection_config(const Socket&, const SocketAddress& local,
                           const SocketAddress& remote) const;
  Seq choose_isn(const SocketAddress& local, const SocketAddress& remote, Instant now);
  void close_listener(Socket&, Instant now);
  void let_go(Socket&, Instant now);
  void reset_now(Socket&, Instant now);
  Status apply_option(Socket&, Option, std::int64_t value, Instant now);
  // stack_input.cpp
  void take_datagram(ByteView datagram, Instant now);
  void take_icmp(const net::Classified& c, ByteView message, Instant now);
  void on_icmp_error(const net::IcmpError&, Instant now);
  Socket& new_child(Socket& listener, const net::Classified& c, const Segment& s);
  bool take_cookie(Socket& listener, const net::Classified& c, const Segment& s, Instant now);
  void take_unmatched(const net::Classified& c, const Segment& s, Instant now);
  Socket* find_listener(const SocketAddress& local) const;
  void take_segment(Socket&, const net::Classified& c, const Segment& s, Instant now);
  void take_payload(Socket&, const Segment& s, const Check& c, Instant now);
  AckNeed store(Socket&, const Segment& s, const Check& c, Instant now);
  bool take_run(Socket&, StreamOffset from, StreamOffset to, const Segment& s, const Check& c,
                Instant now);
  void on_established(Socket&);
  // stack_output.cpp
  void pump(Socket&, Instant now);
  void emit(Socket&, const SendPlan& plan, Instant now);
  void emit_stateless(const net::Classified& c, const Segment& reply, Instant now);
  void emit_reset(const net::Classified& c, const Segment& reset, Instant now);
  void finish_ip(Socket* s, const IpAddress& src, const IpAddress& dst, std::uint8_t ecn,
                 std::vector<std::uint8_t>* datagram);
  void queue(std::vector<std::uint8_t> bytes, Instant now);
  std::vector<std::uint8_t> new_packet(std::size_t size);
  void settle(Socket&, Instant now);
  void arm(Socket&);
  void fire(Instant until, bool including);
  Instant socket_deadline(const Socket&) const;
  void note(Socket&, std::uint32_t changes);
  void deliver();

  StackConfig config_;
  HostKeys keys_;
  PortChoice ports_;
  StackCounters counters_;
  Sink sink_ = nullptr;
  void* sink_context_ = nullptr;
  OnChange on_change_ = nullptr;
  void* change_context_ = nullptr;

  ChunkPool pool_;  // behind every receive buffer
  HashMap<FlowKey, std::uint32_t, FlowHash> flows_;
  std::vector<std::unique_ptr<Socket>> sockets_;
  std::vector<std::uint32_t> generations_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> listeners_;  // by port
  std::size_t live_ = 0;
  std::uint64_t granted_ = 0;

  std::vector<Timer> timers_;  // heap, earliest first; entries may be out of date
  Ring<Packet> output_;
  std::vector<std::vector<std::uint8_t>> spare_;  // buffers to use again
  std::vector<std::uint8_t> current_;             // what next_output() lent
  Ring<std::uint64_t> changed_;                   // handles with changes to report
  std::vector<std::uint32_t> touched_;            // in this burst
  Instant last_now_ = Instant::from_ns(std::numeric_limits<std::int64_t>::min());
  unsigned depth_ = 0;
  bool delivering_ = false;
  bool in_burst_ = false;
};

}  // namespace urnic::tcp
