// Control messages of `urnic perf`: fixed layout, big-endian, one message per Send. They use a
// connection of their own, separate from the measured ones.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace urnic::cli {

inline constexpr std::uint16_t kPerfPort = 18516;
inline constexpr std::uint8_t kPerfVersion = 2;
inline constexpr std::size_t kPerfMessage = 384;

enum class PerfKind : std::uint8_t {
  Hello = 1,  // client: requested connections and memory
  Welcome,    // server: session and memory
  Run,        // client: one measurement
  Ready,      // server: the client may begin
  Done,       // client: all its messages are sent
  Report,     // server: what it received, and what it sent itself
  Error,      // either: `text`, then the connection ends
  Progress,   // server that sends: its progress
};
enum class PerfOp : std::uint8_t { Write = 0, Read, Send };
enum class PerfTest : std::uint8_t { Bandwidth = 0, Latency };

// No end: the run continues until it is stopped.
inline constexpr std::uint32_t kPerfNoEnd = ~std::uint32_t{0};

// One measurement.
struct PerfRun {
  PerfOp op = PerfOp::Write;
  PerfTest test = PerfTest::Bandwidth;
  bool bidirectional = false, verify = false;
  bool reverse = false;  // the server takes the client's role
  std::uint32_t size = 65536;
  std::uint64_t iterations = 5000;    // of each connection; 0: by duration
  std::uint32_t duration_ms = 0;      // kPerfNoEnd: until it is stopped
  std::uint32_t depth = 128;          // work requests outstanding on each connection
  std::uint32_t cq_moderation = 100;  // messages per completion
  std::uint32_t post_list = 1;        // work requests per doorbell
  std::uint32_t inline_size = 0;      // messages up to this size are posted inline
  std::uint32_t warm_up = 0;          // messages before the clock starts (latency)
  std::uint32_t interval_ms = 0;      // interval of progress reports; 0: none
  std::uint64_t limit = 0;            // bytes per second of each sending end; 0: no limit
  std::uint64_t seed = 1;
  bool operator==(const PerfRun&) const = default;
};

struct PerfMessage {
  PerfKind kind = PerfKind::Hello;
  // Hello, Welcome
  std::uint32_t connections = 1, session = 0, rkey = 0;
  std::uint64_t buffer = 0;  // bytes of data area for each connection
  std::uint64_t address = 0;
  PerfRun run;  // Run
  // Done, Report, Progress: counters of the end that sends the message
  std::uint64_t messages = 0, nanoseconds = 0, errors = 0, peak = 0;
  std::array<std::uint64_t, 9> latency{};  // Done: nanoseconds, in the order of LatencySummary
  std::uint64_t bytes_fast = 0, bytes_slow = 0, downgrades = 0, upgrades = 0, recoveries = 0,
                retransmits = 0;
  std::string text;  // Error, up to 160 bytes
  bool operator==(const PerfMessage&) const = default;
};

// Exactly kPerfMessage bytes.
void encode(const PerfMessage& m, std::span<std::uint8_t, kPerfMessage> out);
Outcome<PerfMessage, std::string> decode_perf(std::span<const std::uint8_t> bytes);

// Private data of a connect request: control connection or the data
// connection `index` of `session`.
struct PerfGreeting {
  bool control = true;
  std::uint32_t session = 0, index = 0;
};
std::array<std::uint8_t, 16> encode(const PerfGreeting& g);
Outcome<PerfGreeting, std::string> decode_greeting(std::span<const std::uint8_t> bytes);

const char* name_of(PerfOp op);

}  // namespace urnic::cli
