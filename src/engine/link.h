// The link below the engine, and what its end means for the connections over it (E-43).
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
  // `timeout`: how long it may be away before it is given up; 0: it is waited for.
  Link(port::Port* port, net::Interface* interface, verbs::Hooks* hooks, Duration timeout)
      : port_(port), interface_(interface), hooks_(hooks), timeout_(timeout) {}

  // The port tells when its link came or went (memif: a peer, or another one). True when it came:
  // whoever is behind it now may not know our connections.
  bool look(Instant now);
  // It is time to look again: an engine that spins asks now and then.
  bool wants_look(Instant now) const { return now >= next_look_; }
  // never(): it is up, given up, not yet there, or waited for.
  Instant given_up_at() const;
  // From here on nobody waits for it; why, for the connections.
  std::string give_up();

 private:
  port::Port* port_;
  net::Interface* interface_;
  verbs::Hooks* hooks_;
  Duration timeout_;
  std::uint32_t epoch_ = 0;
  bool up_ = false;
  Instant lost_at_ = Instant::never();  // never: up, given up, or not yet there
  Instant next_look_;
};

}  // namespace urnic::engine
