// The segments sent and not acknowledged: one entry per segment, in order, with the marks of SACK
// and of the loss rules (RFC 6675, 2). Entries keep the boundaries with which the data was first
// sent, so that retransmissions repeat them (E-24). Memory only grows, except in trim().
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/ring.h"
#include "base/stream_offset.h"
#include "base/time.h"

namespace urnic::tcp {

struct SentSegment {
  enum Flag : std::uint8_t {
    kSacked = 1,
    kLost = 2,           // presumed lost; not cleared by retransmitting it
    kRetransmitted = 4,  // a retransmission of it is assumed to be in flight
    kEverAgain = 8,      // retransmitted at least once: no RTT sample (Karn, RFC 6298 3)
    kFin = 16,
  };
  StreamOffset begin;
  Instant sent_at;  // latest transmission
  std::uint32_t len = 0;
  std::uint8_t flags = 0;

  bool is(Flag f) const { return (flags & f) != 0; }
  StreamOffset end() const { return begin + len; }
  // Sequence space, including the FIN.
  std::uint32_t space() const { return len + (is(kFin) ? 1u : 0u); }
};

// The segments that one ACK newly reported, by cumulative ACK and by SACK. Input of RACK (RFC 8985
// 6.2), of RTT samples and of F-RTO.
struct Delivery {
  // The ACK cannot answer a retransmission that left later than this. Set by the caller.
  Instant latest_answered_send = Instant::never();

  std::uint32_t bytes = 0;     // sequence space
  std::uint32_t segments = 0;  // as they were sent
  bool any = false;            // `sent_at`, `end`, `again` are those of the segment sent last
  bool again = false;          // ... which had been retransmitted
  bool original = false;       // some segment was never retransmitted: `oldest_at`, `lowest_end`
  bool resent = false;         // some segment had been retransmitted
  Instant sent_at;
  StreamOffset end;
  Instant oldest_at;
  StreamOffset lowest_end;

  void add(const SentSegment& s) {
    bytes += s.space();
    ++segments;
    if (s.is(SentSegment::kEverAgain)) {
      resent = true;
      if (s.sent_at > latest_answered_send) return;
    } else if (!original) {
      original = true;
      oldest_at = s.sent_at;
      lowest_end = s.end();
    } else if (s.end() < lowest_end) {
      lowest_end = s.end();
    }
    if (any && (s.sent_at < sent_at || (s.sent_at == sent_at && s.end() < end))) return;
    any = true;
    again = s.is(SentSegment::kEverAgain);
    sent_at = s.sent_at;
    end = s.end();
  }
};

class Scoreboard {
 public:
  // A retransmission. They are listed in the order in which they left.
  struct Resent {
    StreamOffset begin;
    Instant at;
  };

  bool empty() const { return segs_.empty(); }
  std::size_t size() const { return segs_.size(); }
  const SentSegment& operator[](std::size_t i) const { return segs_[i]; }
  const SentSegment& front() const { return segs_.front(); }

  // Bytes of sequence space by mark. `to_resend`: lost, and neither SACKed nor retransmitted since.
  std::uint32_t sacked() const { return sacked_; }
  std::uint32_t lost() const { return lost_; }
  std::uint32_t retransmitted() const { return retransmitted_; }
  std::uint32_t to_resend() const { return to_resend_; }
  // Number of SACKed entries.
  std::uint32_t sacked_segments() const { return sacked_segments_; }

  // First entry that ends beyond `at` (a FIN lies beyond its data); size() if there is none.
  std::size_t index_after(StreamOffset at) const;

  void push(StreamOffset begin, std::uint32_t len, bool fin, Instant now);
  // Everything below `una` is acknowledged, and also the FIN if `fin`.
  void pop(StreamOffset una, bool fin, Delivery*);

  // Marks the entries that [begin, end) covers completely. `fin`: the range covers the FIN too.
  // Returns the bytes newly SACKed.
  std::uint32_t sack(StreamOffset begin, StreamOffset end, bool fin, Delivery*);
  void mark_lost(std::size_t i);
  // The first `len` bytes of entry i are resent. The rest, if any, becomes an entry of its own.
  void mark_retransmitted(std::size_t i, std::uint32_t len, Instant now);
  // Entry i is lost again, including its retransmission (NewReno partial ACK).
  void mark_lost_again(std::size_t i);
  // The oldest retransmission that has neither arrived nor been lost; null if there is none.
  const Resent* oldest_resent();
  // No entry was really lost: all count as in flight again.
  void none_lost();
  // The peer dropped data it had SACKed (RFC 2018, 8): SACKed entries become lost ones.
  void renege();
  // All entries are lost, none is SACKed or retransmitted (RFC 6298 5.4, RFC 2018 8).
  void all_lost();

  void clear();
  // Frees unused memory.
  void trim() {
    segs_.shrink_to_fit();
    if (segs_.empty()) resent_.clear();
    resent_.shrink_to_fit();
  }
  std::size_t capacity() const { return segs_.capacity(); }

 private:
  void uncount(const SentSegment& s);
  void count(const SentSegment& s);

  Ring<SentSegment> segs_;
  Ring<Resent> resent_;  // may hold finished ones
  std::uint32_t sacked_ = 0, lost_ = 0, retransmitted_ = 0, to_resend_ = 0;
  std::uint32_t sacked_segments_ = 0;
};

}  // namespace urnic::tcp
