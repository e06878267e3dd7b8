// A queue pair that carries control messages by Send. Its owner decides on the data operations.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/rdma.h"
#include "cli/transfer/storage_message.h"
#include "urnic/verbs.h"

namespace urnic::cli {

class Channel {
 public:
  static constexpr std::uint32_t kMaxSlots = 32;
  // Messages in flight in each direction: a notice and its answer for every slot, and some more.
  static constexpr std::uint32_t kMessages = 2 * kMaxSlots + 16;
  // The largest number of outstanding completions of one channel.
  static constexpr std::uint32_t kCompletions = 2 * kMessages + kMaxSlots + 8;

  // The events of the queue pair carry `context`. Receives are posted before this returns.
  static Result<std::unique_ptr<Channel>> make(Device& device, const ProtectionDomain& pd,
                                               const CompletionQueue& cq, const EventQueue& events,
                                               void* context);

  QueuePair& qp() { return qp_; }
  Result<void> send(const Message& message);
  // Transfer between one slot of the window and the remote window; completes as DataDone.
  Result<void> write(std::uint32_t slot, const Sge& from, std::uint64_t to, std::uint32_t rkey);
  Result<void> read(std::uint32_t slot, const Sge& into, std::uint64_t from, std::uint32_t rkey);

  enum class What : std::uint8_t { Nothing, Received, DataDone, Failed };
  struct Incoming {
    What what = What::Nothing;
    Message message;         // Received
    std::uint32_t slot = 0;  // DataDone
    std::string error;       // Failed
  };
  // Interprets a completion of this queue pair.
  Incoming take(const Completion& c);
  // Sends, writes and reads that have not completed yet.
  unsigned outstanding() const { return outstanding_; }

 private:
  Result<void> post_receive(std::uint32_t index);
  Result<void> post_data(Opcode opcode, std::uint32_t slot, const Sge& local, std::uint64_t remote,
                         std::uint32_t rkey);

  RdmaBuffer messages_;  // kMessages to receive into, then kMessages to send from
  QueuePair qp_;         // must be destroyed first
  std::vector<std::uint32_t> free_;
  unsigned outstanding_ = 0;
};

}  // namespace urnic::cli
