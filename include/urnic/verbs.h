// RDMA verbs as C++ objects: device, protection domain, memory region, completion queue, queue
// pair. The transport below is iWARP (RFC 5040, 5041, 5044) over urnic's own TCP, or the kernel's;
// or RoCEv2, whose queue pairs are connected as those of iWARP are, by connection management over
// queue pair 1 as rdma_cm does it, or by the program itself (urnic/qp_attributes.h).
//
// Nothing here is iWARP's unless it says so: what is chosen for that transport alone stands in
// members named `iwarp` (ConnectionOptions, QpOptions, ConnectionStats, EngineStats), and a comment
// "iWARP:" or "RoCE:" tells what a call, a limit or a value means there. A queue pair of another
// transport leaves those members alone.
//
// Lifetime: every object is a movable handle; it keeps what it depends on alive (a QueuePair its
// completion queues, its protection domain, its device). Destroying a QueuePair aborts its
// connection if it still has one (RST), unless disconnect() was called before or the peer has
// closed: then what was posted to send goes out, then the end (iWARP: FIN), or the abort after
// ten seconds. Nobody here hears of it, no completion or event comes any more, and no memory
// of the caller is read or written: what is left to be sent is copied (up to 256 MiB; a connection
// with more is aborted), Reads outstanding are given up, and what the peer sends is discarded. The
// last handle of a device waits for such ends for a second at most. RoCE: the peer hears of the end
// (DREQ) and nothing more is sent; its number is nobody else's until time-wait is over (2.3 s).
//
// Threads: all calls are thread safe as verbs promise, also on the same object; moving and
// destroying a handle are not calls on the object, and need the handle to be nobody else's.
// Progress: a thread that polls a CompletionQueue drives the engine itself; when nobody polls, the
// device's background thread does (setting `progress`, D8).
//
// Errors: nothing here throws. Every Result may be, besides what stands at the call:
//   invalid_argument  the handle, or one given as an argument, is empty or of another device
//   no_memory         out of memory
//   no_descriptors    of file descriptors (ulimit -n)
//   closed            the device belongs to the parent of a forked child
// Calls without a Result answer with an empty value, false, -1 or not at all then.
//
// Units: lengths in bytes, times in milliseconds unless the name says otherwise; -1 is for ever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "urnic/address_handle.h"
#include "urnic/bind_options.h"
#include "urnic/cm_connection.h"
#include "urnic/config.h"
#include "urnic/connection_events.h"
#include "urnic/connection_options.h"
#include "urnic/datagram_service.h"
#include "urnic/memory.h"
#include "urnic/qp_attributes.h"
#include "urnic/stats.h"
#include "urnic/status.h"
#include "urnic/work.h"
#include "urnic/xrc_domain.h"

namespace urnic {

namespace device {
struct DeviceImpl;
struct QpImpl;
struct SrqImpl;
struct BindingImpl;
struct ListenerImpl;
struct RequestImpl;
struct EventQueueImpl;
}  // namespace device

// ---- connections --------------------------------------------------------------------------------

// An own address and port, kept for whoever holds it: to listen at, or to connect from. Who
// connects to it is refused. It does not follow the addresses of the machine.
class URNIC_API Binding {
 public:
  Binding() = default;
  Binding(Binding&&) noexcept = default;
  Binding& operator=(Binding&&) noexcept;
  ~Binding();
  explicit operator bool() const { return impl_ != nullptr; }
  // "10.77.0.1:18515", "[::]:18515"; empty when empty.
  std::string address() const;
  // Host byte order; 0 when empty. iWARP: a TCP port. RoCE: one of rdma_cm's port space for TCP, or
  // for UDP (BindOptions::service).
  std::uint16_t port() const;

