// What a requester has of READs and atomics behind a hole in their answers (S-2): responses that
// came there are in memory already, and which they are is kept here until their turn; and which
// parts have been asked for again.
//
//   una          reach
//    | . . x x . x ...      a bit for each PSN: x has come; it is not completed before what is
//    missing
//
// One part of a READ is asked for at a time, the first that is missing: a peer that serves a part
// may forget what lies before it (Linux rxe does). Parts of several READs may be asked for at once.
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
  // bound: parts of READs asked for again at once; beyond: the next hole waits for its turn; test:
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
  void keep(Psn p) { book_->has[p.value() % kReach] = true; }
  bool has(Psn p) const { return book_ != nullptr && book_->has[p.value() % kReach]; }
  // una goes beyond it.
  void pass(Psn p);
  // Of [from, to) the first that has come, or has not; `to` if there is none.
  Psn first(bool come, Psn from, Psn to) const;

  // ---- what has been asked for again
  // Whether a part of [from, to) is under way, asked for less than `patience` ago, and its time is
  // up at `*until` then. One that has come, or whose time is up, is forgotten.
  bool asked(Psn from, Psn to, Instant now, Duration patience, Instant* until);
  // [begin, end) is asked for now. False: too many parts are under way.
  bool ask(Psn begin, Psn end, Instant now);
  // Whether one of them ends with `p`.
  bool ends(Psn p) const;

 private:
  struct Part {
    Psn begin, end;
    Instant left = Instant::never();  // never: no part
  };
  struct Book {
    std::bitset<kReach> has;
    std::array<Part, kMostParts> parts;
  };
  static constexpr unsigned kShift = BufferPool::kMinShift;
  static_assert(sizeof(Book) <= std::size_t{1} << kShift);

  HeldPool* pool_;
  Book* book_ = nullptr;
};

}  // namespace urnic::ib
