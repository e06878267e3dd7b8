// One `urnic perf` from start to end, on either side.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/perf_flow.h"
#include "cli/perf_session.h"

namespace urnic::cli {

class PerfClient {
 public:
  // Opens the device, connects `connections` + 1 times to the first of `places` where that
  // succeeds; `buffer` octets of data area for each connection.
  static Result<std::unique_ptr<PerfClient>> connect(const Config& config,
                                                     const std::vector<std::string>& places,
                                                     std::uint32_t connections,
                                                     std::uint64_t buffer);
  Result<PerfResult> measure(const PerfRun& run);
  void disconnect();
  DeviceInfo info() const { return s_.device.info(); }

 private:
  Result<void> reach(const std::string& place);
  Result<void> connect_one(QueuePair& qp, const PerfGreeting& greeting);
  Result<PerfMessage> await(PerfKind kind, const std::function<void()>& meanwhile);
  Result<PerfResult> bandwidth(const PerfRun& run);
  Result<void> see_writes_placed();
  Result<PerfResult> verified(const PerfRun& run);
  Result<PerfResult> latency(const PerfRun& run);
  void dispatch(BandwidthSender* sender, SendReceiver* receiver);
  Error failed() const;

  Config config_;
  std::string endpoint_;
  PerfSession s_;
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
  DeviceInfo info() const { return s_.device.info(); }

 private:
  Result<void> listen(Transport transport, std::uint16_t port);
  std::string refusal_of(const ConnectRequest& request, Transport transport) const;
  Result<void> accept_control(std::string* peer);
  Result<void> await_control();
  Result<void> accept_data(const PerfMessage& hello);
  Result<void> run_one(const PerfRun& run);
  Result<void> run_bandwidth(const PerfRun& run, PerfMessage* report);
  Result<void> run_latency(const PerfRun& run);
  void forget_client();

  Config config_;
  std::uint64_t memory_limit_ = 0;
  std::uint32_t session_ = 0;
  Listener listeners_[2];  // by transport; the context of its events is its address here
  PerfSession s_;
};

}  // namespace urnic::cli
