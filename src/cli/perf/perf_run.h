// One `urnic perf` from start to end, on either side.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/perf/perf_flow.h"
#include "cli/perf/perf_session.h"

namespace urnic::cli {

class PerfClient {
 public:
  // Opens the device and connects `connections` + 1 times to the first of `places` that accepts.
  // Each connection gets `buffer` bytes of data area.
  static Result<std::unique_ptr<PerfClient>> connect(const Config& config,
                                                     const std::vector<std::string>& places,
                                                     std::uint32_t connections,
                                                     std::uint64_t buffer);
  // Calls `tell` at the end of every interval, if the run has intervals.
  using Tell = std::function<void(const PerfInterval&)>;
  Result<PerfResult> measure(const PerfRun& run, const Tell& tell);
  void disconnect();
  DeviceInfo info() const { return s_.device.info(); }

 private:
  Result<void> reach(const std::string& place);
  Result<void> connect_one(QueuePair& qp, const PerfGreeting& greeting);
  Result<PerfResult> measure(const PerfRun& run);
  // `also`: a second kind that is accepted.
  Result<PerfMessage> await(PerfKind kind, const std::function<void()>& meanwhile,
                            std::optional<PerfKind> also = {});
  Result<PerfResult> bandwidth(const PerfRun& run);
  Result<void> begin(const PerfRun& run, bool receives, SendReceiver* receiver);
  Result<PerfResult> reversed(const PerfRun& run);
  // Records an interval, one of our own or one that the server reports.
  void note(std::optional<PerfInterval> over);
  Result<void> see_writes_placed();
  Result<PerfResult> verified(const PerfRun& run);
  Result<PerfResult> latency(const PerfRun& run);
  void dispatch(BandwidthSender* sender, SendReceiver* receiver);
  Error failed() const;

  Config config_;
  std::string endpoint_;
  PerfSession s_;
  const Tell* tell_ = nullptr;  // during a run
  std::vector<PerfInterval> intervals_;
  bool keeps_ = true;  // keep the intervals: the measurement has an end
};

class PerfServer {
 public:
  // Listens at that port for both transports if the device supports both. Refuses clients of a
  // transport that the configuration does not name.
  static Result<std::unique_ptr<PerfServer>> open(const Config& config, std::uint16_t port,
                                                  std::uint64_t memory_limit);
  // Serves one client. `*served` is true if there was one. An error concerns only that client, and
  // the server may continue. Returns an error also when stopped.
  Result<void> serve_one(bool* served);
  // Called with every measurement of every client, as the client measured it.
  std::function<void(const std::string& peer, const PerfResult&)> on_result;
  DeviceInfo info() const { return s_.device.info(); }

 private:
  Result<void> listen(Transport transport, std::uint16_t port);
  std::string refusal_of(const ConnectRequest& request, Transport transport) const;
  Result<void> accept_control(std::string* peer);
  Result<void> await_control();
  Result<void> accept_data(const PerfMessage& hello);
  Result<void> run_one(const PerfRun& run, const std::string& peer);
  Result<void> run_bandwidth(const PerfRun& run, PerfMessage* report, PerfMessage* done);
  Result<void> run_latency(const PerfRun& run, PerfMessage* done);
  // True if everything has been sent and received. `done` is the client's message, once it has
  // arrived.
  static bool over(const PerfRun& run, const std::optional<PerfMessage>& done,
                   const BandwidthSender& sender, const SendReceiver& receiver);
  void count_differences(const PerfRun& run, std::uint64_t messages, PerfMessage* report);
  void forget_client();

  Config config_;
  std::uint64_t memory_limit_ = 0;
  std::uint32_t session_ = 0;
  Listener listeners_[2];  // by transport; the address of each is the context of its events
  PerfSession s_;
};

}  // namespace urnic::cli