 private:
  friend class Device;
  friend class QueuePair;
  explicit Binding(std::shared_ptr<device::BindingImpl> i) : impl_(std::move(i)) {}
  std::shared_ptr<device::BindingImpl> impl_;
};

enum class QpState : std::uint8_t { reset, init, rtr, rts, sqd, sqe, error };

class QueuePair;
class EventQueue;
class URNIC_API ConnectRequest {
 public:
  ConnectRequest() = default;
  explicit operator bool() const { return impl_ != nullptr; }
  std::string peer() const;  // "10.1.0.2:49152"
  std::string local() const;
  // Valid while this object lives. RoCE: always 56 bytes, zeroes behind what the peer gave.
  std::span<const std::uint8_t> private_data() const;
  std::uint16_t ird() const;  // Reads and atomics the peer wants outstanding; iWARP: ours if it
                              // does not say
  std::uint16_t ord() const;  // those it can serve, and we want
  // RoCE: how often both ends repeat what nobody answers, and this end what finds no receive at the
  // peer (7: any number of times). iWARP: 0.
  std::uint8_t retry_count() const;
  std::uint8_t rnr_retry() const;
  RocePeer roce_peer() const;  // what its request says of its queue pair, these two included
  // What is wanted: a connection, on a queue pair of that service (rc, xrc_receive), or one of UD
  // for datagrams, whose private data has 180 bytes.
  Service service() const;
  // Take the connection on `qp` (state init or reset), of the transport of the listener.
  // Asynchronous: `established` or `connect_failed` follows on the queue pair. Errors: closed (the
  // peer gave up meanwhile), wrong_state (answered already; `qp` has or had a connection), as
  // QueuePair::connect_start. For datagrams: `qp` is of UD, in rtr or rts, and any number of
  // requests may be accepted on it; the answer has left with the call, up to 136 bytes of private
  // data with it, and no event follows. After invalid_argument or wrong_state: answer it again.
  Result<void> accept(QueuePair& qp, const ConnectionOptions& options = {});
  // RoCE, service rc: take the connection for a queue pair that the program moves itself
  // (urnic/cm_connection.h). `established` or `connect_failed` follows in `events` with `context`.
  // Errors: closed, wrong_state as above, invalid_argument (number, private data, kind of request).
  Result<CmConnection> accept_number(const CmQueuePair& qp, const EventQueue& events, void* context,
                                     const ConnectionOptions& options = {});
  // Service ud: the answer is that number, 24 bits, which nobody looks up; as accept() otherwise.
  Result<void> accept_datagrams(std::uint32_t number, std::uint32_t qkey,
                                std::span<const std::uint8_t> private_data = {});
  // RoCE, service rc: what the queue pair that takes it is moved by, as CmConnection::attributes();
  // the depths are the most that the peer and this end have. Otherwise empty.
  QpAttributes attributes() const;
  // Refuses the peer. iWARP: MPA Reply with R=1 (RFC 5044, 7.1.1), with up to 508 bytes. RoCE: REJ
  // 28, with up to 148 (for datagrams SIDR REP 2, 136), zeroes behind them; more are cut. Dropping
  // the object without answering does the same. Nothing happens to a request that has been
  // answered.
  void reject(std::span<const std::uint8_t> private_data = {});

 private:
  friend struct device::DeviceImpl;
  std::shared_ptr<device::RequestImpl> impl_;
};

struct Event {
  EventKind kind = EventKind::failed;
  std::uint32_t connection = 0;  // on a QueuePair: which of its connections(); 0: of none of them
  // Of the QueuePair, Listener, SharedReceiveQueue, CompletionQueue or Device it belongs to.
  void* context = nullptr;
  ConnectRequest request;
  Error error;
  std::string private_data;  // bytes
  RocePeer roce_peer;  // of `answered`, `established` (active side), connect_failed: its message's
  DatagramPeer peer;   // of a Resolution; its private_data is the one above
};

// Where connection events arrive. One may serve many queue pairs and listeners.
class URNIC_API EventQueue {
 public:
  EventQueue() = default;
  explicit operator bool() const { return impl_ != nullptr; }
  // Next event, oldest first, or false. Drives the engine when no other thread does.
  bool poll(Event* out);
  // poll, sleeping up to timeout_ms (-1: for ever), or until wake(); false then.
  bool wait(Event* out, int timeout_ms);
  // Who sleeps in wait() comes back; if nobody does, whoever comes next.
  void wake();
  int fd() const;  // readable while events are queued (level); owned by the queue; -1 when empty

