// RDMA verbs as C++ objects: device, protection domain, memory region, completion queue, queue
// pair. The transport is iWARP (RFC 5040, 5041, 5044) over urnic's own TCP or the kernel's, or
// RoCEv2. RoCEv2 queue pairs are connected in the same way as those of iWARP, by connection
// management over queue pair 1 as rdma_cm does it, or by the program itself
// (urnic/qp_attributes.h).
//
// Everything here applies to every transport unless a comment says otherwise. Options of only one
// transport are in members named `iwarp` or `roce` (ConnectionOptions, QpOptions, ConnectionStats,
// EngineStats), and a comment "iWARP:" or "RoCE:" says what a call, a limit or a value means there.
// Queue pairs of another transport ignore those members.
//
// Lifetime: every object is a movable handle; it keeps the objects that it depends on alive (a
// QueuePair its completion queues, its protection domain, its device). Destroying a QueuePair that
// still has a connection aborts the connection (RST), unless disconnect() was called before or the
// peer has closed: then posted sends go out first, then the end (iWARP: FIN), or the abort after
// ten seconds. The program gets no completion or event of this, and no memory of the caller is read
// or written: data that is left to send is copied (up to 256 MiB; a connection with more is
// aborted), outstanding Reads are abandoned, and data from the peer is discarded. The last handle
// of a device waits at most a second for such ends. RoCE: the peer gets a DREQ and nothing more is
// sent; the number is not used again until time-wait is over (2.3 s).
//
// Threads: all calls are thread safe as verbs promise, also on the same object. Moving and
// destroying a handle are not calls on the object, and no other thread may use the handle then.
// Progress: a thread that polls a CompletionQueue drives the engine itself; when no thread polls,
// the device's background thread does (setting `progress`, D8).
//
// Errors: no function throws. Every Result may have these errors besides those at the call:
//   invalid_argument  the handle, or one given as an argument, is empty or of another device
//   no_memory         out of memory
//   no_descriptors    out of file descriptors (ulimit -n)
//   closed            the device belongs to the parent of a forked child
// In these cases, calls without a Result return an empty value, false, -1, or do nothing.
//
// Units: lengths in bytes, times in milliseconds unless the name says otherwise; -1: no limit.
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

// Reserves a local address and port, to listen at it or to connect from it. A peer that connects to
// it is refused. It does not follow changes of the machine's addresses.
class URNIC_API Binding {
 public:
  Binding() = default;
  Binding(Binding&&) noexcept = default;
  Binding& operator=(Binding&&) noexcept;
  ~Binding();
  explicit operator bool() const { return impl_ != nullptr; }
  // "10.77.0.1:18515", "[::]:18515"; an empty string for an empty handle.
  std::string address() const;
  // Host byte order; 0 for an empty handle. iWARP: a TCP port. RoCE: a port of rdma_cm's port space
  // for TCP, or for UDP (BindOptions::service).
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
  // Valid as long as this object exists. RoCE: always 56 bytes, the peer's padded with zeroes.
  std::span<const std::uint8_t> private_data() const;
  // How many Reads and atomics the peer wants outstanding; iWARP: our limit if it does not say.
  std::uint16_t ird() const;
  std::uint16_t ord() const;  // how many the peer can serve, and we may have outstanding
  // RoCE: how often both ends repeat a request without a response, and how often this end repeats a
  // request for which the peer has no receive (7: without limit). iWARP: 0.
  std::uint8_t retry_count() const;
  std::uint8_t rnr_retry() const;
  // the request's data about the peer's queue pair, including these two
  RocePeer roce_peer() const;
  // The service that the peer requests: a connection (rc, xrc_receive), or datagrams (ud), where
  // the private data has 180 bytes.
  Service service() const;
  // Accepts the connection on `qp` (state init or reset), of the transport of the listener.
  // Asynchronous: `established` or `connect_failed` follows on the queue pair. Errors: closed (the
  // peer gave up meanwhile), wrong_state (answered already; `qp` has or had a connection), as
  // QueuePair::connect_start. For datagrams: `qp` is of UD, in rtr or rts, and any number of
  // requests may be accepted on it; the answer is sent during the call, with up to 136 bytes of
  // private data, and no event follows. After invalid_argument or wrong_state the request can be
  // answered again.
  Result<void> accept(QueuePair& qp, const ConnectionOptions& options = {});
  // RoCE, service rc: accepts the connection for a queue pair that the program moves itself
  // (urnic/cm_connection.h). `established` or `connect_failed` follows in `events` with `context`.
  // Errors: closed, wrong_state as above, invalid_argument (number, private data, kind of request).
  Result<CmConnection> accept_number(const CmQueuePair& qp, const EventQueue& events, void* context,
                                     const ConnectionOptions& options = {});
  // Service ud: answers with this number, 24 bits, without looking it up; otherwise as accept().
  Result<void> accept_datagrams(std::uint32_t number, std::uint32_t qkey,
                                std::span<const std::uint8_t> private_data = {});
  // RoCE, service rc: the attributes that move the accepting queue pair, as
  // CmConnection::attributes(); the depths are the largest that the peer and this end both support.
  // Otherwise empty.
  QpAttributes attributes() const;
  // Refuses the request. iWARP: MPA Reply with R=1 (RFC 5044, 7.1.1), with up to 508 bytes. RoCE:
  // REJ 28, with up to 148 bytes (for datagrams SIDR REP 2, 136), padded with zeroes; more are cut.
  // Destroying an unanswered request does the same. Does nothing after an answer.
  void reject(std::span<const std::uint8_t> private_data = {});

