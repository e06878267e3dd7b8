// The state that all connections of an engine share. The steps use it; each changes only its own
// part.
#pragma once

#include <cstdint>
#include <memory>

#include "ddp_rdma/shared_state.h"
#include "iwarp/connection_table.h"
#include "iwarp/ended.h"
#include "iwarp/flush.h"
#include "iwarp/kernel_tcp.h"
#include "iwarp/listeners.h"
#include "iwarp/options.h"
#include "iwarp/timers.h"
#include "iwarp/turn_queue.h"
#include "net/frame_head.h"
#include "net/wire.h"
#include "reassembly/buffer.h"
#include "tcp/host_keys.h"
#include "tcp/host_logic.h"
#include "tcp/port_choice.h"
#include "tcp/time_wait.h"

namespace urnic::iwarp {

struct SideCounters {
  std::uint64_t bad_checksum = 0, dropped = 0, rst_sent = 0;
  tcp::HostCounters tcp;
  std::uint64_t opened = 0, closed = 0, failed = 0;  // connections
  std::uint64_t denied = 0, over_limit = 0;          // refused at the gate of their listener
};

struct SideState {
  // `options`, `hooks`, `wire` and `memory` must outlive it. With `kernel_tcp`, connections use the
  // kernel's TCP.
  SideState(const Options& opts, Hooks* to_tell, net::Wire* way_out, verbs::MemoryTable* memory,
            std::shared_ptr<KernelTcp> kernel_tcp)
      : options(opts),
        hooks(to_tell),
        wire(*way_out),
        kernel(std::move(kernel_tcp)),
        keys(opts.seed),
        ports(keys.ports, 32768, 60999),
        pool(opts.reassembly_pool),
        streams(memory),
        connections(tcp::FlowKeyHash{keys.flows}, opts.max_connections),
        time_wait(keys.flows, opts.max_connections),
        timers(opts.real_time) {}

  const Options& options;
  Hooks* hooks;
  verbs::ControlPath* control = nullptr;
  net::Wire& wire;
  std::shared_ptr<KernelTcp> kernel;
  tcp::HostKeys keys;
  tcp::PortChoice ports;
  reassembly::Pool pool;
  ddp::SharedState streams;
  SideCounters counters;
  EndedConnections ended;
  ConnectionTable connections;
  tcp::TimeWaitTable time_wait;
  Listeners listeners;
  Timers timers;
  TurnQueue<&Connection::in_tx_queue> sending;      // connections with data to send
  TurnQueue<&Connection::in_drain_queue> draining;  // connections with SLOW bytes to parse
  TurnQueue<&Connection::touched> touched;          // connections with segments in this burst
  TurnQueue<&Connection::ack_waits> owing;  // connections whose ACK waits for data they send (E-7)
  Instant owing_since;                      // since when the first of them waits
  std::size_t ends_waiting = 0;  // connections whose end was not reported for lack of memory
  Instant end_again = Instant::never();
};

// One segment in the steps of receiving: its contents, TCP's check of it, and its frames, if they
// were validated.
struct InHand {
  const tcp::Segment& seg;
  tcp::Check check;
  fastpath::Validation* validation = nullptr;  // none: not validated
};

// The flow of a classified frame.
inline FlowKey flow_of(const net::FrameHead& head, const tcp::Segment& seg) {
  return {head.net.dst, head.net.src, seg.dst_port, seg.src_port};
}

}  // namespace urnic::iwarp
