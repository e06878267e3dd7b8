#include "tcp/socket_table.h"

#include <algorithm>

namespace urnic::tcp {

Socket& SocketTable::add(ChunkPool* pool, const EndpointOptions& options) {
  std::uint32_t slot;
  if (!free_.empty()) {
    slot = free_.back();
    free_.pop_back();
  } else {
    slot = static_cast<std::uint32_t>(sockets_.size());
    sockets_.emplace_back();
    generations_.push_back(0);
  }
  sockets_[slot] = std::make_unique<Socket>(pool, options);
  Socket& s = *sockets_[slot];
  s.slot = slot;
  s.generation = ++generations_[slot];
  ++live_;
  return s;
}

void SocketTable::remove(Socket& s) {
  const std::uint32_t slot = s.slot;
  sockets_[slot].reset();
  free_.push_back(slot);
  --live_;
}

Socket* SocketTable::at(std::uint32_t slot, std::uint32_t generation) const {
  Socket* s = sockets_[slot].get();
  return s != nullptr && s->generation == generation ? s : nullptr;
}

Endpoint SocketTable::handle(const Socket& s) {
  return static_cast<Endpoint>(std::uint64_t{s.generation} << 32 | (std::uint64_t{s.slot} + 1));
}

Socket* SocketTable::of(Endpoint e) const {
  const auto v = static_cast<std::uint64_t>(e);
  const std::uint64_t slot = (v & 0xffffffff) - 1;
  if ((v & 0xffffffff) == 0 || slot >= sockets_.size()) return nullptr;
  return at(static_cast<std::uint32_t>(slot), static_cast<std::uint32_t>(v >> 32));
}

Socket* SocketTable::find(Endpoint e) const {
  Socket* s = of(e);
  return s != nullptr && s->has_handle ? s : nullptr;
}

std::size_t SocketTable::first_listener(std::uint16_t port) const {
  const auto it =
      std::partition_point(listeners_.begin(), listeners_.end(),
                           [&](std::uint32_t slot) { return sockets_[slot]->local.port < port; });
  return static_cast<std::size_t>(it - listeners_.begin());
}

void SocketTable::listen(const Socket& s) {
  listeners_.insert(listeners_.begin() + static_cast<std::ptrdiff_t>(first_listener(s.local.port)),
                    s.slot);
}

void SocketTable::unlisten(const Socket& s) {
  std::erase(listeners_, s.slot);
}

bool SocketTable::in_use(const SocketAddress& local) const {
  for (std::size_t i = first_listener(local.port); i < listeners_.size(); ++i) {
    const SocketAddress& other = sockets_[listeners_[i]]->local;
    if (other.port != local.port) return false;
    if (other.ip.is_v6() != local.ip.is_v6()) continue;
    if (other.ip.is_any() || local.ip.is_any() || other.ip == local.ip) return true;
  }
  return false;
}

Socket* SocketTable::listener(const SocketAddress& local) const {
  Socket* any = nullptr;
  for (std::size_t i = first_listener(local.port); i < listeners_.size(); ++i) {
    Socket* s = sockets_[listeners_[i]].get();
    if (s->local.port != local.port) break;
    if (s->local.ip.is_v6() != local.ip.is_v6()) continue;
    if (s->local.ip == local.ip) return s;
    if (s->local.ip.is_any()) any = s;
  }
  return any;
}

}  // namespace urnic::tcp
