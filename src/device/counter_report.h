// Publishes the counters of a device for other programs (counters/publisher.h): a moment after the
// engine was active, and at its end.
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "base/time.h"
#include "counters/publisher.h"
#include "device/stat_server.h"

namespace urnic::device {

class CounterReport {
 public:
  // Between activity and publication; longer if publishing takes long, as with thousands of
  // connections: it gets at most a hundredth of the time.
  static constexpr Duration kDistance = Duration::ms(counters::kLifespanMs);
  static constexpr int kShare = 100;
  // Connections looked at between two bursts.
  static constexpr std::size_t kPiece = 16;

  // Opens the descriptor that publishing needs now, because programs count theirs. `complain` is
  // called once, when the counters cannot be published.
  CounterReport(StatSource source, const std::string& section, const std::string& port,
                std::function<void(const std::string&)> complain);

  // Returns when to call it again after the next activity. Takes the ownership of the engine for
  // short times.
  Duration publish();

 private:
  EngineStats present() const;
  void complain_once(int error);

  StatSource source_;
  std::function<void(const std::string&)> complain_;
  std::mutex mutex_;  // for the next two members
  counters::Publisher publisher_;
  bool complained_ = false;
};

}  // namespace urnic::device
