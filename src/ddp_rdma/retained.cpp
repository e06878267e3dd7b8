#include "ddp_rdma/retained.h"

namespace urnic::ddp {

bool Retained::take_back(std::uint32_t i) {
  const std::uint32_t behind = low(end_) - ledger_[i].begin;
  if (end_ - behind < sent_) return false;
  while (ledger_.size() > i) {
    if (ledger_.back().kept != nullptr) kept_.free(ledger_.back().kept);
    ledger_.pop_back();
  }
  end_ = end_ - behind;
  return true;
}

}  // namespace urnic::ddp
