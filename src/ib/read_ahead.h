// What a requester has of READs and atomics behind a hole in their answers (S-2): responses that
// came there are in memory already, and which they are is kept here until their turn; and which
// parts have been asked for again.
//
//   una          reach
//    | . . x x . x ...      a bit for each PSN: x has come; it is not completed before what is
//    missing
//
// Of a peer that has agreed (S-7) all parts of a READ are asked for at once, else one at a time,
// the first that is missing: a peer that serves a part may forget what lies before it (Linux rxe
// does). Parts of several READs may be asked for at once. One that was asked for and does not come
// is asked for again when a later one has been answered, or after a longer time.
//
// The memory is lent by the engine's pool while there is a hole. Owned by one requester.
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
  // ReadAheadBound.SoManyPartsAreAskedForAtOnce
  static constexpr std::uint32_t kMostParts = 32;

  // `pool` may be null: nothing is kept, and all of an answer comes again.
  explicit ReadAhead(HeldPool* pool) : pool_(pool) {}
  ~ReadAhead() { clear(); }
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  bool empty() const { return book_ == nullptr; }
  // Memory for it; false when there is none.
  bool open();
  void clear();

  // ---- what has come; open() has said yes, and PSNs lie less than kReach from una
  void keep(Psn p, Instant now) {
    book_->has[p.value() % kReach] = true;
    came(p, now);
  }
  bool has(Psn p) const { return book_ != nullptr && book_->has[p.value() % kReach]; }
  // una goes beyond it.
  void pass(Psn p, Instant now);
  // Of [from, to) the first that has come, or has not; `to` if there is none.
  Psn first(bool come, Psn from, Psn to) const;

  // ---- what has been asked for again
  // How long a part is waited for.
  struct Patience {
    // Nothing says that it is lost: so long nothing comes any more. While something does, it may
    // stand behind that in a queue on the way, and is waited for up to kQueued times as long.
    Duration most;
    Duration overtaken;  // a part behind it that was asked for later has been answered
  };
  static constexpr std::int64_t kQueued = 8;
  // Whether a part of [from, to) is under way, asked for no longer ago than that, and its time is
  // up at `*until` then. One that has come, or whose time is up, is forgotten.
  bool asked(Psn from, Psn to, Instant now, const Patience&, Instant* until);
  // The same of the part that `p` is of, which ends at `*end` then.
  bool covers(Psn p, Instant now, const Patience&, Instant* until, Psn* end);
  // [begin, end) is asked for now; all before `una` has been taken. False: too many parts are under
  // way.
  bool ask(Psn begin, Psn end, Psn una, Instant now);
  // Whether one of them ends with `p`.
  bool ends(Psn p) const;

 private:
  struct Part {
    Psn begin, end;
    std::uint32_t serial = 0;         // in the order of asking, from 1 on
    Instant left = Instant::never();  // never: no part
  };
  struct Book {
    std::bitset<kReach> has;
    std::array<Part, kMostParts> parts;
    std::uint32_t serial = 0;    // of the newest part
    std::uint32_t answered = 0;  // the newest of those that were answered
    Psn answered_psn;            // its first
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
