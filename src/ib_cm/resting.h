// Connections that have ended and whose ids are not reused yet, in the order of their ends: for
// each address, and for all. The oldest one is found at once, so that it can give way.
//
// Owns none of them. Allocates a node for each address; without memory, a connection is only listed
// among all.
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

  // `c` must not rest anywhere.
  void enter(Connection& c) noexcept;
  // Does nothing if `c` does not rest here.
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
  std::map<IpAddress, Queue> by_peer_;  // a tree, so that the cost is bounded for any addresses
};

}  // namespace urnic::ib_cm
