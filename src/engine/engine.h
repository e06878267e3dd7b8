// The engine: drives one queue of one port and the transports above it. A function of (state,
// frames, now): it reads no clock and starts no thread; device/driver.h does. It owns bursts,
// timers and turns, and decides which transport a frame belongs to. The sides (iwarp/side.h,
// roce/side.h) know the connections; requests of programs go to a transport's control path
// (verbs/control_path.h), which each queue pair names. Instead of frames an engine may use the
// kernel's TCP; it then supports iWARP only.
//
// Every call needs ownership of the engine: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/link.h"
#include "engine/options.h"
#include "iwarp/control_path.h"
#include "iwarp/side.h"
#include "net/frame_head.h"
#include "net/wire.h"
#include "port/port.h"
#include "roce/control_path.h"
#include "verbs/completions.h"
#include "verbs/hooks.h"
#include "verbs/queue_pairs.h"

namespace urnic::engine {

using iwarp::Connection;
using iwarp::ConnectionId;
using iwarp::ConnectParams;
using iwarp::FlowKey;
using iwarp::KernelTcp;
using iwarp::Listener;
using iwarp::Stage;
using verbs::CmEvent;
using verbs::Hooks;
using verbs::Note;

struct EngineCounters {
  std::uint64_t rx_frames = 0, rx_bytes = 0, polls = 0;
  // Polls that processed more than a few frames: the clock must be read again after them.
  std::uint64_t long_polls = 0;
};

// The position in a walk through all connections.
struct StatsPlace {
  std::size_t iwarp = 0, roce = 0;
};

// The current number of objects of each kind. An object that ends must be removed from all of them.
struct EngineTables {
  std::size_t connections = 0, flows = 0;  // TIME-WAIT included
  std::size_t time_wait = 0;
  std::size_t pending = 0, half_open = 0;  // of all listeners
  std::size_t queue_pairs = 0, kept_stats = 0;
  std::size_t timers = 0;  // entries, including those not yet removed by time
  std::size_t waiting_to_send = 0, waiting_to_drain = 0, looped = 0;
  std::size_t regions = 0, neighbours = 0;
  std::uint64_t reassembly_bytes = 0;
  std::size_t roce_connections = 0;  // including those whose numbers rest
  std::size_t cm_connections = 0, numbers_in_time_wait = 0;
  bool operator==(const EngineTables&) const = default;
};

class Engine {
 public:
  // `queue` of `port`; the port must outlive the engine. With `kernel` connections use the kernel's
  // TCP, and `port` (kernel_tcp_port.h) is only what the driver sleeps on.
  Engine(const Options& options, port::Port* port, unsigned queue, Hooks* hooks,
         std::shared_ptr<KernelTcp> kernel = nullptr);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // ---- driving
  // Processes one burst and timers, and transmits one round. True if anything was done.
  // `comes_back`: the caller polls again at once, or posts, so ACKs may wait for what is sent then
  // (E-7).
  bool poll(Instant now, bool comes_back = false);
  // Handles the doorbell of `qp`: for its send queue, its receive queue or both (verbs::Posted).
  // Fails queue pairs whose completion queue overruns.
  void work_posted(verbs::QueuePair& qp, std::uint8_t posted, Instant now);
  // When poll() must be called even if nothing arrives.
  Instant next_deadline() const;
  // Something could not be sent for lack of room in the port or in the kernel's sockets. An armed
  // port wakes the sleeping thread when there is room again.
  bool waits_for_room() const { return wire_.tx().full() || iwarp_.waits_for_room(); }
  // More can be sent now: only the turn is over.
  bool has_more_to_send() const {
    return (iwarp_.wants_to_send() || roce_.side().wants_to_send()) && !wire_.tx().full();
  }
  bool over_kernel_tcp() const { return over_kernel_tcp_; }

  // ---- the transports
  iwarp::Side& iwarp() { return iwarp_; }
  const iwarp::Side& iwarp() const { return iwarp_; }
  iwarp::ControlPath& iwarp_control() { return iwarp_control_; }
  roce::Side& roce() { return roce_.side(); }
  roce::ControlPath& roce_control() { return roce_; }
  const roce::ControlPath& roce_control() const { return roce_; }
  // Null: the engine does not support it.
  verbs::ControlPath* control(Transport);

  // ---- memory, queue pairs
  verbs::MemoryTable& memory() { return memory_; }
  // Deregisters a region, even with unacknowledged data (E-25). False if unknown, or while windows
  // are bound to it.
  bool deregister(std::uint32_t stag);
  // As MemoryTable::reregister(); work in progress does not see the new memory (E-25).
  std::uint32_t reregister(std::uint32_t stag, verbs::PdId pd, const verbs::Extent& memory,
                           std::uint8_t access);
  // Protection domains, shared receive queues and the queue pairs of every transport. Receives are
  // posted to a shared queue directly, then iwarp::Side::shared_posted is called.
  verbs::QueuePairs& queue_pairs() { return qps_; }
  // Reports one event when fewer than `limit` receives are left; 0 disarms.
  void set_shared_limit(verbs::SharedReceiveQueue& queue, std::uint32_t limit);

  // ---- looking
  const Options& options() const { return options_; }
  const EngineCounters& counters() const { return counters_; }
  const net::Interface& interface() const { return wire_.interface(); }
  // add_connections() returns connections in portions.
  void fill_stats(EngineStats* out, bool with_connections = true) const;
  EngineTables tables() const;
  std::uint32_t mtu() const { return wire_.mtu(); }
  // "10.77.0.1/24 fd77::1/64"
  std::string addresses_text() const;

 private:
  // A received frame between parsing and work.
  struct Staged {
    iwarp::Arrived tcp;
    roce::Arrived roce;
    net::FrameHead head;
  };

  template <class F>
  void spare(F&& step);
  bool receive_burst(Instant now);
  void stage(const port::Frame& frame, Staged& s, Instant now);
  void stage_unknown(const port::Frame& frame, Staged& s, Instant now);
  void input_control(const port::Frame& frame, const net::Classified& c, Instant now);
  bool loop_frames(Instant now);
  bool transmit_both(Instant now);
  bool take_network_events(Instant now);
  void on_network_event(const net::Event& e, Instant now);
  void detach(const verbs::Region& region, std::uint32_t stag);
  void look_at_link(bool idle, Instant now);
  void look_at_shared_limits();
  void fail_overrun(Instant now);

  Options options_;
  bool over_kernel_tcp_;
  port::Port* port_;
  unsigned queue_;
  Hooks* hooks_;
  net::Wire wire_;
  verbs::MemoryTable memory_;
  verbs::Completions completions_;
  iwarp::Side iwarp_;
  iwarp::ControlPath iwarp_control_;
  Link link_;
  verbs::QueuePairs qps_;  // queue pairs return iWARP's resources before the side is destroyed
  roce::ControlPath roce_;
  EngineCounters counters_;
  bool look_again_ = false;
  bool roce_goes_first_ = false;
  Staged staged_[port::kBurst];  // the burst, with rx_frames_
  port::Frame rx_frames_[port::kBurst];
  std::vector<std::uint8_t> control_frame_;
  std::vector<net::Event> network_events_;
};

// Appends the statistics of up to `most` more connections, from `*place` on; false at the end. Each
// portion takes the engine little time. A connection that begins or ends meanwhile may or may not
// be included.
bool add_connections(const Engine&, StatsPlace* place, std::size_t most,
                     std::vector<ConnectionStats>* out);

}  // namespace urnic::engine
