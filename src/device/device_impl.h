// The objects that the handles of include/urnic/verbs.h refer to.
#pragma once

#include <errno.h>

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>

#include "base/spinlock.h"
#include "device/counter_report.h"
#include "device/driver.h"
#include "device/event_queue.h"
#include "device/fault_handler.h"
#include "device/guard.h"
#include "device/log.h"
#include "device/present_memory.h"
#include "device/stat_server.h"
#include "device/xrc_domains.h"
#include "engine/engine.h"
#include "fault/capture_port.h"
#include "fault/fault_port.h"
#include "kernel_tcp/address_news.h"
#include "port/port.h"
#include "urnic/verbs.h"

namespace urnic::device {

struct CqImpl;

struct EventQueueImpl {
  // bound: unfetched events of a device (link, address conflict); beyond: the oldest is dropped;
  // test: DeviceNews.EventsOfTheDeviceAreBoundedAndTheLatestAreKept
  static constexpr std::size_t kMostNews = 64;
  // An event, and the object of this file that it belongs to.
  struct Entry {
    Event event;
    const void* from = nullptr;
  };
  std::shared_ptr<DeviceImpl> device;
  std::mutex mutex;
  std::list<Entry> events;  // a list: moving events to another queue allocates no memory
  bool woken = false;       // wait() must return
  device::EventFd fd;       // readable while there are events, or `woken`

  EventQueueImpl() = default;
  EventQueueImpl(const EventQueueImpl&) = delete;
  EventQueueImpl& operator=(const EventQueueImpl&) = delete;
  ~EventQueueImpl();

  void push(Event e, const void* from);
  // Adds an event of the device itself. The device reports such events even if they are not
  // fetched; when there are more than kMostNews, the oldest is dropped.
  void push_news(Event e);
  bool pop(Event* out);
  // Removes and returns the queued events of that object.
  std::list<Entry> take_of(const void* from);
  void put(std::list<Entry> more);
  void wake();
  bool take_wake();
  bool usable() const { return fd.get() >= 0; }
};

// Completion queues with events, oldest first. A queue removes itself before it is destroyed.
struct ChannelImpl {
  explicit ChannelImpl(std::shared_ptr<DeviceImpl> d) : device(std::move(d)) {}
  // Allocates no memory, because it runs in the middle of a burst.
  void push(CqImpl& cq);
  bool pop(void** context);
  void remove(CqImpl& cq);
  bool usable() const { return fd.get() >= 0; }

  std::shared_ptr<DeviceImpl> device;
  device::EventFd fd;  // readable while completion queues are queued

 private:
  void emptied();
  std::mutex mutex_;
  CqImpl *first_ = nullptr, *last_ = nullptr;
};

struct CqImpl : verbs::CompletionQueue {
  CqImpl(std::shared_ptr<DeviceImpl> d, std::uint32_t depth)
      : verbs::CompletionQueue(depth), device(std::move(d)) {}
  ~CqImpl();
  // Wakes the threads that sleep on it.
  void notify();
  // Created by the first call, because most queues are only polled; null when no descriptor is
  // left.
  device::EventFd* descriptor();
  void deliver_to(std::shared_ptr<ChannelImpl> channel, void* its_context);

  std::shared_ptr<DeviceImpl> device;
  void* context = nullptr;