 private:
  friend class Device;
  friend class Listener;
  friend class QueuePair;
  friend class Resolution;
  friend class ConnectRequest;
  explicit EventQueue(std::shared_ptr<device::EventQueueImpl> i) : impl_(std::move(i)) {}
  std::shared_ptr<device::EventQueueImpl> impl_;
};

struct SrqOptions {
  std::uint32_t max_receive = 1024;   // work requests posted, in use or unpolled: 1..65536
  std::uint32_t max_receive_sge = 4;  // 0..32
  std::uint32_t limit = 0;            // as set_limit()
  EventQueue events;                  // optional: where receive_limit arrives
  void* context = nullptr;
  XrcDomain xrc_domain;        // XRC: whose receiving ends use it, and no other queue pair
  CompletionQueue receive_cq;  // XRC: where all of its receives complete
};

// Receives that any number of queue pairs use, oldest first; a queue pair is made with it by
// QpOptions::srq. The Sends of one queue pair use receives in the order they were sent; between
// queue pairs the order is that of arrival. A receive completes on the receive_cq of the pair that
// used it, with that pair's number.
//
// Each queue pair keeps the queue alive. When a pair ends, the receives it had taken but not
// completed complete as flushed, and it says last_receive; the others stay for the other pairs. A
// pair that is destroyed before it has ended loses those it had taken.
class URNIC_API SharedReceiveQueue {
 public:
  SharedReceiveQueue() = default;
  explicit operator bool() const { return impl_ != nullptr; }

  // Thread safe; does not wait for the engine. Errors: queue_full (a receive counts until
  // its completion has been polled), invalid_argument (too many SGEs). Local keys must be of
  // the protection domain of this queue.
  Result<void> post_receive(const ReceiveRequest& request);
  // Several at once. Returns how many were taken; `*why` says why not all.
  std::size_t post_receive(std::span<const ReceiveRequest> requests, Error* why = nullptr);
  // One receive_limit event as soon as fewer than `limit` receives are left, at once if that is so
  // now; then the limit is 0, which asks for none. invalid_argument: above max_receive.
  Result<void> set_limit(std::uint32_t limit);
  struct Attributes {
    std::uint32_t max_receive = 0, max_receive_sge = 0;
    std::uint32_t limit = 0;   // armed
    std::uint32_t posted = 0;  // not yet used by a Send
  };
  Attributes query() const;
  std::uint32_t number() const;  // of XRC: 24 bits, unique on its device while it lives; else 0

 private:
  friend class Device;
  explicit SharedReceiveQueue(std::shared_ptr<device::SrqImpl> i) : impl_(std::move(i)) {}
  std::shared_ptr<device::SrqImpl> impl_;
};

struct QpOptions {
  // May be the same. XRC: the sending end has no receive_cq, the receiving one neither.
  CompletionQueue send_cq, receive_cq;
  EventQueue events;  // optional: without it, use the blocking calls
  void* context = nullptr;
  std::uint32_t max_send = 128, max_receive = 128;  // work requests outstanding; 0: none ever
  std::uint32_t max_send_sge = 4, max_receive_sge = 4;
  std::uint32_t max_inline = 256;
  bool signal_all = false;  // every send request completes visibly
  // `events` hears of communication_established, access_error and the three behind it as well.
  bool asynchronous_events = false;
  // Its number(), in 24 bits, where others find it by that; 0: the device chooses one, which it
  // does for RoCE in any case.
  std::uint32_t number = 0;
  // One that the device speaks (the Config's `transport`). Left alone: iWARP if it does.
  std::optional<Transport> transport;
  // UC and UD are not connected by connect() or accept(), but moved by modify(). Of such a queue
  // pair a send that fails is sqe instead of error, as its completion says and no event: what is
  // behind it is flushed, receives go on, and modify() leads back to rts.
  Service service = Service::rc;
  // Receives come from here; max_receive and max_receive_sge then mean nothing, and
  // QueuePair::post_receive is refused. Of the same device.
  SharedReceiveQueue srq;
  XrcDomain xrc_domain;  // of an xrc_receive, which has no `srq`
  IwarpQpOptions iwarp;
  RoceQpOptions roce;
};

class URNIC_API QueuePair {
 public:
  QueuePair() = default;
  QueuePair(QueuePair&&) noexcept = default;
  QueuePair& operator=(QueuePair&&) noexcept;
  ~QueuePair();
  explicit operator bool() const { return impl_ != nullptr; }

