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
  // Opens the device, connects `connections` + 1 times to the first of `places` where that
  // succeeds; `buffer` bytes of data area for each connection.
  static Result<std::unique_ptr<PerfClient>> connect(const Config& config,
                                                     const std::vector<std::string>& places,
                                                     std::uint32_t connections,
                                                     std::uint64_t buffer);
  // `tell` hears of every interval of a run that has some, as it is over.
  using Tell = std::function<void(const PerfInterval&)>;
  Result<PerfResult> measure(const PerfRun& run, const Tell& tell);
  void disconnect();
  DeviceInfo info() const { return s_.device.info(); }

 private:
  Result<void> reach(const std::string& place);
  Result<void> connect_one(QueuePair& qp, const PerfGreeting& greeting);
  Result<PerfResult> measure(const PerfRun& run);
  // `also`: another kind that may come.
  Result<PerfMessage> await(PerfKind kind, const std::function<void()>& meanwhile,
                            std::optional<PerfKind> also = {});
  Result<PerfResult> bandwidth(const PerfRun& run);
  Result<void> begin(const PerfRun& run, bool receives, SendReceiver* receiver);
  Result<PerfResult> reversed(const PerfRun& run);
  // Interval by interval, of one of our own or what the server says.
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
  bool keeps_ = true;  // them, since the measurement has an end
};

class PerfServer {
 public:
  // Listens at that port of both transports, where the device can speak both, and refuses clients
  // of one that the configuration does not name.
  static Result<std::unique_ptr<PerfServer>> open(const Config& config, std::uint16_t port,
                                                  std::uint64_t memory_limit);
  // Serves one client. `*served` tells whether there was one; an error is that client's, and the
  // server may go on. Returns an error also when stopped.
  Result<void> serve_one(bool* served);
  // Hears of every measurement of every client, as its client has seen it.
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
  // Whether all is there that is to come: `done` is the client's, once it has said so.
  static bool over(const PerfRun& run, const std::optional<PerfMessage>& done,
                   const BandwidthSender& sender, const SendReceiver& receiver);
  void count_differences(const PerfRun& run, std::uint64_t messages, PerfMessage* report);
  void forget_client();

  Config config_;
  std::uint64_t memory_limit_ = 0;
  std::uint32_t session_ = 0;
  Listener listeners_[2];  // by transport; the context of its events is its address here
  PerfSession s_;
};

}  // namespace urnic::cli
