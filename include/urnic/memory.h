// Memory of the caller that work requests and peers may touch: protection domain, memory region,
// memory window (RFC 5040, RFC 5041, 3). Lifetime, threads, errors and units are those of
// urnic/verbs.h, which includes this.
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

// Access rights of a memory region; local read is always there.
enum Access : std::uint32_t {
  access_local_write = 1,
  access_remote_write = 2,  // needs access_local_write
  access_remote_read = 4,
  access_zero_based = 8,      // tagged offsets count from 0 instead of the virtual address
  access_remote_atomic = 16,  // needs access_local_write
  access_bind_window = 32,    // memory windows may be bound to it
};

// What memory regions and queue pairs must have in common to work together (RFC 5040, 1.1).
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

// What is to be different of a region; what is left alone stays.
struct RegionChange {
  struct Memory {
    void* address = nullptr;
    std::size_t length = 0;
    std::optional<std::uint64_t> iova;  // left alone: the virtual address
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

  // As registered, or reregistered; null and 0 when empty.
  void* address() const;
  std::size_t length() const;
  // Key for local scatter/gather elements, and for remote access. iWARP: one STag for both (RFC
  // 5041, 3); a program that is to run over another transport too sends rkey() to its peer, never
  // lkey(). Not to be guessed; another one at each registration. 0 when empty.
  std::uint32_t lkey() const;
  std::uint32_t rkey() const { return lkey(); }
  // What a peer puts into Sge-like "remote address" of a Write or Read, and an Sge of ours, for the
  // first byte: the iova it was registered with; else the virtual address, or 0 for a zero-based
  // region.
  std::uint64_t remote_address() const;
  // At once other memory, domain or rights. The keys are new ones unless only the rights are
  // others. What was posted with the old keys and is not complete ends as if the region had been
  // deregistered. Not beside other calls on this object. Errors: invalid_argument (rights, range),
  // bad_address (as register_memory() has it), in_use (windows are bound to it); nothing has
  // changed then.
  Result<void> reregister(const RegionChange& change);
  // Ends the registration; the handle is empty afterwards. Waits for a burst of the engine, not for
  // the peer. Errors: in_use, and nothing has changed, while memory windows are bound to it.
  // Destruction unbinds them instead.
  Result<void> deregister();

 private:
  friend class Device;
  explicit MemoryRegion(std::shared_ptr<device::MrImpl> i) : impl_(std::move(i)) {}
  std::shared_ptr<device::MrImpl> impl_;
};

enum class WindowType : std::uint8_t {
  type1 = 1,  // of the protection domain: all its queue pairs; bound anew at any time
  type2 =
      2,  // of the queue pair that bound it; bound only while it is not, unbound by invalidation
};

// A key for peers that names part of a region with rights of its own. bind_window, a work request,
// says what it names; until then, and behind an invalidation, it names nothing. Destroying it, or
// the queue pair of a type 2, or moving that to reset, unbinds it.
class URNIC_API MemoryWindow {
 public:
  MemoryWindow() = default;
  MemoryWindow(MemoryWindow&&) noexcept = default;
  MemoryWindow& operator=(MemoryWindow&&) noexcept;
  ~MemoryWindow();
  explicit operator bool() const { return impl_ != nullptr; }

  WindowType type() const;
  // As next_rkey() said last. 0 when empty.
  std::uint32_t rkey() const;
  // For the next bind: another one than before, and rkey() from now on.
  std::uint32_t next_rkey();

 private:
  friend class Device;
  explicit MemoryWindow(std::shared_ptr<device::WindowImpl> i) : impl_(std::move(i)) {}
  std::shared_ptr<device::WindowImpl> impl_;
};

// What a window is to be. The region needs access_bind_window, and access_local_write if the window
// is for remote writing or atomics; its own remote rights do not matter. All of one protection
// domain.
struct WindowBind {
  std::uint64_t address = 0;  // as an Sge of that region
  std::uint64_t length = 0;   // 0: unbinds a type 1
  std::uint32_t lkey = 0;     // of the region
  std::uint32_t rkey = 0;     // MemoryWindow::next_rkey(); a type 2 may have any lowest byte
  // access_remote_write, _read, _atomic; access_zero_based: for the peer it begins at 0.
  std::uint32_t access = 0;
};

}  // namespace urnic
