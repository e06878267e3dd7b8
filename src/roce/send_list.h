// Queue pairs that want to send, first come first served. Nothing is allocated.
#pragma once

#include "roce/context.h"

namespace urnic::roce {

class SendList {
 public:
  bool empty() const { return first_ == nullptr; }
  Context* first() const { return first_; }
  Context* last() const { return last_; }
  // At the end, if it is not in the list.
  void add(Context& c) {
    presses_ = true;
    append(c);
  }
  // The same of one that owes an ACK and nothing else.
  void add_owing(Context& c) { append(c); }
  // Behind a burst. `consumer_first`: something came for a consumer that is about to look, and will
  // poll again. True: all that is to be sent are ACKs, and they wait for that poll, once; requests
  // that it posts meanwhile go before them.
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
