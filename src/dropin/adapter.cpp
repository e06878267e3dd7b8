#include "dropin/adapter.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "dropin/context.h"
#include "dropin/errors.h"
#include "dropin/gids.h"
#include "dropin/process.h"

namespace urnic::dropin {
namespace {

Transport transport_in(const Config& config) {
  const std::string identity = config.get("identity");
  const bool is_chosen =
      identity == "roce" || (identity == "auto" && config.get("transport") == "roce");
  return is_chosen ? Transport::roce : Transport::iwarp;
}

}  // namespace

Adapter::Adapter(unsigned index, const std::string& name, Config config, const std::uint8_t* mac)
    : index_(index),
      is_one_of_several_(!name.empty()),
      config_(std::move(config)),
      traits_(traits_of(transport_in(config_))),
      peer_matcher_(*this) {
  std::memcpy(mac_, mac, sizeof mac_);
  is_ib_like_ = transport() == Transport::roce || config_.get("identity") == "ib-like";
  slot_.adapter = this;
  ibv_device& d = slot_.device;
  d.node_type = is_ib_like_ ? IBV_NODE_CA : IBV_NODE_RNIC;
  d.transport_type = is_ib_like_ ? IBV_TRANSPORT_IB : IBV_TRANSPORT_IWARP;
  const std::string shown = name.empty() ? "urnic0" : name;
  const std::string uverbs = "uverbs" + std::to_string(index);
  std::snprintf(d.name, sizeof d.name, "%s", shown.c_str());
  std::snprintf(d.dev_name, sizeof d.dev_name, "%s", uverbs.c_str());
  std::snprintf(d.dev_path, sizeof d.dev_path, "/sys/class/infiniband_verbs/%s", uverbs.c_str());
  std::snprintf(d.ibdev_path, sizeof d.ibdev_path, "/sys/class/infiniband/%s", shown.c_str());
}

std::uint8_t Adapter::most_reads(const char* setting) const {
  return static_cast<std::uint8_t>(
      std::min<std::int64_t>(config_.get_int(setting), traits_.max_rd_atomic));
}

int Adapter::open() {
  // it belongs to the parent, and its lock may be taken
  if (made_in_ != generation.load()) return ENODEV;
  const std::lock_guard guard(mutex_);
  if (device_) return 0;
  auto device = Device::open(config_);
  if (!device) {
    complain(device.error().message);
    return to_errno(device.error().code);
  }
  auto events = device->create_event_queue();
  if (!events) return to_errno(events.error().code);
  if (auto ok = device->deliver_events(*events, Process::as_context(Process::kDeviceEvents)); !ok) {
    return to_errno(ok.error().code);
  }
  device_ = std::move(*device);
  events_ = std::move(*events);
  if (device_.info().link_up)
    port_.had_link = true;  // the link was up before events were delivered
  shown_active_ = is_port_up();
  const int error = start();
  if (error != 0) {
    events_ = {};
    device_ = {};
  } else {
    (void)look_at_gids(nullptr);  // entries that exist at the start are not reported as changes
    // Registered after everything of the device that also runs at exit.
    [[maybe_unused]] static const int once = std::atexit(Process::leave_all);
  }
  return error;
}

// Does not wait for a lock that a thread of the program holds.
void Adapter::disconnect_all(int most_ms) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || !device_ || made_in_ != generation.load()) return;
  device_.disconnect_all(most_ms);
  if (const std::string lost = device_.info().capture_error; !lost.empty()) complain(lost);
}

// With several devices, each call that looks for a route tries to open a failed one again; the same
// message is printed only once.
void Adapter::complain(const std::string& what) {
  if (is_one_of_several_ && what == complained_) return;
  complained_ = what;
  const std::string whose = is_one_of_several_ ? std::string(slot_.device.name) + ": " : "";
  std::fprintf(stderr, "urnic: %s%s\n", whose.c_str(), what.c_str());
}

