// What the commands that use a device share: memory, the wait for the link, and how a queue pair
// begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "urnic/config.h"
#include "urnic/urnic.h"

namespace urnic::cli {

// Memory of our own, registered: pages come with first use.
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

// Why nothing can be sent over `port`, from what the port knows: one line for a person.
std::string no_link_text(const std::string& port, const std::string& reason,
                         const std::string& whom);

// Waits until frames can flow and own addresses may be used (duplicate-address detection takes a
// second on some ports). `whom` is asked for in the error: "the target".
Result<void> wait_ready(Device& device, const std::string& port, const std::string& whom,
                        int timeout_ms);

// `endpoint` is not one of the device's own addresses, where nobody else can listen.
Result<void> not_ourselves(Device& device, const std::string& endpoint);

// The configuration of a command that serves: its end of a memif wire says so to the other, and
// refuses to become the client of one that serves as well.
Result<Config> serving(const Config& config, const std::string& what);

// The transport that the configuration names; iWARP if it names both.
Transport configured_transport(const Config& config);

// Brings a queue pair to a state in which receives can be posted. A queue pair of RoCE goes from
// reset to init, one of iWARP is there already. The peer may read and write what it is granted.
Result<void> make_ready(QueuePair& qp);

}  // namespace urnic::cli
