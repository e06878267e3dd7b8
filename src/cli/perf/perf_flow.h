// The two ends of a stream of messages, as objects that the caller's loop steps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cli/pace.h"
#include "cli/perf/perf_session.h"

namespace urnic::cli {

// The top byte of wr_id: the object that posted the request.
enum class PerfTag : std::uint64_t { Sender = 1, Receiver = 2, Credit = 3 };

// The bytes of a run's data area, different at every position. The sender sends them.
void fill_pattern(std::uint64_t seed, std::uint64_t offset, std::span<std::uint8_t> out);
bool matches_pattern(std::uint64_t seed, std::uint64_t offset, std::span<const std::uint8_t> bytes);
// The distance between two messages in a data area, and the number of messages that fit.
std::uint32_t perf_stride(const PerfRun& run);
std::uint64_t perf_slots(const PerfRun& run, std::uint64_t buffer);

// Posts Writes, Reads or Sends on every connection in turn, `depth` outstanding on each.
class BandwidthSender {
 public:
  BandwidthSender(PerfSession* session, const PerfRun& run);
  // Returns true if there was any work.
  bool step();
  bool finished() const { return done_; }
  // Handles a completion that belongs to this sender.
  void on_completion(const Completion& c);
  std::uint64_t messages() const { return completed_; }
  double seconds() const { return ended_ - began_; }
  // Seconds since the first message was posted.
  double elapsed(double now) const { return began_ == 0 ? 0 : now - began_; }
  double peak_rate() const { return peak_; }

 private:
  struct Lane {
    std::uint64_t posted = 0, completed = 0, signaled = 0;  // message numbers
    std::uint64_t pass = 0;                                 // the pass that filled the data area
    bool stopped = false;
  };
  bool post(std::uint32_t connection, double now);
  // For verified Sends: fills the data area with new bytes before every pass, once no message of
  // the last pass can be resent. Returns false while it must wait.
  bool new_pass(std::uint32_t connection);
  bool time_is_up(double now) const;
  std::uint64_t credits(std::uint32_t connection) const;
  void note_rate(double now);

  PerfSession* s_;
  PerfRun run_;
  std::uint32_t stride_, moderation_;
  std::uint64_t slots_;
  std::vector<Lane> lanes_;
  std::vector<SendRequest> batch_;
  std::vector<Sge> sges_;
  std::uint64_t completed_ = 0, expected_ = 0;
  double began_ = 0, ended_ = 0, peak_ = 0;
  double mark_time_ = 0;
  std::uint64_t mark_count_ = 0;
  bool done_ = false;
  Pace pace_;
};

// Receives Sends: keeps receives posted and tells the sender how many messages it may send.
class SendReceiver {
 public:
  SendReceiver(PerfSession* session, const PerfRun& run);
  Result<void> start();
  void on_completion(const Completion& c);
  std::uint64_t messages() const { return received_; }
  std::uint64_t errors() const { return errors_; }
  const std::string& failure() const { return failure_; }

 private:
  void give_credit(std::uint32_t connection);
  struct Lane {
    std::uint64_t received = 0, posted = 0, granted = 0, credits_sent = 0;
    std::uint32_t credits_open = 0;
  };
  PerfSession* s_;
  PerfRun run_;
  std::uint32_t stride_, depth_;
  std::uint64_t slots_;
  std::vector<Lane> lanes_;
  std::uint64_t received_ = 0, errors_ = 0;
  std::string failure_;
};

// Latencies of single messages, in nanoseconds.
class LatencySamples {
 public:
  // bound: samples of a latency test of `urnic perf`; beyond: further messages are only counted;
  // the statistics cover the first ones; test: LatencySamples.KeepsSamplesUpToTheLimitOnly
  static constexpr std::uint64_t kMostSamples = 20'000'000;

  void reserve(std::uint64_t expected) { samples_.reserve(std::min(expected, kMostSamples)); }
  void add(std::int64_t ns) {
    if (samples_.size() == kMostSamples) return;
    samples_.push_back(static_cast<std::uint32_t>(std::min<std::int64_t>(ns, UINT32_MAX)));
  }
  std::vector<std::uint32_t>& all() { return samples_; }

 private:
  std::vector<std::uint32_t> samples_;
};

// Ping-pong of one message. Samples are the client's (`first`), in nanoseconds: half round trips,
// for Read full round trips. Runs until it is done or the session fails.
class LatencyLoop {
 public:
  LatencyLoop(PerfSession* session, const PerfRun& run, bool first);
  // Clears the memory and posts receives. Must be called before the other end begins.
  Result<void> prepare();
  bool run();
  std::vector<std::uint32_t>& samples() { return samples_.all(); }
  std::uint64_t messages() const { return count_; }
  double seconds() const { return seconds_; }
  // The client's Done message.
  const PerfMessage& done() const { return done_; }

 private:
  bool measure();
  bool serve();
  bool wait_for_mark(std::uint8_t mark);
  bool post(Opcode opcode);
  bool wait_completion(bool receive);
  bool drain();
  bool healthy();

  PerfSession* s_;
  PerfRun run_;
  bool first_;
  std::uint64_t count_ = 0, posted_ = 0, open_ = 0;
  std::uint64_t receives_ready_ = 0;
  double seconds_ = 0, last_progress_ = 0;
  bool control_waiting_ = false;
  PerfMessage done_;
  std::uint32_t spins_ = 0;
  LatencySamples samples_;
};

}  // namespace urnic::cli
