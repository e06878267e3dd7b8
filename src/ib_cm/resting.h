// Connections that are over and whose names are held back, in the order in which they came to rest:
// those of each address, and all of them. Each time the oldest is at hand, so that it can give way.
//
// Owns none of them. A node of memory for each address; without memory one is listed among all
// alone.
#pragma once

#include <cstdint>
#include <map>

#include "ib_cm/connection.h"

namespace urnic::ib_cm {

class Resting {
 public:
  Resting() = default;
  Resting(const Resting&) = delete;
  Resting& operator=(const Resting&) = delete;

  // `c` rests nowhere.
  void enter(Connection& c) noexcept;
  // Nothing where `c` rests nowhere, or elsewhere.
  void leave(Connection& c) noexcept;

  std::uint32_t size() const { return all_.size; }
  std::uint32_t of(const IpAddress& peer) const;
  // Null: none.
  Connection* oldest() const { return all_.first; }
  Connection* oldest_of(const IpAddress& peer) const;

 private:
  struct Queue {
    Connection *first = nullptr, *last = nullptr;
    std::uint32_t size = 0;
  };
  static void append(Queue& q, Connection& c, int which) noexcept;
  static void take(Queue& q, Connection& c, int which) noexcept;

  Queue all_;
  std::map<IpAddress, Queue> by_peer_;  // a tree: its cost is bounded whoever comes
};

}  // namespace urnic::ib_cm
