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
    if (c.queued) return;
    c.queued = true;
    c.before = last_;
    c.behind = nullptr;
    (last_ == nullptr ? first_ : last_->behind) = &c;
    last_ = &c;
  }
  void remove(Context& c) {
    if (!c.queued) return;
    c.queued = false;
    (c.before == nullptr ? first_ : c.before->behind) = c.behind;
    (c.behind == nullptr ? last_ : c.behind->before) = c.before;
    c.before = c.behind = nullptr;
  }

 private:
  Context *first_ = nullptr, *last_ = nullptr;
};

}  // namespace urnic::roce
