// Connections of RoCE's queue pairs: joins the calls of programs to connection management (ib_cm)
// and to Modify QP.
//
//   connect   Init, REQ;  REP: Rtr, Rts, RTU, established
//   accept    Init, Rtr, Rts, REP;  RTU or the first request: established
//   ends      disconnect: Error at once, DREQ;  DREQ of the peer, or a queue pair that fails: Error
//   datagrams UD queue pairs have no connection: the answer has the number and the Q_Key
//
// A queue pair has one binding at a time, from connect or accept until connection management
// releases its handle. Until then the number of the queue pair is not reused (IB-129), even if the
// queue pair has been destroyed. Events of the transport within a burst are noted here (this class
// is its watcher), and act() handles them.
//
//   connections.cpp          calls of the consumer
//   connection_events.cpp    events of connection management, the transport and timers
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
  // All that is passed by pointer must outlive it. `side` is not touched before start().
  Connections(const ib_cm::Options&, const Options&, const GateRules*, verbs::Hooks*, net::Wire*,
              Side* side, verbs::QueuePairs*, verbs::ControlPath*);

  // Starts to serve queue pair 1. Without RoCE it is never called, and neither is anything else.
  void start();

  // ---- driving
  // True if something is to be handled now.
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
  // For UD queue pairs, which have no connections.
  SidrResolver& resolver() { return resolver_; }
  // For connections whose program moves the queue pair itself.
  CmConnections& cm_connections() { return cm_connections_; }
  // For a queue pair in Reset or Init. After an error it is unchanged, or in Init.
  Result<void> connect(verbs::QueuePair&, const SocketAddress& to, const ConnectParams&,
                       Instant now);
  // Answers a connection request. Errors: closed (the peer has given up), and as connect().
  Result<void> accept(ib_cm::Handle, verbs::QueuePair&, const ConnectParams&, Instant now);
  // Rejects a connection request or a UD service request.
  void reject(ib_cm::Handle, ByteView private_data, Instant now);
  // Moves to Error and flushes at once; Disconnected follows. A connection that is not established
  // yet fails.
  void disconnect(verbs::QueuePair&, Instant now);
  void abort(verbs::QueuePair&, Instant now);

  // The program exits: refuses the requests that are still unanswered.
  void refuse_requests(Instant now);

  // ---- queue pairs
  // The queue pair is destroyed (`goes`) or reset: sends the peer the end of the connection and
  // reports nothing more locally. True: the number has to rest; it is released from here.
  bool abort_silently(const verbs::QueuePair&, bool goes, Instant now);
  // The queue pair is in Error for a local reason: a pending connection fails with it, otherwise it
  // is reported to the owner.
  void failed(verbs::QueuePair&, Errc, const char* why);
  // True if it waits for a response of a peer whose address is not one of our own.
  bool asks_out(const verbs::QueuePair&) const;

  // ---- looking
  struct Counters {
    std::uint64_t opened = 0, closed = 0, failed = 0;
  };
  const Counters& counters() const { return counters_; }
  std::size_t size() const { return bindings_.size(); }
  // Connections of connection management, and connection requests that wait for an answer.
  std::size_t handles() const { return general_ ? general_->manager().size() : 0; }
  // Destroyed queue pairs whose peer has not yet answered the DREQ, plus one while a message waits
  // to be sent. `also_living`: existing queue pairs in that state, too.
  std::size_t leaving(bool also_living = false);
  void fill_stats(EngineStats*) const;

  // ---- what the side reports
  void on_qp_event(verbs::QueuePair&, QpEvent) override;

 private:
  using Binding = CmBinding;
  using State = CmBinding::State;
  // The consumer's part of a message of the peer. Borrowed.
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
