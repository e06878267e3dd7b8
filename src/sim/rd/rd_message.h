// The one message an EE context has under way: where it stands, and its packets.
//
//   0        una                 next              fresh        packets
//   |        | sent, unanswered  | to be repeated  | never sent |
//
// A READ takes the PSNs of the responses it expects; its request is sent anew from una on.
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
  ib::Deth deth;  // of all its packets
  verbs::WrOp op = verbs::WrOp::Send;
  ib::Psn first;
  std::uint32_t packets = 0;  // PSNs
  std::uint32_t una = 0, next = 0, fresh = 0;
  std::uint32_t asked = 0;      // behind the newest packet that a response must come for
  std::uint32_t since_ack = 0;  // packets since the last that asked
  std::uint32_t resumed = 0;    // a READ was asked again from there on

  bool open() const { return sender != nullptr; }
  // A response brings more than that it has been taken.
  bool awaits_data() const { return verbs::awaits_response(op); }
  bool expecting() const { return una < asked; }
};

// The next request of `sender`, from PSN `first` on.
RdMessage begin_rd_message(RdSender* sender, const EeAttributes&, ib::Psn first);

// The packet at `next`, without AckReq. False when its memory has gone.
bool build_rd_packet(const RdMessage&, const EeAttributes&, ib::RequestPacket* out);

}  // namespace urnic::sim
