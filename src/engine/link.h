// The link below the engine, and the effect of its loss on connections (E-43).
#pragma once

#include <cstdint>
#include <string>

#include "base/time.h"
#include "net/interface.h"
#include "port/port.h"
#include "verbs/hooks.h"

namespace urnic::engine {

class Link {
 public:
  // `timeout`: how long the link may be down before it is given up; 0: it is never given up.
  Link(port::Port* port, net::Interface* interface, verbs::Hooks* hooks, Duration timeout)
      : port_(port), interface_(interface), hooks_(hooks), timeout_(timeout) {}

  // Checks whether the link went up or down (memif: a peer, or another peer). True if it came up:
  // the new peer may not know our connections.
  bool look(Instant now);
  // True if it is time to check again: a spinning engine checks from time to time.
  bool wants_look(Instant now) const { return now >= next_look_; }
  // never(): the link is up, given up, not up yet, or never given up.
  Instant given_up_at() const;
  // Gives the link up; returns the reason, for the connections.
  std::string give_up();

 private:
  port::Port* port_;
  net::Interface* interface_;
  verbs::Hooks* hooks_;
  Duration timeout_;
  std::uint32_t epoch_ = 0;
  bool up_ = false;
  Instant lost_at_ = Instant::never();  // never: up, given up, or not up yet
  Instant next_look_;
};

}  // namespace urnic::engine
