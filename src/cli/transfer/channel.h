// A queue pair that carries control messages by Send and leaves the data operations to its owner.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/transfer/storage_message.h"
#include "urnic/config.h"
#include "urnic/verbs.h"

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

class Channel {
 public:
  static constexpr std::uint32_t kMaxSlots = 32;
  // Messages under way each way: a notice and its answer for every slot, and a few besides.
  static constexpr std::uint32_t kMessages = 2 * kMaxSlots + 16;
  // Completions one channel may have outstanding.
  static constexpr std::uint32_t kCompletions = 2 * kMessages + kMaxSlots + 8;

  // `context` comes back in the events of the queue pair. Receives are posted before this returns.
  static Result<std::unique_ptr<Channel>> make(Device& device, const ProtectionDomain& pd,
                                               const CompletionQueue& cq, const EventQueue& events,
                                               void* context);

  QueuePair& qp() { return qp_; }
  Result<void> send(const Message& message);
  // Window <-> remote window of one slot; the completion comes as DataDone.
  Result<void> write(std::uint32_t slot, const Sge& from, std::uint64_t to, std::uint32_t rkey);
  Result<void> read(std::uint32_t slot, const Sge& into, std::uint64_t from, std::uint32_t rkey);

  enum class What : std::uint8_t { Nothing, Received, DataDone, Failed };
  struct Incoming {
    What what = What::Nothing;
    Message message;         // Received
    std::uint32_t slot = 0;  // DataDone
    std::string error;       // Failed
  };
  // What a completion of this queue pair means.
  Incoming take(const Completion& c);
  // Sends, writes and reads not yet completed.
  unsigned outstanding() const { return outstanding_; }

 private:
  Result<void> post_receive(std::uint32_t index);
  Result<void> post_data(Opcode opcode, std::uint32_t slot, const Sge& local, std::uint64_t remote,
                         std::uint32_t rkey);

  RdmaBuffer messages_;  // kMessages to receive into, then kMessages to send from
  QueuePair qp_;         // goes first
  std::vector<std::uint32_t> free_;
  unsigned outstanding_ = 0;
};

}  // namespace urnic::cli
