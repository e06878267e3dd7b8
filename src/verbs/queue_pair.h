// A queue pair: two work queues, two completion queues and a state (D9), and a part that only its
// transport knows. The device owns it. Any thread may post to its queues, read `state` and set
// `rung`; everything else needs the ownership of its engine (E-28).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/mpsc_queue.h"
#include "verbs/completion_queue.h"
#include "verbs/qp_state.h"
#include "verbs/work_queues.h"

namespace urnic::verbs {

class ControlPath;

// The transport's part of a queue pair.
struct TransportHalf {
  TransportHalf() = default;
  TransportHalf(const TransportHalf&) = delete;
  TransportHalf& operator=(const TransportHalf&) = delete;
  virtual ~TransportHalf() = default;
};

// The queue that a doorbell is for. A waiting doorbell may be for both.
enum Posted : std::uint8_t { kPostedSends = 1, kPostedReceives = 2 };

struct QueuePair : MpscNode, WorkQueues {
  QueuePair(std::uint32_t qp_number, const QpRules& rules, Service service,
            const WorkQueueSizes& sizes, const WorkQueueLayout& layout, CompletionQueue* send,
            CompletionQueue* receive)
      : WorkQueues(sizes, layout),
        send_cq(send),
        receive_cq(receive),
        state(rules, service),
        number_(qp_number) {
    sq.hold_places();
    rq.hold_places();
  }
  ~QueuePair() { leave_queues(); }

  std::uint32_t number() const { return number_; }
  // The CQE of a completion; call it after pop() of the request's queue.
  Cqe cqe_of(const Completion& completion) {
    Cqe cqe;
    cqe.completion = completion;
    cqe.qp_number = number_;
    cqe.places = completion.receive ? rq.places() : &sq.places();
    cqe.position = completion.receive ? rq.head() : sq.head();
    return cqe;
  }
  // Stops all completions from now on, so that its completion queues may be destroyed before it.
  void leave_queues() {
    if (send_cq != nullptr) send_cq->leave(sq.places());
    if (receive_cq != nullptr && rq.places() != nullptr) receive_cq->leave(*rq.places());
    send_cq = receive_cq = nullptr;
  }

  CompletionQueue* send_cq;
  CompletionQueue* receive_cq;
  [[no_unique_address]] QpStateMachine state;  // the flags lie in its padding
  // A Send was dropped because no receive was posted (E-17): the next post must notify the engine.
  std::atomic<bool> starved{false};
  std::atomic<std::uint8_t> rung{0};         // Posted: its doorbell is in the driver's queue
  bool last_receive_reported = false;        // on a shared receive queue: last_receive was reported
  std::uint64_t connection = 0;              // the engine's handle; 0 = none
  ControlPath* control = nullptr;            // the control path of its transport (control_path.h)
  void* owner = nullptr;                     // the consumer's: the receiver of its events (hooks.h)
  std::unique_ptr<TransportHalf> transport;  // destroyed before the queues that it uses

 private:
  std::uint32_t number_;
};

}  // namespace urnic::verbs
