// The requests that a responder keeps behind a gap, in the order of their PSNs (S-3). Nothing is
// known of them but what came: whether they are to be taken is asked in their turn.
//
// The memory is lent by a pool (held_pool.h), from the first packet kept until none is left: a book
// of headers, and pages of payload as they are needed. Owned by one responder.
#pragma once

#include <cstdint>

#include "ib/held_pool.h"
#include "ib/packet.h"

namespace urnic::ib {

class HeldPackets {
 public:
  // `pool` may be null: nothing is kept. At most `limit` packets (1..4096) of `pmtu` bytes of
  // payload each; pmtu is one of PathMtu.
  HeldPackets(HeldPool* pool, std::uint32_t limit, std::uint32_t pmtu)
      : pool_(pool), limit_(limit), pmtu_(pmtu) {}
  ~HeldPackets() { clear(); }
  HeldPackets(const HeldPackets&) = delete;
  HeldPackets& operator=(const HeldPackets&) = delete;

  bool empty() const { return count_ == 0; }
  std::uint32_t size() const { return count_; }
  // The one that comes first; not empty(). Its payload is the store's until it is removed.
  const ParsedPacket& first() const;
  Psn first_psn() const { return first().header.bth.psn; }
  // f(PSN) of each, in order, until it says false.
  template <class F>
  void for_each_psn(F&& f) const {
    for (std::uint32_t i = 0; i < count_ && f(book_.order[head_ + i].psn); ++i) {
    }
  }
  // Behind the last one: the PSN that would follow it; not empty().
  Psn end() const;

  enum class Kept : std::uint8_t { Yes, Already, NoRoom };
  // Its payload, at most pmtu bytes, is copied. All that are kept lie within 2^23 PSNs.
  Kept keep(const ParsedPacket&);
  // The same of one whose payload lies in its place, `at`, already. first() has it there.
  Kept keep_placed(const ParsedPacket&, const std::uint8_t* at);
  bool has(Psn) const;
  bool first_placed() const { return book_.order[head_].placed; }
  bool any_placed() const { return placed_ != 0; }
  // Those placed and behind `psn` of which a part lies in [at, at + n) are kept no longer.
  void forget_placed(Psn psn, const std::uint8_t* at, std::size_t n);
  void remove_first();
  void clear();

 private:
  struct Entry {
    Psn psn;
    std::uint16_t record;
    bool placed;
  };
  // The book: one block of the pool.
  struct Book {
    Entry* order;           // those in use from head_ on
    ParsedPacket* records;  // in any order
    std::uint16_t* spare;   // records not in use; the next one is the last of them
    std::uint8_t** pages;   // of payload, null: not lent
    std::uint8_t* block;
  };

  bool open();
  std::size_t book_bytes(Book*, std::uint8_t* at) const;
  std::uint32_t pages() const { return (limit_ * pmtu_ + kPage - 1) / kPage; }
  std::uint8_t* payload_of(std::uint16_t record);
  std::uint32_t up_to(Psn) const;
  Entry* insert_before(std::uint32_t place);
  void remove(std::uint32_t place);

  static constexpr unsigned kPageShift = BufferPool::kMinShift;
  static constexpr std::uint32_t kPage = 1u << kPageShift;

  HeldPool* pool_;
  std::uint32_t limit_, pmtu_;
  std::uint32_t head_ = 0, count_ = 0, spare_ = 0, placed_ = 0;
  unsigned book_shift_ = 0;
  Book book_{};
};

}  // namespace urnic::ib
