#include "iwarp/connection_table.h"

namespace urnic::iwarp {
namespace {

std::uint32_t place_of(const Connection& c) {
  return static_cast<std::uint32_t>(c.id & (ConnectionTable::kMaxPlaces - 1));
}

// Reserves room for `n`, growing in steps like push_back().
void reserve_one(std::vector<std::uint32_t>& of, std::size_t n) {
  if (of.capacity() < n) of.reserve(2 * n);
}

}  // namespace

Connection* ConnectionTable::open(const FlowKey& key, reassembly::Pool* pool,
                                  std::uint32_t buffer_capacity) {
  if (live_ >= most_) return nullptr;
  auto made = std::make_unique<Connection>(pool, buffer_capacity);
  if (free_.empty()) {
    const auto next = static_cast<std::uint32_t>(places_.size());
    if (next >= kMaxPlaces) return nullptr;
    // Ending a connection needs no memory.
    reserve_one(free_, next + 1);
    reserve_one(ended_, next + 1);
    places_.emplace_back();
    free_.push_back(next);
  }
  const std::uint32_t place = free_.back();
  flows_.insert(key, place);  // the last step that may fail
  free_.pop_back();
  Place& p = places_[place];
  if (++p.generation == 0) p.generation = 1;  // 0 is not a valid id
  p.connection = std::move(made);
  p.open = true;
  Connection& c = *p.connection;
  c.id = (ConnectionId{p.generation} << kPlaceBits) | place;
  c.key = key;
  ++live_;
  return &c;
}

void ConnectionTable::leave_flow(const Connection& c) {
  const std::uint32_t* p = flows_.find(c.key);
  if (p != nullptr && *p == place_of(c)) flows_.erase(c.key);
  if (last_ == &c) last_ = nullptr;
}

void ConnectionTable::join_flow(Connection& c, const FlowKey& key) {
  leave_flow(c);
  c.key = key;
  flows_.insert(key, place_of(c));
}

bool ConnectionTable::end(Connection& c) {
  if (c.over_) return false;
  c.over_ = true;
  places_[place_of(c)].open = false;
  leave_flow(c);
  ended_.push_back(place_of(c));
  --live_;
  return true;
}

void ConnectionTable::give_back() {
  for (const std::uint32_t place : ended_) {
    places_[place].connection.reset();
    free_.push_back(place);
  }
  ended_.clear();
}

}  // namespace urnic::iwarp
