// The engine: drives one queue of one port and everything above it. A function of (state, frames,
// now): it reads no clock and starts no thread; driver.h does (D1, D8). All calls need ownership
// of the engine (one thread at a time). Instead of frames it may be given the kernel's TCP (D7):
// then every connection has a KernelLink, and the kernel_*.cpp stand where rx_path and tx_path do.
//
//   receive  rx_path.cpp    burst -> check -> take_ack -> validate -> InLogic -> place -> commit
//   send     tx_path.cpp    plan -> cut -> fill -> header
//            tx_run.cpp     the same for many segments of one message at once
//   sockets  stream_open.cpp, stream_receive.cpp, stream_send.cpp
//            readiness -> octets -> FPDUs; pieces -> kernel
//   life     connection_table.cpp; passive_open.cpp or active_open.cpp, mpa_startup.cpp,
//            connection_end.cpp
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/flow_hash.h"
#include "base/siphash.h"
#include "engine/ended.h"
#include "engine/options.h"
#include "engine/queue_pairs.h"
#include "fastpath/validation_unit.h"
#include "iwarp/connection_table.h"
#include "iwarp/events.h"
#include "iwarp/listener.h"
#include "iwarp/timer_heap.h"
#include "iwarp/turn_queue.h"
#include "net/classify.h"
#include "net/flow_match.h"
#include "net/interface.h"
#include "port/port.h"
#include "port/tx_batch.h"
#include "tcp/host_keys.h"
#include "tcp/host_logic.h"
#include "tcp/port_choice.h"
#include "tcp/time_wait.h"

namespace urnic::engine {

using iwarp::CmEvent;
using iwarp::Connection;
using iwarp::ConnectionId;
using iwarp::ConnectParams;
using iwarp::FlowKey;
using iwarp::Hooks;
using iwarp::KernelLink;
using iwarp::KernelTcp;
using iwarp::Listener;
using iwarp::Note;
using iwarp::Stage;
using iwarp::Startup;
using iwarp::TimerHeap;

struct EngineCounters {
  std::uint64_t rx_frames = 0, rx_bytes = 0, rx_bad_tcp_checksum = 0, rx_tcp_dropped = 0,
                tx_full = 0, rst_sent = 0;
  tcp::HostCounters tcp;
  std::uint64_t polls = 0, connections_opened = 0, connections_closed = 0, connections_failed = 0;
};

// How many of everything are kept now. What ends takes its share of each along.
struct EngineTables {
  std::size_t connections = 0, flows = 0;  // TIME-WAIT included
  std::size_t time_wait = 0;
  std::size_t pending = 0, half_open = 0;  // of all listeners
  std::size_t queue_pairs = 0, kept_stats = 0;
  std::size_t timers = 0;  // entries, also those that time has not yet removed
  std::size_t waiting_to_send = 0, waiting_to_drain = 0, looped = 0;
  std::size_t regions = 0, neighbours = 0;
  std::uint64_t reassembly_octets = 0;
  bool operator==(const EngineTables&) const = default;
};

class Engine {
 public:
  // `queue` of `port`; the port outlives the engine. With `kernel` connections go over the kernel's
  // TCP, and `port` (kernel_tcp_port.h) is only what the driver sleeps on.
  Engine(const Options& options, port::Port* port, unsigned queue, Hooks* hooks,
         std::shared_ptr<KernelTcp> kernel = nullptr);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // ---- driving
  // One burst in, timers, one round of transmission. True if anything was done.
  bool poll(Instant now);
  // Transmit for one queue pair right after posting (the doorbell).
  void doorbell(verbs::QueuePair& qp, Instant now);
  // All that posting to `qp` may have left to do: transmit, flush, E-17.
  void work_posted(verbs::QueuePair& qp, Instant now);
  // When poll must be called even if nothing arrives.
  Instant next_deadline() const;
  // Something could not be sent for want of room in the port or in the kernel's sockets. The port,
  // once armed, wakes who sleeps when there is room again.
  bool waits_for_room() const {
    return tx_.full() || (kernel_ != nullptr && kernel_->waiting_for_room != 0);
  }
  // Something is left to be sent now; it only had its turn.
  bool has_more_to_send() const { return !sending_.empty() && !tx_.full(); }
  bool over_kernel_tcp() const { return kernel_ != nullptr; }

