// What programs ask of one transport of an engine: queue pairs, listeners and connections. Each
// transport implements it (iwarp/control_path.h, roce/control_path.h), and a queue pair names the
// one it belongs to. Frames do not pass here: the engine drives the sides, which have no virtual
// function.
//
// Every call, unless it says otherwise, under the ownership of the engine, with the posts to the
// queue pair kept away by the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/time.h"
#include "urnic/stats.h"
#include "verbs/connection.h"
#include "verbs/queue_pair.h"

namespace urnic::verbs {

// A queue pair that is to be created.
struct QpRequest {
  PdId pd = 0;
  Service service = Service::Rc;
  std::uint32_t number = 0;  // 0: the transport chooses one
  WorkQueueSizes sizes;
  CompletionQueue* send = nullptr;
  CompletionQueue* receive = nullptr;
  std::uint32_t xrc_domain = 0;  // of a receiving end of XRC
  // A transport looks at its own alone.
  IwarpQpOptions iwarp;
  RoceQpOptions roce;
};

class ControlPath {
 public:
  virtual ~ControlPath() = default;
  // "iWARP", "RoCE". From any thread.
  virtual const char* name() const = 0;

  // ---- queue pairs
  // In the first state that its transport has for one. Errors: unsupported (the service, or a
  // number chosen by the caller), in_use (that number), no_memory.
  virtual Result<QueuePair*> create(const QpRequest&) = 0;
  // Its connection ends, if it has one. Completions not yet polled stay in their queues; no more
  // come, and no memory of the consumer is touched for it any more.
  virtual void destroy(QueuePair*, Instant now) = 0;
  // A refusal changes nothing. Errors: wrong_state, invalid_argument, unsupported, unreachable.
  virtual Result<void> modify(QueuePair&, QpState to, const QpAttributes&, Instant now) = 0;
  // What its moves have set so far, as far as its transport has attributes.
  virtual QpAttributes attributes(const QueuePair&) const = 0;
  // Reads and atomics at a time: that it serves, and has outstanding.
  struct Depths {
    std::uint16_t ird = 0, ord = 0;
  };
  virtual Depths depths(const QueuePair&) const = 0;
  // The longest message of a UD queue pair, in bytes.
  virtual std::uint32_t most_datagram() const = 0;
  // Something was posted: transmits, flushes, goes on with what waited for a receive (E-17). Beside
  // posts.
  virtual void work_posted(QueuePair&, Instant now) = 0;
  // It cannot go on, connected or not: Error, flushed, and reported.
  virtual void fail(QueuePair&, Errc, const char* why, Instant now) = 0;
  // A completion queue on which it completes, or may, has overrun (E-47).
  virtual bool completes_on_overrun(const QueuePair&) const = 0;
  virtual ConnectionStats stats_of(const QueuePair&) const = 0;

  // ---- listeners
  // Keeps an address and port for the caller, to listen at or to connect from; port 0 chooses one.
  // `service`: that of the queue pairs which accept. Errors: in_use, invalid_argument (no address
  // of ours), unsupported, no_memory.
  virtual Result<Listener*> bind(const LocalEnd&, Service) = 0;
  // Errors: in_use (another listens there).
  virtual Result<void> listen(Listener&, int backlog) = 0;
  // Listening or bound. Requests that the consumer has been told of are still its to answer.
  virtual void close(Listener&, Instant now) = 0;

  // ---- connections
  // Whether a connection can have these parameters at all. Errors: invalid_argument, unsupported.
  // From any thread.
  virtual Result<void> check(const ConnectParams&) const = 0;
  // The outcome comes as an event. After an error the queue pair is as it was, or in Init.
  virtual Result<void> connect(QueuePair&, const SocketAddress& to, const ConnectParams&,
                               Instant now) = 0;
  // Answers a request. Errors: closed (the peer gave up, or it was answered), and as connect().
  virtual Result<void> accept(const ConnectionRequest&, QueuePair&, const ConnectParams&,
                              Instant now) = 0;
  virtual void reject(const ConnectionRequest&, ByteView private_data, Instant now) = 0;
  // Ends it in order. One that is not established yet fails.
  virtual void disconnect(QueuePair&, Instant now) = 0;
  virtual void abort(QueuePair&, Instant now) = 0;
};

// "from state init to rtr".
std::string text_of_move(QpState from, QpState to);
// The refusal of a move that the table of states does not have.
Error no_such_move(QpState from, QpState to);

}  // namespace urnic::verbs
