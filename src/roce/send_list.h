// Queue pairs that want to send, in FIFO order. Allocates nothing.
#pragma once

#include "roce/context.h"

namespace urnic::roce {

class SendList {
 public:
  bool empty() const { return first_ == nullptr; }
  Context* first() const { return first_; }
  Context* last() const { return last_; }
  // Appends it, if it is not in the list.
  void add(Context& c) {
    presses_ = true;
    append(c);
  }
  // The same for a queue pair that has only an ACK to send.
  void add_owing(Context& c) { append(c); }
  // Called after a burst. `consumer_first`: the burst brought something for a consumer that is
  // about to poll. True: only ACKs are pending, and they are delayed once, until after that poll,
  // so that requests which the consumer posts meanwhile leave first.
  bool let_acks_wait(bool consumer_first) {
    waits_ = consumer_first && !waits_ && first_ != nullptr && !presses_;
    return waits_;
  }
  bool acks_wait() const { return waits_; }
  void remove(Context& c) {
    if (!c.queued) return;
    c.queued = false;
    (c.before == nullptr ? first_ : c.before->behind) = c.behind;
    (c.behind == nullptr ? last_ : c.behind->before) = c.before;
    c.before = c.behind = nullptr;
    presses_ = presses_ && first_ != nullptr;
  }

 private:
  void append(Context& c) {
    if (c.queued) return;
    c.queued = true;
    c.before = last_;
    c.behind = nullptr;
    (last_ == nullptr ? first_ : last_->behind) = &c;
    last_ = &c;
  }

  Context *first_ = nullptr, *last_ = nullptr;
  bool presses_ = false, waits_ = false;
};

}  // namespace urnic::roce
