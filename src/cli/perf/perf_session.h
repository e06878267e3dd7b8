// Both ends of `urnic perf`: one control connection, the measured connections and their memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/perf/perf_message.h"
#include "cli/perf/perf_result.h"
#include "cli/rdma.h"
#include "cli/runtime.h"
#include "urnic/urnic.h"

namespace urnic::cli {

const char* name_of(Transport transport);

// The control connection.
class PerfControl {
 public:
  static Result<std::unique_ptr<PerfControl>> make(Device& device, const ProtectionDomain& pd,
                                                   Transport transport, const EventQueue& events,
                                                   void* context);
  QueuePair& qp() { return qp_; }
  Result<void> send(const PerfMessage& m);
  // The next message, if one is there. Errors: the connection or the peer failed.
  Result<std::optional<PerfMessage>> receive();
  bool wait(int timeout_ms) { return cq_.wait(timeout_ms); }

 private:
  static constexpr std::uint32_t kBuffers = 8;
  Result<void> post_receive(std::uint32_t index);
  CompletionQueue cq_;
  RdmaBuffer buffer_;
  QueuePair qp_;
  std::uint32_t next_send_ = 0;
};

// The memory layout of one end: for each connection one cache line for the peer's credits, then one
// data area of `buffer` bytes.
struct PerfLayout {
  std::uint32_t connections = 1;
  std::uint64_t buffer = 0;
  std::uint64_t credit(std::uint32_t i) const { return std::uint64_t{i} * 64; }
  std::uint64_t data(std::uint32_t i) const {
    return (std::uint64_t{connections} * 64 + 4095) / 4096 * 4096 + i * buffer;
  }
  std::uint64_t size() const { return data(connections); }
};

// The objects that a measurement needs, on either end.
struct PerfSession {
  Device device;
  ProtectionDomain pd;
  CompletionQueue cq;  // of the measured connections
  EventQueue events;
  RdmaBuffer memory;
  PerfLayout layout;
  Transport transport = Transport::iwarp;  // of all connections
  std::uint64_t remote_address = 0;
  std::uint32_t remote_rkey = 0;
  std::unique_ptr<PerfControl> control;
  std::vector<QueuePair> qps;
  std::string failure;
  bool ended = false;  // a connection was closed in an orderly way
  // The server's next client, while the current one is connected. It waits for a moment, because
  // the current client may be about to leave.
  ConnectRequest waiting;
  void* waiting_at = nullptr;  // the listener it arrived at
  double waiting_since = 0;

  std::uint8_t* data(std::uint32_t connection) const {
    return memory.data() + layout.data(connection);
  }
  void on_event(Event& e);
  // Checks connection events, stop requests, and the time since `last_progress` (seconds). Returns
  // false if the run must end; `failure` then holds the reason.
  bool alive(double last_progress);
  // Creates a queue pair for a measured connection.
  Result<QueuePair> make_qp(void* context);
  // Sums over the measured connections.
  void add_stats(PerfMessage* m);
};

inline constexpr std::uint32_t kPerfMaxDepth = 4096;
inline constexpr std::uint32_t kPerfMaxInline = 256;

}  // namespace urnic::cli