 private:
  friend struct ChannelImpl;
  std::mutex mutex_;  // for the next three members
  std::shared_ptr<ChannelImpl> channel_;
  std::unique_ptr<device::EventFd> fd_;
  bool had_event_ = false;  // an event arrived before there was a descriptor
  // Owned by the channel, under its mutex.
  void* channel_context_ = nullptr;
  CqImpl* next_ = nullptr;
  bool queued_ = false;
};

struct PdImpl {
  std::shared_ptr<DeviceImpl> device;
  verbs::PdId id = 0;
};

struct MrImpl {
  std::shared_ptr<PdImpl> pd;
  void* address = nullptr;
  std::size_t length = 0;
  std::optional<std::uint64_t> iova;
  std::uint32_t access = 0;
  std::uint32_t stag = 0;
  // As in the memory table.
  verbs::Extent extent() const;
  ~MrImpl();
};
struct WindowImpl {
  std::shared_ptr<PdImpl> pd;
  WindowType type = WindowType::type1;
  std::uint32_t key = 0;
  ~WindowImpl();
};
struct AddressHandleImpl {
  std::shared_ptr<PdImpl> pd;
  std::uint32_t handle = 0;  // of the RoCE side
  ~AddressHandleImpl();
};
// Returns an error if it cannot become a region.
std::optional<Error> not_registrable(const MrImpl&);
// Returns an error if its memory is not mapped, or not writable although the rights require it.
std::optional<Error> not_present(const MrImpl&, DeviceImpl&);

struct SrqImpl {
  std::shared_ptr<DeviceImpl> device;
  std::shared_ptr<PdImpl> pd;
  std::shared_ptr<EventQueueImpl> events;
  void* context = nullptr;
  std::shared_ptr<XrcDomainImpl> xrc;  // XRC only, like the next member
  std::shared_ptr<CqImpl> receive_cq;
  // owned by the engine; needs its ownership, except for posting
  verbs::SharedReceiveQueue* queue = nullptr;
  Spinlock lock;  // among threads that post
  ~SrqImpl();
};

struct QpImpl {
  std::shared_ptr<DeviceImpl> device;
  std::shared_ptr<PdImpl> pd;
  std::shared_ptr<SrqImpl> srq;
  std::shared_ptr<XrcDomainImpl> xrc;  // of a receiving end
  std::shared_ptr<CqImpl> send_cq, receive_cq;
  std::shared_ptr<EventQueueImpl> events;
  void* context = nullptr;
  bool signal_all = false;
  bool asynchronous_events = false;
  std::uint32_t most_datagram = 0;       // UD: most bytes of a request
  std::atomic<bool> early_sends{false};  // accept sends before there is a connection
  verbs::QueuePair* qp = nullptr;        // owned by the engine; see queue_pair.h
  Spinlock send_lock, receive_lock;      // among threads that post
  // Outcome of the current connect or accept, for the blocking calls.
  std::mutex mutex;
  enum class Attempt : std::uint8_t { None, Pending, Established, Failed } attempt = Attempt::None;
  Error error;
  std::string private_data;
  struct {                                 // the connection that was started last
    std::string peer;                      // for the log
    std::atomic<std::uint32_t> number{0};  // counted from 1; changed under ownership
  } connection;
  std::unique_ptr<device::EventFd> settled;  // while a thread waits for the outcome
  void settle() {                            // needs `mutex`
    if (settled != nullptr) settled->signal();
  }
  ~QpImpl();
};

struct BindingImpl {
  std::shared_ptr<DeviceImpl> device;
  verbs::Listener* bound = nullptr;  // null once it has become a listener
  SocketAddress at;
  ~BindingImpl();
};

struct ListenerImpl {
  std::shared_ptr<DeviceImpl> device;
  std::shared_ptr<EventQueueImpl> events;
  void* context = nullptr;
  verbs::Listener* place = nullptr;
  std::uint16_t port = 0;
  ~ListenerImpl();
};

struct ResolutionImpl {
  std::shared_ptr<DeviceImpl> device;
  std::shared_ptr<EventQueueImpl> events;
  void* context = nullptr;
  roce::SidrResolver::Id id = 0;
  SocketAddress local;
  ~ResolutionImpl();
};

// Calls on the engine need its ownership.
struct CmConnectionImpl {
  std::shared_ptr<DeviceImpl> device;
  std::shared_ptr<EventQueueImpl> events;
  void* context = nullptr;
  roce::CmConnections::Id id = 0;
  std::string peer;  // for the log
  ~CmConnectionImpl();
};

struct RequestImpl {
  std::shared_ptr<DeviceImpl> device;
  verbs::ConnectionRequest request;
  std::atomic<bool> answered{false};
  ~RequestImpl();
  void refuse(ByteView private_data) const;
};

struct DeviceImpl : verbs::Hooks, std::enable_shared_from_this<DeviceImpl> {
  // `kernel` is set if the port is the kernel's TCP.
  DeviceImpl(const Config& config, std::string port_spec, port::Port p,
             std::shared_ptr<engine::KernelTcp> kernel, std::unique_ptr<device::Log> log,
             const engine::Options& options);
  ~DeviceImpl() override;

