// The lists of counters, from the one list in include/urnic/stats.h.
#include "urnic/stats.h"

namespace urnic {
namespace {

#define URNIC_LISTED(name, help) {#name, help, &Of::name},

using Of = ConnectionStats;
constexpr Counter<ConnectionStats> kConnection[] = {URNIC_CONNECTION_COUNTERS(URNIC_LISTED)};

namespace of_engine {
using Of = EngineStats;
constexpr Counter<EngineStats> kCounters[] = {URNIC_ENGINE_COUNTERS(URNIC_LISTED)};
constexpr Counter<EngineStats> kGauges[] = {URNIC_ENGINE_GAUGES(URNIC_LISTED)};
}  // namespace of_engine

}  // namespace

std::span<const Counter<ConnectionStats>> connection_counters() {
  return kConnection;
}
std::span<const Counter<EngineStats>> engine_counters() {
  return of_engine::kCounters;
}
std::span<const Counter<EngineStats>> engine_gauges() {
  return of_engine::kGauges;
}

void add_counters(ConnectionStats* sum, const ConnectionStats& more) {
  for (const auto& c : kConnection) sum->*c.value += more.*c.value;
  for (std::size_t i = 0; i < kReasonCount; ++i) sum->reasons[i] += more.reasons[i];
  for (std::size_t i = 0; i < kOpcodeCount; ++i) {
    sum->fpdus_sent[i] += more.fpdus_sent[i];
    sum->fpdus_received[i] += more.fpdus_received[i];
  }
}

}  // namespace urnic
