// Which request packets are under way, when each left the last time, and which of them the peer
// has: by that a lost one is told from a late one (S-6). Judged by time as RFC 8985 has it for TCP
// (RACK): a packet is lost when one that left after it has come, and a round trip and a reordering
// window have passed since it left. How many have overtaken it does not matter.
//
//          head                                end
//   una ->  | 7  8  9 | READ 10..73 | 74  75 |      one record for each packet, in order of PSNs
//
// A bound on the records; their memory is lent by the engine's pool while there are any. Without
// memory, or when what is under way left before the log was begun, it covers nothing, and its
// owner goes back N. Owned by the requester of one queue pair.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"
#include "ib/held_pool.h"
#include "ib/psn.h"
#include "ib/sack.h"

namespace urnic::ib {

class SentLog {
 public:
  // At most `most` packets. `pool` may be null: it covers nothing, ever.
  // bound: packets in a requester's log of packets in flight; setting: roce_window; beyond: not
  // logged: the requester goes back N until all is acknowledged; test:
  // SentLogBound.OneMoreThanItHoldsCoversNothingUntilItBeginsAnew
  SentLog(HeldPool* pool, std::uint32_t most) : pool_(pool), most_(most) {}
  ~SentLog() { clear(); }
  SentLog(const SentLog&) = delete;
  SentLog& operator=(const SentLog&) = delete;

  // ---- what leaves
  // A packet that takes the PSNs [psn, end): behind all in the log, or the log begins anew.
  void append(Psn psn, Psn end, Instant now);
  // So many packets of one PSN each leave, no more than room_behind() has said.
  void append_run(Psn first, std::uint32_t packets, Instant now);
  // How many there is room for behind all that is in it; 0: with the packet `psn` it begins anew.
  std::uint32_t room_behind(Psn psn) const {
    if (count_ == 0) return most_;
    return psn == end_ ? most_ - count_ : 0;
  }
  // The packet that `psn` belongs to leaves again, alone.
  void again(Psn psn, Instant now);
  // All is sent again, in order, or nothing more is.
  void clear();
  bool empty() const { return count_ == 0; }
  // Everything from `una` on that has left since clear() is in it; there is something.
  bool covers(Psn una) const { return count_ != 0 && !una.before(at(0).psn); }

  // ---- what the peer says
  // Everything before `una` is answered.
  void passed(Psn una, Instant now);
  // The peer has taken the requests before `expected`, whether it has answered them or not, and of
  // what lies behind it what the SACK says. False: an older SACK than one before; nothing changes.
  bool report(const Sack& sack, Instant now);
  // Marks what is lost by now.
  void judge(Instant now);
  // So was this one, in words.
  void mark_lost(Psn psn);

  // ---- what is to be repeated
  bool any_lost() const { return lost_ != 0; }
  std::uint32_t lost() const { return lost_; }
  // The first PSN of the first such packet; there is one.
  Psn first_lost() const;
  // When judge() may find more.
  Instant due() const { return due_; }

  // ---- looking
  std::uint32_t size() const { return count_; }
  std::uint32_t kept() const { return kept_; }  // that have come, and are not answered
  // How much later than the packets behind it one may come.
  Duration reordering_window() const;
  Duration round_trip() const { return newest_.round_trip; }  // of the newest packet that has come
  // The number of packets that were repeated and had only been late, since the last call.
  std::uint32_t take_needless_repeats();

 private:
  enum Flag : std::uint8_t { kHas = 1, kLost = 2, kRepeated = 4 };
  struct Record {
    Instant left;
    Psn psn;
    std::uint8_t flags;

    bool is(Flag f) const { return (flags & f) != 0; }
  };
  // The packet that left last of those that have come.
  struct Newest {
    Instant left;
    Psn psn;
    Duration round_trip = Duration::zero();
    bool known = false;
  };

  static constexpr Duration kLeastWindow = Duration::us(10);
  static constexpr std::uint8_t kMostWidth = 16;
  static constexpr std::uint8_t kCalm = 16;  // losses well judged, and the window is narrowed

  bool open();
  Record& at(std::uint32_t i) { return ring_[(head_ + i) & mask_]; }
  const Record& at(std::uint32_t i) const { return ring_[(head_ + i) & mask_]; }
  std::uint32_t find(Psn psn) const;
  void take(Record* r, Instant now);
  void take_back(Record* r);
  void unmark_lost(Record* r);
  void widen(const Record& r, Instant now);
  bool left_before_newest(const Record& r) const;

  HeldPool* pool_;
  std::uint32_t most_;
  Record* ring_ = nullptr;
  unsigned shift_ = 0;  // of its block
  std::uint32_t mask_ = 0, head_ = 0, count_ = 0, lost_ = 0, kept_ = 0;
  Psn end_;
  Newest newest_;
  Duration least_trip_ = Duration::zero();
  std::uint8_t width_ = 1, calm_ = 0;  // of the reordering window, in quarters of a round trip
  Instant widened_;                    // last
  Instant due_ = Instant::never();
  std::uint32_t serial_ = 0;
  bool any_serial_ = false;
  std::uint32_t needless_ = 0;
};

}  // namespace urnic::ib
