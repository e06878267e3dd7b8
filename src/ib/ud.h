// The halves of a UD queue pair: one packet is one message, to and from anybody who knows the
// Q_Key. Nothing is acknowledged, repeated or answered.
//
// Functions of (state, input): they send nothing and read no clock. Owned by the engine of their
// queue pair, every call under its ownership; posting goes on beside them.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "ib/handed_out.h"
#include "ib/message_counters.h"
#include "ib/requester.h"
#include "ib/responder.h"
#include "verbs/work.h"

namespace urnic::ib {

// In front of the payload in each receive: the IPv6 header of the packet, or 20 bytes that are
// left as they are and its IPv4 header without options (IB-144).
inline constexpr std::uint32_t kGrhBytes = 40;

struct UdResponderCounters {
  std::uint64_t requests = 0;  // packets accepted
  std::uint64_t refused = 0;   // packets dropped, for what they are or found
  TakenMessages messages;      // their bytes without kGrhBytes
};

struct UdReceived {
  Received received;
  std::uint32_t source_qp = 0;  // completed with success: whose it was
};

class UdResponder {
 public:
  // In Rtr, with the attributes of the move there, which outlive it like queue and table.
  UdResponder(const QpAttributes& attributes, verbs::ReceiveQueue* rq, verbs::MemoryTable* memory)
      : qp_(&attributes), rq_(rq), memory_(memory) {}
  UdResponder(const UdResponder&) = delete;
  UdResponder& operator=(const UdResponder&) = delete;

  // `request` has passed check(), its Q_Key among the rest, in a state that takes requests.
  // `ip_udp`: the IP header it came behind, and perhaps more. Completions as Responder::take();
  // their length counts kGrhBytes. Of the verdicts Operational alone ends the queue pair.
  UdReceived take(const ParsedPacket& request, ByteView ip_udp, verbs::Completion* completion);

  // A fault of our own: the receive cannot be written. It has completed so; the queue pair goes to
  // Error.
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

// Where a request goes.
struct DatagramTo {
  std::uint32_t address_handle = 0;  // which the owner knows the way of; not looked at here
  std::uint32_t qp = 0;              // 24 bits
  std::uint32_t qkey = 0;            // with the top bit set: that of the queue pair it leaves from
};
// It travels in fields of the request that a Send has no other use for.
inline void set_destination(verbs::SendWr* wr, const DatagramTo& to) {
  wr->remote_address = std::uint64_t{to.address_handle} << 32 | (to.qp & kMask24);
  wr->inv_key = to.qkey;
}

class UdRequester : public HandedOut {
 public:
  // As UcRequester. The path MTU is what the network carries.
  UdRequester(const QpAttributes& attributes, verbs::SendQueue* sq, verbs::MemoryTable* memory)
      : HandedOut(attributes, sq, memory) {}

  // By which address handle the next packet goes. False when there is none, or with `may_begin`
  // false (SQD). Passes requests that never leave. May fail.
  bool next_handle(bool may_begin, std::uint32_t* address_handle);
  // The next packet, which counts as sent, and by which address handle it goes. False when there is
  // none, or with `may_begin` false (SQD). May fail. Completions are to be reported when the
  // payload has been copied.
  bool next_packet(bool may_begin, RequestPacket* out, std::uint32_t* address_handle);

  // Requests longer than the path MTU. Nothing is sent of them, and they complete as if it were
  // (IB-100): who wants an error refuses them when they are posted.
  std::uint64_t too_long() const { return too_long_; }

 private:
  bool find_message();

  std::uint64_t too_long_ = 0;
};

}  // namespace urnic::ib