  // ---- memory, queue pairs
  verbs::MemoryTable& memory() { return memory_; }
  // Deregistration in the presence of unacknowledged data (E-25). False if unknown.
  bool deregister(std::uint32_t stag);
  verbs::PdId alloc_pd() { return qps_.new_pd(); }
  verbs::QueuePair* create_qp(ddp::StreamConfig config, verbs::CompletionQueue* send,
                              verbs::CompletionQueue* receive);
  // What the consumer may ask of its state (verbs/qp_state.h): Error ends the connection by RST and
  // flushes, Sqd ends it in order, Reset forgets connection, work requests and completions at once.
  // Who posts is kept away meanwhile by the caller.
  verbs::QpVerdict modify_qp(verbs::QueuePair& qp, verbs::QpState to, std::uint32_t mask,
                             Instant now);
  // Aborts the connection if there is one; completions not yet polled stay in their queues.
  void destroy_qp(verbs::QueuePair* qp, Instant now);
  // A shared receive queue; receives are posted to it directly, then shared_posted() is called.
  verbs::SharedReceiveQueue* create_shared_rq(verbs::PdId pd, std::uint32_t max_wr,
                                              std::uint32_t max_sge);
  // False, and nothing done, while a queue pair uses it.
  bool destroy_shared_rq(verbs::SharedReceiveQueue* queue);
  void shared_posted(verbs::SharedReceiveQueue& queue, Instant now);
  // One event when fewer than `limit` receives are left; 0 disarms.
  void set_shared_limit(verbs::SharedReceiveQueue& queue, std::uint32_t limit);
  // A receive was posted: a connection that dropped a Send for want of one may go on (E-17).
  void receive_posted(verbs::QueuePair& qp, Instant now);
  // Work posted in an error state completes as flushed.
  void flush_posted(verbs::QueuePair& qp);

  // ---- connections
  // nullptr and *error when the port is taken. `port` 0 chooses one.
  Listener* listen(std::uint16_t port, int backlog, Error* error);
  void close_listener(Listener* listener, Instant now);
  Result<void> connect(verbs::QueuePair& qp, const SocketAddress& to, const ConnectParams&,
                       Instant now);
  // Answer a ConnectRequest event. `connection` may have ended meanwhile: Errc::closed.
  Result<void> accept(ConnectionId connection, verbs::QueuePair& qp, const ConnectParams&,
                      Instant now);
  void reject(ConnectionId connection, ByteView private_data, Instant now);
  struct RequestInfo {
    FlowKey key;
    std::vector<std::uint8_t> private_data;
    std::uint16_t ird = 0, ord = 0;
  };
  bool request_info(ConnectionId connection, RequestInfo* out) const;
  void disconnect(verbs::QueuePair& qp, Instant now);
  void abort(verbs::QueuePair& qp, Instant now);

  // ---- looking
  const Options& options() const { return options_; }
  ConnectParams default_params() const;
  const EngineCounters& counters() const { return counters_; }
  const net::Interface& interface() const { return interface_; }
  Connection* find(ConnectionId id) { return connections_.find(id); }
  const Connection* find(ConnectionId id) const { return connections_.find(id); }
  ConnectionStats connection_stats(const Connection&) const;
  ConnectionStats qp_stats(const verbs::QueuePair&) const;
  void fill_stats(EngineStats* out) const;
  EngineTables tables() const;
  std::size_t connection_count() const { return connections_.size(); }
  std::uint64_t reassembly_in_use() const { return pool_.in_use(); }
  std::uint32_t mtu() const { return mtu_; }
  // "10.77.0.1/24 fd77::1/64"
  std::string addresses_text() const;

 private:
  // From an entry into the engine to the way out: connections that end meanwhile keep their memory
  // until the outermost turn is over (ConnectionTable::sweep).
  class Turn {
   public:
    explicit Turn(Engine& engine) : engine_(engine) { ++engine_.depth_; }
    ~Turn() {
      if (--engine_.depth_ == 0) engine_.connections_.sweep();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Engine& engine_;
  };

  // A received frame between parsing and work.
  struct Staged {
    tcp::Segment seg;
    Connection* connection = nullptr;
    std::uint32_t header_sum = 0;  // pseudo header and TCP header
    bool verify = true;
    bool usable = false;
    bool looped = false;             // from this very engine, not from the wire (E-30)
    bool classified = false;         // `net` says what the frame is
    std::uint16_t head_octets = 0;   // of the frame in `header`
    std::uint32_t frame_octets = 0;  // of the whole frame
    net::Classified net;
    alignas(64) std::uint8_t header[net::kHeadSpan];
    // Once it is classified.
    FlowKey flow() const { return {net.dst, net.src, seg.dst_port, seg.src_port}; }
  };
  // The flow of the last frame that had a connection: the next one is probably of it too.
  struct Recent {
    net::FlowMatch match;
    Connection* connection = nullptr;
  };