  std::uint32_t number() const;       // not 0, unique on its device while it lives, in 24 bits
  QpState state() const;              // docs/architecture.md has the table (D9); reset when empty
  std::uint32_t connections() const;  // begun so far, whatever came of them
  // Moves it as verbs programs do. init: receives may be posted. error: work completes as flushed.
  // reset: forgets all work and its completions, those not polled included, without a word; through
  // init it can be connected again. Errors, and nothing has changed then: wrong_state (not from the
  // state it is in), and of RoCE what QpAttributes say, invalid_argument (an attribute that the
  // move needs is missing, or one is not the move's), unreachable (no local address has a route to
  // the peer). iWARP: of the attributes only `access` counts, in each move (reset: all again); made
  // in init; error ends the connection by RST; sqd is disconnect(); rtr and rts come by connecting.
  // RoCE: made in reset. rtr: what the peer asks for is served. rts: sends begin. sqd: they stop
  // beginning, and rts lets them go on. error: nobody is told, the peer not and no event comes.
  Result<void> modify(QpState to, const QpAttributes& attributes = {});
  // Whether sends are taken before there is a connection, in state init and while it is made. They
  // begin when it is established, and are flushed if it never is. RoCE: they are not.
  void take_early_sends(bool on);

  // Post work; thread safe. Receives may be posted from state init on, sends from rts (they are
  // flushed in error). post_send tries to transmit before it returns. Errors: queue_full,
  // invalid_argument (too many SGEs, inline too long, receives on a queue pair with a
  // SharedReceiveQueue, what the service does not have: UC no reads, atomics or invalidation of
  // peers' keys, UD nothing but sends with an AddressHandle of its protection domain, no longer
  // than a packet, XRC the half of the other end), wrong_state. A request counts until its
  // completion, or a later one of its queue, has been polled; one that has none, once it is done
  // and nothing before it waits to be polled.
  Result<void> post_send(const SendRequest& request);
  // Several at once: one doorbell. Returns how many were taken; `*why` says why not all.
  std::size_t post_send(std::span<const SendRequest> requests, Error* why = nullptr);
  Result<void> post_receive(const ReceiveRequest& request);

  // Connect to "address:port" and wait until established or failed. Asynchronous form: with
  // QpOptions::events, connect_start returns at once and an Event follows. Errors: wrong_state (it
  // has or had a connection), unreachable, refused, rejected (peer_private_data() has what the peer
  // said), timed_out, reset, protocol, unsupported (require_fast; of UC, UD or xrc_receive), in_use
  // (no local port is left). RoCE: from reset it goes through init, where the peer may write, and
  // read and use atomics if `ird` is not 0; in init already, as modify() said, and receives can be
  // posted before. The path MTU is the largest that both ends take. After a reset it can be
  // connected again when time-wait is over (2.3 s, wrong_state until then). An end that does not
  // speak RoCE does not answer: timed_out.
  Result<void> connect(std::string_view address, const ConnectionOptions& options = {});
  Result<void> connect_start(std::string_view address, const ConnectionOptions& options = {});
  // Its events go there from now on, with that context, and so do those that are queued and not yet
  // fetched. Errors: invalid_argument (empty, or of another device).
  Result<void> deliver_events(const EventQueue& events, void* context);
  // Private data of the peer's answer (active side), bytes; empty before. RoCE: 196, or 148 of a
  // refusal, zeroes behind what the peer gave.
  std::string peer_private_data() const;

  // Orderly end once everything posted has been sent (iWARP: FIN, RFC 5044, 7.3); work outstanding
  // afterwards is flushed. Returns at once; `disconnected` or `failed` follows. Nothing without a
  // connection, which one of RoCE made by modify() does not have. RoCE: nothing is waited for, as
  // rdma_disconnect does: what is outstanding is flushed at once, the peer's when the DREQ comes.
  void disconnect();
  // Ends it now (iWARP: RST, RFC 9293, 3.10.5; RoCE: Error, and a DREQ); `failed` follows. Nothing
  // without a connection, as disconnect().
  void abort();

  // Destroys it, and its completions that nobody has polled with it; the handle is empty
  // afterwards.
  void discard();

  // Current type and everything counted about this connection, or the last one (D10). Waits for a
  // burst of the engine.
  ConnectionStats stats() const;
  // Reads and atomics of the peer that are served at a time, and of this end that may be
  // outstanding, as both ends have agreed (RFC 6581, 3.1; IB-135): from `established` on until the
  // next connection. Waits for a burst of the engine.
  std::uint16_t ird() const;
  std::uint16_t ord() const;
  // The attributes of its connection, as its moves or connection management have set them: those
  // that its service has and that are set so far. iWARP: none. Waits for a burst of the engine.
  QpAttributes attributes() const;

