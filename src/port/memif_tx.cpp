#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "port/memif_ring.h"

namespace urnic::port::memif {
namespace {

constexpr unsigned kStagedBurst = 32;
constexpr std::uint64_t kStagedFlag = std::uint64_t{1} << 32;

}  // namespace

void MemifTx::attach(Link* link, unsigned q, std::uint32_t max_frame) {
  const RingPlace& place = link->sending(q);
  link_ = link;
  ring_ = place.at;
  client_ = link->side == Side::kClient;
  staged_ = false;
  mask_ = static_cast<std::uint16_t>((1u << place.log2_size) - 1);
  next_ = end_ = 0;
  promised_ = 0;
  ring_number_ = q;
  max_frame_ = max_frame;
  event_ = place.event.get();
  slots_.assign(mask_ + std::size_t{1}, Slot{});
  ring::u16(ring_, client_ ? ring::kHead : ring::kTail).store(0, std::memory_order_release);
}

unsigned MemifTx::free_slots(Reason* fault) const {
  const unsigned size = mask_ + 1u;
  std::uint16_t used_or_free;
  if (client_) {
    const std::uint16_t tail = ring::u16(ring_, ring::kTail).load(std::memory_order_acquire);
    used_or_free = static_cast<std::uint16_t>(next_ - tail);
  } else {
    const std::uint16_t head = ring::u16(ring_, ring::kHead).load(std::memory_order_acquire);
    used_or_free = static_cast<std::uint16_t>(head - next_);
  }
  if (used_or_free > size) {
    *fault = "Ring index out of range";
    return 0;
  }
  return client_ ? size - used_or_free : used_or_free;
}

bool MemifTx::has_room() const {
  Reason ignored = nullptr;
  return free_slots(&ignored) >= (mask_ + 1u) / 2 || ignored != nullptr;
}

Reason MemifTx::slot_at(std::uint16_t position, Slot* slot) const {
  const std::size_t i = position & mask_;
  if (client_) {
    *slot = {link_->regions[0].base() + link_->buffer_offset(ring_number_, i), link_->buffer_size,
             0};
    return nullptr;
  }
  const Descriptor d = Descriptor::load(ring_, i);
  if (d.region >= link_->regions.size()) return "Descriptor names no region";
  const Region& region = link_->regions[d.region];
  if (d.length == 0 || !region.holds(d.offset, d.length)) return "Descriptor outside its region";
  *slot = {region.base() + d.offset, d.length, d.region};
  return nullptr;
}

unsigned MemifTx::reserve(std::uint32_t len, urnic_frame* frames, unsigned n, Reason* fault) {
  const unsigned free = free_slots(fault);
  if (staged_) return reserve_staged(len, frames, n, free);
  const unsigned want = std::min(n, free);
  unsigned got = 0;
  for (; got < want; ++got) {
    const std::uint16_t position = static_cast<std::uint16_t>(next_ + got);
    Slot slot;
    if (Reason wrong = slot_at(position, &slot)) {
      *fault = wrong;
      break;
    }
    if (slot.room < max_frame_) {
      staged_ = true;
      smallest_ = slot.room;
      if (got == 0) return reserve_staged(len, frames, n, free);
      break;
    }
    slots_[position & mask_] = slot;
    frames[got] = {};
    frames[got].data[0] = slot.at;
    frames[got].len[0] = len;
    frames[got].cookie = position;
  }
  promised_ = got;
  end_ = static_cast<std::uint16_t>(next_ + got);
  return got;
}

unsigned MemifTx::reserve_staged(std::uint32_t len, urnic_frame* frames, unsigned n,
                                 unsigned free) {
  if (scratch_ == nullptr) {
    scratch_.reset(new (std::nothrow) std::uint8_t[std::size_t{kStagedBurst} * max_frame_]);
    if (scratch_ == nullptr) return 0;
  }
  const unsigned slots_each = (max_frame_ + smallest_ - 1) / smallest_;
  const unsigned got = std::min({n, free / slots_each, kStagedBurst});
  for (unsigned i = 0; i < got; ++i) {
    frames[i] = {};
    frames[i].data[0] = scratch_.get() + std::size_t{i} * max_frame_;
    frames[i].len[0] = len;
    frames[i].cookie = kStagedFlag;
  }
  promised_ = got;
  end_ = static_cast<std::uint16_t>(next_ + free);
  return got;
}

void MemifTx::describe(std::uint16_t position, std::uint32_t length, bool more) {
  const std::size_t slot = position & mask_;
  Descriptor d;
  d.flags = more ? Descriptor::kFlagNext : 0;
  d.length = length;
  if (client_) {
    d.offset = link_->buffer_offset(ring_number_, slot);
    d.store(ring_, slot);
  } else {
    d.region = slots_[slot].region;
    d.store_first_half(ring_, slot);
  }
}

bool MemifTx::put_in_place(const urnic_frame& f, std::uint32_t total) {
  if (next_ == end_ || total > max_frame_) return false;
  const Slot& slot = slots_[next_ & mask_];
  // An earlier frame was returned unsent and left a free buffer: move this frame into it. Two
  // buffers of a correct peer never overlap; memmove because those of a hostile peer may.
  if (slot.at != f.data[0]) std::memmove(slot.at, f.data[0], f.len[0]);
  if (f.len[1] != 0) std::memcpy(slot.at + f.len[0], f.data[1], f.len[1]);
  describe(next_, total, false);
  ++next_;
  return true;
}

bool MemifTx::put_in_pieces(const urnic_frame& f) {
  std::uint16_t position = next_;
  Slot slot;
  std::uint32_t filled = 0;  // bytes in the current buffer
  bool have = false;
  for (unsigned s = 0; s < 2; ++s) {
    for (std::uint32_t done = 0; done < f.len[s];) {
      if (have && filled == slot.room) {
        describe(position, filled, true);
        ++position;
        have = false;
      }
      if (!have) {
        // The buffers are smaller than those seen before, so the reservation cannot be fulfilled.
        if (position == end_ || slot_at(position, &slot) != nullptr) return false;
        slots_[position & mask_] = slot;
        smallest_ = std::min(smallest_, slot.room);
        filled = 0;
        have = true;
      }
      const std::uint32_t n = std::min(slot.room - filled, f.len[s] - done);
      std::memcpy(slot.at + filled, f.data[s] + done, n);
      filled += n;
      done += n;
    }
  }
  describe(position, filled, false);
  next_ = static_cast<std::uint16_t>(position + 1);
  return true;
}

void MemifTx::commit(const urnic_frame* frames, unsigned n, QueueCounters& c) {
  const std::uint16_t first = next_;
  std::uint64_t bytes = 0;
  unsigned sent = 0;
  for (unsigned i = 0; i < n && promised_ != 0; ++i, --promised_) {
    const urnic_frame& f = frames[i];
    if (f.len[0] == 0) continue;
    const std::uint64_t total = std::uint64_t{f.len[0]} + f.len[1];
    const bool staged = (f.cookie & kStagedFlag) != 0;
    const bool done =
        total <= max_frame_ &&
        (staged ? put_in_pieces(f) : put_in_place(f, static_cast<std::uint32_t>(total)));
    if (!done) {
      c.tx_dropped.add();
      continue;
    }
    bytes += total;
    ++sent;
  }
  if (next_ == first) return;
  ring::u16(ring_, client_ ? ring::kHead : ring::kTail).store(next_, std::memory_order_release);
  c.tx_frames.add(sent);
  c.tx_bytes.add(bytes);
  // Pairs with the fence in MemifRx::ask_for_wakeup.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (receiver_asks_for_wakeup()) wake(c);
}

bool MemifTx::receiver_asks_for_wakeup() const {
  return (ring::u16(ring_, ring::kFlags).load(std::memory_order_relaxed) &
          ring::kFlagMaskInterrupt) == 0;
}

void MemifTx::wake(QueueCounters& c) {
  // The peer shares the eventfd. It could have made it blocking and filled its counter, so that a
  // write would hang; therefore poll before writing.
  pollfd p{event_, POLLOUT, 0};
  c.syscalls.add();
  if (poll(&p, 1, 0) != 1 || (p.revents & POLLOUT) == 0) return;
  const std::uint64_t one = 1;
  c.syscalls.add();
  [[maybe_unused]] const ssize_t n = write(event_, &one, sizeof one);
}

}  // namespace urnic::port::memif
