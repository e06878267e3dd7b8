// The requests that a responder keeps past a gap, in the order of their PSNs (S-3). They are stored
// unchecked: whether they are acceptable is decided when their turn comes.
//
// A pool (held_pool.h) lends the memory while any packet is kept: a block for the headers (the
// book), and pages of payload as needed. Owned by one responder.
#pragma once

#include <cstdint>

#include "ib/held_pool.h"
#include "ib/packet.h"

namespace urnic::ib {

class HeldPackets {
 public:
  // `pool` may be null: then nothing is kept. Keeps at most `limit` packets (1..4096) of `pmtu`
  // bytes of payload each; pmtu is a value of PathMtu.
  HeldPackets(HeldPool* pool, std::uint32_t limit, std::uint32_t pmtu)
      : pool_(pool), limit_(limit), pmtu_(pmtu) {}
  ~HeldPackets() { clear(); }
  HeldPackets(const HeldPackets&) = delete;
  HeldPackets& operator=(const HeldPackets&) = delete;

  bool empty() const { return count_ == 0; }
  std::uint32_t size() const { return count_; }
  // The packet with the first PSN; not empty(). Its payload belongs to the store until it is
  // removed.
  const ParsedPacket& first() const;
  Psn first_psn() const { return first().header.bth.psn; }
  // Calls f(PSN) for each in order, until it returns false.
  template <class F>
  void for_each_psn(F&& f) const {
    for (std::uint32_t i = 0; i < count_ && f(book_.order[head_ + i].psn); ++i) {
    }
  }
  // The PSN that follows the last packet; not empty().
  Psn end() const;

  enum class Kept : std::uint8_t { Yes, Already, NoRoom };
  // Copies its payload, at most pmtu bytes. All kept packets must lie within 2^23 PSNs.
  Kept keep(const ParsedPacket&);
  // The same for a packet whose payload is already at its destination, `at`. first() returns it
  // from there.
  Kept keep_placed(const ParsedPacket&, const std::uint8_t* at);
  bool has(Psn) const;
  bool first_placed() const { return book_.order[head_].placed; }
  bool any_placed() const { return placed_ != 0; }
  // Drops the placed packets after `psn` whose payload overlaps [at, at + n).
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
    Entry* order;           // used entries begin at head_
    ParsedPacket* records;  // in no particular order
    std::uint16_t* spare;   // a stack of unused records
    std::uint8_t** pages;   // of payload; null: not allocated
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
