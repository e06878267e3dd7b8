// Work requests, their completions, and the queues in which completions arrive. Lifetime, threads,
// errors and units: see urnic/verbs.h, which includes this header.
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

// The operation of a work request (RFC 5040, 4.1; RFC 5041, 5; RFC 7306).
enum class Opcode : std::uint8_t {
  send,
  send_with_invalidate,
  write,
  read,
  local_invalidate,
  bind_window,
  // With eight bytes of Immediate Data, which arrive in the completion of the receive that the
  // message uses (RFC 7306, 6). iWARP: the peer must know RFC 7306; a peer that does not ends the
  // connection.
  send_with_immediate,
  write_with_immediate,
  // Atomics on eight aligned bytes of the peer's memory with access_remote_atomic, as a number in
  // the peer's byte order (RFC 7306, 5). The old value is placed in `sges`, eight bytes, in our
  // byte order. They count as reads do (ORD, fence). Atomic against all other atomics there, and
  // against the peer's processors.
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
  std::uint64_t data = 0;  // fetch_add: the number to add; compare_swap, swap: the value to store
  std::uint64_t compare = 0;     // compare_swap: the expected value
  std::uint64_t boundaries = 0;  // fetch_add: no carry passes the bits that are set here
  std::uint64_t data_mask = ~std::uint64_t{0};  // compare_swap, swap: the bits to store
  std::uint64_t compare_mask = ~std::uint64_t{0};
};

struct SendRequest {
  std::uint64_t wr_id = 0;  // copied to the Completion
  Opcode opcode = Opcode::send;
  std::uint32_t flags = send_signaled;
  std::span<const Sge> sges;          // borrowed for the call
  std::uint64_t remote_address = 0;   // write, write_with_immediate, read, atomics
  std::uint32_t rkey = 0;             // for the same operations
  std::uint32_t invalidate_rkey = 0;  // send_with_invalidate (the peer's), local_invalidate (ours)
  std::uint64_t immediate = 0;        // send_with_immediate, write_with_immediate
  AtomicOperands atomic;              // fetch_add, compare_swap, swap
  // bind_window; borrowed for the call. Later requests find the window bound, also a Send that
  // announces the window to the peer.
  const WindowBind* bind = nullptr;
  // UD only: the destination of this request, the queue pair number there (24 bits), and its Q_Key;
  // if the Q_Key has the top bit set, the sending queue pair's own Q_Key is used. The handle is
  // borrowed for the call; but requests that have not left when it is destroyed are lost, and
  // complete with success.
  const AddressHandle* address_handle = nullptr;
  std::uint32_t remote_qp = 0;
  std::uint32_t remote_qkey = 0;
  // XRC only: SharedReceiveQueue::number() of the peer's queue for this request, 24 bits.
  std::uint32_t remote_srq = 0;
};

// Memory for one Send; Sends use receives in the order of posting.
struct ReceiveRequest {
  std::uint64_t wr_id = 0;    // copied to the Completion
  std::span<const Sge> sges;  // borrowed for the call; local write access needed
};

// How a work request ended. After any status but the first the queue pair is in error, or in sqe
// after a failed send of UC or UD.
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
  // receive: `immediate` came with the message. For a Send, byte_len is the length of its payload.
  // For a Write it is 0 over iWARP, where the receiver cannot distinguish the two; on RoCE it is
  // the number of bytes written, and `behind_write` is true.
  bool with_immediate = false;
  bool behind_write = false;
  std::uint64_t immediate = 0;
  // UD, receive: `byte_len` includes 40 bytes in front of the payload: the IPv6 header of the
  // packet, or, with `grh_is_ipv4`, 20 unchanged bytes and its IPv4 header. `source_qp` is the
  // sender.
  bool has_grh = false;
  bool grh_is_ipv4 = false;
  std::uint32_t source_qp = 0;
};

// One descriptor that reports events of any number of completion queues
// (CompletionQueue::deliver_events). Thread safe.
class URNIC_API CompletionChannel {
 public:
  CompletionChannel() = default;
  explicit operator bool() const { return impl_ != nullptr; }
  // Takes the oldest event, and returns the context that its queue was given. False when there is
  // none. A queue that is armed and completes again before its event was taken has only one event.
  bool poll(void** context);
  // Like poll(), but sleeps up to timeout_ms (-1: without limit); then returns false. Returns at
  // once in a forked child.
  bool wait(void** context, int timeout_ms);
  // Sleeps without limit until poll() may find an event. A signal also ends the sleep (returns
  // false), and pthread_cancel ends the thread here in order. May return although there is no
  // event. Returns true at once in a forked child and for an empty handle.
  bool sleep();
  // Readable while there are events (level); programs must not read from it. Owned by the channel;
  // -1 for an empty handle.
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

  // Takes up to out.size() completions, oldest first; returns 0 when there are none. Drives the
  // engine when no other thread does. -1: no completion will arrive any more, because the queue has
  // overrun, the handle is empty, or the queue belongs to the parent of a forked child.
  //
  // The queue overruns when a completion finds no room. This completion and all later ones are
  // lost, those in the queue can still be polled, every queue pair that uses the queue goes to
  // error (`failed`: queue_full), and `cq_overrun` is delivered with the Device's events. To rule
  // it out, make the depth at least the number of all work requests of all its queue pairs.
  int poll(std::span<Completion> out);
  // Requests one event on fd() for the next completion (or only for the next solicited one or
  // error). As in verbs: arm, then poll once more, then sleep. An overrun is an event even if not
  // armed.
  void arm(bool solicited_only = false);
  // Event descriptor: readable after an event; reading it (8 bytes, an eventfd) clears it. Owned by
  // the queue, and created by the first call; -1 when no descriptor is left.
  int fd() const;
  // Delivers the events of arm(), and of an overrun, to that channel as well from now on, with that
  // context. An empty channel: only to fd(), and events that are queued in the old channel are
  // removed. The queue keeps the channel alive. Errors: invalid_argument (of another device).
  Result<void> deliver_events(const CompletionChannel& channel, void* context);
  // Arms the queue and sleeps until a completion or an overrun may be there or `timeout_ms` has
  // passed (-1: without limit). False on time-out, and at once where no completion can arrive
  // (empty handle, forked child).
  bool wait(int timeout_ms);
  // The number of entries: the requested depth, rounded up to a power of two.
  std::uint32_t depth() const;
  // For layers that hold completions back: signals fd() and the channel as a completion does on an
  // armed queue.
  void notify();
  // Changes the depth; the entries stay. Errors: invalid_argument (depth), in_use (it holds more
  // entries); then nothing has changed.
  Result<void> resize(std::uint32_t depth);

 private:
  friend class Device;
  friend class QueuePair;
  explicit CompletionQueue(std::shared_ptr<device::CqImpl> i) : impl_(std::move(i)) {}
  std::shared_ptr<device::CqImpl> impl_;
};

}  // namespace urnic