 private:
  friend struct device::DeviceImpl;
  std::shared_ptr<device::RequestImpl> impl_;
};

struct Event {
  EventKind kind = EventKind::failed;
  // on a QueuePair: the number of its connection, as in connections(); 0: none
  std::uint32_t connection = 0;
  // The context of the QueuePair, Listener, SharedReceiveQueue, CompletionQueue or Device.
  void* context = nullptr;
  ConnectRequest request;
  Error error;
  std::string private_data;  // bytes
  // data of the message that caused `answered`, `established` (active side), connect_failed
  RocePeer roce_peer;
  DatagramPeer peer;  // of a Resolution; its private_data is the one above
};

// The queue in which connection events arrive. One queue may serve many queue pairs and listeners.
class URNIC_API EventQueue {
 public:
  EventQueue() = default;
  explicit operator bool() const { return impl_ != nullptr; }
  // Takes the next event, oldest first, or returns false. Drives the engine if no other thread
  // does.
  bool poll(Event* out);
  // Like poll(), but sleeps up to timeout_ms (-1: no limit) or until wake(); then returns false.
  bool wait(Event* out, int timeout_ms);
  // Wakes the thread that sleeps in wait(); if there is none, the next wait() returns at once.
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
  std::uint32_t limit = 0;            // as for set_limit()
  EventQueue events;                  // optional: where receive_limit arrives
  void* context = nullptr;
  XrcDomain xrc_domain;        // XRC: only receiving ends of this domain may use the queue
  CompletionQueue receive_cq;  // XRC: all receives of the queue complete here
};

// A queue of receives that any number of queue pairs share, oldest first; QpOptions::srq attaches a
// queue pair to it. The Sends of one queue pair use receives in the order in which they were sent;
// between queue pairs the order of arrival decides. A receive completes on the receive_cq of the
// queue pair that used it, with the number of that queue pair.
//
// Each queue pair keeps the queue alive. When a queue pair ends, the receives that it had taken and
// not completed complete as flushed, and last_receive arrives; the others stay for the other queue
// pairs. If a queue pair is destroyed before it has ended, the receives that it had taken are lost.
class URNIC_API SharedReceiveQueue {
 public:
  SharedReceiveQueue() = default;
  explicit operator bool() const { return impl_ != nullptr; }