 private:
  friend class Device;
  friend class ConnectRequest;
  explicit QueuePair(std::shared_ptr<device::QpImpl> i) : impl_(std::move(i)) {}
  std::shared_ptr<device::QpImpl> impl_;
};

// Ends with its destruction. A ConnectRequest that has been fetched can be answered afterwards as
// well; the others are refused.
class URNIC_API Listener {
 public:
  Listener() = default;
  Listener(Listener&&) noexcept = default;
  Listener& operator=(Listener&&) noexcept;
  ~Listener();
  explicit operator bool() const { return impl_ != nullptr; }
  // Host byte order; 0 when empty. As Binding::port().
  std::uint16_t port() const;
  // As QueuePair::deliver_events().
  Result<void> deliver_events(const EventQueue& events, void* context);
  // Wait for the next request (only for listeners made without an EventQueue of the caller's).
  // Errors: timed_out.
  Result<ConnectRequest> next(int timeout_ms);

 private:
  friend class Device;
  explicit Listener(std::shared_ptr<device::ListenerImpl> i) : impl_(std::move(i)) {}
  std::shared_ptr<device::ListenerImpl> impl_;
};

// ---- device -------------------------------------------------------------------------------------

struct DeviceInfo {
  std::string port;  // "memif:socket=..."
  std::string mac;
  std::string addresses;  // "10.77.0.1/24 fe80::.../64"
  std::uint32_t mtu = 0;  // IP MTU in bytes; 0: the kernel's TCP, which has its own
  bool link_up = false;
  std::string link_reason;  // why it is not up, or who was turned away last; may be empty
  // What the capture (setting `capture`) lacks and why; empty while it has everything.
  std::string capture_error;
  std::string kernel;    // validation kernel in use
  std::string identity;  // what the drop-in libraries say the device is: the setting, chosen
};

class URNIC_API Device {
 public:
  Device() = default;
  // Opens the port named by the configuration and starts an engine on it. Touches neither the
  // caller's CPU affinity, signals, syslog ident nor standard output. Errors: what Config::check()
  // finds, unavailable (the port, a thread), permission and io (log_file), no_memory.
  static Result<Device> open(const Config& config);
  explicit operator bool() const { return impl_ != nullptr; }

  // As it is now; waits for a burst of the engine.
  DeviceInfo info() const;
  // True once the link is up and own addresses found unique (RFC 5227). timeout_ms -1: for ever.
  bool wait_link(int timeout_ms);

  Result<ProtectionDomain> alloc_pd();  // as many as wanted
  // Registers memory of the caller's, any length; `access` of the bits of Access. It is not pinned;
  // up to 4 MiB are faulted in. `iova`: what elements of ours and peers call the first byte
  // instead of `address`; means nothing for a zero-based region. Errors: invalid_argument (rights,
  // range), no_memory (2^20 regions), bad_address (not all is mapped and accessible as wanted).
  Result<MemoryRegion> register_memory(const ProtectionDomain&, void* address, std::size_t length,
                                       std::uint32_t access,
                                       std::optional<std::uint64_t> iova = std::nullopt);
  // Not bound yet. Errors: no_memory (2^20 with the regions).
  Result<MemoryWindow> create_window(const ProtectionDomain&, WindowType type);
  // `depth` 1 to 2^24 entries, memory taken as it fills; `context` is for cq_overrun.
  Result<CompletionQueue> create_cq(std::uint32_t depth, void* context = nullptr);
  Result<CompletionChannel> create_completion_channel();  // takes a descriptor
  Result<EventQueue> create_event_queue();                // takes a descriptor
  // XRC: the domain that others on this device have opened by that name, or a new one; without a
  // name one that nobody else has. Errors: unsupported (the device does not speak RoCE).
  Result<XrcDomain> open_xrc_domain(std::string_view name = {});
  Result<SharedReceiveQueue> create_srq(const ProtectionDomain&, const SrqOptions& options = {});
  // Errors: in_use (another queue pair has the `number` wanted), unsupported (a transport that the
  // device does not speak, or that does not have the service).
  Result<QueuePair> create_qp(const ProtectionDomain&, const QpOptions& options);

