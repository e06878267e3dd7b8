// The transmit buffers of a port that sends by system calls. Buffers are lent for a burst, then
// filled or returned, and wait in order until the kernel has taken them. `Note` is data that the
// port keeps for each waiting frame. Owned by one queue of one port.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>

#include "base/bytes.h"
#include "port/counters.h"
#include "port/port.h"

namespace urnic::port {

template <class Note>
class TransmitRing {
 public:
  static constexpr unsigned kSlots = 64;  // a power of two

  // `stride` is the size of a buffer in bytes; no longer frame may be requested.
  explicit TransmitRing(std::size_t stride)
      : stride_(stride), memory_(new std::uint8_t[kSlots * stride]) {}

  unsigned waiting() const { return static_cast<unsigned>(committed_ - sent_); }

  // Lends up to n frames of `len` bytes. Frames that were lent before and not kept are lent again.
  unsigned reserve(std::uint32_t len, urnic_frame* frames, unsigned n) {
    n = std::min(n, kSlots - waiting());
    reserved_ = committed_ + n;
    for (unsigned i = 0; i < n; ++i) {
      frames[i] = {};
      frames[i].data[0] = slot(committed_ + i);
      frames[i].len[0] = len;
    }
    return n;
  }
  bool lent() const { return committed_ != reserved_; }

  // tx_reserve() for a port with frames of at most `longest` bytes.
  unsigned lend(std::uint32_t len, std::uint32_t longest, urnic_frame* frames, unsigned n,
                QueueCounters& counters) {
    const unsigned got = len <= longest ? reserve(len, frames, n) : 0;
    if (got < n) counters.tx_full.add();
    return got;
  }
  // tx_commit() for such a port: keeps the frames for which note_of returns a note and drops the
  // others. note_of(contiguous frame) returns a std::optional<Note>.
  template <class NoteOf>
  void take_back(const urnic_frame* frames, unsigned n, std::uint32_t longest,
                 QueueCounters& counters, NoteOf&& note_of) {
    for (unsigned i = 0; i < n && lent(); ++i) {
      const urnic_frame& f = frames[i];
      if (f.len[0] == 0) continue;  // returned unsent; later frames move up
      std::optional<Note> note;
      if (std::uint64_t{f.len[0]} + f.len[1] <= longest) note = note_of(gather(f));
      if (note) {
        keep(*note);
      } else {
        counters.tx_dropped.add();
      }
    }
  }

  // Makes a lent frame contiguous at the place of the next waiting frame. It waits only after
  // keep() is called.
  MutBytes gather(const urnic_frame& f) {
    std::uint8_t* const to = slot(committed_);
    if (to != f.data[0]) std::memcpy(to, f.data[0], f.len[0]);
    if (f.len[1] != 0) std::memcpy(to + f.len[0], f.data[1], f.len[1]);
    return {to, std::size_t{f.len[0]} + f.len[1]};
  }
  void keep(const Note& note) { notes_[committed_++ & (kSlots - 1)] = note; }

  // The waiting frames, oldest first; i < waiting().
  const Note& note(unsigned i) const { return notes_[(sent_ + i) & (kSlots - 1)]; }
  Note& note(unsigned i) { return notes_[(sent_ + i) & (kSlots - 1)]; }
  std::uint8_t* frame(unsigned i) { return slot(sent_ + i); }
  // Removes the oldest n frames, which were sent or lost.
  void drop(unsigned n) { sent_ += n; }

 private:
  std::uint8_t* slot(std::uint64_t position) {
    return memory_.get() + (position & (kSlots - 1)) * stride_;
  }

  std::size_t stride_;
  std::unique_ptr<std::uint8_t[]> memory_;
  std::uint64_t sent_ = 0, committed_ = 0, reserved_ = 0;
  Note notes_[kSlots] = {};
};

}  // namespace urnic::port