  // Thread safe; does not wait for the engine. Errors: queue_full (a receive counts until its
  // completion has been polled), invalid_argument (too many SGEs). Local keys must belong to the
  // protection domain of this queue.
  Result<void> post_receive(const ReceiveRequest& request);
  // Posts several at once. Returns how many were posted; `*why` has the reason if not all were.
  std::size_t post_receive(std::span<const ReceiveRequest> requests, Error* why = nullptr);
  // Requests one receive_limit event as soon as fewer than `limit` receives are left, also if that
  // is already so. Then the limit becomes 0: no request. Errors: invalid_argument: above
  // max_receive.
  Result<void> set_limit(std::uint32_t limit);
  struct Attributes {
    std::uint32_t max_receive = 0, max_receive_sge = 0;
    std::uint32_t limit = 0;   // armed
    std::uint32_t posted = 0;  // not used by a Send yet
  };
  Attributes query() const;
  // XRC: 24 bits, unique on its device as long as it exists; otherwise 0
  std::uint32_t number() const;

 private:
  friend class Device;
  explicit SharedReceiveQueue(std::shared_ptr<device::SrqImpl> i) : impl_(std::move(i)) {}
  std::shared_ptr<device::SrqImpl> impl_;
};

struct QpOptions {
  // May be the same queue. XRC: the sending end has only send_cq, the receiving end has none.
  CompletionQueue send_cq, receive_cq;
  EventQueue events;  // optional: without it, use the blocking calls
  void* context = nullptr;
  std::uint32_t max_send = 128, max_receive = 128;  // work requests outstanding; 0: none allowed
  std::uint32_t max_send_sge = 4, max_receive_sge = 4;
  std::uint32_t max_inline = 256;
  bool signal_all = false;  // every send request completes visibly
  // Also deliver communication_established, access_error and the three after it to `events`.
  bool asynchronous_events = false;
  // The queue pair's number, 24 bits, where peers find the queue pair by it. 0: the device chooses
  // one; for RoCE it always does.
  std::uint32_t number = 0;
  // A transport that the device speaks (setting `transport`). If not set: iWARP if it is spoken.
  std::optional<Transport> transport;
  // UC and UD queue pairs are moved by modify(), not by connect() or accept(). A send that fails on
  // such a queue pair moves it to sqe instead of error; only its completion reports that, no event.
  // Later sends are flushed, receives continue, and modify() moves it back to rts.
  Service service = Service::rc;
  // If set, receives come from this queue: max_receive and max_receive_sge are ignored, and
  // QueuePair::post_receive is refused. It belongs to the same device.
  SharedReceiveQueue srq;
  XrcDomain xrc_domain;  // for xrc_receive, which has no `srq`
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

  std::uint32_t number() const;  // never 0; unique on its device as long as it exists; 24 bits
  QpState state() const;  // the table is in docs/architecture.md (D9); reset for an empty handle
  std::uint32_t connections() const;  // how many were started so far, with any result
  // Changes the state as verbs programs do. init: receives may be posted. error: work completes as
  // flushed. reset: discards all work and its completions, also those not polled, without any
  // event; after a move to init it can be connected again. Errors, after which nothing has changed:
  // wrong_state (not allowed from the present state); for RoCE, as QpAttributes describes,
  // invalid_argument (an attribute that the move needs is missing, or one that it does not take is
  // set) and unreachable (no local address has a route to the peer). iWARP: only the attribute
  // `access` is used, in each move (reset: all rights again); the queue pair is created in init;
  // error ends the connection with RST; sqd is disconnect(); rtr and rts are reached by connecting.
  // RoCE: created in reset. rtr: requests of the peer are served. rts: sends begin. sqd: no new
  // sends begin, and rts resumes them. error: sends nothing to the peer and delivers no event.
  Result<void> modify(QpState to, const QpAttributes& attributes = {});
  // If on, sends are accepted before there is a connection, in state init and while connecting.
  // They begin when the connection is established, and are flushed if it never is. RoCE: no effect.
  void take_early_sends(bool on);

