// The Config as plain values, read once when a device opens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ip_address.h"
#include "base/time.h"
#include "ddp_rdma/stream.h"
#include "fastpath/connection_context.h"
#include "mpa/startup.h"
#include "tcp/config.h"
#include "urnic/config.h"

namespace urnic::engine {

struct Options {
  std::vector<std::string> addresses;  // "10.77.0.1/24"; empty: the default pair by port side
  std::string gateway;
  std::string mac;  // empty: derived from the first address
  std::uint32_t vlan = 0;
  std::uint32_t mtu = 0;  // IP MTU; 0: what the port can carry, at most 9000
  tcp::Config tcp;
  bool rto_auto = true;  // rto_min by kind of port
  fastpath::ContextConfig context;
  enum class OutOfOrder : std::uint8_t { Auto, Place, Store } out_of_order = OutOfOrder::Auto;
  mpa::StartupOptions mpa;
  bool rq_nudge = true;  // E-17
  // Between the MPA Reply and the initiator's first FPDU: Linux siw loses what comes sooner.
  Duration first_fpdu_delay;
  ddp::CompletionMethod completion_method = ddp::CompletionMethod::Shared;
  std::uint32_t completion_threshold = ddp::kCompletionThreshold;
  std::uint64_t reassembly_pool = 64u << 20;
  std::uint32_t max_connections = 262144;  // of one engine; TIME-WAIT counts
  Duration startup_timeout = Duration::s(10);
  Duration linger_timeout = Duration::s(10);
  Duration link_timeout = Duration::s(5);  // E-43; 0: a link that is down is waited for
  bool keepalive = false;                  // unless a connection says otherwise
  Duration keepalive_idle = Duration::s(30);
  bool duplicate_address_detection = false;
  bool real_time = false;  // the caller may lose its processor: see Engine::stalled
  // Of every key and choice the engine makes: random in production, chosen in simulation (E-49).
  std::uint64_t seed = 1;
  // Where neither the configuration nor the port has one. Empty: derived from the first address.
  std::optional<MacAddress> own_mac;
};

// What follows from the kind of port ("memif", "tap", ...) where nobody has chosen.
void settle_by_port_kind(Options* options, std::string_view kind);

// Settings of `config` as Options. Assumes config.check() has passed. `port_kind` is the configured
// one, whatever the port is wrapped in.
Options options_from(const Config& config, std::string_view port_kind);

}  // namespace urnic::engine
