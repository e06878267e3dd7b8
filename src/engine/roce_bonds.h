// What the engine keeps of the connections of RoCE's queue pairs: one bond for each queue pair that
// has, or just had, a connection by connection management. Found by the number of the queue pair
// and by the handle of the connection.
//
// Allocates when a bond is made, and never else. Under the ownership of the engine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/deadlines.h"
#include "base/hash_map.h"
#include "engine/roce_asked.h"
#include "engine/roce_moves.h"
#include "ib_cm/events.h"
#include "iwarp/events.h"
#include "verbs/queue_pair.h"

namespace urnic::engine {

using iwarp::CmEvent;

struct RoceBond {
  enum class Stage : std::uint8_t {
    Asking,     // by connect
    Accepting,  // by accept
    Up,
    Ending,  // by disconnect
    Over,    // the consumer has been told, or will be
  };

  // 0: it is asked again in a moment, or nothing is held back any more.
  ib_cm::Handle handle = 0;
  std::uint32_t number = 0;
  verbs::QueuePair* qp = nullptr;  // null: it has gone
  Stage stage = Stage::Asking;
  bool answered = false;  // by one end or the other: there is a time-wait behind its end
  bool noted = false;
  bool established = false;  // noted: a request has come before the RTU
  bool broken = false;       // noted: the queue pair is in Error, for this reason
  Errc code = Errc::io;
  const char* why = "";
  std::uint32_t psn = 0;                // of the first request that we take
  std::uint32_t depth = 0;              // READs and atomics that we have outstanding
  OwnEnd own;                           // as its consumer has chosen
  std::unique_ptr<RoceAsked> asked;     // while it may have to be asked again
  std::optional<CmEvent::Kind> untold;  // with `code`: there was no memory to tell it
  Instant due = Instant::never();
  std::uint32_t place = Deadlines<RoceBond>::kNowhere;
};

class RoceBonds {
 public:
  // Of a queue pair that has none.
  RoceBond& open(verbs::QueuePair& qp) {
    deadlines_.reserve(bonds_.size() + 1);
    if (const std::size_t all = 2 * (bonds_.size() + 1); all > noted_.capacity()) {
      noted_.reserve(2 * all);
      attended_.reserve(2 * all);
    }
    auto made = std::make_unique<RoceBond>();
    made->number = qp.number();
    made->qp = &qp;
    RoceBond& b = *made;
    bonds_.insert(qp.number(), std::move(made));
    return b;
  }
  void close(RoceBond& b) {
    name(b, 0);
    deadlines_.set(b, Instant::never());
    bonds_.erase(std::uint32_t{b.number});
  }
  // Its handle from now on; 0 is none.
  void name(RoceBond& b, ib_cm::Handle handle) {
    if (handle != 0) handles_.insert(handle, &b);  // all or nothing
    if (b.handle != 0) handles_.erase(b.handle);
    b.handle = handle;
  }
  RoceBond* of(const verbs::QueuePair& qp) const { return of(qp.number()); }
  RoceBond* of(std::uint32_t number) const {
    const auto* const b = bonds_.find(number);
    return b == nullptr ? nullptr : b->get();
  }
  RoceBond* by_handle(ib_cm::Handle handle) const {
    RoceBond* const* const b = handles_.find(handle);
    return b == nullptr ? nullptr : *b;
  }

  // Something within a burst is to be acted on behind it.
  void note(RoceBond& b) {
    if (!std::exchange(b.noted, true)) noted_.push_back(b.number);
  }
  bool any_noted() const { return !noted_.empty(); }
  // f(RoceBond&) for those noted until now; f may note and close.
  template <class F>
  void attend(F&& f) {
    attended_.swap(noted_);
    for (const std::uint32_t number : attended_) {
      RoceBond* const b = of(number);
      if (b != nullptr && std::exchange(b->noted, false)) f(*b);
    }
    attended_.clear();
  }

  Deadlines<RoceBond>& deadlines() { return deadlines_; }
  const Deadlines<RoceBond>& deadlines() const { return deadlines_; }
  std::size_t size() const { return bonds_.size(); }
  template <class F>
  void for_each(F&& f) {
    bonds_.for_each([&](std::uint32_t, const std::unique_ptr<RoceBond>& b) { f(*b); });
  }

 private:
  struct AsItIs {  // numbers and handles are spread already, and no peer chooses them
    std::uint64_t operator()(std::uint32_t v) const { return v; }
  };
  HashMap<std::uint32_t, std::unique_ptr<RoceBond>, AsItIs> bonds_;
  HashMap<ib_cm::Handle, RoceBond*, AsItIs> handles_;
  Deadlines<RoceBond> deadlines_;
  std::vector<std::uint32_t> noted_, attended_;  // numbers
};

}  // namespace urnic::engine
