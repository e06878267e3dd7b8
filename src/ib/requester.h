// The requester half of an RC queue pair: the WQEs of its send queue become packets, answers
// complete them in the order of posting, and what is lost is sent again from the oldest
// unacknowledged packet on (go-back-N), rebuilt from the WQE.
//
//   next_packet()   what leaves now: a repeated packet, or a new one
//   take()          a response has come
//   on_time()       due() has passed
//   report()        completions, after each of these
//   failed()        the queue pair goes to Error: then flush()
//
// A function of (state, input, now): it sends nothing and reads no clock. Owned by the engine of
// its queue pair, every call under its ownership; verbs::SendQueue::post() goes on beside it.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "base/time.h"
#include "ib/completer.h"
#include "ib/packet.h"
#include "ib/request_run.h"
#include "ib/send_state.h"

namespace urnic::ib {

// A request packet as it is to be put together: emit_headers() writes `header`, the pieces follow.
struct RequestPacket {
  PacketHeader header;
  std::uint32_t length = 0;                      // bytes of payload, the sum of the pieces
  std::uint32_t count = 0;                       // of the pieces
  std::array<ByteView, verbs::kMaxSges> pieces;  // hold until memory is deregistered

  // Writes the payload, `length` bytes. Returns its end.
  std::uint8_t* copy_payload(std::uint8_t* to) const;
};

class Requester {
 public:
  // In RTS, with the attributes of the move there, which outlive it like queue and table. The
  // queue was made with sizeof(SendPart) bytes for the transport. `pool` lends what selective
  // repeat needs; without one all is repeated.
  Requester(const QpAttributes& attributes, const SendRules& rules, verbs::SendQueue* sq,
            verbs::MemoryTable* memory, HeldPool* pool = nullptr)
      : s_(attributes, rules, sq, memory, pool) {}
  Requester(const Requester&) = delete;
  Requester& operator=(const Requester&) = delete;
  // Timeout, retry counts or depth were changed; nothing is outstanding (SQD).
  void attributes_changed();

  // The next packet that may leave; false when none may before something else happens. Carries out
  // local operations whose turn it is. With `may_begin` false no WQE is begun (SQD): those that
  // have are sent to their end. A packet returned counts as sent. May fail.
  bool next_packet(Instant now, bool may_begin, RequestPacket* out);

  // The payload of a packet that next_packet() returned cannot be read, its memory has gone: the
  // request fails, in its turn.
  void lose_packet(const RequestPacket& packet);

  // Part of a message has left: next_run() is worth asking.
  bool in_message() const { return s_.fresh.packet != 0; }
  // At most `most` of them in one go, 1 or more, where they are the middle of a long message
  // (request_run.h): false when the next one is not. They count as sent when left() says so, which
  // follows at once.
  bool next_run(std::uint32_t most, RequestRun* run) { return begin_run(s_, most, run); }
  void left(const RequestRun& run, std::uint32_t packets, Instant now) {
    run_left(s_, run, packets, now);
  }

  // A response, its header checked (check.h) and addressed to this queue pair. May fail.
  Taken take(const ParsedPacket& response, Instant now) { return take_response(s_, response, now); }

  // S-10: a CNP has come, or the network has marked what answers us.
  void notified(Instant now);
  void slow_down(Instant now);

  // When on_time() is due; never() when nothing waits for time to pass.
  Instant due() const {
    const Instant loss = earlier(s_.log.due(), s_.hole.due);
    return earlier(earlier(s_.timer.due(), s_.rnr.until), earlier(s_.probe.due(), loss));
  }
  void on_time(Instant now);

  // Completions of what is done, in posting order, signaled ones only.
  template <class Sink>
  void report(Sink&& on_completion) {
    verbs::Completion c;
    while (s_.wqes.next_completion(&c)) on_completion(static_cast<const verbs::Completion&>(c));
  }
  // A request has failed, with everything behind it.
  bool failed() const { return s_.failure.set; }
  // The queue pair goes to Error for a reason that is not here.
  void stop();
  // In Error: whatever is posted completes, by now and each time again. The request that failed
  // has its own status, others are flushed, but for those that were done with all before them: a
  // local one may have been carried out long before its turn to complete (IB-117).
  template <class Sink>
  void flush(Sink&& on_completion) {
    report(on_completion);
    verbs::Completion c;
    while (flush_one(&c)) on_completion(static_cast<const verbs::Completion&>(c));
  }

  // Nothing that has begun is unanswered.
  bool drained() const { return s_.una == s_.fresh; }
  const RequesterCounters& counters() const { return s_.counters; }
  // For tests and statistics.
  const SendState& state() const { return s_; }

 private:
  bool flush_one(verbs::Completion* c);

  SendState s_;
};

}  // namespace urnic::ib
