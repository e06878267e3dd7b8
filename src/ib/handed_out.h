// Common parts of the UC and UD requesters: a request is done when its last packet has been handed
// out, and one that cannot be sent stops the queue until it has been flushed.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ib/context.h"
#include "ib/send_state.h"
#include "ib/send_wqes.h"

namespace urnic::ib {

class HandedOut {
 public:
  HandedOut(const HandedOut&) = delete;
  HandedOut& operator=(const HandedOut&) = delete;

  // Completions of finished requests, in posting order, signaled ones only.
  template <class Sink>
  void report(Sink&& on_completion) {
    verbs::Completion c;
    while (wqes_.next_completion(&c)) on_completion(static_cast<const verbs::Completion&>(c));
  }
  // A request cannot be sent. Nothing is sent before resume().
  bool failed() const { return failure_.set; }
  // The queue pair goes to Error for another reason.
  void stop() {
    if (!failed()) fail(verbs::Status::Flushed);
  }
  // Completes everything posted so far, and may be called again: the request that failed with its
  // own status, others as flushed unless they were done. Only if failed().
  template <class Sink>
  void flush(Sink&& on_completion) {
    verbs::Completion c;
    for (;;) {
      report(on_completion);
      if (!flush_one(&c)) return;
      on_completion(static_cast<const verbs::Completion&>(c));
    }
  }
  // From SQE back to RTS, after everything has been flushed: requests posted from now on are sent,
  // beginning with the PSN after the last one sent.
  void resume() {
    failure_ = {};
    next_.wqe = wqes_.queue().started();
    next_.packet = 0;
  }

  // The payload of the last packet handed out cannot be read because its memory is gone: its
  // request fails.
  void lose_packet() {
    next_.psn = next_.psn - 1;
    if (next_.packet == 0) {
      --next_.wqe;
      wqes_.wqe(next_.wqe).done = false;
      next_.packet = std::max(wqes_.packets(wqes_.wqe(next_.wqe)), 1u);
    }
    --next_.packet;
    fail(verbs::Status::LocalProtection);
  }

  // True between two messages.
  bool drained() const { return next_.packet == 0; }
  const SentMessages& messages() const { return messages_; }
  // The PSN of the next packet.
  Psn psn() const { return next_.psn; }

 protected:
  HandedOut(const QpAttributes& attributes, verbs::SendQueue* sq, verbs::MemoryTable* memory)
      : qp_(&attributes),
        wqes_(sq, memory, attributes.peer(), attributes.pmtu()),
        next_{sq->started(), 0, attributes.sq_psn} {}
  ~HandedOut() = default;

  void fail(verbs::Status status) { failure_ = {true, next_.wqe, status}; }

  const QpAttributes* qp_;
  // `w`, or its first packet, is sent.
  void begin(const verbs::SendWqe& w) {
    wqes_.queue().start();
    messages_.begins(w);
  }

  SendWqes wqes_;
  SendPosition next_;

 private:
  bool flush_one(verbs::Completion* c) {
    const bool it = failure_.wqe == wqes_.queue().head();
    return wqes_.next_flushed(it ? failure_.status : verbs::Status::Flushed, c);
  }

  SendFailure failure_;
  SentMessages messages_;
};

}  // namespace urnic::ib