  void on_cm_event(verbs::CmEvent event) override;
  void on_completion(verbs::CompletionQueue* cq) override;
  void on_cq_overrun(verbs::CompletionQueue* cq) override;
  void on_shared_limit(verbs::SharedReceiveQueue* queue) override;
  void on_datagram_answer(void* owner, const verbs::DatagramAnswer& answer) override;
  void on_cm_connection(void* owner, const verbs::CmEvent& e) override;
  void on_note(verbs::Note note, const SocketAddress& local, const SocketAddress& peer,
               const char* why) override;
  void on_address_conflict(const IpAddress& address, const MacAddress& with) override;
  void on_link(bool up, const std::string& why) override;
  // Starts watching for changes of the machine's addresses and reporting them. Call before the
  // driver starts.
  void watch_addresses();
  void pass_on(verbs::CmEvent request);
  void finish_ends();
  void disconnect_all(Duration most);
  void finish_faults(Duration most);
  void end_connections(Duration most);
  EngineStats stats();
  EngineStats totals();  // all but the connections
  void serve_statistics();
  void publish_counters();
  std::string why_down() const;
  // Reports an event of the device to its event queue (link, overrun). `from` is the object that
  // the event is about; the event has `about` as its context, or the device's context if `about` is
  // null.
  void tell(EventKind kind, const void* from, void* about, const char* why);
  // Removes the queued events of that object.
  void forget_events(const void* from);
  void log_event(QpImpl& qp, const verbs::CmEvent& e) const;
  void log(device::LogLevel level, const std::string& text) {
    if (logger != nullptr) logger->line(level, text);
  }
  // For use within a burst. If there is no memory for the line it is dropped; the connection goes
  // on.
  template <class Text>
  void log_quietly(device::LogLevel level, Text&& text) const {
    if (logger == nullptr || !logger->wants(level)) return;
    try {
      logger->line(level, text());
    } catch (const std::bad_alloc&) {
      // an event reports the same to the program
    }
  }

  device::FaultHandler fault_handler;  // destroyed last
  Config config;
  std::string port_spec;
  port::Port port;
  std::shared_ptr<fault::CaptureFile> capture;  // written by `port`; null without a capture
  std::shared_ptr<fault::FaultControl> faults;  // of `port`; null without a plan
  std::unique_ptr<engine::Engine> engine;
  std::unique_ptr<device::StatServer> stat_server;
  std::unique_ptr<device::CounterReport> counter_report;  // null: stat = off, or no folder for it
  std::unique_ptr<kernel_tcp::AddressNews> address_news;  // null: addresses are not watched
  std::unique_ptr<device::Driver> driver;
  Instant opened;
  std::unique_ptr<device::Log> logger;  // null: log = off
  std::mutex mutex;                     // for the next two members
  // The queue for the device's own events. A queue keeps its device alive and removes itself from
  // here when it is destroyed. So the device's thread never drops the last reference to the device.
  EventQueueImpl* events = nullptr;
  void* context = nullptr;
  XrcDomains xrc_domains;
  device::MappingQueries mapping_queries;
  std::string link_reason;        // needs the ownership; why the link went down
  std::uint64_t link_losses = 0;  // needs the ownership
};

// The control path of the transport `named`, or else of the device's default transport. Errors:
// invalid_argument, unsupported (the device does not speak it).
Result<verbs::ControlPath*> control_of(engine::Engine&, const std::optional<Transport>& named);

// bound: entries of a completion queue; beyond: creating or resizing it fails with
// invalid_argument; test: CompletionQueueMemory.TheDepthIsLimited
inline constexpr std::uint32_t kMostCompletions = 1u << 24;
inline Error depth_error() {
  return {Errc::invalid_argument, "completion queue: must have between 1 and 16777216 entries"};
}

// The first check of every call on a device.
inline std::optional<Error> unusable(const std::shared_ptr<DeviceImpl>& device) {
  if (device == nullptr) return empty_handle("device");
  if (device->driver->inherited()) return device::inherited_error();
  return std::nullopt;
}

inline bool is_none_left(int error) {
  return error == EMFILE || error == ENFILE;
}
inline Error no_descriptor(const char* what) {
  return {Errc::no_descriptors,
          std::string("no file descriptor left for ") + what + " (see ulimit -n)"};
}

}  // namespace urnic::device
