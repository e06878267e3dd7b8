#include "ddp_rdma/backlog.h"

namespace urnic::ddp {

std::uint64_t Backlog::wire_of(const SendWqe& w) const {
  switch (w.op) {
    case WrOp::LocalInv:
    case WrOp::Bind:
      return 0;
    case WrOp::Read:
      return sizes_.estimate(kReadRequestHeader);
    case WrOp::FetchAdd:
    case WrOp::CmpSwap:
    case WrOp::Swap:
      return sizes_.estimate(kUntaggedHeader + kAtomicRequest);
    case WrOp::Write:
      return sizes_.estimate_message(w.length, true);
    case WrOp::WriteImm:
      return sizes_.estimate_message(w.length, true) +
             sizes_.estimate(kUntaggedHeader + kImmediateData);
    case WrOp::SendImm:
      return sizes_.estimate_message(std::uint64_t{w.length} + kImmediateData, false);
    default:
      return sizes_.estimate_message(w.length, false);
  }
}

void Backlog::count_new() const {
  for (; seen_ != sq_.tail(); ++seen_) bytes_.requests += wire_of(sq_.wqe(seen_));
  for (; response_seen_ != owed_.next(); ++response_seen_) {
    bytes_.responses += sizes_.estimate_message(owed_.request(response_seen_).size, true);
  }
}

}  // namespace urnic::ddp
