#include "dropin/spoiled_work.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "dropin/injected_events.h"
#include "dropin/injector.h"
#include "dropin/queue_pair.h"
#include "dropin/shared_receive.h"

namespace urnic::dropin {
namespace {

// Memory that wraps around the end of the address space, so that it lies in no region. For a
// receive it is long enough for every message.
constexpr Sge kNothingToSend{UINT64_MAX, 2, 0}, kNoRoom{UINT64_MAX, 0x7fffffff, 0};

struct Spoiled {
  std::uint32_t qp_number;  // 0: of a shared receive queue
  bool is_receive;
  std::uint64_t wr_id;
  ibv_wc_status status;
};

struct Waiting {
  std::mutex mutex;
  // bound: requests that a plan has chosen and that have not ended; limit: those posted; beyond:
  // the queues of the queue pairs are full; test:
  // Injected.ASendEndsWithTheStatusAndItsQueuePairIsInError
  std::vector<Spoiled> all;
};
Waiting& waiting() {
  static auto* const it = new Waiting;  // threads may be inside when a program ends
  return *it;
}

void remember(const fault::VerbsHit& hit, std::uint32_t qp_number, bool is_receive,
              std::uint64_t wr_id) {
  const std::lock_guard guard(waiting().mutex);
  waiting().all.push_back({qp_number, is_receive, wr_id, static_cast<ibv_wc_status>(hit.argument)});
}

std::string about(const Qp& qp, std::uint64_t wr_id) {
  return "queue pair " + std::to_string(qp.nth) + ", wr_id " + std::to_string(wr_id);
}

}  // namespace

void inject_sends(Qp& qp, std::span<SendRequest> requests, const void* caller) {
  Injector& injector = *Injector::get();
  for (SendRequest& r : requests) {
    const auto hit = injector.next(VerbsKind::send_wr, {qp.nth, caller}, about(qp, r.wr_id));
    if (hit) {
      r.opcode = Opcode::send;
      r.flags &= ~send_inline;
      r.sges = {&kNothingToSend, 1};
      remember(*hit, qp.base.qp_num, false, r.wr_id);
    }
    inject_events(qp);
  }
}

void inject_receive(Qp& qp, ReceiveRequest* r, const void* caller) {
  const auto hit = Injector::get()->next(VerbsKind::recv_wr, {qp.nth, caller}, about(qp, r->wr_id));
  if (hit) {
    r->sges = {&kNoRoom, 1};
    remember(*hit, qp.base.qp_num, true, r->wr_id);
  }
  inject_events(qp);
}

void inject_receive(Srq& srq, ReceiveRequest* r, const void* caller) {
  const auto hit = Injector::get()->next(VerbsKind::recv_wr, {0, caller},
                                         "shared, wr_id " + std::to_string(r->wr_id));
  if (hit) {
    r->sges = {&kNoRoom, 1};
    remember(*hit, 0, true, r->wr_id);
  }
  inject_events(srq);
}

std::optional<ibv_wc_status> injected_status(const Completion& c) {
  const bool is_receive = c.opcode == Opcode::receive;
  Waiting& w = waiting();
  const std::lock_guard guard(w.mutex);
  const auto found = std::find_if(w.all.begin(), w.all.end(), [&](const Spoiled& s) {
    return s.is_receive == is_receive && s.wr_id == c.wr_id &&
           (s.qp_number == 0 || s.qp_number == c.qp_number);
  });
  if (found == w.all.end()) return std::nullopt;
  const ibv_wc_status status = found->status;
  w.all.erase(found);
  // It may have been flushed before its turn came.
  if (c.status != WcStatus::local_protection) return std::nullopt;
  return status;
}

}  // namespace urnic::dropin
