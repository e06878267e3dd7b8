// RoCE connections whose programs move the queue pairs themselves: connection management sends the
// queue pair number that the program names, without looking it up, and moves nothing.
//
//   connect   REQ;  REP: Answered;  confirm: RTU, established
//   accept    REP;  RTU, or the program has seen the first request: Established
//   ends      disconnect: DREQ;  DREQ of the peer
//
// Reported to the owner: the answer, the establishment and one end, and the end of time-wait if
// either side has answered. forget() ends what is left of a connection; nothing is reported after
// it.
//
// A function of (state, input, now); every call under the ownership of the engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/deadlines.h"
#include "base/hash_map.h"
#include "ib_cm/manager.h"
#include "roce/cm_request.h"
#include "roce/connect_params.h"
#include "roce/connection_moves.h"
#include "roce/general_services.h"
#include "roce/listeners.h"
#include "urnic/status.h"
#include "verbs/hooks.h"

namespace urnic::roce {

using verbs::CmEvent;

// The queue pair as sent to the peer.
struct QpName {
  std::uint32_t number = 0;  // 24 bits
  bool srq = false;          // its receives come from a shared receive queue
};

class CmConnections {
 public:
  using Id = std::uint32_t;  // 0 is none

  // All that is passed by pointer must outlive it.
  CmConnections(const ib_cm::Options& cm, std::uint32_t most_depth, verbs::Hooks* hooks,
                const net::Interface* interface, Listeners* listeners)
      : cm_options_(cm),
        most_depth_(most_depth),
        hooks_(*hooks),
        interface_(*interface),
        listeners_(*listeners) {}
  void use(GeneralServices* general) { general_ = general; }

  // Errors: invalid_argument (private data, a number that no queue pair can have), unreachable,
  // no_memory.
  Result<Id> connect(void* owner, const SocketAddress& to, const QpName&, const ConnectParams&,
                     Instant now);
  // Answers a connection request. Errors: closed (the peer has given up), and as connect().
  Result<Id> accept(void* owner, ib_cm::Handle, const QpName&, const ConnectParams&, Instant now);
  // Active, Answered: the queue pair is ready. Errors: wrong_state.
  Result<void> confirm(Id id, Instant now);
  // Passive: the first request has arrived on the queue pair. Errors: wrong_state.
  Result<void> established(Id id, Instant now);
  // Active, Answered: refuses the connection after all. Errors: wrong_state.
  Result<void> reject(Id id, ByteView private_data, Instant now);
  // Does nothing unless the connection is established.
  void disconnect(Id id, Instant now);
  void forget(Id id, Instant now);
  // The program exits: ends all connections.
  void end_all(Instant now);

  // The changes for its queue pair. Before the peer has answered, only this end's depth in `rtr` is
  // set and *known is false. nullopt once it has ended.
  std::optional<ConnectionTerms> terms(Id id, bool* known) const;
  // The same for a connection request that is not answered yet.
  ConnectionTerms offered(const ib_cm::Event& request);

  // False: it is not about one of these connections.
  bool take(const ib_cm::Event& e, Instant now);
  Instant next_deadline() const { return deadlines_.next(); }
  void on_time(Instant now);

  struct Counters {
    std::uint64_t opened = 0, closed = 0, failed = 0;
  };
  const Counters& counters() const { return counters_; }
  std::size_t size() const { return all_.size(); }
  // Connections that wait for the peer's answer to a DREQ and that the owner has forgotten;
  // `also_living`: the others too.
  std::size_t leaving(bool also_living);

 private:
  enum class State : std::uint8_t { Asking, Answered, Accepting, Up, Ending, Over };
  struct Entry {
    Id id = 0;
    void* owner = nullptr;  // null: forgotten
    State stage = State::Asking;
    bool answered = false;  // a time-wait follows its end
    QpName number;
    ConnectParams chosen;  // its views are not used
    ConnectionTerms terms;
    std::unique_ptr<CmRequest> asked;  // while the request may have to be repeated
    // 0: the request is repeated in a moment, or the connection is released
    ib_cm::Handle handle = 0;
    std::optional<CmEvent::Kind> untold;
    Errc code = Errc::io;
    const char* why = "";
    Instant due = Instant::never();
    std::uint32_t place = Deadlines<Entry>::kNowhere;
  };
  struct AsItIs {
    std::uint64_t operator()(std::uint32_t v) const { return v; }
  };
  // Contents of a message of the peer. Borrowed.
  struct Said {
    ByteView data;
    RocePeer peer;
  };

  ib_cm::Manager& manager() { return general_->manager(); }
  ib_cm::Connections& cm() { return general_->manager().connections(); }
  Entry* find(Id id);
  Entry& open(void* owner, const QpName&, const ConnectParams&);
  void close(Entry& a);
  bool send(Entry& a, Instant now);
  void name(Entry& a, ib_cm::Handle handle);
  ib_cm::QpValues values_of(const Entry& a, std::uint32_t ird, std::uint32_t ord) const;
  std::uint32_t next_psn();
  std::uint8_t depth_of(std::uint32_t wanted) const;
  void answered(Entry& a, const ib_cm::Event& e, Instant now);
  void refused(Entry& a, const ib_cm::Event& e, Instant now);
  void end(Entry& a, CmEvent::Kind kind, Errc code, const char* why, Instant now,
           const Said& said = {});
  bool tell(Entry& a, CmEvent::Kind kind, const Said& said = {});

  ib_cm::Options cm_options_;
  std::uint32_t most_depth_;
  verbs::Hooks& hooks_;
  const net::Interface& interface_;
  Listeners& listeners_;
  GeneralServices* general_ = nullptr;
  HashMap<Id, std::unique_ptr<Entry>, AsItIs> all_;
  HashMap<ib_cm::Handle, Entry*, AsItIs> handles_;
  Deadlines<Entry> deadlines_;
  Counters counters_;
  std::uint64_t psns_ = 0;
  Id last_ = 0;
};

}  // namespace urnic::roce
