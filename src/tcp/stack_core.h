// The inside of a stack: segments for connections and listeners, timers, changes to report. Private
// to the stack; its user sees Stack (stack.h).
//
//   stack_core.cpp     choices for a new connection; begin and end of every call
//   stack_input.cpp    datagrams into segments, segments to connections
//   stack_output.cpp   segments into datagrams, timers, reports
//   stack_close.cpp    the end of endpoints
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/chunk_pool.h"
#include "base/ring.h"
#include "net/classify.h"
#include "net/icmp.h"
#include "tcp/buffer_grants.h"
#include "tcp/datagram_queue.h"
#include "tcp/flow.h"
#include "tcp/host_keys.h"
#include "tcp/host_logic.h"
#include "tcp/port_choice.h"
#include "tcp/socket_table.h"
#include "tcp/socket_timers.h"
#include "tcp/stack_config.h"
#include "tcp/time_wait.h"

namespace urnic::tcp {

class StackCore {
 protected:
  using Sink = DatagramQueue::Sink;
  using OnChange = void (*)(void* context, Endpoint, std::uint32_t changes);

  explicit StackCore(StackConfig config);
  ~StackCore();
  StackCore(const StackCore&) = delete;
  StackCore& operator=(const StackCore&) = delete;

  // Brackets every call from outside: first the time, then the call, then the reports it caused.
  class Entry {
   public:
    Entry(StackCore& stack, Instant now);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    Instant now() const { return now_; }

   private:
    StackCore& stack_;
    Instant now_;
  };

  // stack_core.cpp
  Socket* find(Endpoint e) const { return sockets_.find(e); }
  void free_socket(Socket&);
  std::uint16_t choose_port(const IpAddress& local, const SocketAddress& remote);
  std::optional<IpAddress> choose_source(const IpAddress& remote) const;
  Config config_for(const Socket&, const FlowKey&) const;
  Seq choose_isn(const SocketAddress& local, const SocketAddress& remote, Instant now);
  // stack_close.cpp
  void close_listener(Socket&, Instant now);
  void end_without_owner(Socket&, Instant now);
  void reset_now(Socket&, Instant now);
  void end_or_arm(Socket&, Instant now);
  // stack_set_option.cpp
  Status apply_option(Socket&, Option, std::int64_t value, Instant now);
  // stack_input.cpp
  void take_datagram(ByteView datagram, Instant now);
  void take_icmp(const net::Classified& c, ByteView message, Instant now);
  void on_icmp_error(const net::IcmpError&, Instant now);
  Socket& new_child(Socket& listener, const FlowKey& key);
  void open_from(Socket& listener, const net::Classified& c, const Segment& cookie,
                 const Segment& s, const FlowKey& key, Instant now);
  void on_unmatched(const net::Classified& c, const Segment& s, const FlowKey& key, Instant now);
  bool take_lingering(const net::Classified& c, const Segment& s, const FlowKey& key, Instant now);
  void take_segment(Socket&, const net::Classified& c, const Segment& s, Instant now);
  void take_payload(Socket&, const Segment& s, const Check& c, Instant now);
  AckNeed store(Socket&, const Segment& s, const Check& c, Instant now);
  bool take_run(Socket&, StreamOffset from, StreamOffset to, const Segment& s, const Check& c,
                Instant now);
  void on_established(Socket&);
  // stack_output.cpp
  void pump(Socket&, Instant now);
  void emit(Socket&, const SendPlan& plan, Instant now);
  void emit_reset(const net::Classified& c, const Segment& reset, Instant now);
  void arm(Socket&);
  void prune_timers();
  void run_timers(Instant until, bool including);
  void note(Socket&, std::uint32_t changes);
  void deliver();

  StackConfig config_;
  HostKeys keys_;
  PortChoice ports_;
  StackCounters counters_;
  OnChange on_change_ = nullptr;
  void* change_context_ = nullptr;

  ChunkPool pool_;  // memory for every receive buffer
  BufferGrants grants_;
  FlowTable flows_;
  TimeWaitTable time_wait_;  // connections that the program has closed
  SocketTable sockets_;
  SocketTimers timers_;
  DatagramQueue out_;

  Ring<std::uint64_t> changed_;         // handles with changes to report
  std::vector<std::uint32_t> touched_;  // slots touched in this burst
  Instant last_now_ = Instant::from_ns(std::numeric_limits<std::int64_t>::min());
  unsigned depth_ = 0;
  bool delivering_ = false;
  bool in_burst_ = false;
};

}  // namespace urnic::tcp
