// One device of the drop-in: what programs know it by, its configuration and the library's Device
// behind it, opened when somebody wants it, and the thread that brings its events to whom they
// concern.
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

// The program's ibv_device, with room for what drivers of others look for behind it (a pointer to
// their own functions, which must be null).
struct DeviceSlot {
  ibv_device device;
  std::uint64_t zeros[8];
  Adapter* adapter;
};

// How many of each there are (a child of a fork has adapters of its own, without its parent's).
struct Counts {
  std::atomic<int> queue_pairs{0}, completion_queues{0}, shared_queues{0}, domains{0};
  std::atomic<int> regions{0}, windows{0};
};

class Adapter {
 public:
  // The configuration is checked. Without a name it is the process's only one: "urnic0". `mac` is
  // locally administered, the same at every start.
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
  // What it speaks.
  const TransportTraits& traits() const { return traits_; }
  Transport transport() const { return traits_.transport; }
  // What it is said to be: InfiniBand on Ethernet is RoCE, and iWARP by the setting `identity`.
  bool is_ib_like() const { return is_ib_like_; }
  // Reads and atomics at a time: of the setting `ird` or `ord`, as far as the transport and verbs'
  // numbers go.
  std::uint8_t most_reads(const char* setting) const;

  // Opens the device if it is not open. 0 or an errno value; why is said in one line on standard
  // error.
  int open();
  // After open().
  Device& device() { return device_; }
  EventQueue& events() { return events_; }
  // The program exits: its connections end, and so long the peers' answers are waited for.
  void disconnect_all(int most_ms);
  // What the port is said to be.
  bool is_port_up() const;

  // What rdma_cm gives to everybody: the context of the device, and a domain. Null with errno.
  ibv_context* shared_context();
  ibv_pd* default_pd();

  // The table of GIDs by the addresses that are there now. Contexts hear of a change that is seen
  // first here.
  GidSlots gids();
  // Contexts hear of the port.
  void add_context(Context*);
  void remove_context(Context*);

  PeerMatcher& peer_matcher() { return peer_matcher_; }  // under Process::cm
  Counts& counts() { return counts_; }

 private:
  int start();
  void complain(const std::string& what);
  void serve();
  void on_device_event(const Event& event);
  void show_port(bool active);
  bool look_at_gids(GidSlots* seen);
  void tell_contexts(ibv_event_type what);
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
  std::atomic<bool> had_link_{false};
  struct {
    std::mutex mutex;
    GidSlots slots;
  } gids_;
  bool shown_active_ = false;  // what programs know of the port; of serve() once it runs
  std::mutex mutex_;           // of all below
  std::string complained_;
  Device device_;
  EventQueue events_;
  ibv_context* shared_ = nullptr;  // these two under Process::cm
  ibv_pd* domain_ = nullptr;
  std::vector<Context*> contexts_;
};

}  // namespace urnic::dropin
