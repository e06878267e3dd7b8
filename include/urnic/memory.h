// Memory of the caller that work requests and peers may access: protection domain, memory region,
// memory window (RFC 5040, RFC 5041, 3). Lifetime, threads, errors and units: see urnic/verbs.h,
// which includes this header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "urnic/status.h"

namespace urnic {

namespace device {
struct PdImpl;
struct MrImpl;
struct WindowImpl;
}  // namespace device

// Access rights of a memory region; local read access always exists.
enum Access : std::uint32_t {
  access_local_write = 1,
  access_remote_write = 2,  // needs access_local_write
  access_remote_read = 4,
  access_zero_based = 8,      // tagged offsets count from 0 instead of the virtual address
  access_remote_atomic = 16,  // needs access_local_write
  access_bind_window = 32,    // memory windows may be bound to it
};

// Memory regions and queue pairs work together only within one protection domain (RFC 5040, 1.1).
class URNIC_API ProtectionDomain {
 public:
  ProtectionDomain() = default;
  explicit operator bool() const { return impl_ != nullptr; }

 private:
  friend class Device;
  friend class MemoryRegion;
  explicit ProtectionDomain(std::shared_ptr<device::PdImpl> i) : impl_(std::move(i)) {}
  std::shared_ptr<device::PdImpl> impl_;
};

// The changes to a region; members that are not set stay as they are.
struct RegionChange {
  struct Memory {
    void* address = nullptr;
    std::size_t length = 0;
    std::optional<std::uint64_t> iova;  // if not set: the virtual address
  };
  std::optional<Memory> memory;
  std::optional<std::uint32_t> access;
  const ProtectionDomain* domain = nullptr;  // borrowed for the call
};

// A registered range of the caller's memory. The memory must stay mapped until deregister() or
// destruction returns; the engine does not touch it afterwards (E-25).
class URNIC_API MemoryRegion {
 public:
  MemoryRegion() = default;
  MemoryRegion(MemoryRegion&&) noexcept = default;
  MemoryRegion& operator=(MemoryRegion&&) noexcept;
  ~MemoryRegion();
  explicit operator bool() const { return impl_ != nullptr; }

  // As registered, or reregistered last; null and 0 for an empty handle.
  void* address() const;
  std::size_t length() const;
  // Key for local scatter/gather elements, and for remote access. iWARP: one STag for both (RFC
  // 5041, 3). A program that should also run over another transport sends rkey() to its peer, never
  // lkey(). Keys are hard to guess, and each registration gets a new one. 0 for an empty handle.
  std::uint32_t lkey() const;
  std::uint32_t rkey() const { return lkey(); }
  // The address of the first byte, as the peer names it in a Write or Read, and as our Sge names
  // it: the iova if it was registered with one; else the virtual address, or 0 for a zero-based
  // region.
  std::uint64_t remote_address() const;
  // Changes memory, domain or rights in one step. The keys are new ones unless only the rights
  // change. Requests that were posted with the old keys and are not complete end as if the region
  // had been deregistered. No other call on this object may run at the same time. Errors:
  // invalid_argument (rights, range), bad_address (as for register_memory()), in_use (windows are
  // bound to it); then nothing has changed.
  Result<void> reregister(const RegionChange& change);
  // Ends the registration; the handle is empty afterwards. May wait for one burst of the engine,
  // but never for the peer. Errors: in_use while memory windows are bound to it; then nothing has
  // changed. Destroying the handle unbinds the windows instead.
  Result<void> deregister();

 private:
  friend class Device;
  explicit MemoryRegion(std::shared_ptr<device::MrImpl> i) : impl_(std::move(i)) {}
  std::shared_ptr<device::MrImpl> impl_;
};

enum class WindowType : std::uint8_t {
  // belongs to the protection domain: all its queue pairs may use it; may be bound again at any
  // time
  type1 = 1,
  type2 =
      2,  // belongs to the queue pair that bound it; must be invalidated before it is bound again
};

// A key for peers that covers part of a region, with rights of its own. A bind_window work request
// sets the part; before that, and after an invalidation, the key gives no access. The window is
// unbound when it is destroyed, and a type 2 also when its queue pair is destroyed or moved to
// reset.
class URNIC_API MemoryWindow {
 public:
  MemoryWindow() = default;
  MemoryWindow(MemoryWindow&&) noexcept = default;
  MemoryWindow& operator=(MemoryWindow&&) noexcept;
  ~MemoryWindow();
  explicit operator bool() const { return impl_ != nullptr; }

  WindowType type() const;
  // The key that next_rkey() returned last. 0 for an empty handle.
  std::uint32_t rkey() const;
  // Returns a new key for the next bind; rkey() returns it from now on.
  std::uint32_t next_rkey();

 private:
  friend class Device;
  explicit MemoryWindow(std::shared_ptr<device::WindowImpl> i) : impl_(std::move(i)) {}
  std::shared_ptr<device::WindowImpl> impl_;
};

// Parameters of a bind. The region needs access_bind_window, and access_local_write if the window
// allows remote writing or atomics; the region's own remote rights do not matter. Window, region
// and queue pair belong to one protection domain.
struct WindowBind {
  std::uint64_t address = 0;  // as in an Sge of that region
  std::uint64_t length = 0;   // 0: unbinds a type 1
  std::uint32_t lkey = 0;     // of the region
  std::uint32_t rkey = 0;     // MemoryWindow::next_rkey(); a type 2 may have any lowest byte
  // access_remote_write, _read, _atomic; access_zero_based: the peer's addresses start at 0.
  std::uint32_t access = 0;
};

}  // namespace urnic
