// One of the two devices of a walk over the verbs: its memory and the model's copy of it, the
// access that each key gives, and the expected events.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/engine_of.h"
#include "tests/support/walk.h"
#include "urnic/urnic.h"

namespace urnic::test {

inline constexpr std::size_t kSlot = 4096, kSlots = 48;  // of the memory of an end
inline constexpr std::size_t kSharedSlots = 16;          // for sends and peers; receives follow
inline constexpr std::size_t kSrqSlot = 40;              // the first of the shared receive queue
inline constexpr std::uint32_t kAllRights = access_local_write | access_remote_write |
                                            access_remote_read | access_remote_atomic |
                                            access_bind_window;

// The area of a key, as the model knows it.
struct WalkArea {
  std::size_t at = 0, length = 0;  // of the end's memory
  std::uint32_t rights = 0;
  std::uint64_t base = 0;      // the peer's address of its first byte
  const void* only = nullptr;  // for a type 2 window: the queue pair that bound it
  bool covers(std::size_t from, std::size_t bytes) const {
    return from >= at && from + bytes <= at + length;
  }
};
struct WalkRegion {
  MemoryRegion mr;
  WalkArea area;
  std::uint32_t windows = 0;  // windows bound to it
};
struct WalkWindow {
  MemoryWindow window;
  std::optional<WalkArea> area;  // if it is bound
  const WalkRegion* of = nullptr;
};

struct WalkReceive {
  std::uint64_t id;
  std::size_t at, room;
};
// The shared receive queue of an end.
struct WalkShared {
  static constexpr std::size_t kMost = 7;
  SharedReceiveQueue queue;
  std::deque<WalkReceive> receives;
  std::uint32_t limit = 0;
};

// A counter of whole messages.
struct WalkCounter {
  const char* name;
  std::uint64_t VerbsStats::*member;
  // On iWARP one entry may stand for several Sends.
  bool of_entries() const { return std::string_view(name).starts_with("completion_"); }
};
inline constexpr WalkCounter kWalkCounters[] = {
#define URNIC_WALK_COUNTER(name, help) {#name, &VerbsStats::name},
    URNIC_VERBS_COUNTERS(URNIC_WALK_COUNTER)
#undef URNIC_WALK_COUNTER
};

struct WantedEvent {
  EventKind kind;
  const void* context;
  std::string private_data = {};
};

class WalkEnd {
 public:
  WalkEnd(const Config& config, unsigned number) : which(number) {
    auto opened = Device::open(config);
    agree(opened.ok(), "a device opens");
    device = *opened;
    events = *device.create_event_queue();
    pd = *device.alloc_pd();
    agree(device.deliver_events(events, this).ok(), "the device tells its events");
    add_region(0, memory.size(), kAllRights);
    channel = *device.create_completion_channel();
    SrqOptions o;
    o.max_receive = WalkShared::kMost;
    o.max_receive_sge = 2;
    o.events = events;
    o.context = &shared;
    shared.queue = *device.create_srq(pd, o);
  }

  void* address(std::size_t offset) { return memory.data() + offset; }
  Sge sge(std::size_t offset, std::size_t length) const {
    return {regions.front()->mr.remote_address() + offset, static_cast<std::uint32_t>(length),
            regions.front()->mr.lkey()};
  }
  // Writes to both memories, as the program does.
  void write(std::size_t at, const std::vector<std::uint8_t>& bytes) {
    std::copy(bytes.begin(), bytes.end(), memory.begin() + static_cast<std::ptrdiff_t>(at));
    std::copy(bytes.begin(), bytes.end(), model.begin() + static_cast<std::ptrdiff_t>(at));
  }

