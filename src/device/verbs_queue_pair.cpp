// The public queue pair: posting work.
#include <new>
#include <optional>

#include "device/device_impl.h"
#include "device/mapping.h"
#include "device/service.h"
#include "verbs/control_path.h"

namespace urnic {
namespace device {

AddressHandleImpl::~AddressHandleImpl() {
  if (handle == 0 || !pd) return;
  pd->device->driver->own([&](Instant) {
    pd->device->engine->roce().paths().close(handle);
    return 0;
  });
}

QpImpl::~QpImpl() {
  if (qp == nullptr) return;
  device->driver->own_last(*qp, [&](Instant now) {
    qp->owner = nullptr;
    qp->control->destroy(qp, now);
    return 0;
  });
  if (events) events->take_of(this);  // its context is no longer valid
}

}  // namespace device

AddressHandle& AddressHandle::operator=(AddressHandle&&) noexcept = default;
AddressHandle::~AddressHandle() = default;

void QueuePair::discard() {
  if (!impl_) return;
  // The completions of XRC's receiving end are in the completion queues of its SRQs: reset finds
  // them.
  if (impl_->xrc != nullptr) (void)modify(QpState::reset);
  const std::uint32_t gone = number();
  const std::shared_ptr<device::CqImpl> queues[] = {impl_->send_cq, impl_->receive_cq};
  impl_.reset();
  for (const auto& queue : queues) {
    if (queue != nullptr) queue->forget(gone);
  }
}

QueuePair& QueuePair::operator=(QueuePair&&) noexcept = default;
QueuePair::~QueuePair() = default;
std::uint32_t QueuePair::number() const {
  return impl_ ? impl_->qp->number() : 0;
}

std::uint32_t QueuePair::connections() const {
  return impl_ ? impl_->connection.number.load() : 0;
}

QpState QueuePair::state() const {
  return impl_ ? device::to_public(impl_->qp->state.load()) : QpState::reset;
}

Result<void> QueuePair::modify(QpState to, const QpAttributes& attributes) {
  return device::guarded([&]() -> Result<void> {
    if (!impl_) return device::empty_handle("queue pair");
    if (impl_->device->driver->inherited()) return device::inherited_error();
    {
      // Posting threads check the state under these locks: a queue that was discarded stays empty.
      const std::lock_guard sends(impl_->send_lock);
      const std::lock_guard receives(impl_->receive_lock);
      auto moved = impl_->device->driver->own([&](Instant now) -> Result<void> {
        auto done = impl_->qp->control->modify(*impl_->qp, static_cast<verbs::QpState>(to),
                                               attributes, now);
        if (done && to == QpState::rtr && attributes.path) ++impl_->connection.number;
        return done;
      });
      if (!moved) {  // a program that only gets EINVAL has no other report
        impl_->device->log_quietly(device::LogLevel::Warn, [&] {
          return "queue pair " + std::to_string(number()) + ": " + moved.error().message;
        });
        return moved;
      }
    }
    if (attributes.path) {
      const std::lock_guard guard(impl_->mutex);
      impl_->connection.peer = attributes.path->remote;
    }
    if (to == QpState::reset) {  // a thread that waits for a connection gets no other report
      const std::lock_guard guard(impl_->mutex);
      if (impl_->attempt == device::QpImpl::Attempt::Pending) {
        impl_->attempt = device::QpImpl::Attempt::Failed;
        device::explain(&impl_->error, [] {
          return Error{Errc::closed, "the queue pair was reset"};
        });
        impl_->settle();
      }
    }
    return {};
  });
}

QpAttributes QueuePair::attributes() const {
  if (!impl_) return {};
  return device::or_nothing([&] {
    return impl_->device->driver->own(
        [&](Instant) { return impl_->qp->control->attributes(*impl_->qp); });
  });
}

void QueuePair::take_early_sends(bool on) {
  if (impl_) impl_->early_sends.store(on);
}

namespace {

// The first request of a queue allocates memory, and so does the first one of some kinds.
std::optional<verbs::Post> post_if_there_is_memory(verbs::SendQueue& queue,
                                                   const verbs::SendWr& wr) noexcept {
  try {
    return queue.post(wr);
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

Error refusal(verbs::Post result) {
  using Post = verbs::Post;
  switch (result) {
    case Post::Full:
      return {Errc::queue_full, "the send queue is full"};
    case Post::TooManySges:
      return {Errc::invalid_argument, "more scatter/gather elements than the queue allows"};
    case Post::InlineTooLong:
      return {Errc::invalid_argument, "the inline data is longer than max_inline"};
    case Post::TooLong:
      return {Errc::invalid_argument, "the message is too long: must be shorter than 4 GiB"};
    default:
      return {Errc::invalid_argument, "invalid send request: check opcode, flags and lengths"};
  }
}

}  // namespace

std::size_t QueuePair::post_send(std::span<const SendRequest> requests, Error* why) {
  std::size_t taken = 0;
  if (!impl_) {
    device::explain(why, [] { return device::empty_handle("queue pair"); });
    return 0;
  }
  verbs::QueuePair& qp = *impl_->qp;
  if (impl_->device->driver->inherited()) {
    device::explain(why, device::inherited_error);
    return 0;
  }
  {
    const std::lock_guard guard(impl_->send_lock);
    const verbs::QpState state = qp.state;
    if (!verbs::may_post_send(state) && !(qp.state.may_post_early() && impl_->early_sends.load())) {
      device::explain(why, [] {
        return Error{Errc::wrong_state, "the queue pair is not connected"};
      });
      return 0;
    }
    verbs::WindowBind bind;
    for (const SendRequest& r : requests) {
      if (!device::is_send(r.opcode) || (r.flags & ~device::kSendFlags) != 0) {
        device::explain(why, [] {
          return Error{Errc::invalid_argument, "invalid opcode or flag in the send request"};
        });
        break;
      }
      const device::AddressHandleImpl* const handle =
          r.address_handle != nullptr ? r.address_handle->impl_.get() : nullptr;
      if (qp.state.service() != verbs::Service::Rc || r.address_handle != nullptr) [[unlikely]] {
        if (const char* const no = device::not_of_service(*impl_, r, handle)) {
          device::explain(why, [&] { return Error{Errc::invalid_argument, no}; });
          break;
        }
      }
      const std::uint32_t flags = r.flags | (impl_->signal_all ? verbs::kSignaled : 0);
      verbs::SendWr wr{.wr_id = r.wr_id,
                       .op = device::to_inner(r.opcode),
                       .flags = static_cast<std::uint8_t>(flags),
                       .sges = device::to_inner(r.sges),
                       .remote_address = r.remote_address,
                       .rkey = r.rkey,
                       .inv_key = r.invalidate_rkey,
                       .immediate = r.immediate,
                       .atomic = r.atomic,
                       .remote_srq = r.remote_srq};
      if (r.opcode == Opcode::bind_window && r.bind != nullptr) {
        bind = device::to_inner(*r.bind);
        wr.bind = &bind;
      }
      if (handle != nullptr) ib::set_destination(&wr, {handle->handle, r.remote_qp, r.remote_qkey});
      const auto result = post_if_there_is_memory(qp.sq, wr);
      if (result != verbs::Post::Ok) {
        device::explain(why, [&] { return result ? refusal(*result) : device::no_memory(); });
        break;
      }
      ++taken;
    }
  }
  if (taken != 0) impl_->device->driver->ring(qp, verbs::kPostedSends);
  return taken;
}

Result<void> QueuePair::post_send(const SendRequest& request) {
  return device::guarded([&]() -> Result<void> {
    Error why;
    if (post_send({&request, 1}, &why) == 1) return {};
    return why;
  });
}

Result<void> QueuePair::post_receive(const ReceiveRequest& r) {
  return device::guarded([&]() -> Result<void> {
    if (!impl_) return device::empty_handle("queue pair");
    if (impl_->device->driver->inherited()) return device::inherited_error();
    verbs::QueuePair& qp = *impl_->qp;
    {
      const std::lock_guard guard(impl_->receive_lock);
      if (!verbs::may_post_receive(qp.state)) {
        return Error{Errc::wrong_state, "the queue pair is in state reset: move it to init first"};
      }
      if (verbs::is_xrc(qp.state.service())) [[unlikely]] {
        return Error{Errc::invalid_argument,
                     "XRC queue pairs have no receive queue: post to a shared receive queue"};
      }
      const verbs::RecvWr wr{r.wr_id, device::to_inner(r.sges)};
      switch (qp.rq.post(wr)) {
        case verbs::ReceiveQueue::Post::Ok:
          break;
        case verbs::ReceiveQueue::Post::Full:
          return Error{Errc::queue_full, "the receive queue is full"};
        case verbs::ReceiveQueue::Post::Shared:
          return Error{Errc::invalid_argument,
                       "the queue pair uses a shared receive queue: post the receive there"};
        default:
          return Error{Errc::invalid_argument,
                       "more scatter/gather elements than the queue allows"};
      }
    }
    // Notify the engine only if it waits for a receive (E-17) or flushes. The engine sets either
    // condition before it checks the queue, and we check both after the post.
    if (qp.starved || verbs::rights(qp.state).flush_receives) {
      impl_->device->driver->ring(qp, verbs::kPostedReceives);
    }
    return {};
  });
}

}  // namespace urnic
