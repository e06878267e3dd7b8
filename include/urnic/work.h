// Work requests, what comes of them, and the queue it comes to. Lifetime, threads, errors and units
// are those of urnic/verbs.h, which includes this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "urnic/memory.h"
#include "urnic/status.h"

namespace urnic {

class AddressHandle;  // urnic/address_handle.h

namespace device {
struct ChannelImpl;
struct CqImpl;
}  // namespace device

// A piece of local memory: [address, address+length) inside the region named by lkey.
struct Sge {
  std::uint64_t address = 0;
  std::uint32_t length = 0;
  std::uint32_t lkey = 0;
};

// What a work request asks for (RFC 5040, 4.1; RFC 5041, 5; RFC 7306).
enum class Opcode : std::uint8_t {
  send,
  send_with_invalidate,
  write,
  read,
  local_invalidate,
  bind_window,
  // With eight bytes of Immediate Data, which the completion of the receive they use brings (RFC
  // 7306, 6). iWARP: the peer has to know RFC 7306; one that does not ends the connection.
  send_with_immediate,
  write_with_immediate,
  // On eight bytes of the peer's memory that are aligned and allow it (access_remote_atomic), as a
  // number of its byte order (RFC 7306, 5); what was there comes to `sges`, eight bytes, in ours.
  // Counts as a read does (ORD, fence). Atomic against all other atomics there, and its processors.
  fetch_add,
  compare_swap,
  swap,
  receive,  // completions only
};

enum SendFlags : std::uint32_t {
  send_signaled = 1,
  send_solicited = 2,
  send_inline = 4,  // payload (<= QpOptions::max_inline) is copied at posting; lkeys are ignored
  send_fence = 8,   // starts after all earlier reads and atomics have completed
};

struct AtomicOperands {
  std::uint64_t data = 0;        // fetch_add: is added; compare_swap, swap: is stored
  std::uint64_t compare = 0;     // compare_swap: with what must be there
  std::uint64_t boundaries = 0;  // fetch_add: no carry goes beyond the bits that are set here
  std::uint64_t data_mask = ~std::uint64_t{0};  // compare_swap, swap: bits that are stored
  std::uint64_t compare_mask = ~std::uint64_t{0};
};

struct SendRequest {
  std::uint64_t wr_id = 0;  // comes back in the Completion
  Opcode opcode = Opcode::send;
  std::uint32_t flags = send_signaled;
  std::span<const Sge> sges;          // borrowed for the call
  std::uint64_t remote_address = 0;   // write, write_with_immediate, read, atomics
  std::uint32_t rkey = 0;             // the same
  std::uint32_t invalidate_rkey = 0;  // send_with_invalidate (the peer's), local_invalidate (ours)
  std::uint64_t immediate = 0;        // send_with_immediate, write_with_immediate
  AtomicOperands atomic;              // fetch_add, compare_swap, swap
  // bind_window; borrowed for the call. Requests behind it find the window bound, a Send that tells
  // the peer of it too.
  const WindowBind* bind = nullptr;
  // UD alone: where this one goes, to which queue pair there (24 bits), and that one's Q_Key; with
  // the top bit set that of the queue pair it leaves from. The handle is borrowed for the call, but
  // what is still to leave when it is destroyed is lost, and completes with success.
  const AddressHandle* address_handle = nullptr;
  std::uint32_t remote_qp = 0;
  std::uint32_t remote_qkey = 0;
  // XRC alone: SharedReceiveQueue::number() of the peer's queue that this one is for, 24 bits.
  std::uint32_t remote_srq = 0;
};

// Where the next Send is to go, in the order of posting.
struct ReceiveRequest {
  std::uint64_t wr_id = 0;    // comes back in the Completion
  std::span<const Sge> sges;  // borrowed for the call; local write access needed
};

// How a work request ended. All but the first mean that the queue pair is in error, or, of a send
// of UC or UD, in sqe.
enum class WcStatus : std::uint8_t {
  success,
  flushed,           // the connection ended first
  local_length,      // longer than a message or the queue pair allows
  local_protection,  // lkey, domain, bounds or rights of a local element
  remote_access,     // the peer denied access to its memory (Terminate, RFC 5040, 4.8)
  remote_operation,  // the peer failed to execute the operation
  // The peer reported an invalid or unknown request. On a receive (RoCE): the peer sent a key to
  // invalidate that must not be invalidated.
  remote_invalid_request,
  fatal_transport,  // the TCP connection was lost
  window_bind,      // bind_window: invalid key, range or access rights
  // Only on RoCE, which retransmits requests without a response:
  retry_exceeded,      // all retransmissions are used up (Retry Count, IB-71)
  rnr_retry_exceeded,  // the peer posted no receive: all RNR retries are used up (IB-73)
  bad_response,        // the peer sent an unexpected response
  local_operation,     // not supported in the present state or service of the queue pair
  // XRC: shared receive queue and peer's queue pair belong to different XRC domains (IB-163)
  remote_invalid_rd_request,
  // On a receive: the peer's write_with_immediate has an invalid key, range or access rights.
  local_access,
};
// e.g. "work request flushed: the connection ended".
URNIC_API const char* to_string(WcStatus);

struct Completion {
  std::uint64_t wr_id = 0;
  WcStatus status = WcStatus::success;
  Opcode opcode = Opcode::send;
  std::uint32_t byte_len = 0;  // receive and read: bytes placed
  bool invalidated = false;    // receive: the peer invalidated `invalidated_rkey`
  std::uint32_t invalidated_rkey = 0;
  std::uint32_t qp_number = 0;
  // receive: `immediate` came with it. byte_len is of a Send's payload. Behind a Write it is 0 over
  // iWARP, which does not tell the one from the other; RoCE: bytes written, and `behind_write`.
  bool with_immediate = false;
  bool behind_write = false;
  std::uint64_t immediate = 0;
  // UD, receive: `byte_len` counts 40 bytes that lie in front of the payload, the IPv6 header of
  // the packet, or, `grh_is_ipv4`, 20 bytes left as they were and its IPv4 header. `source_qp`
  // sent it.
  bool has_grh = false;
  bool grh_is_ipv4 = false;
  std::uint32_t source_qp = 0;
};

// Where any number of completion queues tell that they have something: one descriptor for all of
// them (CompletionQueue::deliver_events). Thread safe.
class URNIC_API CompletionChannel {
 public:
  CompletionChannel() = default;
  explicit operator bool() const { return impl_ != nullptr; }
  // Takes out the oldest event, and says whose it is by the context the queue was given. False when
  // there is none. A queue that was armed and told again before its event was taken has one.
  bool poll(void** context);
  // poll, sleeping up to timeout_ms (-1: for ever); false then, and at once in a forked child.
  bool wait(void** context, int timeout_ms);
  // Sleeps until poll() may find one, as wait() does for ever; a signal ends it as well (false),
  // and pthread_cancel ends the thread there, in order. May return when there is none. True at once
  // in a forked child and of an empty handle.
  bool sleep();
  // Readable while events are in it (level); nobody reads it. Owned by the channel; -1 when empty.
  int fd() const;

