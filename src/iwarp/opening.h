// Opens connections on either side: path and port, listeners, TCP's handshake, MPA start-up (RFC
// 5044 7.1, RFC 6581), full operation.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "iwarp/ending.h"
#include "iwarp/startup.h"
#include "net/frame_head.h"

namespace urnic::iwarp {

// Moves a queue pair to the state in which it connects.
void begin_connecting(verbs::QueuePair& qp);
// The connection could not begin: the queue pair returns to the state it had.
void undo_connecting(verbs::QueuePair& qp, verbs::QpState before);

class Opening {
 public:
  // `queue` of `queues` of the port determine which flows belong to this engine.
  Opening(SideState* s, Transmitter* transmitter, Transport* transport, Completions* completions,
          Ending* ending, unsigned queue, std::uint32_t queues)
      : s_(*s),
        transmitter_(*transmitter),
        transport_(*transport),
        completions_(*completions),
        ending_(*ending),
        queue_(queue),
        queues_(queues) {}

  // ---- active_open.cpp
  Result<void> connect(verbs::QueuePair& qp, const SocketAddress& to, const ConnectParams&,
                       Instant now);
  // The peer ended the connection while we waited for the Reply to an enhanced Request.
  bool refuses_revision2(const Connection& c) const;
  // E-35: tries again with plain RFC 5044, on a new TCP connection.
  void retry_as_revision1(Connection& c, Instant now);
  // There is no listener at the address yet. Returns true if the connection waits, and redial() is
  // called when the time has come.
  bool await_listener(Connection& c, Instant now);
  void redial(Connection& c, Instant now);

  // ---- passive_open.cpp
  // Port 0 chooses one.
  Result<Listener*> bind(LocalEnd local);
  Result<void> listen(Listener& l, int backlog);
  Result<void> accept(Connection& c, verbs::QueuePair& qp, const ConnectParams&, Instant now);
  void reject(Connection& c, ByteView private_data, Instant now);
  // True for a request that the consumer has not answered yet.
  static bool is_request(const Connection* c);
  // Returns the connection that the segment has opened, if it has.
  Connection* take_unmatched(net::FrameHead& head, const tcp::Segment& seg, Instant now);
  // Adds a connection that the kernel has accepted. nullptr if there are too many, or no memory for
  // it.
  Connection* adopt(Listener& l, kernel_tcp::Socket socket, Admission admission, Instant now);

  // ---- startup_steps.cpp
  // Returns false if its listener has no place for it, and it has ended.
  bool tcp_established(Connection& c, Instant now);
  void run_startup(Connection& c, Instant now);
  // We may send FPDUs from now on. The responder: it has received a valid one (RFC 5044 7.1.3), and
  // a peer-to-peer connection is established (RFC 6581 9.2). The initiator: its delay is over
  // (Options::first_fpdu_delay), or an FPDU has come.
  void open_send_side(Connection& c);
  // Sets keepalive for one connection (RFC 1122, 4.2.3.6: a setting per connection).
  void set_keepalive(Connection& c, const ConnectParams& params, Instant now);

 private:
  // active_open.cpp
  std::uint16_t choose_port(const IpAddress& local, const SocketAddress& to);
  bool is_busy(const FlowKey& key) const;
  Result<void> choose_path(const SocketAddress& to, const LocalEnd& from, FlowKey* key);
  void begin_active(Connection& c, std::unique_ptr<KernelLink> link, const ConnectParams&,
                    Instant now);
  static bool may_connect(const verbs::QueuePair& qp);

  // passive_open.cpp
  tcp::Config tcp_config(const FlowKey& key) const;
  Connection* new_connection(const FlowKey& key);
  bool take_lingering(net::FrameHead& head, const tcp::Segment& seg, bool listening, Instant now);
  void reply(const net::FrameHead& head, const tcp::Segment& answer);
  void begin_passive(Connection& c, Listener& listener, bool half_open, Instant now);
  Error refuse_request(Connection& c, mpa::Refusal refusal, const mpa::StartupOptions& own,
                       ByteView reply, Instant now);
  void send_last_words(Connection& c, ByteView reply, Instant now);

  // kernel_open.cpp
  Result<std::unique_ptr<KernelLink>> open_link(const SocketAddress& to, const LocalEnd& from,
                                                FlowKey* key);
  bool adopt_link(Connection& c, std::unique_ptr<KernelLink> link, Instant now);
  Result<IpAddress> within_bind(const LocalEnd& local) const;
  Result<Listener*> bind_kernel(const LocalEnd& local);
  Result<void> listen_kernel(Listener& l, int backlog);

  // startup_steps.cpp
  void startup_done(Connection& c, Instant now);
  void startup_rejected(Connection& c, const Startup::Step& step, Instant now);
  void startup_failed(Connection& c, const Startup::Step& step, Instant now);
  static void set_send_framing(Connection& c, mpa::Policy policy);
  void full_operation(Connection& c, const mpa::Agreement& agreement, Instant now);

  SideState& s_;
  Transmitter& transmitter_;
  Transport& transport_;
  Completions& completions_;
  Ending& ending_;
  unsigned queue_;
  std::uint32_t queues_;
};

}  // namespace urnic::iwarp
