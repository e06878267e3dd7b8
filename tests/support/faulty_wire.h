// A wire in virtual time that loses, duplicates and reorders datagrams according to a seed.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/time.h"

namespace urnic::test {

struct WireFaults {
  double loss = 0, duplication = 0, reordering = 0;  // probability per datagram, 0..1
};

class FaultyWire {
 public:
  FaultyWire(std::uint64_t seed, const WireFaults& faults) : rng_(seed), faults_(faults) {}

  void send(Instant now, int to, std::vector<std::uint8_t> datagram) {
    ++sent;
    if (rng_.chance(faults_.loss)) {
      ++lost;
      return;
    }
    if (rng_.chance(faults_.duplication)) {
      ++doubled;
      put(now, to, datagram);
    }
    put(now, to, std::move(datagram));
  }
  Instant next() const { return queue_.empty() ? Instant::never() : queue_.begin()->first.first; }
  // The next datagram to arrive; there must be one.
  std::pair<int, std::vector<std::uint8_t>> take() {
    auto datagram = std::move(queue_.begin()->second);
    queue_.erase(queue_.begin());
    return datagram;
  }

  std::uint64_t sent = 0, lost = 0, doubled = 0, overtaken = 0;

 private:
  void put(Instant now, int to, std::vector<std::uint8_t> datagram) {
    Duration delay = Duration::us(10);
    if (rng_.chance(faults_.reordering)) {
      ++overtaken;
      delay = delay + Duration::us(static_cast<std::int64_t>(rng_.between(1, 200)));
    }
    queue_.emplace(std::pair(now + delay, order_++), std::pair(to, std::move(datagram)));
  }

  Rng rng_;
  WireFaults faults_;
  std::uint64_t order_ = 0;
  std::map<std::pair<Instant, std::uint64_t>, std::pair<int, std::vector<std::uint8_t>>> queue_;
};

}  // namespace urnic::test
