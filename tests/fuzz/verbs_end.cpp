// The objects of an end except queue pairs.
#include "tests/fuzz/verbs_end.h"

namespace urnic::fuzz {
namespace {

constexpr std::uint32_t kAll = access_local_write | access_remote_write | access_remote_read |
                               access_remote_atomic | access_bind_window;

// The input determines which of them is destroyed.
template <class T>
void drop_any(std::vector<T>& of, Input& in) {
  if (of.empty()) return;
  of.erase(of.begin() + in.below(static_cast<std::uint32_t>(of.size())));
}

}  // namespace

End::End(Device d, unsigned which, Shortage* shortage)
    : device(std::move(d)), which_(which), shortage_(shortage) {
  Input nothing(nullptr, 0);
  events_.push_back({new_name(), *device.create_event_queue()});
  make_domain();
  queues_.push_back({new_name(), *device.create_cq(256)});
  make_region(kAll, 8192, nothing);
  make_region(access_remote_read, 3000, nothing);
}
End::~End() = default;

void End::make_domain() {
  auto pd = call([&] { return device.alloc_pd(); });
  if (pd) domains_.push_back(std::move(*pd));
}

void End::make_queue(Input& in) {
  const std::uint32_t depth = in.often(32) ? in.below(4) : 64 + in.u8();
  const Name name = new_name();
  auto made = call([&] { return device.create_cq(depth, context(name)); });
  if (!made) return;
  alive_.insert(name);
  queues_.push_back({name, std::move(*made)});
}

void End::move_queue(Input& in) {
  Queue* q = any(queues_, in);
  switch (in.below(8)) {
    case 0:
      if (queues_.size() < kMost) make_queue(in);
      return;
    case 1:
      if (queues_.size() > 1 && in.often(64)) {
        std::swap(*q, queues_.back());
        queues_.pop_back();
      }
      return;
    case 2:
      if (q != nullptr) static_cast<void>(call([&] { return q->cq.resize(in.u8()); }));
      return;
    case 3:
      if (q != nullptr) call([&] { return q->cq.arm(in.often(64)), 0; });
      return;
    case 4:
      if (q != nullptr) {
        const int fd = call([&] { return q->cq.fd(); });
        require(fd >= -1, "a descriptor that is none");
      }
      return;
    case 5:
      if (q != nullptr) call([&] { return q->cq.wait(static_cast<int>(in.below(20))); });
      return;
    case 6: {
      if (channels_.size() < 2) {
        auto made = call([&] { return device.create_completion_channel(); });
        if (made) channels_.push_back(std::move(*made));
      }
      const CompletionChannel none;
      const CompletionChannel* to = in.often(64) ? nullptr : any(channels_, in);
      if (q != nullptr) {
        static_cast<void>(call(
            [&] { return q->cq.deliver_events(to == nullptr ? none : *to, context(q->name)); }));
      }
      return;
    }
    default: {
      CompletionChannel* channel = any(channels_, in);
      if (channel == nullptr) return;
      void* whose = nullptr;
      if (call([&] { return channel->poll(&whose); })) {
        require(reinterpret_cast<Name>(whose) <= last_name_, "an event of no completion queue");
      }
      if (in.often(32)) drop_any(channels_, in);
      return;
    }
  }
}

void End::make_region(std::uint32_t access, std::uint32_t bytes, Input& in) {
  if (domains_.empty()) return;
  const std::size_t pd = in.below(static_cast<std::uint32_t>(domains_.size()));
  auto memory = std::make_unique<GuardedMemory>(bytes);
  std::optional<std::uint64_t> iova;
  if (in.often(32)) iova = std::uint64_t{in.u32()} << (in.u8() % 33);
  auto made = call(
      [&] { return device.register_memory(domains_[pd], memory->data(), bytes, access, iova); });
  if (!made) return;
  memory->may_change = (access & (access_remote_write | access_remote_atomic)) != 0;
  regions_.push_back({std::move(memory), std::move(*made), access});
}

// With or without an explicit call: bound windows disappear only by destruction.
void End::close_region(std::size_t at) {
  Region& r = regions_[at];
  const auto gone = call([&] { return r.mr.deregister(); });
  if (!gone) {
    require(gone.error().code == Errc::in_use || gone.error().code == Errc::no_memory,
            "a region is not deregistered");
    require(static_cast<bool>(r.mr), "a region that is in use has gone");
    r.mr = MemoryRegion();
  }
  require(!r.mr, "a region that is deregistered is still there");
  graves_.bury(std::move(r.memory));
  std::swap(r, regions_.back());
  regions_.pop_back();
}

void End::move_region(Input& in) {
  static constexpr std::uint32_t kSets[] = {
      kAll,
      access_local_write,
      access_local_write | access_remote_write,
      access_remote_read,
      0,
      kAll | access_zero_based,
      access_local_write | access_remote_atomic,
      access_local_write | access_remote_read | access_bind_window};
  const std::uint32_t access = in.often(16) ? in.u8() : kSets[in.below(8)];
  switch (in.below(4)) {
    case 0:
    case 1:
      if (regions_.size() < kMost) make_region(access, 1 + in.below(9000), in);
      return;
    case 2:
      if (regions_.size() > 1) {
        close_region(in.below(static_cast<std::uint32_t>(regions_.size())));
      }
      return;
    default: {
      Region* r = any(regions_, in);
      if (r == nullptr) return;
      RegionChange change;
      std::unique_ptr<GuardedMemory> other;
      if (in.often(128)) change.access = access;
      if (in.often(128)) {
        other = std::make_unique<GuardedMemory>(1 + in.below(9000));
        change.memory = {other->data(), other->size(), {}};
      }
      if (in.often(32)) change.domain = any(domains_, in);
      const std::uint32_t key = r->mr.rkey();
      const auto done = call([&] { return r->mr.reregister(change); });
      if (!done) {
        require(r->mr.rkey() == key, "a region that was not reregistered has another key");
        return;
      }
      if (change.access) r->access = access;
      if (other) {
        std::swap(other, r->memory);
        r->memory->take_names(*other);
        graves_.bury(std::move(other));
      }
      r->memory->change_rights((r->access & access_local_write) != 0,
                               (r->access & (access_remote_write | access_remote_atomic)) != 0);
      return;
    }
  }
}

void End::move_window(Input& in) {
  MemoryWindow* w = any(windows_, in);
  switch (in.below(4)) {
    case 0:
    case 1: {
      ProtectionDomain* pd = any(domains_, in);
      if (pd == nullptr || windows_.size() >= kMost) return;
      auto made = call([&] {
        return device.create_window(*pd, in.often(128) ? WindowType::type1 : WindowType::type2);
      });
      if (made) windows_.push_back(std::move(*made));
      return;
    }
    case 2:
      if (w != nullptr) call([&] { return w->next_rkey(); });
      return;
    default:
      return drop_any(windows_, in);
  }
}

void End::move_shared(Input& in) {
  Shared* s = any(shared_, in);
  switch (in.below(5)) {
    case 0:
    case 1: {
      ProtectionDomain* pd = any(domains_, in);
      if (pd == nullptr || shared_.size() >= 3) return;
      SrqOptions o;
      o.max_receive = in.often(16) ? in.u8() : 1 + in.below(64);
      o.max_receive_sge = in.often(16) ? in.u8() : 1 + in.below(4);
      const Name name = new_name();
      o.context = context(name);
      o.events = events_.front().object;
      auto made = call([&] { return device.create_srq(*pd, o); });
      if (!made) return;
      alive_.insert(name);
      shared_.push_back({name, std::move(*made)});
      return;
    }
    case 2:
      if (s != nullptr) static_cast<void>(call([&] { return s->queue.set_limit(in.u8()); }));
      return;
    case 3:
      if (s != nullptr) {
        require(s->queue.query().posted <= ledger_.open(s->name) || !ledger_.knows(s->name),
                "a shared receive queue has more than was posted");
      }
      return;
    default:
      // Queue pairs keep it alive; until they are destroyed, its work may still complete and its
      // events may arrive.
      if (s != nullptr && in.often(64)) {
        std::swap(*s, shared_.back());
        shared_.pop_back();
      }
      return;
  }
}

void End::move_events(Input& in) {
  if (in.often(64) && events_.size() < 3) {
    auto made = call([&] { return device.create_event_queue(); });
    if (made) events_.push_back({new_name(), std::move(*made)});
    return;
  }
  Named<EventQueue>* q = any(events_, in);
  switch (in.below(6)) {
    case 0: {
      Pair* p = any(pairs_, in);
      if (p == nullptr) return;
      const auto moved = call([&] { return p->qp.deliver_events(q->object, context(p->name)); });
      if (moved) p->events = q->name;
      return;
    }
    case 1:
      static_cast<void>(call([&] { return device.deliver_events(q->object); }));
      return;
    case 2:
      q->object.wake();
      return;
    case 3:
      if (events_.size() > 1 && in.often(64)) {
        std::swap(*q, events_.back());
        events_.pop_back();
      }
      return;
    case 4: {
      Named<Listener>* l = any(listeners_, in);
      if (l == nullptr) return;
      static_cast<void>(
          call([&] { return l->object.deliver_events(q->object, context(l->name)); }));
      return;
    }
    default: {
      Event e;
      if (call([&] { return q->object.wait(&e, static_cast<int>(in.below(20))); })) take_event(e);
      return;
    }
  }
}

void End::move_handle(End& peer, Input& in) {
  switch (in.below(4)) {
    case 0: {
      ProtectionDomain* pd = any(domains_, in);
      if (pd == nullptr || handles_.size() >= kMost) return;
      QpPath path;
      path.remote = in.often(220) ? peer.address() : "10.77.0." + std::to_string(in.below(5));
      if (in.often(16)) path.hop_limit = in.below(300);
      auto made = call([&] { return device.create_address_handle(*pd, path); });
      if (made) handles_.push_back(std::move(*made));
      return;
    }
    case 1:
      return drop_any(handles_, in);
    case 2: {
      if (resolutions_.size() >= 3) return;
      const std::string at = peer.address() + ":" + std::to_string(7100 + in.below(3));
      const Name name = new_name();
      Named<EventQueue>* q = any(events_, in);
      auto made = call([&] { return device.resolve_start(at, q->object, context(name)); });
      if (!made) return;
      alive_.insert(name);
      resolutions_.push_back({name, std::move(*made)});
      return;
    }
    default:
      if (!resolutions_.empty()) alive_.erase(resolutions_.back().name), resolutions_.pop_back();
      return;
  }
}

// Calls that change nothing, and an unused domain.
void End::look(Input& in) {
  switch (in.below(8)) {
    case 0:
      static_cast<void>(call([&] { return device.stats(); }));
      return;
    case 1:
      static_cast<void>(call([&] { return device.info(); }));
      return;
    case 2: {
      const Pair* p = any(pairs_, in);
      if (p != nullptr) static_cast<void>(call([&] { return p->qp.stats(); }));
      return;
    }
    case 3:
      if (domains_.size() < 3) make_domain();
      return;
    case 4:
      if (domains_.size() > 1) drop_any(domains_, in);
      return;
    case 5:
      static_cast<void>(call([&] { return device.source_for("10.77.0.9"); }));
      return;
    case 6: {  // a blocking call to an address without a host
      Pair* p = any(pairs_, in);
      if (p == nullptr || p->pending) return;
      ConnectionOptions o;
      o.timeout_ms = static_cast<int>(in.below(200));
      p->may_be_told = true;
      // Its outcome requires memory (docs/decisions/out-of-memory.md), so it is available here.
      static_cast<void>(p->qp.connect("10.77.0.9:1", o));
      return;
    }
    default:
      device.wait_link(static_cast<int>(in.below(3)));
      return;
  }
}

void End::check_memory() const {
  for (const Region& r : regions_) r.memory->check();
  graves_.check();
}

// In an order that the input determines, including objects that others depend on.
void End::destroy_all(Input& in) {
  services_.clear();
  for (unsigned left = 0x7ff, n = 0; left != 0; ++n) {
    unsigned which = n < 64 ? in.below(11) : n % 11;
    if ((left >> which & 1) == 0) continue;
    left &= ~(1u << which);
    switch (which) {
      case 0:
        events_.clear();
        break;
      case 1:
        domains_.clear();
        break;
      case 2:
        channels_.clear();
        break;
      case 3:
        queues_.clear();
        break;
      case 4:
        shared_.clear();
        break;
      case 5:
        windows_.clear();
        break;
      case 6:
        while (!pairs_.empty()) destroy_pair(pairs_.size() - 1, in.often(128));
        break;
      case 7:
        bindings_.clear(), listeners_.clear();
        break;
      case 8:
        requests_.clear();
        break;
      case 9:
        handles_.clear(), resolutions_.clear();
        break;
      default:
        while (!regions_.empty()) close_region(regions_.size() - 1);
        break;
    }
  }
}

}  // namespace urnic::fuzz
