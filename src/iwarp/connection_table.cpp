#include "iwarp/connection_table.h"

namespace urnic::iwarp {

Connection* ConnectionTable::open(const FlowKey& key, reassembly::Pool* pool,
                                  std::uint32_t buffer_capacity) {
  if (live_ >= most_) return nullptr;
  std::uint32_t place;
  if (!free_.empty()) {
    place = free_.back();
    free_.pop_back();
  } else {
    place = static_cast<std::uint32_t>(places_.size());
    if (place >= kMaxPlaces) return nullptr;
    places_.emplace_back();
  }
  Place& p = places_[place];
  if (++p.generation == 0) p.generation = 1;  // 0 is no connection's
  p.connection = std::make_unique<Connection>(pool, buffer_capacity);
  Connection& c = *p.connection;
  c.id = (ConnectionId{p.generation} << kPlaceBits) | place;
  c.key = key;
  flows_.insert(key, place);
  ++live_;
  return &c;
}

bool ConnectionTable::end(Connection& c) {
  if (c.over_) return false;
  c.over_ = true;
  const auto place = static_cast<std::uint32_t>(c.id & (kMaxPlaces - 1));
  if (const std::uint32_t* p = flows_.find(c.key); p != nullptr && *p == place) flows_.erase(c.key);
  if (last_ == &c) last_ = nullptr;
  ended_.push_back(place);
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