  // One segment on its way through the steps of receiving: what it is, where TCP says it lies, and
  // its frames, if they were looked at.
  struct InHand {
    const tcp::Segment& seg;
    tcp::Check check;
    fastpath::Validation* validation = nullptr;  // none: not validated
  };
  // Memory that the steps use over and over, so that no segment allocates. Nothing in it is asked
  // for by a later segment.
  struct Scratch {
    fastpath::Validation validation;
    // Internal data buffer 38 of streams with markers: ULPDUs in one piece.
    std::vector<std::uint8_t> internal;
    std::vector<ddp::Admission> admissions;
  };

  // rx_path.cpp
  bool receive_burst(Instant now);
  static void copy_head(const port::Frame& frame, Staged* s);
  void stage_frame(const port::Frame& frame, Staged* s, Instant now);
  void receive_one(const port::Frame& frame, Instant now);
  void stage_unknown(const port::Frame& frame, Staged* s, Instant now);
  static bool finish_staging(const port::Frame& frame, std::size_t l4, std::size_t l4_len,
                             std::size_t tcp_header, std::uint32_t pseudo_sum, Staged* s);
  static void classify_staged(Staged& s);
  void input_control(const port::Frame& frame, const net::Classified& c, Instant now);
  void process(Staged& s, Instant now);
  static bool wants_validation(const Connection& c);
  void process_connection(Connection& c, Staged& s, fastpath::Validation* validation, Instant now);
  bool cut_through_plain(Connection& c, const InHand& in);
  void take_payload(Connection& c, const InHand& in, Instant now);

  // rx_in_logic.cpp
  void in_logic(Connection& c, const InHand& in, Instant now);
  static fastpath::SegmentFacts facts_of(const Connection& c, const InHand& in, Instant now);
  void carry_out(Connection& c, const InHand& in, const fastpath::SegmentFacts& facts,
                 const fastpath::Verdict& verdict, Instant now);
  enum class FastResult : std::uint8_t { Taken, NoReceive, Refused };
  void note(const Connection& c, Note what, fastpath::Reason why);
  void refuse_fast(Connection& c, FastResult why, const tcp::Check& check, Instant now);
  FastResult cut_through(Connection& c, const InHand& in, Instant now);
  FastResult cut_through_run(Connection& c, const InHand& in, std::size_t first, std::size_t last,
                             Instant now);
  bool lacks_receive(Connection& c, const InHand& in, std::size_t from, std::size_t to);
  bool ulpdu_of(Connection& c, const InHand& in, const fastpath::FrameResult& frame,
                ByteView* ulpdu);
  void downgrade(Connection& c, fastpath::Reason why);
  void note_starved(Connection& c, StreamOffset at, Instant now);
  void note_placed(Connection& c, const ddp::Admission& a);

  // rx_detour.cpp
  void keep(Connection& c, const InHand& in, Instant now);
  FastResult admit_to_keep(Connection& c, const InHand& in, std::size_t frames);
  std::uint64_t commit_around_kept(Connection& c, StreamOffset begin, StreamOffset end, bool fin,
                                   bool psh, const ddp::MessageCounts& counts, Instant now);
  void take_kept(Connection& c, StreamOffset placed_to, Instant now);
  void abandon_detour(Connection& c, Instant now);

  // rx_slow.cpp
  void store(Connection& c, const InHand& in, Instant now);
  bool take_fpdu(Connection& c, ByteView ulpdu, Instant now);
  static constexpr std::uint64_t kNoBudget = ~std::uint64_t{0};
  // At most about `budget` octets; what is left waits in draining_. Returns octets parsed.
  std::uint64_t drain_reassembly(Connection& c, std::uint64_t budget, Instant now);
  void drain_round(Instant now);
  void finish_drain(Connection& c, Instant now);

  // rx_commit.cpp
  void commit_range(Connection& c, StreamOffset begin, StreamOffset end, bool fin, bool psh,
                    const ddp::MessageCounts& counts, Instant now);
  void deliver(Connection& c, const ddp::MessageCounts& counts, Instant now);
  void ulp_drop(Connection& c, const tcp::Check& check, Instant now);
  void act_on_ack(Connection& c, tcp::AckNeed need, Instant now);
  void discard_payload(Connection& c, const InHand& in, Instant now);
  void end_of_burst(Instant now);
  std::uint64_t receive_room(const Connection& c) const;
  void update_receive_room(Connection& c, Instant now);

