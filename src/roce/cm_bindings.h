// Bindings between queue pairs and connections of connection management, current or just ended,
// found by the number of the queue pair or by the handle of the connection.
//
// Allocates only when a binding is made. Under the ownership of the engine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/deadlines.h"
#include "base/hash_map.h"
#include "ib_cm/events.h"
#include "roce/cm_request.h"
#include "roce/connection_moves.h"
#include "verbs/hooks.h"
#include "verbs/queue_pair.h"

namespace urnic::roce {

using verbs::CmEvent;

struct CmBinding {
  enum class State : std::uint8_t {
    Asking,     // by connect
    Accepting,  // by accept
    Up,
    Ending,  // by disconnect
    Over,    // the end has been reported to the consumer, or will be
  };

  // 0: the request is repeated in a moment, or the connection has been released.
  ib_cm::Handle handle = 0;
  std::uint32_t number = 0;
  verbs::QueuePair* qp = nullptr;  // null: destroyed
  State stage = State::Asking;
  bool answered = false;  // by one end or the other: a time-wait follows its end
  bool noted = false;
  bool established = false;  // noted: a request arrived before the RTU
  bool broken = false;       // noted: the queue pair is in Error, for this reason
  Errc code = Errc::io;
  const char* why = "";
  std::uint32_t psn = 0;                // of the first request that we receive
  std::uint32_t depth = 0;              // READs and atomics that we may have outstanding
  OwnEnd own;                           // as chosen by the consumer
  std::unique_ptr<CmRequest> asked;     // while the request may have to be repeated
  std::optional<CmEvent::Kind> untold;  // with `code`: not yet reported for lack of memory
  Instant due = Instant::never();
  std::uint32_t place = Deadlines<CmBinding>::kNowhere;
};

class CmBindings {
 public:
  // `qp` must have no binding.
  CmBinding& open(verbs::QueuePair& qp) {
    deadlines_.reserve(bindings_.size() + 1);
    if (const std::size_t all = 2 * (bindings_.size() + 1); all > noted_.capacity()) {
      noted_.reserve(2 * all);
      taken_.reserve(2 * all);
    }
    auto made = std::make_unique<CmBinding>();
    made->number = qp.number();
    made->qp = &qp;
    CmBinding& b = *made;
    bindings_.insert(qp.number(), std::move(made));
    return b;
  }
  void close(CmBinding& b) {
    name(b, 0);
    deadlines_.set(b, Instant::never());
    bindings_.erase(std::uint32_t{b.number});
  }
  // Sets the handle; 0 is none.
  void name(CmBinding& b, ib_cm::Handle handle) {
    if (handle != 0) handles_.insert(handle, &b);  // all or nothing
    if (b.handle != 0) handles_.erase(b.handle);
    b.handle = handle;
  }
  CmBinding* of(const verbs::QueuePair& qp) const { return of(qp.number()); }
  CmBinding* of(std::uint32_t number) const {
    const auto* const b = bindings_.find(number);
    return b == nullptr ? nullptr : b->get();
  }
  CmBinding* by_handle(ib_cm::Handle handle) const {
    CmBinding* const* const b = handles_.find(handle);
    return b == nullptr ? nullptr : *b;
  }

  // Something within a burst is to be handled after it.
  void note(CmBinding& b) {
    if (!std::exchange(b.noted, true)) noted_.push_back(b.number);
  }
  bool any_noted() const { return !noted_.empty(); }
  // Calls f(CmBinding&) for each binding noted until now; f may call note() and close().
  template <class F>
  void take_noted(F&& f) {
    taken_.swap(noted_);
    for (const std::uint32_t number : taken_) {
      CmBinding* const b = of(number);
      if (b != nullptr && std::exchange(b->noted, false)) f(*b);
    }
    taken_.clear();
  }

  Deadlines<CmBinding>& deadlines() { return deadlines_; }
  const Deadlines<CmBinding>& deadlines() const { return deadlines_; }
  std::size_t size() const { return bindings_.size(); }
  template <class F>
  void for_each(F&& f) {
    bindings_.for_each([&](std::uint32_t, const std::unique_ptr<CmBinding>& b) { f(*b); });
  }

 private:
  struct AsItIs {  // numbers and handles are spread already and not chosen by peers
    std::uint64_t operator()(std::uint32_t v) const { return v; }
  };
  HashMap<std::uint32_t, std::unique_ptr<CmBinding>, AsItIs> bindings_;
  HashMap<ib_cm::Handle, CmBinding*, AsItIs> handles_;
  Deadlines<CmBinding> deadlines_;
  std::vector<std::uint32_t> noted_, taken_;  // numbers
};

}  // namespace urnic::roce
