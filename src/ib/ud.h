// The halves of a UD queue pair. One packet is one message, to and from any peer that knows the
// Q_Key. Nothing is acknowledged, repeated or answered.
//
// Functions of (state, input): they send nothing and read no clock. Owned by the engine of their
// queue pair, every call under its ownership; posting may run concurrently.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "ib/handed_out.h"
#include "ib/message_counters.h"
#include "ib/requester.h"
#include "ib/responder.h"
#include "verbs/work.h"

namespace urnic::ib {

// Bytes before the payload in each receive: the IPv6 header of the packet, or 20 bytes left
// unchanged and its IPv4 header without options (IB-144).
inline constexpr std::uint32_t kGrhBytes = 40;

struct UdResponderCounters {
  std::uint64_t requests = 0;  // packets accepted
  std::uint64_t refused = 0;   // packets dropped, because of their contents or our state
  TakenMessages messages;      // bytes without kGrhBytes
};

struct UdReceived {
  Received received;
  std::uint32_t source_qp = 0;  // if completed with success: the sending queue pair
};

class UdResponder {
 public:
  // Made in Rtr with the attributes of the move there, which must outlive it like queue and table.
  UdResponder(const QpAttributes& attributes, verbs::ReceiveQueue* rq, verbs::MemoryTable* memory)
      : qp_(&attributes), rq_(rq), memory_(memory) {}
  UdResponder(const UdResponder&) = delete;
  UdResponder& operator=(const UdResponder&) = delete;

  // `request` has passed check(), including its Q_Key, in a state that accepts requests. `ip_udp`:
  // its IP header, and possibly more. Completions as in Responder::take(); their length includes
  // kGrhBytes. Only the verdict Operational ends the queue pair.
  UdReceived take(const ParsedPacket& request, ByteView ip_udp, verbs::Completion* completion);

  // A local fault: the receive cannot be written. It has completed with an error, and the queue
  // pair goes to Error.
  bool failed() const { return failed_; }
  const UdResponderCounters& counters() const { return counters_; }

 private:
  Verdict judge(const ParsedPacket& request, ByteView ip_udp) const;
  bool place_datagram(ByteView payload, ByteView ip_udp);
  verbs::PdId receive_pd() const {
    return rq_->shared() != nullptr ? rq_->shared()->pd() : qp_->pd;
  }

  const QpAttributes* qp_;
  verbs::ReceiveQueue* rq_;
  verbs::MemoryTable* memory_;
  bool failed_ = false;
  UdResponderCounters counters_;
};

// The destination of a request.
struct DatagramTo {
  std::uint32_t address_handle = 0;  // resolved by the owner; not looked at here
  std::uint32_t qp = 0;              // 24 bits
  std::uint32_t qkey = 0;            // with the top bit set: that of the sending queue pair
};
// Stored in fields of the request that a Send does not use.
inline void set_destination(verbs::SendWr* wr, const DatagramTo& to) {
  wr->remote_address = std::uint64_t{to.address_handle} << 32 | (to.qp & kMask24);
  wr->inv_key = to.qkey;
}

class UdRequester : public HandedOut {
 public:
  // As UcRequester. The path MTU is that of the network.
  UdRequester(const QpAttributes& attributes, verbs::SendQueue* sq, verbs::MemoryTable* memory)
      : HandedOut(attributes, sq, memory) {}

  // Returns the address handle of the next packet. False if there is none, or if `may_begin` is
  // false (SQD). Skips requests that are never sent. May fail.
  bool next_handle(bool may_begin, std::uint32_t* address_handle);
  // Returns the next packet, which counts as sent, and its address handle. False if there is none,
  // or if `may_begin` is false (SQD). May fail. Completions must be reported only after the payload
  // has been copied.
  bool next_packet(bool may_begin, RequestPacket* out, std::uint32_t* address_handle);

  // Requests longer than the path MTU. Nothing of them is sent, and they complete as if it were
  // (IB-100); a caller that wants an error must refuse them when they are posted.
  std::uint64_t too_long() const { return too_long_; }

 private:
  bool find_message();

  std::uint64_t too_long_ = 0;
};

}  // namespace urnic::ib
