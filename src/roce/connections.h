// Connections of RoCE's queue pairs: what their programs ask for, joined to connection management
// (ib_cm) and to Modify QP.
//
//   connect   Init, REQ;  REP: Rtr, Rts, RTU, established
//   accept    Init, Rtr, Rts, REP;  RTU or the first request: established
//   ends      disconnect: Error at once, DREQ;  DREQ of the peer, or a queue pair that fails: Error
//   datagrams queue pairs of UD have no connection: who asks for one is told its number and Q_Key
//
// A queue pair has one binding at a time, from connect or accept until connection management
// releases its handle; as long nobody else gets the number of the queue pair (IB-129), though it
// may have gone. What the transport finds within a burst is noted here, as hooks between it and the
// owner of the engine, and acted on by act().
//
//   connections.cpp          what the consumer asks for
//   connection_events.cpp    what connection management, the transport and time bring
//
// A function of (state, input, now); every call under the ownership of the engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "roce/cm_bindings.h"
#include "roce/cm_connections.h"
#include "roce/connect_params.h"
#include "roce/connection_moves.h"
#include "roce/listeners.h"
#include "roce/side.h"
#include "roce/sidr_resolver.h"
#include "urnic/stats.h"
#include "verbs/hooks.h"
#include "verbs/queue_pairs.h"

namespace urnic::roce {

class Connections final : public QpWatcher {
 public:
  // What is pointed to outlives it. `side` is not touched before start().
  Connections(const ib_cm::Options&, const Options&, const GateRules*, verbs::Hooks*, net::Wire*,
              Side* side, verbs::QueuePairs*, verbs::ControlPath*);

  // From now on queue pair 1 is served. Where RoCE is not spoken it never is, and nothing is asked
  // of this.
  void start();

  // ---- driving
  // Something is to be acted on now.
  bool has_news() const {
    return bindings_.any_noted() || (general_ && general_->manager().has_event());
  }
  Instant next_deadline() const {
    return earlier(bindings_.deadlines().next(),
                   earlier(resolver_.next_deadline(), cm_connections_.next_deadline()));
  }
  void act(Instant now);

  // ---- connections
  Listeners& listeners() { return listeners_; }
  // Of queue pairs of UD, which have no connections.
  SidrResolver& resolver() { return resolver_; }
  // Connections whose queue pairs their programs move.
  CmConnections& cm_connections() { return cm_connections_; }
  // In Reset or Init. An error, and the queue pair is as it was, or in Init.
  Result<void> connect(verbs::QueuePair&, const SocketAddress& to, const ConnectParams&,
                       Instant now);
  // Answers a request. Errors: closed (the peer has given up), and as connect().
  Result<void> accept(ib_cm::Handle, verbs::QueuePair&, const ConnectParams&, Instant now);
  // A request, or a question about a service of UD.
  void reject(ib_cm::Handle, ByteView private_data, Instant now);
  // Error and flushed at once, Disconnected follows. One that is not established yet fails.
  void disconnect(verbs::QueuePair&, Instant now);
  void abort(verbs::QueuePair&, Instant now);

  // The program exits: requests that nobody has answered are refused.
  void refuse_requests(Instant now);

  // ---- queue pairs
  // It goes, or was reset: nobody hears of its connection any more, the peer hears of its end.
  // True: its number is to rest; what it rests in is released from here.
  bool abort_silently(const verbs::QueuePair&, bool goes, Instant now);
  // It is in Error for a reason of ours: who waits for a connection is told so, else its owner.
  void failed(verbs::QueuePair&, Errc, const char* why);
  // It waits for an answer of a peer that is none of our own addresses.
  bool asks_out(const verbs::QueuePair&) const;

  // ---- looking
  struct Counters {
    std::uint64_t opened = 0, closed = 0, failed = 0;
  };
  const Counters& counters() const { return counters_; }
  std::size_t size() const { return bindings_.size(); }
  // Connections of connection management, and requests that wait for an answer.
  std::size_t handles() const { return general_ ? general_->manager().size() : 0; }
  // Queue pairs that have gone, and whose peer has not answered the DREQ yet; one more while a
  // message waits to leave.
  // `also_living`: and of those whose queue pairs are still there.
  std::size_t leaving(bool also_living = false);
  void fill_stats(EngineStats*) const;

  // ---- what the side reports
  void on_qp_event(verbs::QueuePair&, QpEvent) override;

 private:
  using Binding = CmBinding;
  using State = CmBinding::State;
  // What a message of the peer's brings to the consumer. Borrowed.
  struct Said {
    ByteView data;
    RocePeer peer;
  };

  ib_cm::Manager& manager() { return general_->manager(); }
  ib_cm::Connections& cm() { return general_->manager().connections(); }
  // connections.cpp
  Binding& open(verbs::QueuePair&, State, const ConnectParams&, std::uint32_t ord, Instant due);
  void drop(Binding& b);
  bool ask(Binding& b, Instant now);
  ib_cm::QpValues values_of(const Binding& b, std::uint32_t ird, const ConnectParams&) const;
  // connection_events.cpp
  void act_on(Binding& b, Instant now);
  void on_time(Binding& b, Instant now);
  void on_event(const ib_cm::Event& e, Instant now);
  void requested(const ib_cm::Event& e, Instant now);
  verbs::ConnectionRequest request_of(const ib_cm::Event& e, const Listener& l);
  void accepted(Binding& b, const ib_cm::Event& e, Instant now);
  void refused(Binding& b, const ib_cm::Event& e, Instant now);
  void up(Binding& b, const Said& said, Instant now);
  void end(Binding& b, CmEvent::Kind kind, Errc code, const char* why, Instant now,
           const Said& said = {});
  bool tell(Binding& b, CmEvent::Kind kind, const Said& said = {});

  ib_cm::Options cm_options_;
  std::uint32_t most_depth_;
  bool tells_credits_;
  verbs::Hooks* hooks_;
  net::Wire& wire_;
  Side& side_;
  verbs::QueuePairs& qps_;
  verbs::ControlPath* control_;
  std::optional<GeneralServices> general_;
  Listeners listeners_;
  SidrResolver resolver_;
  CmConnections cm_connections_;
  CmBindings bindings_;
  std::uint64_t psns_ = 0;
  Counters counters_;
};

}  // namespace urnic::roce
