// The request packets in flight: when each was last sent, and which of them the peer has, so that
// lost packets can be told from late ones (S-6). The rule is that of RFC 8985 (RACK) for TCP: a
// packet is lost if one sent after it has arrived, and a round trip and a reordering window have
// passed since it was sent. The number of packets that overtook it does not matter.
//
//          head                                end
//   una ->  | 7  8  9 | READ 10..73 | 74  75 |      one record for each packet, in order of PSNs
//
// The number of records is bounded; the engine's pool lends their memory while there are any.
// Without memory, or if packets in flight were sent before the log began, the log covers nothing,
// and its owner goes back N. Owned by the requester of one queue pair.
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
  // At most `most` packets. `pool` may be null: then it never covers anything.
  // bound: packets in a requester's log of packets in flight; setting: roce_window; beyond: not
  // logged: the requester goes back N until all is acknowledged; test:
  // SentLogBound.AFullLogRestartsAndCoversOnlyLaterPackets
  SentLog(HeldPool* pool, std::uint32_t most) : pool_(pool), most_(most) {}
  ~SentLog() { clear(); }
  SentLog(const SentLog&) = delete;
  SentLog& operator=(const SentLog&) = delete;

  // ---- sending
  // A packet with the PSNs [psn, end) is sent. If it does not follow the last one in the log, or
  // the log is full, the log begins anew.
  void append(Psn psn, Psn end, Instant now);
  // Packets of one PSN each are sent, at most as many as room_behind() allows.
  void append_run(Psn first, std::uint32_t packets, Instant now);
  // The room for further packets, if `psn` follows the last one; 0: the log begins anew with `psn`.
  std::uint32_t room_behind(Psn psn) const {
    if (count_ == 0) return most_;
    return psn == end_ ? most_ - count_ : 0;
  }
  // The packet that contains `psn` is sent again, alone.
  void again(Psn psn, Instant now);
  // Everything is sent again in order, or nothing more is sent.
  void clear();
  bool empty() const { return count_ == 0; }
  // True if it is not empty and has every packet from `una` on that was sent since clear().
  bool covers(Psn una) const { return count_ != 0 && !una.before(at(0).psn); }

  // ---- reports of the peer
  // Everything before `una` is answered.
  void passed(Psn una, Instant now);
  // The peer has accepted the requests before `expected`, answered or not, and has those after it
  // that the SACK reports. False: the SACK is older than one before; nothing changes.
  bool report(const Sack& sack, Instant now);
  // Marks the packets that are lost by now.
  void judge(Instant now);
  // The peer has reported this packet as lost.
  void mark_lost(Psn psn);

  // ---- repetition
  bool any_lost() const { return lost_ != 0; }
  std::uint32_t lost() const { return lost_; }
  // The first PSN of the first lost packet; there must be one.
  Psn first_lost() const;
  // The time at which judge() may find more.
  Instant due() const { return due_; }

  // ---- looking
  std::uint32_t size() const { return count_; }
  std::uint32_t kept() const { return kept_; }  // that have arrived and are not answered
  // How much later than the packets after it a packet may arrive.
  Duration reordering_window() const;
  // of the packet last sent that has arrived
  Duration round_trip() const { return newest_.round_trip; }
  // The number of packets since the last call that were repeated although they were only late.
  std::uint32_t take_needless_repeats();

 private:
  enum Flag : std::uint8_t { kHas = 1, kLost = 2, kRepeated = 4 };
  struct Record {
    Instant left;
    Psn psn;
    std::uint8_t flags;

    bool is(Flag f) const { return (flags & f) != 0; }
  };
  // Among the packets that have arrived, the one that was sent last.
  struct Newest {
    Instant left;
    Psn psn;
    Duration round_trip = Duration::zero();
    bool known = false;
  };

  static constexpr Duration kLeastWindow = Duration::us(10);
  static constexpr std::uint8_t kMostWidth = 16;
  // after that many correct losses the window is narrowed
  static constexpr std::uint8_t kCalm = 16;

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
  unsigned shift_ = 0;  // size class of its block
  std::uint32_t mask_ = 0, head_ = 0, count_ = 0, lost_ = 0, kept_ = 0;
  Psn end_;
  Newest newest_;
  Duration least_trip_ = Duration::zero();
  std::uint8_t width_ = 1, calm_ = 0;  // of the reordering window, in quarters of a round trip
  Instant widened_;                    // the last time
  Instant due_ = Instant::never();
  std::uint32_t serial_ = 0;
  bool any_serial_ = false;
  std::uint32_t needless_ = 0;
};

}  // namespace urnic::ib