 private:
  friend class Device;
  friend class CompletionQueue;
  explicit CompletionChannel(std::shared_ptr<device::ChannelImpl> i) : impl_(std::move(i)) {}
  std::shared_ptr<device::ChannelImpl> impl_;
};

class URNIC_API CompletionQueue {
 public:
  CompletionQueue() = default;
  explicit operator bool() const { return impl_ != nullptr; }

  // Up to out.size() completions, oldest first; 0 when there are none. Drives the engine when no
  // other thread does. -1: nothing will come any more, because the queue has overrun, is empty, or
  // is the parent's.
  //
  // An overrun is a completion that found no room: it and all later ones are lost, those in the
  // queue can still be polled, every queue pair on it goes to error (`failed`: queue_full), and
  // `cq_overrun` arrives where the device's events go. It cannot happen with a depth of all the
  // work requests of all queue pairs on it.
  int poll(std::span<Completion> out);
  // Request one event on fd() for the next completion (or the next solicited one or error). As in
  // verbs: arm, then poll once more, then sleep. An overrun is an event, armed or not.
  void arm(bool solicited_only = false);
  // Event descriptor: readable after an event; reading it (8 bytes, an eventfd) clears it. Owned
  // by the queue, made when it is first asked for; -1 when there are no descriptors left.
  int fd() const;
  // The events of arm(), and of an overrun, go there from now on as well, with that context; an
  // empty channel: to fd() alone, and what is queued of it there is taken out. The queue keeps the
  // channel. Errors: invalid_argument (of another device).
  Result<void> deliver_events(const CompletionChannel& channel, void* context);
  // arm + sleep until a completion or an overrun may be there or `timeout_ms` passed (-1: for
  // ever). False on time-out, and at once where nothing can come (empty, a forked child).
  bool wait(int timeout_ms);
  // Entries there is room for: what was asked for, rounded up to a power of two.
  std::uint32_t depth() const;
  // Another depth, with what is in it. Errors: invalid_argument (depth), in_use (more is in it);
  // nothing has changed then.
  Result<void> resize(std::uint32_t depth);

 private:
  friend class Device;
  friend class QueuePair;
  explicit CompletionQueue(std::shared_ptr<device::CqImpl> i) : impl_(std::move(i)) {}
  std::shared_ptr<device::CqImpl> impl_;
};

}  // namespace urnic
