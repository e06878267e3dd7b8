// The table of connections: where a flow's state lies, and the name it has outside.
#include <algorithm>

#include "engine/engine.h"
#include "tcp/isn.h"

namespace urnic::engine {
namespace {

constexpr std::uint32_t kSlotMask = 0xffffff;
constexpr std::size_t kTimersKept = 1024;  // entries not worth looking through

}  // namespace

Connection* Engine::new_connection(const FlowKey& key, Instant now) {
  (void)now;
  std::uint32_t slot;
  if (!free_slots_.empty()) {
    slot = free_slots_.back();
    free_slots_.pop_back();
  } else {
    slot = static_cast<std::uint32_t>(slots_.size());
    if (slot > kSlotMask) return nullptr;
    slots_.emplace_back();
    generations_.push_back(0);
  }
  if (++generations_[slot] > 0xff) generations_[slot] = 1;
  slots_[slot] = std::make_unique<Connection>(&pool_, options_.tcp.receive_buffer);
  Connection* c = slots_[slot].get();
  c->id = slot | (static_cast<std::uint32_t>(generations_[slot]) << 24);
  c->key = key;
  flows_.insert(key, slot);
  ++live_;
  ++counters_.connections_opened;
  return c;
}

// The MSS option tells what fits the MTU less the fixed IP and TCP headers (RFC 6691).
tcp::Config Engine::tcp_config(const FlowKey& key) const {
  tcp::Config config = options_.tcp;
  config.mss = static_cast<std::uint16_t>(std::min(mtu_, 65535u) - (key.local.is_v6() ? 60 : 40));
  config.ip_header = key.local.is_v6() ? 40 : 20;
  // A peer that acknowledges once per burst (E-7) shall not slow the start down (RFC 3465, 2.3).
  config.slow_start_segments = 32;
  const SocketAddress local{key.local, key.local_port}, remote{key.remote, key.remote_port};
  config.ts_offset = tcp::timestamp_offset(keys_.timestamps, local, remote);
  config.challenge_key = tcp::challenge_key(keys_.challenges, local, remote);
  return config;
}

void Engine::free_connection(Connection& c) {
  const std::uint32_t slot = c.id & kSlotMask;
  add_to_ended(connection_stats(c));
  leave_listener(c);
  flows_.erase(c.key);
  if (recent_.connection == &c) recent_.connection = nullptr;
  c.id = 0;
  // Later frames of the same burst may still point here; the memory goes at the end of poll.
  graveyard_.push_back(std::move(slots_[slot]));
  free_slots_.push_back(slot);
  --live_;
  ++counters_.connections_closed;
  // An entry of each connection that lives is wanted; at twice as many the look at all of them has
  // been paid for.
  if (timers_.size() > kTimersKept + 2 * live_) {
    timers_.prune([this](const TimerHeap::Entry& e) {
      const Connection* owner = find(e.id);
      return owner != nullptr && owner->timer_at == e.at;
    });
  }
}

Connection* Engine::find(ConnectionId id) {
  const std::uint32_t slot = id & kSlotMask;
  if (id == 0 || slot >= slots_.size() || slots_[slot] == nullptr) return nullptr;
  return slots_[slot]->id == id ? slots_[slot].get() : nullptr;
}
const Connection* Engine::find(ConnectionId id) const {
  return const_cast<Engine*>(this)->find(id);
}

}  // namespace urnic::engine
