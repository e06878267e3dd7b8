#include "ib/held_packets.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace urnic::ib {

// Headers lie in blocks of the pool and are never destroyed.
static_assert(std::is_trivially_copyable_v<ParsedPacket>);

const ParsedPacket& HeldPackets::first() const {
  return book_.records[book_.order[head_].record];
}

Psn HeldPackets::end() const {
  const ParsedPacket& last = book_.records[book_.order[head_ + count_ - 1].record];
  const PacketHeader& h = last.header;
  return h.bth.psn + (h.row().family == Family::Read ? packets_of(h.reth.length, pmtu_) : 1);
}

// ---- memory

// Lays out the parts of a book in a block at `at`; returns the bytes they need.
std::size_t HeldPackets::book_bytes(Book* book, std::uint8_t* at) const {
  std::size_t used = 0;
  const auto part = [&]<class T>(T** to, std::uint32_t n) {
    used = (used + alignof(T) - 1) / alignof(T) * alignof(T);
    *to = reinterpret_cast<T*>(at + used);
    used += sizeof(T) * n;
  };
  book->block = at;
  part(&book->records, limit_);
  part(&book->pages, pages());
  part(&book->order, limit_);
  part(&book->spare, limit_);
  return used;
}

// False if out of memory.
bool HeldPackets::open() {
  if (book_.block != nullptr) return true;
  if (pool_ == nullptr) return false;
  alignas(64) static std::uint8_t nowhere[1];
  Book book;
  const std::size_t bytes = book_bytes(&book, nowhere);
  const auto shift = static_cast<unsigned>(std::bit_width(bytes - 1));
  book_shift_ = std::max(shift, BufferPool::kMinShift);
  std::uint8_t* const block = pool_->take(book_shift_);
  if (block == nullptr) return false;
  book_bytes(&book_, block);
  std::fill_n(book_.pages, pages(), nullptr);
  // The lowest record is used first, so that few pages are needed.
  for (std::uint32_t i = 0; i < limit_; ++i) {
    book_.spare[i] = static_cast<std::uint16_t>(limit_ - 1 - i);
  }
  spare_ = limit_;
  head_ = count_ = 0;
  return true;
}

void HeldPackets::clear() {
  head_ = count_ = placed_ = 0;
  if (book_.block == nullptr) return;
  for (std::uint32_t i = 0; i < pages(); ++i) {
    if (book_.pages[i] != nullptr) pool_->give(book_.pages[i], kPageShift);
  }
  pool_->give(book_.block, book_shift_);
  book_ = {};
}

// Null if out of memory.
std::uint8_t* HeldPackets::payload_of(std::uint16_t record) {
  const std::uint32_t at = record * pmtu_;
  std::uint8_t*& page = book_.pages[at / kPage];
  if (page == nullptr) page = pool_->take(kPageShift);
  return page == nullptr ? nullptr : page + at % kPage;
}

// ---- packets

// Inserts an entry before entry number `place`; there must be a spare record.
HeldPackets::Entry* HeldPackets::insert_before(std::uint32_t place) {
  if (head_ + count_ == limit_) {
    std::memmove(book_.order, book_.order + head_, count_ * sizeof(Entry));
    head_ = 0;
  }
  Entry* const at = book_.order + head_ + place;
  std::memmove(at + 1, at, (count_ - place) * sizeof(Entry));
  ++count_;
  return at;
}

// The number of packets at or before `psn`. Mostly all of them; packets in reverse order cost a
// binary search each.
std::uint32_t HeldPackets::up_to(Psn psn) const {
  const Entry* const from = book_.order + head_;
  if (count_ == 0 || !psn.before(from[count_ - 1].psn)) return count_;
  const auto behind = [](Psn wanted, const Entry& e) { return wanted.before(e.psn); };
  return static_cast<std::uint32_t>(std::upper_bound(from, from + count_, psn, behind) - from);
}

HeldPackets::Kept HeldPackets::keep(const ParsedPacket& p) {
  const Psn psn = p.header.bth.psn;
  const std::uint32_t place = up_to(psn);
  if (place != 0 && book_.order[head_ + place - 1].psn == psn) return Kept::Already;
  if (count_ == limit_ || !open()) return Kept::NoRoom;
  const std::uint16_t record = book_.spare[spare_ - 1];
  std::uint8_t* payload = nullptr;
  if (!p.payload.empty()) {
    payload = payload_of(record);
    if (payload == nullptr) {
      if (count_ == 0) clear();
      return Kept::NoRoom;
    }
    std::memcpy(payload, p.payload.data(), p.payload.size());
  }
  --spare_;
  *insert_before(place) = {psn, record, false};
  book_.records[record] = {p.header, {payload, p.payload.size()}};
  return Kept::Yes;
}

bool HeldPackets::has(Psn psn) const {
  const std::uint32_t place = up_to(psn);
  return place != 0 && book_.order[head_ + place - 1].psn == psn;
}

HeldPackets::Kept HeldPackets::keep_placed(const ParsedPacket& p, const std::uint8_t* at) {
  const ParsedPacket header{p.header, {}};
  const Kept kept = keep(header);
  if (kept != Kept::Yes) return kept;
  Entry& entry = book_.order[head_ + up_to(p.header.bth.psn) - 1];
  entry.placed = true;
  ++placed_;
  book_.records[entry.record].payload = {at, p.payload.size()};
  return kept;
}

void HeldPackets::forget_placed(Psn psn, const std::uint8_t* at, std::size_t n) {
  for (std::uint32_t i = up_to(psn); i < count_;) {
    const Entry& entry = book_.order[head_ + i];
    const ByteView there = book_.records[entry.record].payload;
    const bool overlaps = entry.placed && there.data() < at + n && at < there.data() + there.size();
    if (overlaps) {
      remove(i);
    } else {
      ++i;
    }
  }
  if (count_ == 0) clear();
}

void HeldPackets::remove(std::uint32_t place) {
  Entry* const at = book_.order + head_ + place;
  if (at->placed) --placed_;
  book_.spare[spare_++] = at->record;
  --count_;
  std::memmove(at, at + 1, (count_ - place) * sizeof(Entry));
}

void HeldPackets::remove_first() {
  if (book_.order[head_].placed) --placed_;
  book_.spare[spare_++] = book_.order[head_].record;
  ++head_;
  if (--count_ == 0) clear();
}

}  // namespace urnic::ib
