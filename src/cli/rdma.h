// Shared by the commands that use a device: registered memory, the wait for the link, and the first
// state of a queue pair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "urnic/config.h"
#include "urnic/urnic.h"

namespace urnic::cli {

// Memory of our own, registered. Pages are allocated on first use.
class RdmaBuffer {
 public:
  static Result<RdmaBuffer> make(Device& device, const ProtectionDomain& pd, std::size_t length,
                                 std::uint32_t access);
  RdmaBuffer() = default;
  RdmaBuffer(RdmaBuffer&& o) noexcept { *this = std::move(o); }
  RdmaBuffer& operator=(RdmaBuffer&& o) noexcept;
  ~RdmaBuffer();
  explicit operator bool() const { return memory_ != nullptr; }
  std::uint8_t* data() const { return memory_; }
  std::size_t size() const { return length_; }
  const MemoryRegion& region() const { return region_; }
  Sge sge(std::size_t offset, std::uint32_t length) const {
    return {reinterpret_cast<std::uint64_t>(memory_ + offset), length, region_.lkey()};
  }

 private:
  std::uint8_t* memory_ = nullptr;
  std::size_t length_ = 0;
  MemoryRegion region_;
};

// The reason why nothing can be sent over `port`, from the port's own information, as one line for
// the user.
std::string no_link_text(const std::string& port, const std::string& reason,
                         const std::string& whom);

// Waits until frames can be sent and own addresses may be used (duplicate address detection takes a
// second on some ports). The error names `whom` as the missing peer: "the target".
Result<void> wait_ready(Device& device, const std::string& port, const std::string& whom,
                        int timeout_ms);

// Returns an error if `endpoint` is one of the device's own addresses, where no other process can
// listen.
Result<void> not_ourselves(Device& device, const std::string& endpoint);

// The configuration of a command that acts as a server. Its end of a memif wire announces this role
// to the other end, and refuses to become the client of another server.
Result<Config> serving(const Config& config, const std::string& what);

// The configured transport; iWARP if both are configured.
Transport configured_transport(const Config& config);

// Brings a queue pair to a state in which receives can be posted: a RoCE queue pair goes from reset
// to init; an iWARP queue pair is ready from the beginning. The peer may read and write the memory
// that it is granted.
Result<void> make_ready(QueuePair& qp);

}  // namespace urnic::cli
