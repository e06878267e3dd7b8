// A requester's record of READs and atomics past a hole in their responses (S-2): responses that
// arrived there are in memory already, and are recorded here until their turn; and the parts that
// have been requested again.
//
//   una          reach
//    | . . x x . x ...      a bit for each PSN: x has arrived, but cannot complete yet
//
// From a peer that has agreed (S-7), all missing parts of a READ are requested at once; otherwise
// one at a time, the first that is missing: a peer that serves a part may forget what lies before
// it (Linux rxe does). Parts of several READs may be requested at once. A requested part that does
// not arrive is requested again when a later one has been answered, or after a longer time.
//
// The engine's pool lends the memory while there is a hole. Owned by one requester.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>

#include "base/time.h"
#include "ib/held_pool.h"
#include "ib/psn.h"

namespace urnic::ib {

class ReadAhead {
 public:
  static constexpr std::uint32_t kReach = 16384;  // PSNs, from una on
  // bound: parts of READs requested again at once; beyond: the next hole waits; test:
  // ReadAheadBound.PartsUpToTheLimitAreRequestedAtOnce
  static constexpr std::uint32_t kMostParts = 32;

  // `pool` may be null: then nothing is recorded, and all responses are requested again.
  explicit ReadAhead(HeldPool* pool) : pool_(pool) {}
  ~ReadAhead() { clear(); }
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  bool empty() const { return book_ == nullptr; }
  // Takes the memory; false if there is none.
  bool open();
  void clear();

  // ---- responses that have arrived; only after open(), and for PSNs less than kReach from una
  void keep(Psn p, Instant now) {
    book_->has[p.value() % kReach] = true;
    came(p, now);
  }
  bool has(Psn p) const { return book_ != nullptr && book_->has[p.value() % kReach]; }
  // una moves past it.
  void pass(Psn p, Instant now);
  // The first PSN in [from, to) that has arrived (`come`), or has not; `to` if there is none.
  Psn first(bool come, Psn from, Psn to) const;

  // ---- parts requested again
  // How long to wait for a part.
  struct Patience {
    // Without a sign of loss: the time without any response. While responses arrive, the part may
    // be queued behind them on the path, and the wait is up to kQueued times as long.
    Duration most;
    Duration overtaken;  // a later part that was requested after it has been answered
  };
  static constexpr std::int64_t kQueued = 8;
  // True if a part of [from, to) is requested and its wait is not over; `*until` is then the end of
  // the wait. Removes parts that have arrived or whose wait is over.
  bool asked(Psn from, Psn to, Instant now, const Patience&, Instant* until);
  // The same for the part that contains `p`; `*end` is then its end.
  bool covers(Psn p, Instant now, const Patience&, Instant* until, Psn* end);
  // [begin, end) is requested now; everything before `una` has been accepted. False: too many parts
  // are requested already.
  bool ask(Psn begin, Psn end, Psn una, Instant now);
  // True if one of the parts ends with `p`.
  bool ends(Psn p) const;

 private:
  struct Part {
    Psn begin, end;
    std::uint32_t serial = 0;         // in the order of requests, from 1 on
    Instant left = Instant::never();  // never: no part
  };
  struct Book {
    std::bitset<kReach> has;
    std::array<Part, kMostParts> parts;
    std::uint32_t serial = 0;    // of the newest part
    std::uint32_t answered = 0;  // the newest part that was answered
    Psn answered_psn;            // its first PSN
    Instant heard;               // when the newest answer came
  };
  void came(Psn p, Instant now);
  bool waits(Part* part, Instant now, const Patience&, Instant* until) const;
  static constexpr unsigned kShift = BufferPool::kMinShift;
  static_assert(sizeof(Book) <= std::size_t{1} << kShift);

  HeldPool* pool_;
  Book* book_ = nullptr;
};

}  // namespace urnic::ib
