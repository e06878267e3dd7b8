// Questions about services of UD (SIDR, IB-141): which queue pair of UD is behind an address and a
// port, and by what Q_Key it is reached. Who is asked hears of it as of a request for a connection
// (connections.h).
//
// A question is asked again as connection management does, and for a moment where nobody serves the
// port yet. Its owner hears of one answer, or that there is none, and of nothing once it has given
// up.
//
// A function of (state, input, now); every call under the ownership of the engine.
#pragma once

#include <cstdint>
#include <memory>

#include "base/deadlines.h"
#include "base/hash_map.h"
#include "ib_cm/manager.h"
#include "roce/listeners.h"
#include "urnic/status.h"
#include "verbs/connection.h"
#include "verbs/hooks.h"
#include "verbs/queue_pair.h"

namespace urnic::roce {

// What the consumer chooses for one question.
struct SidrQuery {
  verbs::LocalEnd source;
  ByteView private_data;  // borrowed for the call
  Duration timeout = Duration::s(10);
  Duration refusal_retry;  // for so long, a port that nobody serves is asked for again
};

class SidrResolver {
 public:
  using Id = std::uint32_t;  // 0 is none

  // What is pointed to outlives it.
  SidrResolver(verbs::Hooks* hooks, const net::Interface* interface, Listeners* listeners)
      : hooks_(*hooks), interface_(*interface), listeners_(*listeners) {}
  void use(ib_cm::Manager* manager) { manager_ = manager; }

  struct Asked {
    Id id = 0;           // its name until the owner is told
    SocketAddress from;  // it leaves from there
  };
  // Errors: invalid_argument (private data), unreachable, no_memory.
  Result<Asked> ask(void* owner, const SocketAddress& to, const SidrQuery&, Instant now);
  // Its owner wants to hear no more; nothing if it has been told.
  void give_up(Id id, Instant now);

  // Answers what a listener was asked: datagrams for `qkey` go to that queue pair of UD. Errors:
  // invalid_argument (private data), wrong_state (it takes none), closed (who asked has given up,
  // or was answered).
  Result<void> serve(ib_cm::Handle, const verbs::QueuePair&, std::uint32_t qkey, ByteView data,
                     Instant now);
  // The same for a number that nobody looks up.
  Result<void> serve(ib_cm::Handle, std::uint32_t number, std::uint32_t qkey, ByteView data,
                     Instant now);

  // False: it is about none of these.
  bool take(const ib_cm::Event& e, Instant now);
  Instant next_deadline() const { return deadlines_.next(); }
  void on_time(Instant now);
  std::size_t size() const { return all_.size(); }

 private:
  struct Question {
    Id id = 0;
    void* owner = nullptr;
    ib_cm::Resolve what;
    ib_cm::PrivateData data;
    ib_cm::Handle handle = 0;  // 0: it is asked again in a moment, or is answered
    Instant give_up, refused_until;
    bool answered = false;
    verbs::DatagramAnswer answer;  // that its owner is to be told, with `reply`
    ib_cm::PrivateData reply;
    Instant due = Instant::never();
    std::uint32_t place = Deadlines<Question>::kNowhere;
  };
  struct AsItIs {
    std::uint64_t operator()(std::uint32_t v) const { return v; }
  };

  bool send(Question& q, Instant now);
  void end(Question& q, const verbs::DatagramAnswer& answer, Instant now);
  void fail(Question& q, Errc code, const char* why, Instant now);
  void forget(Question& q);

  verbs::Hooks& hooks_;
  const net::Interface& interface_;
  Listeners& listeners_;
  ib_cm::Manager* manager_ = nullptr;
  HashMap<Id, std::unique_ptr<Question>, AsItIs> all_;
  HashMap<ib_cm::Handle, Question*, AsItIs> handles_;
  Deadlines<Question> deadlines_;
  Id last_ = 0;
};

}  // namespace urnic::roce
