// Connections of RoCE whose queue pairs their programs move: connection management carries the
// number that the program names, whatever it is the number of, and moves nothing.
//
//   connect   REQ;  REP: Answered;  confirm: RTU, established
//   accept    REP;  RTU, or the program has seen the first request: Established
//   ends      disconnect: DREQ;  DREQ of the peer
//
// The owner hears of the answer, the establishment and one end, and of the end of time-wait if
// either side has answered. forget() ends what is left of a connection; nothing is reported then.
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

// The queue pair as the peer is told of it.
struct QpName {
  std::uint32_t number = 0;  // 24 bits
  bool srq = false;          // its receives come from a shared receive queue
};

class CmConnections {
 public:
  using Id = std::uint32_t;  // 0 is none

  // What is pointed to outlives it.
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
  // Answers a request. Errors: closed (the peer has given up), and as connect().
  Result<Id> accept(void* owner, ib_cm::Handle, const QpName&, const ConnectParams&, Instant now);
  // Active, Answered: the queue pair is ready. Errors: wrong_state.
  Result<void> confirm(Id id, Instant now);
  // Passive: the first request has come on the queue pair. Errors: wrong_state.
  Result<void> established(Id id, Instant now);
  // Active, Answered: no connection after all. Errors: wrong_state.
  Result<void> reject(Id id, ByteView private_data, Instant now);
  // Nothing unless it is established.
  void disconnect(Id id, Instant now);
  void forget(Id id, Instant now);
  // The program exits: all of them end.
  void end_all(Instant now);

  // What its queue pair is moved by. Before the peer has answered, `rtr` has this end's depth alone
  // and *known is false. Nothing once it has ended.
  std::optional<ConnectionTerms> terms(Id id, bool* known) const;
  // The same for a request that is not answered yet.
  ConnectionTerms offered(const ib_cm::Event& request);

  // False: it is about none of these.
  bool take(const ib_cm::Event& e, Instant now);
  Instant next_deadline() const { return deadlines_.next(); }
  void on_time(Instant now);

  struct Counters {
    std::uint64_t opened = 0, closed = 0, failed = 0;
  };
  const Counters& counters() const { return counters_; }
  std::size_t size() const { return all_.size(); }
  // Those that wait for the peer's answer to a DREQ, and whose owner has forgotten them;
  // `also_living`: the others too.
  std::size_t leaving(bool also_living);

 private:
  enum class State : std::uint8_t { Asking, Answered, Accepting, Up, Ending, Over };
  struct Entry {
    Id id = 0;
    void* owner = nullptr;  // null: forgotten
    State stage = State::Asking;
    bool answered = false;  // there is a time-wait behind its end
    QpName number;
    ConnectParams chosen;  // its views are not used
    ConnectionTerms terms;
    std::unique_ptr<CmRequest> asked;  // while it may have to be asked again
    ib_cm::Handle handle = 0;          // 0: it is asked again in a moment, or is released
    std::optional<CmEvent::Kind> untold;
    Errc code = Errc::io;
    const char* why = "";
    Instant due = Instant::never();
    std::uint32_t place = Deadlines<Entry>::kNowhere;
  };
  struct AsItIs {
    std::uint64_t operator()(std::uint32_t v) const { return v; }
  };
  // What a message of the peer's brings. Borrowed.
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
