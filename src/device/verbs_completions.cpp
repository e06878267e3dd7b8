// The public API of memory regions, memory windows and completion queues.
#include <poll.h>

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "device/device_impl.h"
#include "device/mapping.h"
#include "device/present_memory.h"
#include "device/wait_for.h"

namespace urnic {
namespace device {
namespace {

Error absent(const MrImpl& mr) {
  return {Errc::bad_address, (mr.access & access_local_write) != 0
                                 ? "the memory is not mapped or not writable"
                                 : "the memory is not mapped or not readable"};
}

}  // namespace

MrImpl::~MrImpl() {
  if (stag == 0 || !pd) return;
  pd->device->driver->own([&](Instant) {
    pd->device->engine->memory().unbind_windows_on(stag);
    return pd->device->engine->deregister(stag);
  });
}

WindowImpl::~WindowImpl() {
  if (key == 0 || !pd) return;
  pd->device->driver->own([&](Instant) { return pd->device->engine->memory().free_window(key); });
}

verbs::Extent MrImpl::extent() const {
  verbs::Extent e = verbs::Extent::of(static_cast<std::uint8_t*>(address), length,
                                      static_cast<std::uint8_t>(access));
  if (iova && (access & access_zero_based) == 0) e.address = *iova;
  return e;
}

std::optional<Error> not_registrable(const MrImpl& mr) {
  if ((mr.access & access_remote_write) != 0 && (mr.access & access_local_write) == 0) {
    return Error{Errc::invalid_argument, "access_remote_write also needs access_local_write"};
  }
  if ((mr.access & ~kAccessRights) != 0) {
    return Error{Errc::invalid_argument, "access: contains unknown bits"};
  }
  const verbs::Extent extent = mr.extent();
  if (mr.address == nullptr && mr.length != 0) return absent(mr);
  if (!verbs::registrable(extent, static_cast<std::uint8_t>(mr.access))) {
    return Error{Errc::invalid_argument, "address + length exceeds the address space"};
  }
  return std::nullopt;
}

std::optional<Error> not_present(const MrImpl& mr, DeviceImpl& device) {
  const bool write = (mr.access & access_local_write) != 0;
  const PresenceMeans means{.queries = &device.mapping_queries};
  if (device::is_present(mr.address, mr.length, write, means)) return std::nullopt;
  return absent(mr);
}

}  // namespace device

namespace {

const Error kBound{Errc::in_use, "memory windows are still bound to the region: unbind them first"};

Completion completion_of(const verbs::Cqe& cqe) {
  const verbs::Completion& c = cqe.completion;
  Completion out;
  out.wr_id = c.wr_id;
  out.status = device::to_public(c.status);
  out.opcode = c.receive ? Opcode::receive : device::to_public(c.op);
  out.byte_len = c.byte_len;
  out.invalidated = c.with_invalidate;
  out.invalidated_rkey = c.inv_key;
  out.qp_number = cqe.qp_number;
  out.with_immediate = c.with_immediate;
  out.immediate = c.immediate;
  out.behind_write = c.receive && c.op == verbs::WrOp::WriteImm;
  out.has_grh = c.datagram;
  out.grh_is_ipv4 = c.ipv4;
  out.source_qp = cqe.source_qp;
  return out;
}

}  // namespace

const char* to_string(WcStatus s) {
  switch (s) {
    case WcStatus::success:
      return "success";
    case WcStatus::flushed:
      return "work request flushed: the connection ended";
    case WcStatus::local_length:
      return "the message is longer than the local buffer or the queue pair allows";
    case WcStatus::local_protection:
      return "invalid local key, address range or access rights of a scatter/gather element";
    case WcStatus::local_access:
      return "the peer's write with immediate data has an invalid key, address range or access "
             "rights";
    case WcStatus::remote_access:
      return "the peer denied access to its memory: check remote key, address range and access "
             "rights";
    case WcStatus::remote_operation:
      return "the peer failed to execute the operation";
    case WcStatus::remote_invalid_request:
      return "the peer reported an invalid request";
    case WcStatus::fatal_transport:
      return "the TCP connection was lost";
    case WcStatus::window_bind:
      return "the memory window cannot be bound: check its key, range and access rights";
    case WcStatus::retry_exceeded:
      return "no response from the peer: all retransmissions are used up (retry_count)";
    case WcStatus::rnr_retry_exceeded:
      return "the peer posted no receive: all RNR retries are used up (rnr_retry)";
    case WcStatus::bad_response:
      return "the peer sent an unexpected response";
    case WcStatus::remote_invalid_rd_request:
      return "the shared receive queue and the peer's queue pair belong to different XRC domains";
    case WcStatus::local_operation:
      return "the queue pair does not support the operation in its present state or configuration";
  }
  return "?";
}

// ---- memory

MemoryRegion& MemoryRegion::operator=(MemoryRegion&&) noexcept = default;
MemoryRegion::~MemoryRegion() = default;
void* MemoryRegion::address() const {
  return impl_ ? impl_->address : nullptr;
}
std::size_t MemoryRegion::length() const {
  return impl_ ? impl_->length : 0;
}
std::uint32_t MemoryRegion::lkey() const {
  return impl_ ? impl_->stag : 0;
}
std::uint64_t MemoryRegion::remote_address() const {
  return impl_ ? impl_->extent().address : 0;
}
Result<void> MemoryRegion::reregister(const RegionChange& change) {
  return device::guarded([&]() -> Result<void> {
    if (!impl_) return device::empty_handle("memory region");
    auto& device = impl_->pd->device;
    if (device->driver->inherited()) return device::inherited_error();
    device::MrImpl wanted;  // has no domain, so its destruction ends no registration
    wanted.address = impl_->address;
    wanted.length = impl_->length;
    wanted.iova = impl_->iova;
    if (change.memory) {
      wanted.address = change.memory->address;
      wanted.length = change.memory->length;
      wanted.iova = change.memory->iova;
    }
    wanted.access = change.access.value_or(impl_->access);
    auto pd = impl_->pd;
    if (change.domain != nullptr) {
      pd = change.domain->impl_;
      if (!pd || pd->device != device) {
        return Error{Errc::invalid_argument,
                     "the protection domain is empty or belongs to another device"};
      }
    }
    if (auto no = device::not_registrable(wanted)) return *no;
    if (change.memory || change.access) {
      if (auto no = device::not_present(wanted, *device)) return *no;
    }
    const std::uint32_t stag = device->driver->own([&](Instant) {
      return device->engine->reregister(impl_->stag, pd->id, wanted.extent(),
                                        static_cast<std::uint8_t>(wanted.access));
    });
    if (stag == 0) return kBound;
    impl_->address = wanted.address;
    impl_->length = wanted.length;
    impl_->iova = wanted.iova;
    impl_->access = wanted.access;
    impl_->stag = stag;
    impl_->pd = std::move(pd);
    return {};
  });
}
Result<void> MemoryRegion::deregister() {
  return device::guarded([&]() -> Result<void> {
    if (impl_ && !impl_->pd->device->driver->inherited()) {
      auto& device = impl_->pd->device;
      const bool gone =
          device->driver->own([&](Instant) { return device->engine->deregister(impl_->stag); });
      if (!gone) return kBound;
      impl_->stag = 0;
    }
    impl_.reset();
    return {};
  });
}

// ---- memory windows

MemoryWindow& MemoryWindow::operator=(MemoryWindow&&) noexcept = default;
MemoryWindow::~MemoryWindow() = default;
WindowType MemoryWindow::type() const {
  return impl_ ? impl_->type : WindowType::type1;
}
std::uint32_t MemoryWindow::rkey() const {
  return impl_ ? impl_->key : 0;
}
std::uint32_t MemoryWindow::next_rkey() {
  if (!impl_) return 0;
  impl_->key = (impl_->key & ~0xffu) | ((impl_->key + 1) & 0xffu);
  return impl_->key;
}

// ---- completion queues

namespace {

int take(verbs::CompletionQueue& queue, std::span<Completion> out) {
  constexpr std::size_t kAtOnce = 64;
  // Not initialised: most polls find no completion, and would set 4 KiB for nothing.
  static_assert(std::is_trivially_copyable_v<verbs::Cqe>);
  alignas(verbs::Cqe) std::byte storage[kAtOnce * sizeof(verbs::Cqe)];
  auto* const cqes = reinterpret_cast<verbs::Cqe*>(storage);
  std::size_t done = 0;
  while (done < out.size()) {
    const std::size_t want = std::min(out.size() - done, kAtOnce);
    const int n = queue.poll({cqes, want});
    if (n < 0) return done != 0 ? static_cast<int>(done) : -1;
    for (int i = 0; i < n; ++i) out[done++] = completion_of(cqes[i]);
    if (static_cast<std::size_t>(n) < want) break;
  }
  return static_cast<int>(done);
}

}  // namespace

int CompletionQueue::poll(std::span<Completion> out) {
  if (!impl_ || impl_->device->driver->inherited()) return -1;
  if (impl_->looks_empty()) impl_->device->driver->app_poll();
  return take(*impl_, out);
}

void CompletionQueue::arm(bool solicited_only) {
  if (!impl_) return;
  impl_->verbs::CompletionQueue::arm(solicited_only);
  impl_->device->driver->hand_over();  // verbs programs poll once more, then sleep
}
void CompletionQueue::notify() {
  if (impl_) impl_->notify();
}
int CompletionQueue::fd() const {
  if (!impl_) return -1;
  const auto* fd = device::or_nothing([&] { return impl_->descriptor(); });
  return fd != nullptr ? fd->get() : -1;
}
Result<void> CompletionQueue::resize(std::uint32_t depth) {
  return device::guarded([&]() -> Result<void> {
    if (!impl_) return device::empty_handle("completion queue");
    if (impl_->device->driver->inherited()) return device::inherited_error();
    if (depth == 0 || depth > device::kMostCompletions) return device::depth_error();
    if (impl_->resize(depth)) return {};
    return Error{Errc::in_use, "the queue holds more completions than the new size"};
  });
}
std::uint32_t CompletionQueue::depth() const {
  return impl_ ? impl_->depth() : 0;
}

bool CompletionQueue::wait(int timeout_ms) {
  if (!impl_) return false;
  device::Driver& driver = *impl_->device->driver;
  device::EventFd* fd = nullptr;
  const auto look = [&]() -> std::optional<bool> {
    if (!impl_->looks_empty() || impl_->overrun()) return true;
    fd = device::or_nothing([&] { return impl_->descriptor(); });
    if (fd != nullptr) fd->clear();
    arm();
    if (!impl_->looks_empty() || impl_->overrun()) return true;
    return std::nullopt;
  };
  return device::wait_for(driver, timeout_ms, look, [&](Duration most, bool driven) {
    if (driven && fd != nullptr) {
      (void)driver.wait(fd->get(), most);
    } else {
      ::poll(nullptr, 0, 1);  // no descriptor, or no other thread drives: sleep a little
    }
  });
}

}  // namespace urnic
