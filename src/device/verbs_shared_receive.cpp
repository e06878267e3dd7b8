// The public shared receive queue.
#include <optional>

#include "device/device_impl.h"
#include "device/mapping.h"

namespace urnic {
namespace device {

SrqImpl::~SrqImpl() {
  if (queue == nullptr) return;
  device->driver->own([&](Instant) {
    queue->owner = nullptr;
    if (xrc != nullptr) {
      device->engine->roce_control().destroy_xrc_queue(queue);
    } else {
      // the queue pairs that kept us alive are gone
      device->engine->queue_pairs().destroy_shared(queue);
    }
    return 0;
  });
  if (events) events->take_of(this);
}

}  // namespace device

namespace {

// Checks the options of an ordinary queue, or of an XRC queue, which has a domain and a CQ of its
// own.
std::optional<Error> wrong_with(const SrqOptions& o, const device::DeviceImpl* device,
                                const device::XrcDomainImpl* domain, const device::CqImpl* cq) {
  if (o.max_receive == 0 || o.max_receive > 65536 || o.max_receive_sge > 32 ||
      o.limit > o.max_receive) {
    return Error{
        Errc::invalid_argument,
        "shared receive queue: max_receive must be 1 to 65536, SGEs at most 32, limit at most "
        "max_receive"};
  }
  if ((domain == nullptr) != (cq == nullptr)) {
    return Error{Errc::invalid_argument,
                 "set both xrc_domain and receive_cq for an XRC shared receive queue, or neither"};
  }
  if (domain != nullptr && (domain->device.get() != device || cq->device.get() != device)) {
    return Error{Errc::invalid_argument,
                 "the XRC domain or the completion queue belongs to another device"};
  }
  return std::nullopt;
}

}  // namespace

Result<SharedReceiveQueue> Device::create_srq(const ProtectionDomain& pd, const SrqOptions& o) {
  return device::guarded([&]() -> Result<SharedReceiveQueue> {
    if (auto no = device::unusable(impl_)) return *no;
    if (!pd || pd.impl_->device != impl_) {
      return Error{Errc::invalid_argument,
                   "the protection domain is empty or belongs to another device"};
    }
    const auto& domain = o.xrc_domain.impl_;
    if (auto wrong = wrong_with(o, impl_.get(), domain.get(), o.receive_cq.impl_.get())) {
      return *wrong;
    }
    auto srq = std::make_shared<device::SrqImpl>();
    srq->device = impl_;
    srq->pd = pd.impl_;
    srq->events = o.events.impl_;
    srq->context = o.context;
    srq->xrc = domain;
    srq->receive_cq = o.receive_cq.impl_;
    impl_->driver->own([&](Instant) {
      const verbs::PdId id = pd.impl_->id;
      srq->queue =
          domain == nullptr
              ? impl_->engine->queue_pairs().create_shared(id, o.max_receive, o.max_receive_sge)
              : impl_->engine->roce_control().create_xrc_queue(id, o.max_receive, o.max_receive_sge,
                                                               domain->id, srq->receive_cq.get());
      if (srq->queue == nullptr) return 0;
      srq->queue->owner = srq.get();
      if (o.limit != 0) impl_->engine->set_shared_limit(*srq->queue, o.limit);
      return 0;
    });
    if (srq->queue == nullptr) return device::no_memory();
    return SharedReceiveQueue(std::move(srq));
  });
}

std::size_t SharedReceiveQueue::post_receive(std::span<const ReceiveRequest> requests, Error* why) {
  using Post = verbs::SharedReceiveQueue::Post;
  std::size_t taken = 0;
  Post result = Post::Ok;
  const bool inherited = impl_ && impl_->device->driver->inherited();
  if (!impl_ || inherited) {
    device::explain(why, [&] {
      return inherited ? device::inherited_error() : device::empty_handle("shared receive queue");
    });
    return 0;
  }
  {
    const std::lock_guard guard(impl_->lock);
    for (const ReceiveRequest& r : requests) {
      result = impl_->queue->post({r.wr_id, device::to_inner(r.sges)});
      if (result != Post::Ok) break;
      ++taken;
    }
  }
  // Notify the engine only if it waits for a receive (E-17).
  if (taken != 0 && impl_->queue->wanted) {
    impl_->device->driver->own([&](Instant now) {
      impl_->device->engine->iwarp().shared_posted(*impl_->queue, now);
      return 0;
    });
  }
  if (result == Post::Full) {
    device::explain(why, [] {
      return Error{Errc::queue_full, "the shared receive queue is full"};
    });
  } else if (result == Post::TooManySges) {
    device::explain(why, [] {
      return Error{Errc::invalid_argument, "more scatter/gather elements than the queue allows"};
    });
  }
  return taken;
}

Result<void> SharedReceiveQueue::post_receive(const ReceiveRequest& request) {
  return device::guarded([&]() -> Result<void> {
    Error why;
    if (post_receive({&request, 1}, &why) == 1) return {};
    return why;
  });
}

Result<void> SharedReceiveQueue::set_limit(std::uint32_t limit) {
  return device::guarded([&]() -> Result<void> {
    if (!impl_) return device::empty_handle("shared receive queue");
    return impl_->device->driver->own([&](Instant) -> Result<void> {
      if (limit > impl_->queue->max_wr()) {
        return Error{Errc::invalid_argument, "limit: must be at most max_receive"};
      }
      impl_->device->engine->set_shared_limit(*impl_->queue, limit);
      return {};
    });
  });
}

std::uint32_t SharedReceiveQueue::number() const {
  return impl_ ? impl_->queue->xrc.number : 0;
}

SharedReceiveQueue::Attributes SharedReceiveQueue::query() const {
  if (!impl_) return {};
  return impl_->device->driver->own([&](Instant) {
    const verbs::SharedReceiveQueue& q = *impl_->queue;
    return Attributes{q.max_wr(), q.max_sge(), q.limit(), q.available()};
  });
}

}  // namespace urnic
