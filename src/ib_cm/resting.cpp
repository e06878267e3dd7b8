#include "ib_cm/resting.h"

#include <new>

namespace urnic::ib_cm {
namespace {

enum Which : int { kAll, kOfPeer };  // indices of Rest::links

}  // namespace

void Resting::append(Queue& q, Connection& c, int which) noexcept {
  Rest::Links& mine = c.rest.links[which];
  mine = {q.last, nullptr};
  (q.last == nullptr ? q.first : q.last->rest.links[which].newer) = &c;
  q.last = &c;
  ++q.size;
}

void Resting::take(Queue& q, Connection& c, int which) noexcept {
  const Rest::Links mine = c.rest.links[which];
  (mine.older == nullptr ? q.first : mine.older->rest.links[which].newer) = mine.newer;
  (mine.newer == nullptr ? q.last : mine.newer->rest.links[which].older) = mine.older;
  --q.size;
}

void Resting::enter(Connection& c) noexcept {
  c.rest.in = this;
  append(all_, c, kAll);
  try {
    append(by_peer_[c.addresses.remote], c, kOfPeer);
    c.rest.by_peer = true;
  } catch (const std::bad_alloc&) {
    c.rest.by_peer = false;
  }
}

void Resting::leave(Connection& c) noexcept {
  if (c.rest.in != this) return;
  take(all_, c, kAll);
  if (c.rest.by_peer) {
    const auto peer = by_peer_.find(c.addresses.remote);
    take(peer->second, c, kOfPeer);
    if (peer->second.size == 0) by_peer_.erase(peer);
  }
  c.rest = {};
}

std::uint32_t Resting::of(const IpAddress& peer) const {
  const auto found = by_peer_.find(peer);
  return found == by_peer_.end() ? 0 : found->second.size;
}

Connection* Resting::oldest_of(const IpAddress& peer) const {
  const auto found = by_peer_.find(peer);
  return found == by_peer_.end() ? nullptr : found->second.first;
}

}  // namespace urnic::ib_cm
