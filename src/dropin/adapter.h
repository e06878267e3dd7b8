// One device of the drop-in: the ibv_device that programs see, its configuration, and the library's
// Device, which is opened on demand. A thread delivers the device's events to the objects they
// belong to.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "dropin/exported.h"
#include "dropin/gid_slots.h"
#include "dropin/peer_matcher.h"
#include "dropin/signalled_queue.h"
#include "dropin/transport_traits.h"
#include "urnic/urnic.h"

namespace urnic::dropin {

class Adapter;
struct Context;

// The program's ibv_device. The zeros follow it because other vendors' drivers look there for a
// pointer to their own functions, which must be null.
struct DeviceSlot {
  ibv_device device;
  std::uint64_t zeros[8];
  Adapter* adapter;
};

// Numbers of objects (a child of a fork has its own adapters, without its parent's objects).
struct Counts {
  std::atomic<int> queue_pairs{0}, completion_queues{0}, shared_queues{0}, domains{0};
  std::atomic<int> regions{0}, windows{0};
};

class Adapter {
 public:
  // The configuration has been checked. Without a name it is the process's only device: "urnic0".
  // `mac` is locally administered and the same at every start.
  Adapter(unsigned index, const std::string& name, Config config, const std::uint8_t* mac);
  Adapter(const Adapter&) = delete;
  Adapter& operator=(const Adapter&) = delete;

  static Adapter& of(const ibv_device* d) {
    return *reinterpret_cast<const DeviceSlot*>(d)->adapter;
  }
  static Adapter& of(const ibv_context* c) { return of(c->device); }

  ibv_device* slot() { return &slot_.device; }
  unsigned index() const { return index_; }
  const std::uint8_t* mac() const { return mac_; }
  const Config& config() const { return config_; }
  // The transport that the device speaks, and its features.
  const TransportTraits& traits() const { return traits_; }
  Transport transport() const { return traits_.transport; }
  // True if the device is reported as InfiniBand over Ethernet: RoCE always is, iWARP with the
  // setting `identity`.
  bool is_ib_like() const { return is_ib_like_; }
  // How many Reads and atomics at a time: the setting `ird` or `ord`, limited by the transport and
  // the verbs' 8-bit fields.
  std::uint8_t most_reads(const char* setting) const;

  // Opens the device if it is not open. Returns 0 or an errno value; one line on standard error
  // says why.
  int open();
  // Only after open().
  Device& device() { return device_; }
  EventQueue& events() { return events_; }
  // Called when the program exits: ends its connections, and waits at most this long for the peers'
  // answers. Says if the capture is incomplete.
  void disconnect_all(int most_ms);
  // The reported state of the port.
  bool is_port_up() const;
  // Reports the port as down, whatever its link is, or as it is again (injected_events.cpp).
  void show_port_down(bool down);

  // The context and the protection domain that rdma_cm gives to all its users. Null with errno.
  ibv_context* shared_context();
  ibv_pd* default_pd();

  // The table of GIDs for the present addresses. If this call sees a change first, it reports it to
  // the contexts.
  GidSlots gids();
  // Contexts in this list get events of the port.
  void add_context(Context*);
  void remove_context(Context*);
  void tell_contexts(ibv_event_type what);

  PeerMatcher& peer_matcher() { return peer_matcher_; }  // needs Process::cm
  Counts& counts() { return counts_; }

 private:
  int start();
  void complain(const std::string& what);
  void serve();
  void on_device_event(const Event& event);
  void show_port(bool active);
  bool look_at_gids(GidSlots* seen);
  int next_ms();
  void expire();

  const unsigned made_in_ = generation.load();
  const unsigned index_;
  const bool is_one_of_several_;
  DeviceSlot slot_{};
  std::uint8_t mac_[6];
  const Config config_;
  const TransportTraits traits_;
  bool is_ib_like_ = false;
  PeerMatcher peer_matcher_;
  Counts counts_;
  struct {
    std::atomic<bool> had_link{false};
    std::atomic<bool> shown_down{false};  // by show_port_down()
  } port_;
  struct {
    std::mutex mutex;
    GidSlots slots;
  } gids_;
  bool shown_active_ = false;  // reported state of the port; used only by serve() once it runs
  std::mutex mutex_;           // for all members below
  std::string complained_;
  Device device_;
  EventQueue events_;
  ibv_context* shared_ = nullptr;  // this and the next need Process::cm
  ibv_pd* domain_ = nullptr;
  std::vector<Context*> contexts_;
};

}  // namespace urnic::dropin
