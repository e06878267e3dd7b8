// What one end may send and where to: credits, targets, the ring its data waits in, and places in
// the send queue. No memory is touched here; who posts the work does that.
#pragma once

#include <array>
#include <cstdint>

#include "rsockets/wire.h"

namespace urnic::rsockets {

// Bytes of one Write at most, and what has to be free in the ring before one is begun.
constexpr std::uint32_t kMaxPiece = 65536, kLowWater = 2048;
// A piece of data is a Write and the message behind it.
constexpr std::uint32_t kPostsOfData = 2;

class SendSide {
 public:
  // Where a piece goes, and the one or two parts of the ring it comes from. Without the ring (it is
  // posted inline) the parts are empty.
  struct Piece {
    Entry to;  // length is the piece's
    std::uint32_t offset = 0, first = 0, second = 0;
  };

  // `slots` places in the send queue are for data, those for control are the Gate's.
  // bound: unacknowledged messages of an rsocket: credits, ring, send queue; limit: RDMA_SQSIZE
  // 384, SO_SNDBUF 128 KiB, the peer's RDMA_RQSIZE; beyond: the call waits, or fails with EAGAIN;
  // test: RsocketSendSide.ItStopsAtTheLastCreditAndGoesOnWithMore,
  // RsocketSendSide.ItStopsWithoutPlacesOrRoomInTheRing,
  // DataTest.WhoSendsWithoutWaitingIsStoppedByAPeerThatDoesNotReadAndWokenWhenItDoes
  void open(std::uint32_t ring, std::uint32_t slots);
  // What the peer said when the connection was made.
  void begin(std::uint16_t credits, const Entry& first);

  bool can_send() const;
  // How much of `wanted` the next piece of the stream holds; can_send().
  std::uint32_t next_piece(std::uint32_t wanted) const;
  // The same for a piece into a mapping of which `left` bytes are left. It has no message behind
  // it.
  std::uint32_t next_direct(std::uint32_t wanted, std::uint64_t left) const;
  Piece take(std::uint32_t length, bool inlined);
  Piece take_direct(std::uint32_t length, bool inlined);
  // The place and credit of an iomap message, written inline.
  void take_mapping();

  // The peer may be sent what is numbered below `limit`.
  void on_grant(std::uint16_t limit) { limit_ = limit; }
  // A further target; false when there is no room for it, which the peer knows.
  bool on_target(const Entry&);
  // Work is done with: `bytes` of the ring.
  void on_done(std::uint32_t bytes);
  bool all_done() const { return slots_ == all_slots_; }
  std::uint32_t under_way() const { return all_slots_ - slots_; }

 private:
  Piece from_ring(std::uint32_t length, bool inlined);

  std::uint32_t ring_ = 0, free_ = 0, head_ = 0;
  std::uint32_t all_slots_ = 0, slots_ = 0;
  std::uint16_t number_ = 0, limit_ = 0;  // of the next message, and which it must not reach
  std::array<Entry, kTargets> targets_{};
  std::uint32_t at_ = 0, targets_left_ = 0;
};

}  // namespace urnic::rsockets