  // Post work; thread safe. Receives may be posted from state init on, sends from rts (they are
  // flushed in error). post_send tries to transmit before it returns. Errors: queue_full,
  // invalid_argument (too many SGEs, inline data too long, receives on a queue pair with a
  // SharedReceiveQueue, an operation that the service does not have: UC has no reads, atomics or
  // invalidation of the peer's keys; UD has only sends, with an AddressHandle of its protection
  // domain, no longer than a packet; each end of XRC has only its half), wrong_state. A request
  // counts until its completion, or a later one of its queue, has been polled. A request without a
  // completion counts until it is done and no earlier completion waits to be polled.
  Result<void> post_send(const SendRequest& request);
  // Posts several with one doorbell. Returns how many were posted; `*why` explains a smaller
  // number.
  std::size_t post_send(std::span<const SendRequest> requests, Error* why = nullptr);
  Result<void> post_receive(const ReceiveRequest& request);

  // Connects to "address:port" and waits until the connection is established or has failed.
  // Asynchronous form: with QpOptions::events, connect_start returns at once and an Event follows.
  // Errors: wrong_state (it has or had a connection), unreachable, refused, rejected
  // (peer_private_data() has the peer's data), timed_out, reset, protocol, unsupported
  // (require_fast; of UC, UD or xrc_receive), in_use (no local port is left). RoCE: a queue pair in
  // reset goes through init, with remote write allowed, and reads and atomics if `ird` is not 0. To
  // choose the rights, or to post receives first, move it to init with modify() before. The path
  // MTU is the largest that both ends support. After a move to reset it can connect again when
  // time-wait is over (2.3 s; wrong_state until then). An end that does not speak RoCE does not
  // answer: timed_out.
  Result<void> connect(std::string_view address, const ConnectionOptions& options = {});
  Result<void> connect_start(std::string_view address, const ConnectionOptions& options = {});
  // Delivers its events to that queue from now on, with that context; events that are queued and
  // not fetched yet move too. Errors: invalid_argument (empty, or of another device).
  Result<void> deliver_events(const EventQueue& events, void* context);
  // Private data of the peer's answer (active side), bytes; empty before. RoCE: 196 bytes, or 148
  // of a refusal, the peer's data padded with zeroes.
  std::string peer_private_data() const;

  // Ends the connection in order once everything posted has been sent (iWARP: FIN, RFC 5044, 7.3);
  // work outstanding afterwards is flushed. Returns at once; `disconnected` or `failed` follows.
  // Does nothing without a connection; a RoCE queue pair connected by modify() has none. RoCE:
  // waits for nothing, like rdma_disconnect: outstanding work is flushed at once, and that of the
  // peer when the DREQ arrives.
  void disconnect();
  // Ends the connection now (iWARP: RST, RFC 9293, 3.10.5; RoCE: Error, and a DREQ); `failed`
  // follows. Does nothing without a connection, as disconnect().
  void abort();

  // Destroys the queue pair and its completions that were not polled; the handle is empty then.
  void discard();

  // Current type and all counters of this connection, or of the last one (D10). Waits for a burst
  // of the engine.
  ConnectionStats stats() const;
  // How many Reads and atomics of the peer are served at a time, and how many of this end may be
  // outstanding, as both ends agreed (RFC 6581, 3.1; IB-135). Valid from `established` until the
  // next connection. Waits for a burst of the engine.
  std::uint16_t ird() const;
  std::uint16_t ord() const;
  // The attributes of its connection, as modify() or connection management has set them: those that
  // its service has and that are set so far. iWARP: none. Waits for a burst of the engine.
  QpAttributes attributes() const;

 private:
  friend class Device;
  friend class ConnectRequest;
  explicit QueuePair(std::shared_ptr<device::QpImpl> i) : impl_(std::move(i)) {}
  std::shared_ptr<device::QpImpl> impl_;
};

