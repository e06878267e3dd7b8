// The iWARP side of an engine: its connections, from their frames to the queue pairs. The engine
// drives it by a few functions (stage, process, end_of_burst, run_timers, next_deadline,
// transmit_round); the other transport has the same ones. The consumer's calls come here directly.
//
//   steps    receiver.h (FAST, InLogic, detour) · slow_path.h · rx_commit.h · transmitter.h ·
//            kernel_sender.h: place, commit, acknowledge, send; they return their results
//   seam     transport.h: our own TCP or the kernel's; code above does not distinguish them
//   events   opening.h, ending.h; connection_events.h acts on the results of the steps, on timers
//            and on network changes
//   rounds   receive.cpp: one segment through the steps · kernel_rounds.h: sockets instead
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/inet_checksum.h"
#include "iwarp/connection_events.h"
#include "iwarp/kernel_rounds.h"
#include "iwarp/receiver.h"
#include "net/frame_head.h"
#include "port/port.h"

namespace urnic::iwarp {

// A received segment between parsing and processing.
struct Arrived {
  tcp::Segment seg;
  Connection* connection = nullptr;
  std::uint32_t header_sum = 0;  // pseudo header and TCP header
  bool verify = true;
  bool usable = false;
};

class Side {
 public:
  // `queue` of `queues` of the port. All pointers must outlive this object.
  Side(const Options& options, Hooks* hooks, Completions* completions, net::Wire* wire,
       verbs::MemoryTable* memory, std::shared_ptr<KernelTcp> kernel, unsigned queue,
       std::uint32_t queues);
  ~Side();
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  // Exists from a call into this side until it returns. Connections that end in the meantime keep
  // their memory until the outermost scope ends (ConnectionTable::sweep), and sleepers are woken
  // after that.
  class Scope {
   public:
    explicit Scope(Side& side) : hold_(side.completions_), side_(side) { ++side_.depth_; }
    ~Scope() {
      if (--side_.depth_ == 0) side_.state_.connections.sweep();
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Completions::Hold hold_;
    Side& side_;
  };

  // ---- driving
  // A frame that looks like the last one with a connection. Returns false if it must be classified.
  bool stage_like_last(const port::Frame& frame, net::FrameHead& head, Arrived* a);
  // A frame that `head` has classified as TCP for us.
  void stage(const port::Frame& frame, net::FrameHead& head, Arrived* a);
  void process(net::FrameHead& head, Arrived& a, Instant now);
  // Replaces frames over the kernel's TCP. Returns true if anything was done. `comes_back`: as in
  // KernelRounds::poll().
  bool poll_sockets(Instant now, bool comes_back) { return rounds_.poll(now, comes_back); }
  // Processes SLOW connections that have more than one turn's data, one after the other. Returns
  // true if there were any.
  bool drain_round(Instant now);
  // `acks_wait`: the caller polls again soon, and data sent until then may carry the pending ACKs.
  // They leave at the latest with an `idle` burst, or after kAckWaits (E-7). Returns true if all
  // arrivals wait this way: nothing must be sent for them now.
  bool end_of_burst(bool idle, bool acks_wait, Instant now);
  void run_timers(Instant now);
  // When run_timers() or another round is needed even if nothing arrives.
  Instant next_deadline() const;
  bool wants_to_send() const { return !state_.sending.empty(); }
  // True if sockets of the kernel are full.
  bool waits_for_room() const {
    return state_.kernel != nullptr && state_.kernel->waiting_for_room != 0;
  }
  // Returns true if anything was sent or processed. A connection that could send nothing for lack
  // of room waits for room and does not try again at once.
  bool transmit_round(Instant now);
  void leave(Instant now) { state_.timers.leave(now); }
  // Receives reports of the network and the link.
  ConnectionEvents& events() { return events_; }

  // Events of connection requests refer to it.
  void use(verbs::ControlPath* control) { state_.control = control; }

  // ---- queue pairs
  // Its half of a queue pair, and the layout of the queues.
  verbs::WorkQueueLayout queue_layout() { return ddp::queue_layout(&state_.streams); }
  void attach(verbs::QueuePair& qp, const ddp::StreamConfig& config);
  // Ends its connection, if there is one, by RST, unless it is already ending in order: then its
  // work is sent first, and the FIN. Nothing is reported.
  void destroy(std::unique_ptr<verbs::QueuePair> qp, Instant now);
  // Ends its connection, if there is one, by RST, without a report.
  void abort_silently(verbs::QueuePair& qp, Instant now);
  // The queue pair cannot continue, connected or not: it is flushed, and the error is reported.
  void fail(verbs::QueuePair& qp, Errc code, const char* why, Instant now);
  // Transmits directly after posting.
  void sends_posted(verbs::QueuePair& qp, Instant now);
  // A connection that dropped a Send because no receive was posted may continue (E-17).
  void receives_posted(verbs::QueuePair& qp, Instant now);
  void shared_posted(verbs::SharedReceiveQueue& queue, Instant now);

