#include "tcp/stack_core.h"

#include <algorithm>
#include <limits>

#include "tcp/isn.h"

namespace urnic::tcp {
namespace {

constexpr std::size_t kChunk = 4096;
constexpr std::size_t kKeptChunks = 64;
constexpr unsigned kPortAttempts = 1024;

unsigned common_bits(const IpAddress& a, const IpAddress& b) {
  const ByteView x = a.bytes(), y = b.bytes();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto differ = static_cast<std::uint8_t>(x[i] ^ y[i]);
    if (differ != 0)
      return static_cast<unsigned>(8 * i) + static_cast<unsigned>(std::countl_zero(differ));
  }
  return a.bits();
}

}  // namespace

StackCore::Entry::Entry(StackCore& stack, Instant now) : stack_(stack) {
  stack_.last_now_ = now_ = std::max(now, stack_.last_now_);
  ++stack_.depth_;
  stack_.run_timers(now_, false);
}

StackCore::Entry::~Entry() {
  --stack_.depth_;
  stack_.run_timers(Instant::from_ns(std::numeric_limits<std::int64_t>::min()), false);
  stack_.deliver();
}

StackCore::StackCore(StackConfig config)
    : config_(std::move(config)),
      keys_(config_.seed),
      ports_(keys_.ports, config_.port_first, config_.port_last),
      pool_(kChunk, std::numeric_limits<std::size_t>::max(), kKeptChunks),
      grants_(config_.memory_limit),
      flows_(FlowKeyHash{keys_.flows}),
      time_wait_(keys_.flows),
      out_(config_.ttl) {}

StackCore::~StackCore() = default;

void StackCore::free_socket(Socket& s) {
  grants_.close(s);
  sockets_.remove(s);
}

std::optional<IpAddress> StackCore::choose_source(const IpAddress& remote) const {
  std::optional<IpAddress> best;
  for (const IpAddress& own : config_.addresses) {
    if (own.is_v6() != remote.is_v6()) continue;
    if (!best || common_bits(own, remote) > common_bits(*best, remote)) best = own;
  }
  return best;
}

// Returns 0 if every port is taken. RFC 6056: random, so that nobody can guess the next port.
std::uint16_t StackCore::choose_port(const IpAddress& local, const SocketAddress& remote) {
  const auto taken = [&](std::uint16_t port) {
    const FlowKey key{local, remote.ip, port, remote.port};
    return port == 0 || sockets_.in_use({local, port}) || flows_.contains(key) ||
           time_wait_.contains(key);
  };
  if (config_.ephemeral_port) {
    for (unsigned attempt = 0; attempt < kPortAttempts; ++attempt) {
      const std::uint16_t port = config_.ephemeral_port(local, remote, attempt);
      if (!taken(port)) return port;
    }
    return 0;
  }
  return ports_.choose(local, remote, taken);
}

Config StackCore::config_for(const Socket& s, const FlowKey& key) const {
  Config c = connection_config(s.options.tcp, keys_, key, s.options.mtu);
  // A listener has no buffer. It announces in a cookie's SYN-ACK the smallest window that the
  // connection may get.
  if (s.receive_granted != 0) c.receive_buffer = s.receive_granted;
  if (config_.ts_offset) c.ts_offset = config_.ts_offset(key.local_end(), key.remote_end());
  c.challenge_acks = config_.challenge_acks;
  return c;
}

Seq StackCore::choose_isn(const SocketAddress& local, const SocketAddress& remote, Instant now) {
  return config_.isn ? config_.isn(local, remote, now)
                     : initial_sequence(keys_.isn, local, remote, now);
}

}  // namespace urnic::tcp