// Destroying it ends listening. A ConnectRequest that has been fetched can still be answered; the
// others are refused.
class URNIC_API Listener {
 public:
  Listener() = default;
  Listener(Listener&&) noexcept = default;
  Listener& operator=(Listener&&) noexcept;
  ~Listener();
  explicit operator bool() const { return impl_ != nullptr; }
  // Host byte order; 0 for an empty handle. See Binding::port().
  std::uint16_t port() const;
  // As QueuePair::deliver_events().
  Result<void> deliver_events(const EventQueue& events, void* context);
  // Waits for the next request (only for listeners made without an EventQueue of the caller).
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
  std::uint32_t mtu = 0;  // IP MTU in bytes; 0: over the kernel's TCP, which has its own
  bool link_up = false;
  std::string link_reason;  // why the link is down, or which peer was refused last; may be empty
  // Parts that the capture (setting `capture`) lacks, and why; empty while it is complete.
  std::string capture_error;
  std::string kernel;  // the validation kernel in use
  // the identity that the drop-in libraries report: the setting, with `auto` resolved
  std::string identity;
};

class URNIC_API Device {
 public:
  Device() = default;
  // Opens the port named by the configuration and starts an engine on it. Does not touch the
  // caller's CPU affinity, signals, syslog ident or standard output. Errors: those of
  // Config::check(), unavailable (the port, a thread), permission and io (log_file), no_memory.
  static Result<Device> open(const Config& config);
  explicit operator bool() const { return impl_ != nullptr; }

  // The present values; waits for a burst of the engine.
  DeviceInfo info() const;
  // True once the link is up and the own addresses are unique (RFC 5227). timeout_ms -1: no limit.
  bool wait_link(int timeout_ms);

  Result<ProtectionDomain> alloc_pd();  // any number of them
  // Registers memory of the caller, of any length; `access` has bits of Access. The memory is not
  // pinned; up to 4 MiB are faulted in. `iova`: the address of the first byte in our Sge elements
  // and for peers, instead of `address`; ignored for a zero-based region. Errors: invalid_argument
  // (rights, range), no_memory (2^20 regions), bad_address (not mapped, or without that access).
  Result<MemoryRegion> register_memory(const ProtectionDomain&, void* address, std::size_t length,
                                       std::uint32_t access,
                                       std::optional<std::uint64_t> iova = std::nullopt);
  // The new window is not bound. Errors: no_memory (2^20 together with the regions).
  Result<MemoryWindow> create_window(const ProtectionDomain&, WindowType type);
  // `depth` is 1 to 2^24 entries; memory is allocated as it fills; `context` is for cq_overrun.
  Result<CompletionQueue> create_cq(std::uint32_t depth, void* context = nullptr);
  Result<CompletionChannel> create_completion_channel();  // takes a descriptor
  Result<EventQueue> create_event_queue();                // takes a descriptor
  // XRC: opens the domain of that name on this device, or creates it; without a name it creates a
  // private one. Errors: unsupported (the device does not speak RoCE).
  Result<XrcDomain> open_xrc_domain(std::string_view name = {});
  Result<SharedReceiveQueue> create_srq(const ProtectionDomain&, const SrqOptions& options = {});
  // Errors: in_use (another queue pair has the requested `number`), unsupported (a transport that
  // the device does not speak, or that does not have the service).
  Result<QueuePair> create_qp(const ProtectionDomain&, const QpOptions& options);

  // The destination of UD requests. Starts to resolve the next hop at once. Errors: unsupported
  // (the device does not speak RoCE), invalid_argument (an invalid value in `path`), unreachable
  // (no local address has a route there), no_memory (2^20 of them).
  Result<AddressHandle> create_address_handle(const ProtectionDomain&, const QpPath& path);

