// Work requests as the stream sees them, and what it reports back. Completion queues live above
// (verbs); here a completion is a value.
#pragma once

#include <cstdint>
#include <span>

#include "ddp_rdma/header.h"
#include "ddp_rdma/memory.h"

namespace urnic::ddp {

inline constexpr std::uint32_t kMaxSges = 32;           // of one work request
inline constexpr std::uint32_t kMaxMessage = 1u << 31;  // octets; DDP would allow 2^32 - 1

enum class WrOp : std::uint8_t { Send, SendInv, Write, Read, LocalInv };
enum WrFlag : std::uint8_t {
  kSignaled = 1,   // wants a completion
  kSolicited = 2,  // Send with Solicited Event
  kInline = 4,     // payload is copied at posting; SGE lkeys are not looked at
  kFence = 8,      // waits until earlier Reads have completed
};

struct SendWr {
  std::uint64_t wr_id = 0;
  WrOp op = WrOp::Send;
  std::uint8_t flags = 0;
  std::span<const Sge> sges;      // borrowed for the call
  std::uint64_t remote_to = 0;    // Write, Read
  std::uint32_t remote_stag = 0;  // Write, Read
  std::uint32_t inv_stag = 0;     // SendInv, LocalInv
};

struct RecvWr {
  std::uint64_t wr_id = 0;
  std::span<const Sge> sges;
};

enum class Status : std::uint8_t {
  Success,
  Flushed,          // the stream ended first
  LocalLength,      // longer than a message or the queue's SGE limit allows
  LocalProtection,  // lkey, PD, bounds or rights of a local SGE
  RemoteAccess,     // the peer's Terminate said protection
  RemoteOperation,  // the peer's Terminate said anything else
  RemoteInvalidRequest,
  FatalTransport,  // TCP lost
};

struct Completion {
  std::uint64_t wr_id = 0;
  Status status = Status::Success;
  bool receive = false;
  WrOp op = WrOp::Send;          // send side
  bool with_invalidate = false;  // receive side: inv_stag is meaningful
  bool solicited = false;
  std::uint32_t byte_len = 0;
  std::uint32_t inv_stag = 0;
};

// Messages whose end lies in a segment, by how they are delivered (9.3). Also the counters of a
// TCP hole: CompletedSendsNum 302, CompletedReadResponseNum 306, PendingReadResponseNum 300.
struct MessageCounts {
  std::uint32_t sends = 0;
  std::uint32_t read_responses = 0;
  std::uint32_t read_requests = 0;
  std::uint32_t terminates = 0;

  MessageCounts& operator+=(const MessageCounts& o) {
    sends += o.sends;
    read_responses += o.read_responses;
    read_requests += o.read_requests;
    terminates += o.terminates;
    return *this;
  }
  bool any() const { return (sends | read_responses | read_requests | terminates) != 0; }
};

}  // namespace urnic::ddp
