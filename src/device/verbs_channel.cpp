// Completion channels: one descriptor for the events of many completion queues.
#include <errno.h>

#include "device/device_impl.h"
#include "device/wait_for.h"

namespace urnic {
namespace device {

// The descriptor is level-triggered: signalled with the first event and cleared with the last, so
// neither call ever waits. In a forked child the descriptor belongs to the parent.
void ChannelImpl::push(CqImpl& cq) {
  const std::lock_guard guard(mutex_);
  if (cq.queued_) return;
  cq.queued_ = true;
  cq.next_ = nullptr;
  (last_ != nullptr ? last_->next_ : first_) = &cq;
  if (last_ == nullptr) fd.signal();
  last_ = &cq;
}

void ChannelImpl::emptied() {
  last_ = nullptr;
  if (!device->driver->inherited()) fd.clear();
}

bool ChannelImpl::pop(void** context) {
  const std::lock_guard guard(mutex_);
  if (first_ == nullptr || device->driver->inherited()) return false;
  CqImpl& cq = *std::exchange(first_, first_->next_);
  cq.queued_ = false;
  *context = cq.channel_context_;
  if (first_ == nullptr) emptied();
  return true;
}

void ChannelImpl::remove(CqImpl& cq) {
  const std::lock_guard guard(mutex_);
  if (!std::exchange(cq.queued_, false)) return;
  CqImpl* before = nullptr;
  for (CqImpl* at = first_; at != &cq; at = at->next_) before = at;
  (before != nullptr ? before->next_ : first_) = cq.next_;
  if (last_ == &cq) last_ = before;
  if (first_ == nullptr) emptied();
}

CqImpl::~CqImpl() {
  if (channel_) channel_->remove(*this);
  device->forget_events(static_cast<verbs::CompletionQueue*>(this));
}

void CqImpl::notify() {
  const std::lock_guard guard(mutex_);
  if (channel_) channel_->push(*this);
  if (fd_ != nullptr) {
    fd_->signal();
  } else {
    had_event_ = true;
  }
}

void CqImpl::deliver_to(std::shared_ptr<ChannelImpl> channel, void* its_context) {
  const std::lock_guard guard(mutex_);
  if (channel_) channel_->remove(*this);
  channel_ = std::move(channel);
  channel_context_ = its_context;
}

device::EventFd* CqImpl::descriptor() {
  const std::lock_guard guard(mutex_);
  if (fd_ == nullptr) {
    auto made = std::make_unique<device::EventFd>();
    if (made->get() < 0) return nullptr;
    fd_ = std::move(made);
    if (had_event_) fd_->signal();
  }
  return fd_.get();
}

}  // namespace device

bool CompletionChannel::poll(void** context) {
  return impl_ && impl_->pop(context);
}
bool CompletionChannel::wait(void** context, int timeout_ms) {
  if (!impl_) return false;
  device::Driver& driver = *impl_->device->driver;
  const auto look = [&] { return impl_->pop(context) ? std::optional(true) : std::nullopt; };
  return device::wait_for(driver, timeout_ms, look, [&](Duration most, bool driven) {
    if (driven) {
      (void)driver.wait(impl_->fd.get(), most);
    } else {
      impl_->fd.wait(most);
    }
  });
}
bool CompletionChannel::sleep() {
  if (!impl_) return true;
  device::Driver& driver = *impl_->device->driver;
  if (driver.inherited()) return true;
  if (driver.has_thread()) return driver.wait(impl_->fd.get(), device::kForEver);
  if (driver.app_poll()) return true;  // no other thread drives: poll and sleep a little
  errno = 0;
  return impl_->fd.wait(Duration::ms(1)) || errno != EINTR;
}
int CompletionChannel::fd() const {
  return impl_ ? impl_->fd.get() : -1;
}

Result<CompletionChannel> Device::create_completion_channel() {
  return device::guarded([&]() -> Result<CompletionChannel> {
    if (auto no = device::unusable(impl_)) return *no;
    auto channel = std::make_shared<device::ChannelImpl>(impl_);
    if (!channel->usable()) return device::no_descriptor("a completion channel");
    return CompletionChannel(std::move(channel));
  });
}

Result<void> CompletionQueue::deliver_events(const CompletionChannel& channel, void* context) {
  return device::guarded([&]() -> Result<void> {
    if (!impl_) return device::empty_handle("completion queue");
    if (channel && channel.impl_->device != impl_->device) {
      return Error{Errc::invalid_argument, "the completion channel belongs to another device"};
    }
    impl_->deliver_to(channel.impl_, context);
    return {};
  });
}

}  // namespace urnic
