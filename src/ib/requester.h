// The requester half of an RC queue pair: turns the WQEs of its send queue into packets, completes
// them in the order of posting when they are answered, and resends lost packets from the oldest
// unacknowledged one on (go-back-N), rebuilt from the WQE.
//
//   next_packet()   the packet to send now: a repeated or a new one
//   take()          a response has arrived
//   on_time()       due() has passed
//   report()        completions, after each of these
//   failed()        the queue pair goes to Error: then flush()
//
// A function of (state, input, now): it sends nothing and reads no clock. Owned by the engine of
// its queue pair, every call under its ownership; verbs::SendQueue::post() may run concurrently.
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

// A request packet to be written: emit_headers() writes `header`, the pieces follow.
struct RequestPacket {
  PacketHeader header;
  std::uint32_t length = 0;                      // bytes of payload, the sum of the pieces
  std::uint32_t count = 0;                       // number of pieces
  std::array<ByteView, verbs::kMaxSges> pieces;  // valid until memory is deregistered

  // Writes the payload, `length` bytes. Returns its end.
  std::uint8_t* copy_payload(std::uint8_t* to) const;
};

class Requester {
 public:
  // Made in RTS with the attributes of the move there, which must outlive it like queue and table.
  // The queue must have been made with sizeof(SendPart) bytes for the transport. `pool` lends
  // memory for selective repeat; without a pool everything is repeated.
  Requester(const QpAttributes& attributes, const SendRules& rules, verbs::SendQueue* sq,
            verbs::MemoryTable* memory, HeldPool* pool = nullptr)
      : s_(attributes, rules, sq, memory, pool) {}
  Requester(const Requester&) = delete;
  Requester& operator=(const Requester&) = delete;
  // Timeout, retry counts or depth have changed; nothing is outstanding (SQD).
  void attributes_changed();

  // The next packet that may be sent; false if none may before something else happens. Executes
  // local operations when it is their turn. With `may_begin` false no new WQE is begun (SQD), but
  // WQEs that have begun are sent to their end. A packet returned counts as sent. May fail.
  bool next_packet(Instant now, bool may_begin, RequestPacket* out);

  // The payload of a packet from next_packet() cannot be read because its memory is gone: the
  // request fails, in its turn.
  void lose_packet(const RequestPacket& packet);

  // Part of a message has been sent: next_run() may succeed.
  bool in_message() const { return s_.fresh.packet != 0; }
  // Returns at most `most` (1 or more) middle packets of a long message at once (request_run.h);
  // false if the next packet is not one. They count as sent when left() is called, which must
  // follow immediately.
  bool next_run(std::uint32_t most, RequestRun* run) { return begin_run(s_, most, run); }
  void left(const RequestRun& run, std::uint32_t packets, Instant now) {
    run_left(s_, run, packets, now);
  }

  // A response for this queue pair whose header is checked (check.h). May fail.
  Taken take(const ParsedPacket& response, Instant now) { return take_response(s_, response, now); }

  // S-10: a CNP has arrived, or the network has marked responses to us.
  void notified(Instant now);
  void slow_down(Instant now);

  // When on_time() is due; never() if nothing waits for a time.
  Instant due() const {
    const Instant loss = earlier(s_.log.due(), s_.hole.due);
    return earlier(earlier(s_.timer.due(), s_.rnr.until), earlier(s_.probe.due(), loss));
  }
  void on_time(Instant now);

  // Completions of finished requests, in posting order, signaled ones only.
  template <class Sink>
  void report(Sink&& on_completion) {
    verbs::Completion c;
    while (s_.wqes.next_completion(&c)) on_completion(static_cast<const verbs::Completion&>(c));
  }
  // A request has failed, and so will all after it.
  bool failed() const { return s_.failure.set; }
  // The queue pair goes to Error for another reason.
  void stop();
  // In Error: completes everything posted so far, and may be called again. The request that failed
  // has its own status and others are flushed, except those that were done with all before them. A
  // local operation may have been executed long before its turn to complete (IB-117).
  template <class Sink>
  void flush(Sink&& on_completion) {
    report(on_completion);
    verbs::Completion c;
    while (flush_one(&c)) on_completion(static_cast<const verbs::Completion&>(c));
  }

  // Everything that has begun is answered.
  bool drained() const { return s_.una == s_.fresh; }
  const RequesterCounters& counters() const { return s_.counters; }
  // For tests and statistics.
  const SendState& state() const { return s_; }

 private:
  bool flush_one(verbs::Completion* c);

  SendState s_;
};

}  // namespace urnic::ib