  // rx_markers.cpp: streams with markers, out of the way of those without
  void validate_framed(const Connection& c, const tcp::Segment& seg);
  static void judge_markers(const Connection& c, const InHand& in);
  static fastpath::HeaderCase header_case(const Connection& c, const InHand& in);
  bool strip_markers(Connection& c, const InHand& in, const fastpath::FrameResult& frame,
                     ByteView* ulpdu);

  // tx_path.cpp
  bool transmit_round(Instant now);
  // True when the connection still has something to send (budget or port exhausted).
  bool transmit(Connection& c, Instant now, unsigned budget);
  bool send_segment(Connection& c, const tcp::SendPlan& plan, Instant now);
  unsigned send_run(Connection& c, unsigned most, Instant now);
  void fail_sender(Connection& c, Instant now);
  void emit_ack(Connection& c, Instant now);
  bool loop_full(const Connection& c) const;
  bool send_stateless(const Staged& s, const tcp::Segment& reply);
  void enqueue_tx(Connection& c);
  // What became of finding the next hop: a header, an event to come, or the loss of the connection.
  bool route(Connection& c, Instant now);
  net::HeaderTemplate make_header(const MacAddress& to, const IpAddress& from,
                                  const IpAddress& dst) const;
  void send_control_frames(Instant now);
  void loop_frames(Instant now);
  void finish_tx(Instant now);

  // stream_open.cpp
  static StreamOffset sent_end(const Connection& c);
  static bool has_undelivered(const Connection& c);
  static bool transport_closed(const Connection& c);
  static void drop_undelivered(Connection& c);
  void finish_sending(Connection& c, Instant now);
  void abort_transport(Connection& c, Instant now);
  Result<std::unique_ptr<KernelLink>> open_link(const SocketAddress& to, FlowKey* key);
  int adopt_link(Connection& c, std::unique_ptr<KernelLink> link);
  Listener* listen_kernel(std::uint16_t port, int backlog, Error* error);
  void accept_waiting(Listener& l, Instant now);
  void turn_away(Listener& l, int error, Instant now);
  void close_listening(Listener& l);
  bool can_accept() const;

  // stream_receive.cpp
  bool poll_sockets(Instant now);
  void take_readiness(const sockets::Poller::Ready& ready, Instant now);
  void enqueue_read(Connection& c);
  static bool is_held_back(const Connection& c);
  void receive_kernel(Connection& c, Instant now);
  void take_octets(Connection& c, Instant now);
  void drain_kernel(Connection& c, Instant now);
  void end_of_kernel(Connection& c, const sockets::Moved& got, Instant now);

  // stream_send.cpp
  bool transmit_kernel(Connection& c, Instant now);
  bool send_burst(Connection& c, Instant now);
  bool build_burst(Connection& c);
  void keep_rest(KernelLink& l, std::size_t taken);
  void finish_link(Connection& c, Instant now);

  // engine.cpp
  Connection* new_connection(const FlowKey& key);
  tcp::Config tcp_config(const FlowKey& key) const;

  // passive_open.cpp
  Listener* listener_on(std::uint16_t port) const;
  Connection* on_unmatched(Staged& s, Instant now);
  void begin_passive(Connection& c, Listener& listener, Instant now);
  void begin_half_open(Connection& c, Listener& listener, Instant now);
  void leave_listener(Connection& c);
  bool take_lingering(Staged& s, bool listening, Instant now);
  bool answers(Connection& c, const tcp::Check& check, Staged& s, Instant now);
  Error refuse_request(Connection& c, mpa::Refusal refusal, const mpa::StartupOptions& own,
                       ByteView reply, Instant now);
  void send_last_words(Connection& c, ByteView reply, Instant now);

  // active_open.cpp
  std::uint16_t choose_port(const IpAddress& local, const SocketAddress& to);
  Result<void> choose_path(const SocketAddress& to, FlowKey* key, Instant now);
  bool refuses_revision2(const Connection& c) const;
  void retry_as_revision1(Connection& c, Instant now);