  // The way for requests of UD. Whoever is next on it is asked for at once. Errors: unsupported
  // (the device does not speak RoCE), invalid_argument (a value of `path` that cannot be),
  // unreachable (no local address has a route there), no_memory (2^20 of them).
  Result<AddressHandle> create_address_handle(const ProtectionDomain&, const QpPath& path);

  // ---- addresses; iWARP: of IP, and ports of TCP
  // Its own now: "10.77.0.1", "fd77::1"; over the kernel's TCP the machine's. Over the kernel's TCP
  // or UDP link-local ones have a zone, "fe80::1%2", which may be given by name. Errors: io.
  Result<std::vector<std::string>> addresses() const;
  // Whether `address` ("10.77.0.1") is one of them: can be bound, and others reach us by it.
  bool has_address(std::string_view address) const;
  // The one that connections to `address` leave from. Errors: unreachable.
  Result<std::string> source_for(std::string_view address) const;
  // How near `address` is: the length of the longest network around an own address that has it (all
  // of its bits where it is an own one), 0 where a gateway leads there. Of several devices the one
  // with the longest has the way to it. Errors: unreachable.
  Result<unsigned> prefix_length_for(std::string_view address) const;
  // Keeps "address:port" for the caller. The address is an own one, or "0.0.0.0" or "[::]" for all
  // of version 4 or for all; port 0 chooses one. Errors: in_use (somebody has it, or an overlapping
  // one), permission (of the port), invalid_argument (not an own address, or what AccessOptions
  // do not allow), unsupported (the device
  // does not speak the transport).
  Result<Binding> bind(std::string_view address, const BindOptions& options = {});
  // Listen there; several listeners may have one port at different addresses. `at` is empty
  // afterwards. `events` as for QpOptions. `backlog`: requests that may wait for an answer, at
  // least 1. Errors: in_use (shared, and another listens); `at` is then as it was.
  Result<Listener> listen(Binding& at, int backlog = 128, const EventQueue& events = {},
                          void* context = nullptr);
  // Listen on a port of all own addresses, for iWARP if the device speaks it, else for RoCE; 0
  // chooses one. Errors: as bind().
  Result<Listener> listen(std::uint16_t port, int backlog = 128, const EventQueue& events = {},
                          void* context = nullptr);

  // Who takes datagrams at "address:port" (urnic/datagram_service.h): waits until it is known.
  // Errors: those of resolve_failed, unsupported (the device does not speak RoCE), unreachable.
  Result<DatagramPeer> resolve(std::string_view address, const ResolveOptions& options = {});
  // Returns at once; `resolved` or `resolve_failed` follows, one of them, with `context`.
  Result<Resolution> resolve_start(std::string_view address, const EventQueue& events,
                                   void* context = nullptr, const ResolveOptions& options = {});

  // RoCE: asks for a connection whose queue pair the program moves itself (urnic/cm_connection.h).
  // Returns at once; `answered` or `connect_failed` follows with `context`. Errors: as
  // QueuePair::connect_start, unsupported (the device does not speak RoCE), invalid_argument (the
  // number).
  Result<CmConnection> cm_connect_start(std::string_view address, const CmQueuePair& qp,
                                        const EventQueue& events, void* context = nullptr,
                                        const ConnectionOptions& options = {});

  // Where link_up, link_down and cq_overrun arrive; an empty queue: nowhere. The device does not
  // keep the queue alive.
  Result<void> deliver_events(const EventQueue& events, void* context = nullptr);

  // Run the engine once from this thread (what CompletionQueue::poll does): for programs that poll
  // memory instead of a completion queue. Returns true if there was something to do.
  bool progress();
  // True while this thread is within a call that drives an engine. A signal handler asks it: where
  // it has interrupted such a call, calls of a device would wait for ever. Any thread.
  static bool is_in_call();
  // For a program about to exit: ends every connection as QueuePair::disconnect() does, those whose
  // queue pairs are gone included, and waits at most timeout_ms until their peers have answered.
  // Over the kernel's TCP it does nothing, as the kernel does so by itself. Any thread.
  void disconnect_all(int timeout_ms);
  EngineStats stats() const;

 private:
  std::shared_ptr<device::DeviceImpl> impl_;
};

}  // namespace urnic
