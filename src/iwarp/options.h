// The default behaviour of an engine's connections.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/gate.h"
#include "base/time.h"
#include "ddp_rdma/stream.h"
#include "fastpath/connection_context.h"
#include "iwarp/listener.h"
#include "mpa/startup.h"
#include "tcp/config.h"

namespace urnic::iwarp {

struct Options {
  tcp::Config tcp;
  fastpath::ContextConfig context;
  mpa::StartupOptions mpa;
  bool rq_nudge = true;  // E-17
  // How long a Send that TCP has acknowledged may wait for a receive; zero: not at all.
  // bound: time that a Send acknowledged by TCP waits for a receive; setting: receive_wait_ms;
  // beyond: the connection ends; test: ShortWaitOver.TheSettingBoundsTheWait
  Duration receive_wait;
  // Delay between the MPA Reply and the initiator's first FPDU: Linux siw loses an earlier one.
  Duration first_fpdu_delay;
  ddp::CompletionMethod completion_method = ddp::CompletionMethod::Shared;
  std::uint32_t completion_threshold = ddp::kCompletionThreshold;
  std::uint64_t reassembly_pool = 64u << 20;
  // bound: connections of an engine; setting: max_connections; beyond: connecting fails with
  // no_memory and the setting; incoming connections get RST, counted; test:
  // ConnectionLife.BeyondTheirLimitConnectionsAreRefusedAtOnce
  std::uint32_t max_connections = 262144;  // per engine; as many again in TIME-WAIT
  GateRules gate;                          // for listeners without their own rules
  Duration startup_timeout = Duration::s(10);
  Duration linger_timeout = Duration::s(10);
  bool keepalive = false;  // unless set for a connection
  Duration keepalive_idle = Duration::s(30);
  bool real_time = false;  // the caller may lose its processor: see Timers::stalled
  // Seed of every key and choice that the engine makes: random in production, chosen in simulation
  // (E-49).
  std::uint64_t seed = 1;
};

// The consumer's options for one connection, merged with those of the device.
struct ConnectParams {
  fastpath::ContextConfig context;
  mpa::StartupOptions mpa;
  std::vector<std::uint8_t> private_data;
  Duration timeout = Duration::s(10);
  std::optional<bool> keepalive;  // else the device's
  std::uint16_t close_wait_ms = 0;
  std::uint8_t dscp = 0;
  // Used only to connect.
  LocalEnd source;
  Duration refusal_retry;  // how long to repeat the attempt after refusals
};

// The parameters of a connection whose consumer sets none.
inline ConnectParams default_params(const Options& o) {
  ConnectParams p;
  p.context = o.context;
  p.mpa = o.mpa;
  p.timeout = o.startup_timeout;
  return p;
}

}  // namespace urnic::iwarp