  WalkRegion& add_region(std::size_t at, std::size_t length, std::uint32_t rights) {
    auto made = device.register_memory(pd, address(at), length, rights);
    agree(made.ok(), "memory is registered");
    for (const auto& r : regions) agree(r->mr.rkey() != made->rkey(), "two regions have one key");
    agree_on(made->length(), length, "the length of a region");
    regions.push_back(std::make_unique<WalkRegion>());
    WalkRegion& r = *regions.back();
    r.mr = std::move(*made);
    const bool zero_based = (rights & access_zero_based) != 0;
    r.area = {at, length, rights, zero_based ? 0 : reinterpret_cast<std::uintptr_t>(address(at)),
              nullptr};
    agree_on(r.mr.remote_address(), r.area.base, "what a peer calls the first byte");
    return r;
  }
  void unbind(WalkWindow& w) {
    if (!w.area) return;
    w.area.reset();
    const auto of = std::find_if(regions.begin(), regions.end(),
                                 [&](const auto& r) { return r.get() == w.of; });
    if (of != regions.end()) --(*of)->windows;
  }
  // Unbinds windows of a queue pair that was destroyed or reset.
  void unbind_of(const void* qp) {
    for (auto& w : windows) {
      if (w->area && w->area->only == qp) unbind(*w);
    }
  }
  // The area that a peer accesses by that key on that queue pair of this end; none if it has no
  // access.
  std::optional<WalkArea> named(std::uint32_t key, const void* qp) const {
    for (const auto& r : regions) {
      if (r->mr.rkey() == key) return r->area;
    }
    for (const auto& w : windows) {
      if (!w->area || w->window.rkey() != key) continue;
      if (w->area->only != nullptr && w->area->only != qp) return std::nullopt;
      return w->area;
    }
    return std::nullopt;
  }
  // Expects the limit event if fewer receives than the limit are left.
  void look_at_limit() {
    if (shared.limit == 0 || shared.receives.size() >= shared.limit) return;
    shared.limit = 0;
    want(EventKind::receive_limit, &shared);
  }
  // How many events of that completion queue have arrived since the last check.
  std::uint32_t took(const void* context) {
    void* of = nullptr;
    while (channel.poll(&of)) told_.push_back(of);
    return static_cast<std::uint32_t>(std::erase(told_, context));
  }
  // Adds the counters of a connection that has ended, or will be replaced.
  void add_up(VerbsStats* of) {
    for (const WalkCounter& c : kWalkCounters) counts.*c.member += of->*c.member;
    *of = {};
  }
  void want(EventKind kind, const void* context, std::string data = {}) {
    wanted.push_back({kind, context, std::move(data)});
  }
  void forget_events_of(const void* context) {
    std::erase_if(wanted, [&](const WantedEvent& w) { return w.context == context; });
  }
  // Returns the connection request that arrived; other events must be expected by the model, in
  // order for each object.
  std::optional<Event> take_events() {
    std::optional<Event> request;
    Event e;
    while (events.poll(&e)) {
      if (e.kind == EventKind::connect_request) {
        agree(!request, "two requests for one connection");
        request = std::move(e);
        continue;
      }
      if (e.kind == EventKind::communication_established && !hears_first_receive) continue;
      take(e);
    }
    return request;
  }
  void check() {
    take_events();
    std::string missing;
    for (const WantedEvent& w : wanted) {
      missing += " " + std::to_string(static_cast<int>(w.kind));
    }
    agree(missing.empty(),
          "events that did not come at end " + std::to_string(which) + ":" + missing);
    wanted.clear();
    const auto srq = shared.queue.query();
    agree_on(srq.posted, shared.receives.size(), "receives in the shared queue");
    agree_on(srq.limit, shared.limit, "the limit of the shared queue");
    if (memory != model) {
      const auto [at, _] = std::mismatch(memory.begin(), memory.end(), model.begin());
      agree(false, "memory of end " + std::to_string(which) + " differs from byte " +
                       std::to_string(at - memory.begin()) + " on");
    }
  }

  unsigned which;
  Device device;
  EventQueue events;
  ProtectionDomain pd;
  CompletionChannel channel;
  WalkShared shared;
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(kSlots * kSlot, 0x11);
  std::vector<std::uint8_t> model = memory;
  std::vector<std::unique_ptr<WalkRegion>> regions;
  std::vector<std::unique_ptr<WalkWindow>> windows;
  std::vector<std::uint32_t> dead_keys;
  bool hears_first_receive = false;
  VerbsStats counts;  // of connections that have ended

 private:
  void take(const Event& e) {
    // The order of `last_receive` among other events is not defined.
    const bool last = e.kind == EventKind::last_receive;
    const auto at = std::find_if(wanted.begin(), wanted.end(), [&](const WantedEvent& w) {
      return w.context == e.context && (w.kind == EventKind::last_receive) == last;
    });
    const std::string what = "event " + std::to_string(static_cast<int>(e.kind)) + " (" +
                             e.error.message + ") at end " + std::to_string(which);
    agree(at != wanted.end(), what + " was not to come");
    agree(at->kind == e.kind,
          what + " is not what was to come: " + std::to_string(static_cast<int>(at->kind)));
    // RoCE's messages have zeroes where the program gave no data.
    const bool same = at->private_data.empty()
                          ? e.private_data.find_first_not_of('\0') == std::string::npos
                          : e.private_data == at->private_data;
    agree(same,
          what + " has other private data: " + std::to_string(e.private_data.size()) + " bytes");
    wanted.erase(at);
  }

  std::deque<WantedEvent> wanted;
  std::vector<const void*> told_;
};

}  // namespace urnic::test
