// The one message that an EE context is sending: its progress and its packets.
//
//   0        una                  next               fresh        packets
//   |        | sent, unanswered   | to be resent     | never sent |
//
// A READ uses the PSNs of its expected responses; its request is resent for responses from una on.
#pragma once

#include <cstdint>

#include "ib/packet.h"
#include "ib/requester.h"
#include "sim/rd/ee_context.h"
#include "sim/rd/rd_queue_pair.h"
#include "verbs/work.h"

namespace urnic::sim {

struct RdMessage {
  RdSender* sender = nullptr;  // null: none
  std::uint32_t dest_qp = 0;
  ib::Deth deth;  // the same in all its packets
  verbs::WrOp op = verbs::WrOp::Send;
  ib::Psn first;
  std::uint32_t packets = 0;  // PSNs
  std::uint32_t una = 0, next = 0, fresh = 0;
  std::uint32_t asked = 0;      // after the newest packet that requires a response
  std::uint32_t since_ack = 0;  // packets since the last one that requested an ACK
  std::uint32_t resumed = 0;    // the READ was requested again from here on

  bool open() const { return sender != nullptr; }
  // A response carries data, in addition to the acknowledgment.
  bool awaits_data() const { return verbs::awaits_response(op); }
  bool expecting() const { return una < asked; }
};

// Starts the next request of `sender`, from PSN `first` on.
RdMessage begin_rd_message(RdSender* sender, const EeAttributes&, ib::Psn first);

// Builds the packet at `next`, without AckReq. False if its memory is no longer valid.
bool build_rd_packet(const RdMessage&, const EeAttributes&, ib::RequestPacket* out);

}  // namespace urnic::sim
