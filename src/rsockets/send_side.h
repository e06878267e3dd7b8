// The sending half of the protocol: credits, targets, the ring where data waits, and slots of the
// send queue. It does not access memory; the caller posts the work.
#pragma once

#include <array>
#include <cstdint>

#include "rsockets/wire.h"

namespace urnic::rsockets {

// Most bytes of one Write, and the room in the ring that is needed to start one.
constexpr std::uint32_t kMaxPiece = 65536, kLowWater = 2048;
// A piece of data is a Write, followed by a message.
constexpr std::uint32_t kPostsOfData = 2;

class SendSide {
 public:
  // The destination of a piece, and the one or two parts of the ring that it occupies. If it is
  // posted inline it does not use the ring, and the parts are empty.
  struct Piece {
    Entry to;  // its length is that of the piece
    std::uint32_t offset = 0, first = 0, second = 0;
  };

  // `slots` slots of the send queue are for data; those for control messages are counted
  // separately.
  // bound: unacknowledged messages of an rsocket: credits, ring, send queue; limit: RDMA_SQSIZE
  // 384, SO_SNDBUF 128 KiB, the peer's RDMA_RQSIZE; beyond: the call waits, or fails with EAGAIN;
  // test: RsocketSendSide.SendingStopsWithoutCreditAndContinuesWithMore,
  // RsocketSendSide.SendingStopsWithoutSlotsOrRoomInTheRing,
  // DataTest.ANonBlockingSendStopsAtAPeerThatDoesNotReadAndIsWokenWhenItReads
  void open(std::uint32_t ring, std::uint32_t slots);
  // The peer's values from the connection set-up.
  void begin(std::uint16_t credits, const Entry& first);

  bool can_send() const;
  // How much of `wanted` the next piece of the stream can carry; can_send() must hold.
  std::uint32_t next_piece(std::uint32_t wanted) const;
  // The same for a piece into a mapping with `left` bytes left. No message follows it.
  std::uint32_t next_direct(std::uint32_t wanted, std::uint64_t left) const;
  Piece take(std::uint32_t length, bool inlined);
  Piece take_direct(std::uint32_t length, bool inlined);
  // Uses the slot and the credit of an iomap message, which is written inline.
  void take_mapping();

  // The peer accepts messages with numbers below `limit`.
  void on_grant(std::uint16_t limit) { limit_ = limit; }
  // Adds a target; false when there is no room for it, which the peer should have known.
  bool on_target(const Entry&);
  // Work is complete: frees `bytes` of the ring.
  void on_done(std::uint32_t bytes);
  bool all_done() const { return slots_ == all_slots_; }
  std::uint32_t under_way() const { return all_slots_ - slots_; }

 private:
  Piece from_ring(std::uint32_t length, bool inlined);

  std::uint32_t ring_ = 0, free_ = 0, head_ = 0;
  std::uint32_t all_slots_ = 0, slots_ = 0;
  // of the next message, and the first number that is not allowed
  std::uint16_t number_ = 0, limit_ = 0;
  std::array<Entry, kTargets> targets_{};
  std::uint32_t at_ = 0, targets_left_ = 0;
};

}  // namespace urnic::rsockets
