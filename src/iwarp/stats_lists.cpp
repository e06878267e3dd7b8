// The lists of counters, generated from the one list in include/urnic/stats.h.
#include "urnic/stats.h"

namespace urnic {
namespace {

// S is a type.  NOLINTBEGIN(bugprone-macro-parentheses)
#define URNIC_LISTED(S, group, place, name, help) \
  {(group), #name, help, [](S& s) -> std::uint64_t& { return (place).name; }},
// NOLINTEND(bugprone-macro-parentheses)

#define URNIC_OF_VERBS(name, help) URNIC_LISTED(ConnectionStats, "verbs", s.verbs, name, help)
#define URNIC_OF_IWARP(name, help) URNIC_LISTED(ConnectionStats, "iwarp", s.iwarp, name, help)
#define URNIC_OF_DDP(name, help) URNIC_LISTED(ConnectionStats, "iwarp.ddp", s.iwarp.ddp, name, help)
#define URNIC_OF_TCP(name, help) URNIC_LISTED(ConnectionStats, "iwarp.tcp", s.iwarp.tcp, name, help)

#define URNIC_OF_ROCE(name, help) URNIC_LISTED(ConnectionStats, "roce", s.roce, name, help)

#define URNIC_OF_XRC(name, help) URNIC_LISTED(ConnectionStats, "roce.xrc", s.roce.xrc, name, help)

#define URNIC_OF_ENGINE(name, help) URNIC_LISTED(EngineStats, "", s, name, help)
#define URNIC_OF_PORT(name, help) URNIC_LISTED(EngineStats, "port", s.port, name, help)
#define URNIC_OF_NET(name, help) URNIC_LISTED(EngineStats, "net", s.net, name, help)
#define URNIC_OF_OBJECTS(name, help) URNIC_LISTED(EngineStats, "verbs", s.verbs, name, help)
#define URNIC_OF_HOST(name, help) URNIC_LISTED(EngineStats, "iwarp", s.iwarp, name, help)
#define URNIC_OF_ROCE_HOST(name, help) URNIC_LISTED(EngineStats, "roce", s.roce, name, help)

constexpr Counter<ConnectionStats> kConnection[] = {
    URNIC_VERBS_COUNTERS(URNIC_OF_VERBS) URNIC_FAST_SLOW_COUNTERS(URNIC_OF_IWARP)
        URNIC_DDP_COUNTERS(URNIC_OF_DDP) URNIC_TCP_COUNTERS(URNIC_OF_TCP)
            URNIC_ROCE_COUNTERS(URNIC_OF_ROCE) URNIC_XRC_COUNTERS(URNIC_OF_XRC)};
constexpr Counter<EngineStats> kEngine[] = {
    URNIC_ENGINE_COUNTERS(URNIC_OF_ENGINE) URNIC_PORT_COUNTERS(URNIC_OF_PORT)
        URNIC_NET_COUNTERS(URNIC_OF_NET) URNIC_IWARP_HOST_COUNTERS(URNIC_OF_HOST)
            URNIC_ROCE_HOST_COUNTERS(URNIC_OF_ROCE_HOST)};
constexpr Counter<EngineStats> kGauges[] = {URNIC_VERBS_GAUGES(URNIC_OF_OBJECTS)
                                                URNIC_IWARP_HOST_GAUGES(URNIC_OF_HOST)
                                                    URNIC_ROCE_HOST_GAUGES(URNIC_OF_ROCE_HOST)};

}  // namespace

std::span<const Counter<ConnectionStats>> connection_counters() {
  return kConnection;
}
std::span<const Counter<EngineStats>> engine_counters() {
  return kEngine;
}
std::span<const Counter<EngineStats>> engine_gauges() {
  return kGauges;
}

void add_counters(ConnectionStats* sum, const ConnectionStats& more) {
  for (const auto& c : kConnection) c.of(*sum) += c.of(more);
  const auto add = [](auto& to, const auto& from) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  };
  add(sum->iwarp.reasons, more.iwarp.reasons);
  add(sum->iwarp.ddp.fpdus_sent, more.iwarp.ddp.fpdus_sent);
  add(sum->iwarp.ddp.fpdus_received, more.iwarp.ddp.fpdus_received);
}

}  // namespace urnic
