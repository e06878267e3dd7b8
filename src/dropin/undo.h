// Undoes the started part of a call if the rest of it fails, or throws for lack of memory.
#pragma once

#include <utility>

namespace urnic::dropin {

template <class F>
class Undo {
 public:
  explicit Undo(F back) : back_(std::move(back)) {}
  ~Undo() {
    if (begun_) back_();
  }
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;
  // Everything succeeded: do not undo.
  void keep() { begun_ = false; }

 private:
  F back_;
  bool begun_ = true;
};

}  // namespace urnic::dropin