  // ---- addresses; iWARP: of IP, and ports of TCP The device's present addresses: "10.77.0.1",
  // "fd77::1"; over the kernel's TCP those of the machine. Over the kernel's TCP or UDP, link-local
  // addresses have a zone, "fe80::1%2"; callers may also give the zone by name. Errors: io.
  Result<std::vector<std::string>> addresses() const;
  // True if `address` ("10.77.0.1") is one of them: it can be bound, and peers can reach it.
  bool has_address(std::string_view address) const;
  // The local address that connections to `address` use. Errors: unreachable.
  Result<std::string> source_for(std::string_view address) const;
  // How near `address` is: the prefix length of the longest local network that contains it (all
  // bits if it is a local address), 0 if it is reached by a gateway. Among several devices, the one
  // with the longest prefix has the route to it. Errors: unreachable.
  Result<unsigned> prefix_length_for(std::string_view address) const;
  // Reserves "address:port" for the caller. The address is a local one, or "0.0.0.0" for all of
  // version 4, or "[::]" for all; port 0 chooses one. Errors: in_use (the same or an overlapping
  // one is reserved), permission (of the port), invalid_argument (not a local address, or a value
  // that AccessOptions does not allow), unsupported (the device does not speak the transport).
  Result<Binding> bind(std::string_view address, const BindOptions& options = {});
  // Listens there; several listeners may have one port at different addresses. `at` is empty
  // afterwards. `events` as for QpOptions. `backlog`: requests that may wait for an answer, at
  // least 1. Errors: in_use (shared, and another one listens); then `at` is unchanged.
  Result<Listener> listen(Binding& at, int backlog = 128, const EventQueue& events = {},
                          void* context = nullptr);
  // Listens on a port of all local addresses, for iWARP if the device speaks it, else for RoCE;
  // port 0 chooses one. Errors: as bind().
  Result<Listener> listen(std::uint16_t port, int backlog = 128, const EventQueue& events = {},
                          void* context = nullptr);

  // Resolves the queue pair that takes datagrams at "address:port" (urnic/datagram_service.h), and
  // waits for the answer. Errors: those of resolve_failed, unsupported (the device does not speak
  // RoCE), unreachable.
  Result<DatagramPeer> resolve(std::string_view address, const ResolveOptions& options = {});
  // Returns at once; either `resolved` or `resolve_failed` follows, with `context`.
  Result<Resolution> resolve_start(std::string_view address, const EventQueue& events,
                                   void* context = nullptr, const ResolveOptions& options = {});

  // RoCE: requests a connection whose queue pair the program moves itself (urnic/cm_connection.h).
  // Returns at once; `answered` or `connect_failed` follows with `context`. Errors: as
  // QueuePair::connect_start, unsupported (the device has no RoCE), invalid_argument (the number).
  Result<CmConnection> cm_connect_start(std::string_view address, const CmQueuePair& qp,
                                        const EventQueue& events, void* context = nullptr,
                                        const ConnectionOptions& options = {});

  // Sets the queue for link_up, link_down and cq_overrun; an empty queue: they are not delivered.
  // The device does not keep the queue alive.
  Result<void> deliver_events(const EventQueue& events, void* context = nullptr);

  // Runs the engine once in this thread (as CompletionQueue::poll does): for programs that poll
  // memory instead of a completion queue. Returns true if there was something to do.
  bool progress();
  // True while this thread is inside a call that drives an engine. A signal handler checks it: if
  // it has interrupted such a call, its own calls on a device would deadlock. Any thread.
  static bool is_in_call();
  // For a program about to exit: ends every connection as QueuePair::disconnect() does, including
  // those whose queue pairs are destroyed, and waits at most timeout_ms for the peers' answers.
  // Over the kernel's TCP, which ends the connections itself, it only waits until what `faults`
  // holds back has left. Any thread.
  void disconnect_all(int timeout_ms);
  EngineStats stats() const;

 private:
  std::shared_ptr<device::DeviceImpl> impl_;
};

}  // namespace urnic
