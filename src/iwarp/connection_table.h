// The table of connections: their storage, and their ids for the outside.
//
// A connection ends in two steps, so that a callee cannot free it while its caller uses it. end()
// marks it once and for ever. sweep() frees memory and places of all ended connections. Only the
// outermost step of the engine sweeps (Side::Scope), when no reference is held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/flow_hash.h"
#include "base/hash_map.h"
#include "base/siphash.h"
#include "iwarp/connection.h"
#include "net/flow_match.h"

namespace urnic::iwarp {

class ConnectionTable {
 public:
  static constexpr std::uint32_t kMaxPlaces = 1u << 24;

  // At most `most` connections at a time.
  ConnectionTable(const tcp::FlowKeyHash& hash, std::uint32_t most)
      : most_(most < kMaxPlaces ? most : kMaxPlaces), flows_(hash) {}

  // nullptr if the table is full.
  Connection* open(const FlowKey& key, reassembly::Pool* pool, std::uint32_t buffer_capacity);
  // Ends the connection: neither its id nor its flow finds it any more. Returns true the first
  // time, and later false without any effect.
  bool end(Connection& c);
  // Its flow no longer finds it, but its id does.
  void leave_flow(const Connection& c);
  // Moves it to another flow.
  void join_flow(Connection& c, const FlowKey& key);
  // Frees ended connections. No reference to one may be held.
  void sweep() {
    if (!ended_.empty()) [[unlikely]]
      give_back();
  }

  // Finds a connection that has not ended; nullptr if there is none.
  Connection* find(ConnectionId id) const {
    // Does not touch the connection, which may be in no cache.
    const std::uint64_t place = id & (kMaxPlaces - 1);
    if (place >= places_.size()) return nullptr;
    const Place& p = places_[place];
    return p.open && p.generation == id >> kPlaceBits ? p.connection.get() : nullptr;
  }
  Connection* find(const FlowKey& key) const {
    const std::uint32_t* place = flows_.find(key);
    return place != nullptr ? places_[*place].connection.get() : nullptr;
  }

  // ---- the flow of the last frame that had a connection; the next one probably has the same
  Connection* match_last(const std::uint8_t* head, std::size_t bytes, std::uint32_t frame_bytes,
                         net::FlowMatch::Match* m) const {
    return last_ != nullptr && last_flow_.match(head, bytes, frame_bytes, m) ? last_ : nullptr;
  }
  void remember(const std::uint8_t* head, const net::Classified& frame, Connection& c) {
    last_ = last_flow_.learn(head, frame) ? &c : nullptr;
  }

  // Calls f(Connection&) for each connection that has not ended. f may end any of them and open
  // others, which may then be visited or not.
  template <class F>
  void for_each(F&& f) const {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (places_[i].open) f(*places_[i].connection);
    }
  }

  // The connection at each index; null if there is none. A connection keeps its index.
  std::size_t places() const { return places_.size(); }
  const Connection* in(std::size_t place) const {
    return places_[place].open ? places_[place].connection.get() : nullptr;
  }

  std::size_t size() const { return live_; }
  std::size_t flows() const { return flows_.size(); }
  std::uint32_t most() const { return most_; }

 private:
  struct Place {
    std::unique_ptr<Connection> connection;
    std::uint32_t generation = 0;
    bool open = false;  // it has not ended
  };
  void give_back();

  std::uint32_t most_;
  std::vector<Place> places_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> ended_;  // places
  tcp::FlowTable flows_;              // -> place
  std::size_t live_ = 0;
  net::FlowMatch last_flow_;
  Connection* last_ = nullptr;  // connection of last_flow_
};

}  // namespace urnic::iwarp
