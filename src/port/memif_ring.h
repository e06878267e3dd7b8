// The two rings of a queue as this end uses them. Frames are received in place and sent in place:
// the bytes are written once, by their sender, and read where they lie.
//
// Nothing read from shared memory is believed: indexes may move by at most what we allowed,
// descriptors are copied out and checked against our own knowledge of the regions (E-19). What is
// wrong ends the connection through the `fault` out-parameter: a short reason.
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
  // `link` must outlive the attachment. As a client this also gives the peer all buffers.
  void attach(Link* link, unsigned q, std::uint32_t max_frame);
  void detach() { ring_ = nullptr; }
  bool attached() const { return ring_ != nullptr; }

  // Frames, borrowed until `release`.
  unsigned burst(urnic_frame* frames, unsigned n, QueueCounters& c, Reason* fault);
  void release();
  bool borrowed() const { return next_ != released_; }
  // Slots that hold something to receive; more than the ring has when the peer's index is bogus.
  unsigned waiting() const;

  // Wake-ups. They are asked for until the next frame is received: taking the mask back at once
  // would only cost the sender's cache line.
  bool asks_for_wakeup() const { return !masked_; }
  void ask_for_wakeup();
  int event_fd() const { return event_; }

  // For waking a sender that ran out of room: slots in use before and after the last release.
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
  std::uint16_t next_ = 0;      // first position not yet received
  std::uint16_t released_ = 0;  // first position borrowed
  std::size_t ring_number_ = 0;
  std::uint32_t max_frame_ = 0;
  int event_ = -1;
  // Frames that come in several buffers are copied here, to be contiguous; made when first needed.
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
  // Nothing handed out by `reserve` is waiting for its `commit`.
  bool is_committed() const { return promised_ == 0; }
  void abandon() { promised_ = 0; }
  // At least half the ring is free.
  bool has_room() const;
  // Whether the peer sleeps on the ring we send into.
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
  // copied into as many buffers as they need.
  bool staged_ = false;
  std::uint16_t mask_ = 0;
  std::uint16_t next_ = 0;      // first position not yet sent
  unsigned promised_ = 0;       // frames reserved, not yet committed
  std::uint16_t end_ = 0;       // first position behind those reserved
  std::uint32_t smallest_ = 0;  // staged: smallest buffer seen
  std::size_t ring_number_ = 0;
  std::uint32_t max_frame_ = 0;
  int event_ = -1;
  std::vector<Slot> slots_;  // by position & mask, as checked when reserved
  std::unique_ptr<std::uint8_t[]> scratch_;
};

}  // namespace urnic::port::memif