// Signals belong to the program: block them in our thread.
int Adapter::start() {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  int error = 0;
  try {
    std::thread([this] { serve(); }).detach();
  } catch (const std::system_error&) {
    error = ENOMEM;
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return error;
}

// A memif has a link only when both programs run, and a server starts before its client. So until
// its first link the port is reported as usable, as a port of the kernel's TCP is.
bool Adapter::is_port_up() const {
  if (port_.shown_down) return false;
  const std::string port = config_.get("port"), kind = port.substr(0, port.find(':'));
  if (kind == "tcp" || device_.info().link_up) return true;
  return kind == "memif" && !port_.had_link.load();
}

ibv_context* Adapter::shared_context() {
  if (const int e = open(); e != 0) {
    errno = e;
    return nullptr;
  }
  const std::lock_guard guard(Process::get().cm);
  if (shared_ == nullptr) shared_ = Context::make(*this);
  return shared_;
}

ibv_pd* Adapter::default_pd() {
  ibv_context* context = shared_context();
  if (context == nullptr) return nullptr;
  const std::lock_guard guard(Process::get().cm);
  if (domain_ == nullptr) domain_ = urnic_ibv_alloc_pd(context);
  return domain_;
}

void Adapter::add_context(Context* context) {
  const std::lock_guard guard(mutex_);
  contexts_.push_back(context);
}

void Adapter::remove_context(Context* context) {
  const std::lock_guard guard(mutex_);
  std::erase(contexts_, context);
}

// ---- events

int Adapter::next_ms() {
  const std::lock_guard guard(Process::get().cm);
  return peer_matcher_.next_ms();
}

void Adapter::expire() {
  const std::lock_guard guard(Process::get().cm);
  peer_matcher_.expire();
}

void Adapter::serve() {
  pthread_setname_np(pthread_self(), "urnic-events");
  for (;;) {
    Event event;
    try {
      if (!events_.wait(&event, next_ms())) {
        expire();
      } else if (event.context == Process::as_context(Process::kDeviceEvents)) {
        on_device_event(event);
      } else {
        Process::get().dispatch(event);
      }
    } catch (const std::exception&) {
      // Without memory an event is lost, as on a device that has no room for it.
    }
  }
}

void Adapter::on_device_event(const Event& event) {
  if (event.kind == EventKind::link_up) port_.had_link = true;
  if (event.kind == EventKind::link_up || event.kind == EventKind::link_down) {
    show_port(event.kind == EventKind::link_up);
  }
  if (event.kind == EventKind::addresses_changed || event.kind == EventKind::address_conflict) {
    (void)gids();
  }
}

// Programs are not told about a link that was up, or assumed to be up, when the device was opened.
void Adapter::show_port(bool active) {
  if (active == shown_active_) return;
  shown_active_ = active;
  tell_contexts(active ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
}

void Adapter::show_port_down(bool down) {
  if (port_.shown_down.exchange(down) == down) return;
  tell_contexts(down ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE);
}

// True if they have changed. The lock serializes updates of several threads.
bool Adapter::look_at_gids(GidSlots* seen) {
  const std::lock_guard guard(gids_.mutex);
  const bool changed = gids_.slots.update(present_gids(*this));
  if (seen != nullptr) *seen = gids_.slots;
  return changed;
}

GidSlots Adapter::gids() {
  GidSlots seen;
  if (look_at_gids(&seen)) tell_contexts(IBV_EVENT_GID_CHANGE);
  return seen;
}

// A program that never fetches these events may run long while its link and addresses change.
// bound: unfetched port events (up, down, GIDs) of a context; beyond: the oldest is dropped; test:
// SignalledQueueTest.KeepLastKeepsTheNewestOfOneKind
static constexpr std::size_t kMostPortEvents = 64;

void Adapter::tell_contexts(ibv_event_type what) {
  const std::lock_guard guard(mutex_);
  for (Context* c : contexts_) {
    ibv_async_event e{};
    e.event_type = what;
    e.element.port_num = 1;
    c->async.push(e);
    c->async.keep_last(kMostPortEvents, [](const ibv_async_event& of) {
      return of.event_type == IBV_EVENT_PORT_ACTIVE || of.event_type == IBV_EVENT_PORT_ERR ||
             of.event_type == IBV_EVENT_GID_CHANGE;
    });
  }
}

}  // namespace urnic::dropin
