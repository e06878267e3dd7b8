// Work requests and their completions.
#pragma once

#include <cstdint>
#include <span>

#include "urnic/work.h"
#include "verbs/memory.h"

namespace urnic::verbs {

// bound: SGEs of one work request; beyond: posting fails with invalid_argument; test:
// SendQueue.HoldsItsLimitAndNoMore, ReceiveQueue.HoldsItsLimitAndNoMore
inline constexpr std::uint32_t kMaxSges = 32;           // of one work request
inline constexpr std::uint32_t kMaxMessage = 1u << 31;  // bytes

enum class WrOp : std::uint8_t {
  Send,
  SendInv,
  Write,
  Read,
  LocalInv,
  Bind,
  SendImm,
  WriteImm,
  FetchAdd,
  CmpSwap,
  Swap,
};
// Executed in posting order without sending anything.
constexpr bool is_local(WrOp op) {
  return op == WrOp::LocalInv || op == WrOp::Bind;
}
constexpr bool is_atomic(WrOp op) {
  return op >= WrOp::FetchAdd;
}
// Done when the peer has responded.
constexpr bool awaits_response(WrOp op) {
  return op == WrOp::Read || is_atomic(op);
}
inline constexpr std::uint32_t kAtomicBytes = 8;

using urnic::AtomicOperands;

enum WrFlag : std::uint8_t {
  kSignaled = 1,   // requests a completion
  kSolicited = 2,  // Send, or the Immediate Data of a Write, with Solicited Event
  kInline = 4,     // payload is copied at posting; SGE lkeys are ignored
  kFence = 8,      // waits until earlier Reads and atomics have completed
};

struct SendWr {
  std::uint64_t wr_id = 0;
  WrOp op = WrOp::Send;
  std::uint8_t flags = 0;
  std::span<const Sge> sges;         // borrowed for the call
  std::uint64_t remote_address = 0;  // Write, WriteImm, Read, atomics
  std::uint32_t rkey = 0;            // for the same operations
  std::uint32_t inv_key = 0;         // SendInv: the peer's key. LocalInv: ours
  std::uint64_t immediate = 0;       // SendImm, WriteImm
  const WindowBind* bind = nullptr;  // Bind; borrowed for the call
  AtomicOperands atomic;             // the old value is placed in the SGEs, eight bytes
  std::uint32_t remote_srq = 0;      // XRC: number of the peer's shared receive queue
};

struct RecvWr {
  std::uint64_t wr_id = 0;
  std::span<const Sge> sges;
};

enum class Status : std::uint8_t {
  Success,
  Flushed,          // the connection ended first
  LocalLength,      // longer than a message or the queue's SGE limit allows
  LocalProtection,  // lkey, PD, bounds or rights of a local SGE
  RemoteAccess,     // the peer refused access to its memory
  RemoteOperation,  // the peer refused for any other reason
  RemoteInvalidRequest,
  FatalTransport,  // the peer was lost
  WindowBind,      // invalid parameters of a bind
  // Only on RoCE:
  RetryExceeded,     // no response to any of the retransmissions
  RnrRetryExceeded,  // the peer never had a receive posted
  BadResponse,       // a response that does not match the request
  LocalOperation,    // not possible in this state or with this service
  RemoteInvalidRd,   // XRC: the shared receive queue belongs to another domain
  LocalAccess,       // a receive: the WRITE with Immediate that used it had no right to its memory
};

struct Completion {
  std::uint64_t wr_id = 0;
  Status status = Status::Success;
  bool receive = false;
  WrOp op = WrOp::Send;          // send side
  bool with_invalidate = false;  // receive side: inv_key is valid
  bool solicited = false;
  bool with_immediate = false;  // receive side: immediate is valid
  bool datagram = false;        // receive side: after 40 bytes of header (IB-144)
  bool ipv4 = false;            // datagram: the last 20 of these bytes are an IPv4 header
  std::uint32_t byte_len = 0;
  std::uint32_t inv_key = 0;
  std::uint64_t immediate = 0;
};

// The data of a Send's completion beyond the receive that it used.
struct ReceiveEnd {
  std::uint32_t byte_len = 0;  // of the message
  std::uint32_t inv_key = 0;
  bool with_invalidate = false;
  bool solicited = false;
  bool with_immediate = false;  // the value is in the WQE
};

}  // namespace urnic::verbs
