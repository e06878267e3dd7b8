// A requester's bench with helpers for tests of the completer.
#pragma once

#include "ib/requester_bench.h"

namespace urnic::ib {

class Completer : public RequesterBench {
 protected:
  void post_sends(int n) {
    for (int i = 0; i < n; ++i) post(verbs::WrOp::Send, 1);
  }
  bool filled(std::uint32_t offset, std::uint32_t length, std::uint8_t value) const {
    for (std::uint32_t i = offset; i < offset + length; ++i) {
      if (memory[i] != value) return false;
    }
    return true;
  }
};

}  // namespace urnic::ib
