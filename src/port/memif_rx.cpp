#include <algorithm>
#include <cstring>
#include <new>

#include "port/memif_ring.h"

namespace urnic::port::memif {
namespace {

// Enough for at least four of the largest frames.
std::size_t scratch_size(std::uint32_t max_frame) {
  return std::size_t{4} * max_frame;
}

}  // namespace

void MemifRx::attach(Link* link, unsigned q, std::uint32_t max_frame) {
  const RingPlace& place = link->receiving(q);
  link_ = link;
  ring_ = place.at;
  client_ = link->side == Side::kClient;
  mask_ = static_cast<std::uint16_t>((1u << place.log2_size) - 1);
  next_ = released_ = 0;
  // In the client's region, S2M rings come first.
  ring_number_ = client_ ? link->s2m.size() + q : q;
  if (max_frame != max_frame_) scratch_.reset();
  max_frame_ = max_frame;
  scratch_used_ = 0;
  event_ = place.event.get();
  set_mask(true);
  if (client_) {
    give_buffers(0, static_cast<std::uint16_t>(mask_ + 1));
  } else {
    ring::u16(ring_, ring::kTail).store(0, std::memory_order_release);
  }
}

std::uint16_t MemifRx::produced() const {
  // A server follows the client's head; a client reads up to the server's tail.
  return ring::u16(ring_, client_ ? ring::kTail : ring::kHead).load(std::memory_order_acquire);
}

unsigned MemifRx::waiting() const {
  return static_cast<std::uint16_t>(produced() - next_);
}

void MemifRx::set_mask(bool on) {
  masked_ = on;
  ring::u16(ring_, ring::kFlags)
      .store(on ? ring::kFlagMaskInterrupt : 0, std::memory_order_relaxed);
}

void MemifRx::ask_for_wakeup() {
  set_mask(false);
  // Pairs with the fence in MemifTx::wake: either the sender sees the cleared mask, or a caller of
  // `waiting` after this fence sees the sender's frames.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

// Reads and checks one descriptor. After that we may read its bytes, whatever the peer does.
Reason MemifRx::piece_at(std::uint16_t position, Piece* piece) const {
  const std::size_t slot = position & mask_;
  const Descriptor d = Descriptor::load(ring_, slot);
  piece->length = d.length;
  piece->more = (d.flags & Descriptor::kFlagNext) != 0;
  if (client_) {
    // The address of our own buffer is known; only the length is read from the descriptor.
    if (d.length > link_->buffer_size) return "Descriptor longer than its buffer";
    piece->at = link_->regions[0].base() + link_->buffer_offset(ring_number_, slot);
    return nullptr;
  }
  if (d.region >= link_->regions.size()) return "Descriptor names no region";
  const Region& region = link_->regions[d.region];
  if (!region.holds(d.offset, d.length)) return "Descriptor outside its region";
  piece->at = region.base() + d.offset;
  return nullptr;
}

// Copies a frame in several buffers into one. It may use up to `left` descriptors; *slots returns
// the number used. A frame that is too long is skipped completely: length 0.
Reason MemifRx::gather(std::uint16_t left, std::uint16_t* slots, Piece* frame, bool* no_room) {
  const std::size_t size = scratch_size(max_frame_);
  if (scratch_ == nullptr) scratch_.reset(new (std::nothrow) std::uint8_t[size]);
  if (scratch_ == nullptr || size - scratch_used_ < max_frame_) {
    *no_room = true;  // there is room again after release
    return nullptr;
  }
  std::uint8_t* to = scratch_.get() + scratch_used_;
  std::uint32_t total = 0;
  bool too_long = false;
  std::uint16_t used = 0;
  for (Piece p{nullptr, 0, true}; p.more; ++used) {
    // Senders publish whole frames, so this also ends a circular chain.
    if (used == left) return "Chain of descriptors without end";
    if (Reason wrong = piece_at(static_cast<std::uint16_t>(next_ + used), &p)) return wrong;
    too_long = too_long || p.length > max_frame_ - total;
    if (too_long) continue;
    std::memcpy(to + total, p.at, p.length);
    total += p.length;
  }
  *slots = used;
  *frame = {to, too_long ? 0 : total, false};
  if (!too_long) scratch_used_ += total;
  return nullptr;
}

unsigned MemifRx::burst(urnic_frame* frames, unsigned n, QueueCounters& c, Reason* fault) {
  std::uint16_t left = static_cast<std::uint16_t>(produced() - next_);
  if (left == 0) return 0;
  if (left > mask_ + 1u - static_cast<std::uint16_t>(next_ - released_)) {
    c.rx_bad.add();
    *fault = "Ring index out of range";
    return 0;
  }
  if (!masked_) set_mask(true);
  unsigned got = 0;
  std::uint64_t bytes = 0;
  while (got < n && left != 0) {
    Piece piece;
    std::uint16_t slots = 1;
    Reason wrong = piece_at(next_, &piece);
    if (wrong == nullptr && piece.more) {
      bool no_room = false;
      wrong = gather(left, &slots, &piece, &no_room);
      if (no_room) break;
    }
    if (wrong != nullptr) {
      c.rx_bad.add();
      *fault = wrong;
      break;
    }
    next_ = static_cast<std::uint16_t>(next_ + slots);
    left = static_cast<std::uint16_t>(left - slots);
    if (piece.length == 0 || piece.length > max_frame_) {
      c.rx_bad.add();
      continue;
    }
    urnic_frame& f = frames[got++];
    f = {};
    f.data[0] = const_cast<std::uint8_t*>(piece.at);
    f.len[0] = piece.length;
    bytes += piece.length;
  }
  c.rx_frames.add(got);
  c.rx_bytes.add(bytes);
  if (got == 0) release();  // all frames were rejected: the caller has none to return
  return got;
}

void MemifRx::give_buffers(std::uint16_t from, std::uint16_t to) {
  for (std::uint16_t p = from; p != to; ++p) {
    const std::size_t slot = p & mask_;
    Descriptor{0, 0, link_->buffer_size, link_->buffer_offset(ring_number_, slot)}.store(ring_,
                                                                                         slot);
  }
  ring::u16(ring_, ring::kHead).store(to, std::memory_order_release);
}

void MemifRx::release() {
  const std::uint16_t size = static_cast<std::uint16_t>(mask_ + 1);
  if (client_) {
    give_buffers(static_cast<std::uint16_t>(released_ + size),
                 static_cast<std::uint16_t>(next_ + size));
  } else {
    ring::u16(ring_, ring::kTail).store(next_, std::memory_order_release);
  }
  released_ = next_;
  scratch_used_ = 0;
}

bool MemifRx::crossed_half(std::uint16_t before) const {
  const unsigned half = (mask_ + 1u) / 2;
  const std::uint16_t head = produced();
  return static_cast<std::uint16_t>(head - before) > half &&
         static_cast<std::uint16_t>(head - released_) <= half;
}

}  // namespace urnic::port::memif