  // mpa_startup.cpp
  void on_tcp_established(Connection& c, Instant now);
  ByteView startup_octets(Connection& c, std::span<std::uint8_t> scratch) const;
  void consume_octets(Connection& c, std::uint32_t n);
  void run_startup(Connection& c, Instant now);
  void startup_done(Connection& c, Instant now);
  void startup_rejected(Connection& c, const Startup::Step& step, Instant now);
  void startup_failed(Connection& c, const Startup::Step& step, Instant now);
  static void set_send_framing(Connection& c, mpa::Policy policy);
  void full_operation(Connection& c, const mpa::Agreement& agreement, Instant now);
  void first_fpdu(Connection& c, Instant now);

  // connection_end.cpp
  void raise_terminate(Connection& c, ddp::Violation v, ByteView offending, Instant now);
  void on_terminate_received(Connection& c, Instant now);
  void try_finish_close(Connection& c, Instant now);
  void on_fin(Connection& c, Instant now);
  void on_closed(Connection& c, Instant now);
  void end_connection(Connection& c);
  void end_with_reset(Connection& c, Instant now);
  void fail_connection(Connection& c, Errc code, std::string why, Instant now);
  void detach_qp(Connection& c, CmEvent::Kind kind, Errc code, std::string why);
  void forsake(verbs::QueuePair& qp, const char* why, Instant now);
  static bool may_connect(const verbs::QueuePair& qp);
  static void begin_connecting(verbs::QueuePair& qp);
  void enter_error(verbs::QueuePair& qp, verbs::Status first);
  void flush_qp(verbs::QueuePair& qp, verbs::Status first);
  void fail_overrun(Instant now);
  void notify(verbs::CompletionQueue::Notify what, verbs::CompletionQueue* cq);
  void post_completion(verbs::QueuePair& qp, const verbs::Completion& completion);
  void post_completion(verbs::QueuePair& qp, const verbs::StoredSends& sends);

  // engine.cpp, engine_stats.cpp
  void look_at_shared_limits();
  void run_timers(Instant now);
  void look_at_link(Instant now);  // link.cpp, with the next four
  Instant link_given_up_at() const;
  void give_up_link(Instant now);
  void ask_peers(Instant now);
  void set_keepalive(Connection& c, const ConnectParams& params, Instant now);
  void arm_timer(Connection& c);
  Instant tcp_deadline(const Connection& c) const;
  bool stalled(const Connection& c, Instant now) const;
  void stream_ended(const ddp::Stream& stream);
  bool route_quietly(Connection& c, Instant now);
  void on_connection_timer(Connection& c, Instant now);
  void on_network_event(const net::Event& e, Instant now);
  void on_icmp_error(const net::IcmpError& e, Instant now);
  void reroute(const IpAddress* next_hop, bool failed, Instant now);

  Options options_;
  std::shared_ptr<KernelTcp> kernel_;
  port::Port* port_;
  unsigned queue_;
  Hooks* hooks_;
  tcp::HostKeys keys_;
  tcp::PortChoice ports_;
  std::uint32_t mtu_;
  net::Interface interface_;
  reassembly::Pool pool_;
  verbs::MemoryTable memory_;
  ddp::SharedState streams_{&memory_};
  port::TxBatch tx_;
  EngineCounters counters_;
  EndedConnections ended_;

  unsigned depth_ = 0;  // of turns
  iwarp::ConnectionTable connections_;
  tcp::TimeWaitTable time_wait_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  QueuePairs qps_;
  TimerHeap timers_;
  iwarp::TurnQueue<&Connection::in_tx_queue> sending_;      // those with something to send
  iwarp::TurnQueue<&Connection::in_drain_queue> draining_;  // those with SLOW octets to parse
  iwarp::TurnQueue<&Connection::touched> touched_;          // those with segments in this burst
  std::deque<std::vector<std::uint8_t>> loop_;              // frames to own addresses (E-30)
  Scratch scratch_;
  Staged staged_[port::kBurst];
  Recent recent_;
  port::Frame rx_frames_[port::kBurst];
  std::uint32_t link_epoch_ = 0;
  bool link_up_ = false;
  bool cq_overrun_ = false;                  // since the last look: queue pairs are to fail
  Instant link_lost_at_ = Instant::never();  // never: up, given up, or not yet there
  Instant last_entry_;                       // of poll or work_posted
  Instant next_look_;                        // at the link: an engine that spins asks now and then
  std::vector<std::uint8_t> control_frame_;
  std::vector<net::Event> network_events_;
};

}  // namespace urnic::engine
