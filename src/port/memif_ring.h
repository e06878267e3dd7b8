// The two rings of a queue as this end uses them. Frames are received and sent in place: the sender
// writes the bytes once, and the receiver reads them where they are.
//
// No value from shared memory is trusted: indexes may advance only within the allowed range, and
// descriptors are copied and checked against our own record of the regions (E-19). A violation ends
// the connection; `*fault` is set to a short reason.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "port/counters.h"
#include "port/memif_link.h"

namespace urnic::port::memif {

using Reason = const char*;

class MemifRx {
 public:
  // `link` must outlive the attachment. On the client side this also gives all buffers to the peer.
  void attach(Link* link, unsigned q, std::uint32_t max_frame);
  void detach() { ring_ = nullptr; }
  bool attached() const { return ring_ != nullptr; }

  // Returns received frames, borrowed until `release`.
  unsigned burst(urnic_frame* frames, unsigned n, QueueCounters& c, Reason* fault);
  void release();
  bool borrowed() const { return next_ != released_; }
  // The number of received slots; larger than the ring if the peer's index is invalid.
  unsigned waiting() const;

  // A wake-up stays requested until the next frame is received. Withdrawing it earlier would only
  // cost an access to the sender's cache line.
  bool asks_for_wakeup() const { return !masked_; }
  void ask_for_wakeup();
  int event_fd() const { return event_; }

  // For waking a sender without room: true if the last release crossed half of the ring's slots.
  bool crossed_half(std::uint16_t before) const;
  std::uint16_t released() const { return released_; }

 private:
  struct Piece {
    const std::uint8_t* at = nullptr;
    std::uint32_t length = 0;
    bool more = false;
  };
  Reason piece_at(std::uint16_t position, Piece* piece) const;
  Reason gather(std::uint16_t left, std::uint16_t* slots, Piece* frame, bool* no_room);
  void give_buffers(std::uint16_t from, std::uint16_t to);
  void set_mask(bool on);
  std::uint16_t produced() const;

  Link* link_ = nullptr;
  std::uint8_t* ring_ = nullptr;
  bool client_ = false;
  bool masked_ = false;
  std::uint16_t mask_ = 0;      // ring size - 1
  std::uint16_t next_ = 0;      // position of the next frame to receive
  std::uint16_t released_ = 0;  // position of the oldest borrowed slot
  std::size_t ring_number_ = 0;
  std::uint32_t max_frame_ = 0;
  int event_ = -1;
  // Frames in several buffers are copied here to be contiguous; allocated on first use.
  std::unique_ptr<std::uint8_t[]> scratch_;
  std::size_t scratch_used_ = 0;
};

class MemifTx {
 public:
  void attach(Link* link, unsigned q, std::uint32_t max_frame);
  void detach() {
    ring_ = nullptr;
    promised_ = 0;
  }
  bool attached() const { return ring_ != nullptr; }

  unsigned reserve(std::uint32_t len, urnic_frame* frames, unsigned n, Reason* fault);
  void commit(const urnic_frame* frames, unsigned n, QueueCounters& c);
  // True if every frame from `reserve` has been committed.
  bool is_committed() const { return promised_ == 0; }
  void abandon() { promised_ = 0; }
  // True if at least half of the ring is free.
  bool has_room() const;
  // True if the peer sleeps on the ring that we send into.
  bool receiver_asks_for_wakeup() const;
  void wake(QueueCounters& c);

 private:
  struct Slot {
    std::uint8_t* at = nullptr;
    std::uint32_t room = 0;
    std::uint16_t region = 0;
  };
  unsigned free_slots(Reason* fault) const;
  Reason slot_at(std::uint16_t position, Slot* slot) const;
  unsigned reserve_staged(std::uint32_t len, urnic_frame* frames, unsigned n, unsigned free);
  bool put_in_place(const urnic_frame& f, std::uint32_t total);
  bool put_in_pieces(const urnic_frame& f);
  void describe(std::uint16_t position, std::uint32_t length, bool more);

  Link* link_ = nullptr;
  std::uint8_t* ring_ = nullptr;
  bool client_ = false;
  // The peer's buffers are smaller than our largest frame: frames are built in `scratch_` and
  // copied into as many buffers as necessary.
  bool staged_ = false;
  std::uint16_t mask_ = 0;
  std::uint16_t next_ = 0;      // position of the next frame to send
  unsigned promised_ = 0;       // frames reserved but not yet committed
  std::uint16_t end_ = 0;       // position after the reserved ones
  std::uint32_t smallest_ = 0;  // staged: the smallest buffer seen
  std::size_t ring_number_ = 0;
  std::uint32_t max_frame_ = 0;
  int event_ = -1;
  std::vector<Slot> slots_;  // by position & mask, as checked when reserved
  std::unique_ptr<std::uint8_t[]> scratch_;
};

}  // namespace urnic::port::memif
