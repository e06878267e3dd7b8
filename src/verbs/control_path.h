// The control interface of one transport of an engine: queue pairs, listeners and connections. Each
// transport implements it (iwarp/control_path.h, roce/control_path.h), and a queue pair points to
// its own. Frames do not pass through here: the engine calls the transports directly, without
// virtual functions.
//
// Unless stated otherwise, the caller of every function holds the ownership of the engine, and no
// other thread posts to the queue pair during the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/time.h"
#include "urnic/stats.h"
#include "verbs/connection.h"
#include "verbs/queue_pair.h"

namespace urnic::verbs {

// Parameters of a new queue pair.
struct QpRequest {
  PdId pd = 0;
  Service service = Service::Rc;
  std::uint32_t number = 0;  // 0: the transport chooses one
  WorkQueueSizes sizes;
  CompletionQueue* send = nullptr;
  CompletionQueue* receive = nullptr;
  std::uint32_t xrc_domain = 0;  // for a receiving end of XRC
  // Each transport reads only its own.
  IwarpQpOptions iwarp;
  RoceQpOptions roce;
};

class ControlPath {
 public:
  virtual ~ControlPath() = default;
  // "iWARP", "RoCE". May be called from any thread.
  virtual const char* name() const = 0;

  // ---- queue pairs
  // Creates it in the first state of its transport. Errors: unsupported (the service, or a number
  // chosen by the caller), in_use (that number), no_memory.
  virtual Result<QueuePair*> create(const QpRequest&) = 0;
  // Ends its connection, if it has one. Completions not yet polled stay in their queues; no more
  // follow, and no memory of the consumer is accessed for it any more.
  virtual void destroy(QueuePair*, Instant now) = 0;
  // After an error nothing has changed. Errors: wrong_state, invalid_argument, unsupported,
  // unreachable.
  virtual Result<void> modify(QueuePair&, QpState to, const QpAttributes&, Instant now) = 0;
  // The attributes that its moves have set so far, as far as its transport has attributes.
  virtual QpAttributes attributes(const QueuePair&) const = 0;
  // How many Reads and atomics at a time it serves, and may have outstanding.
  struct Depths {
    std::uint16_t ird = 0, ord = 0;
  };
  virtual Depths depths(const QueuePair&) const = 0;
  // The longest message of a UD queue pair, in bytes.
  virtual std::uint32_t most_datagram() const = 0;
  // Called after posts: transmits or flushes Sends. Other threads may post meanwhile.
  virtual void sends_posted(QueuePair&, Instant now) = 0;
  // The same for receives, but only if the transport waits for one (E-17) or flushes them.
  virtual void receives_posted(QueuePair&, Instant now) = 0;
  // Fails the queue pair, connected or not: moves it to Error, flushes it, and reports it.
  virtual void fail(QueuePair&, Errc, const char* why, Instant now) = 0;
  // True if a completion queue on which it completes, or may complete, has overrun (E-47).
  virtual bool completes_on_overrun(const QueuePair&) const = 0;
  virtual ConnectionStats stats_of(const QueuePair&) const = 0;

  // ---- listeners
  // Reserves an address and port, to listen at or to connect from; port 0 chooses one. `service`:
  // that of the queue pairs that accept. Errors: in_use, invalid_argument (not a local address),
  // unsupported, no_memory.
  virtual Result<Listener*> bind(const LocalEnd&, Service) = 0;
  // Errors: in_use (another one listens there).
  virtual Result<void> listen(Listener&, int backlog) = 0;
  // Closes one that listens or is only bound. The consumer can still answer requests that were
  // reported to it.
  virtual void close(Listener&, Instant now) = 0;

  // ---- connections
  // Checks whether a connection can have these parameters at all. Errors: invalid_argument,
  // unsupported. May be called from any thread.
  virtual Result<void> check(const ConnectParams&) const = 0;
  // The outcome is reported as an event. After an error the queue pair is unchanged, or in Init.
  virtual Result<void> connect(QueuePair&, const SocketAddress& to, const ConnectParams&,
                               Instant now) = 0;
  // Answers a request. Errors: closed (the peer gave up, or it was answered), and those of
  // connect().
  virtual Result<void> accept(const ConnectionRequest&, QueuePair&, const ConnectParams&,
                              Instant now) = 0;
  virtual void reject(const ConnectionRequest&, ByteView private_data, Instant now) = 0;
  // Ends the connection in order. One that is not established yet fails.
  virtual void disconnect(QueuePair&, Instant now) = 0;
  virtual void abort(QueuePair&, Instant now) = 0;
};

// Returns for example "from state init to rtr".
std::string text_of_move(QpState from, QpState to);
// The error for a move that the state table does not have.
Error no_such_move(QpState from, QpState to);

}  // namespace urnic::verbs