  // ---- connections
  // As in verbs::ControlPath.
  Result<Listener*> bind(const LocalEnd& local) { return opening_.bind(local); }
  Result<void> listen(Listener* bound, int backlog) { return opening_.listen(*bound, backlog); }
  // bind() and listen(), on all own addresses.
  Result<Listener*> listen(std::uint16_t port, int backlog);
  // Closes a listening or bound socket. Requests that were already reported to the consumer can
  // still be answered.
  void close_listener(Listener* listener, Instant now);
  Result<void> connect(verbs::QueuePair& qp, const SocketAddress& to, const ConnectParams&,
                       Instant now);
  // Answers a ConnectRequest event. `connection` may have ended in the meantime: Errc::closed.
  Result<void> accept(ConnectionId connection, verbs::QueuePair& qp, const ConnectParams&,
                      Instant now);
  void reject(ConnectionId connection, ByteView private_data, Instant now);
  void disconnect(verbs::QueuePair& qp, Instant now);
  void abort(verbs::QueuePair& qp, Instant now);

  ConnectParams default_params() const { return iwarp::default_params(state_.options); }

  // ---- inspection
  Connection* find(ConnectionId id) const { return state_.connections.find(id); }
  const SideState& state() const { return state_; }
  ConnectionStats qp_stats(const verbs::QueuePair&) const;

 private:
  static bool finish_staging(const port::Frame& frame, const net::FrameHead& head, std::size_t l4,
                             std::size_t l4_len, std::size_t tcp_header, std::uint32_t pseudo_sum,
                             Arrived* a);
  void process_connection(Connection& c, net::FrameHead& head, const Arrived& a,
                          fastpath::Validation* validation, Instant now);
  bool answers(Connection& c, const tcp::Check& check, net::FrameHead& head, const Arrived& a,
               Instant now);

  SideState state_;
  Completions& completions_;
  Transmitter transmitter_;
  KernelSender kernel_sender_;
  RxCommit rx_commit_;
  SlowPath slow_;
  Receiver receiver_;
  Transport transport_;
  Ending ending_;
  Opening opening_;
  ConnectionEvents events_;
  KernelRounds rounds_;
  unsigned depth_ = 0;  // number of open scopes
};

[[gnu::always_inline]] inline bool Side::stage_like_last(const port::Frame& frame,
                                                         net::FrameHead& head, Arrived* a) {
  net::FlowMatch::Match m;
  std::size_t tcp_header = 0;
  Connection* const c = state_.connections.match_last(head.bytes, head.size, head.frame_bytes, &m);
  if (c == nullptr ||
      !tcp::parse_plain_segment(
          {head.bytes + m.l4_offset, std::min<std::size_t>(head.size - m.l4_offset, m.l4_len)},
          &a->seg, &tcp_header)) {
    return false;
  }
  a->connection = c;
  a->seg.ecn = m.ecn;
  a->usable = finish_staging(frame, head, m.l4_offset, m.l4_len, tcp_header, m.pseudo_sum, a);
  return true;
}

// The payload is contiguous: after the headers in span 0, or in span 1 (port_abi.h).
[[gnu::always_inline]] inline bool Side::finish_staging(const port::Frame& frame,
                                                        const net::FrameHead& head, std::size_t l4,
                                                        std::size_t l4_len, std::size_t tcp_header,
                                                        std::uint32_t pseudo_sum, Arrived* a) {
  const std::size_t length = l4_len - tcp_header;
  if (frame.len[1] == 0) [[likely]] {
    a->seg.payload = {frame.data[0] + l4 + tcp_header, length};
  } else {
    if (l4 + tcp_header != frame.len[0] || length > frame.len[1]) return false;
    a->seg.payload = {frame.data[1], length};
  }
  a->verify = frame.csum == URNIC_CSUM_UNKNOWN;
  if (a->verify) a->header_sum = pseudo_sum + inet_sum_words(head.bytes + l4, tcp_header);
  return true;
}

}  // namespace urnic::iwarp
