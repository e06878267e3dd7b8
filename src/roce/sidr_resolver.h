// UD service requests (SIDR, IB-141): find out which UD queue pair serves an address and a port,
// and its Q_Key. On the serving side the request is reported like a connection request
// (connections.h).
//
// A request is repeated by connection management, and for a while also if no program serves the
// port yet. One answer or one failure is reported to its owner, and nothing after give_up().
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

// The consumer's choices for one request.
struct SidrQuery {
  verbs::LocalEnd source;
  ByteView private_data;  // borrowed for the call
  Duration timeout = Duration::s(10);
  Duration refusal_retry;  // how long a port that is not served is retried
};

class SidrResolver {
 public:
  using Id = std::uint32_t;  // 0 is none

  // All that is passed by pointer must outlive it.
  SidrResolver(verbs::Hooks* hooks, const net::Interface* interface, Listeners* listeners)
      : hooks_(*hooks), interface_(*interface), listeners_(*listeners) {}
  void use(ib_cm::Manager* manager) { manager_ = manager; }

  struct Asked {
    Id id = 0;           // names the request until the result is reported
    SocketAddress from;  // source of the request
  };
  // Errors: invalid_argument (private data), unreachable, no_memory.
  Result<Asked> ask(void* owner, const SocketAddress& to, const SidrQuery&, Instant now);
  // The owner wants no result any more; does nothing if it has been reported.
  void give_up(Id id, Instant now);

  // Answers a request that a listener received: datagrams with `qkey` go to that UD queue pair.
  // Errors: invalid_argument (private data), wrong_state (the queue pair cannot receive), closed
  // (the peer has given up, or was answered).
  Result<void> serve(ib_cm::Handle, const verbs::QueuePair&, std::uint32_t qkey, ByteView data,
                     Instant now);
  // The same for a number that is not looked up.
  Result<void> serve(ib_cm::Handle, std::uint32_t number, std::uint32_t qkey, ByteView data,
                     Instant now);

  // False: it is not about one of these requests.
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
    ib_cm::Handle handle = 0;  // 0: the request is repeated in a moment, or is answered
    Instant give_up, refused_until;
    bool answered = false;
    verbs::DatagramAnswer answer;  // to be reported to its owner, with `reply`
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
