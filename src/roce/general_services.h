// Queue pair 1: joins connection management to frames. Packets to it go to the manager; the
// manager's messages leave as UD packets with a PSN sequence of their own. MADs wait while their
// path is being resolved.
//
// A function of (state, input, now), like the side that drives it.
#pragma once

#include <array>
#include <cstdint>

#include "base/ring.h"
#include "ib_cm/gsi.h"
#include "ib_cm/manager.h"
#include "net/wire.h"
#include "roce/frame.h"

namespace urnic::roce {

class GeneralServices {
 public:
  struct Statistics {
    std::array<std::uint64_t, 5> drops{};  // by ib_cm::GsiFault
    std::uint64_t unroutable = 0;          // the next hop is unreachable, or too many wait
  };

  // `wire` must outlive it.
  GeneralServices(const ib_cm::Options& options, net::Wire* wire)
      : manager_(options), wire_(*wire) {}
  GeneralServices(const GeneralServices&) = delete;
  GeneralServices& operator=(const GeneralServices&) = delete;

  ib_cm::Manager& manager() { return manager_; }
  const ib_cm::Manager& manager() const { return manager_; }
  const Statistics& statistics() const { return statistics_; }

  // A packet to queue pair 1 whose ICRC is correct.
  void take(const ib::ParsedPacket& packet, const ib_cm::AddressPair& addresses, Instant now);
  void run_timers(Instant now) { manager_.on_time(now); }
  Instant next_deadline() const { return manager_.due(); }
  bool wants_to_send() const { return held_ || manager_.wants_to_send() || retry_; }
  // True if anything was sent. The caller lets the wire finish.
  bool transmit(Instant now);
  // Outside a burst: sends what a call of the consumer has promised a peer within that call, as a
  // kernel does. Otherwise the program might end after the call, and the peer would wait until it
  // gives up. If there is no memory, it leaves with the next burst.
  void transmit_now(Instant now);
  // The path over `next_hop`, or every path if null, has changed or (`failed`) is unreachable.
  void reroute(const IpAddress* next_hop, bool failed);

 private:
  enum class Sent : std::uint8_t { Yes, Waits, Full, Lost };

  // bound: MADs waiting for address resolution (ARP, ND); beyond: lost and counted (`unroutable`),
  // as on the wire; test: GeneralServicesTest.MadsUpToTheLimitWaitForThePath
  static constexpr std::size_t kMostWaiting = 256;

  struct Waiting {
    ib_cm::Outgoing mad;
    IpAddress next_hop;
  };

  Sent send(const ib_cm::Outgoing& o, Instant now);
  bool put(const ib_cm::Outgoing& o, const MacAddress& to, bool own);
  bool retry_waiting(Instant now);

  ib_cm::Manager manager_;
  net::Wire& wire_;
  Statistics statistics_;
  ib::Psn psn_;
  ib_cm::Outgoing next_;  // held_: there was no room for it
  bool held_ = false;
  Ring<Waiting> waiting_;  // for address resolution
  bool retry_ = false;
};

}  // namespace urnic::roce
