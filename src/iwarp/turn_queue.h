// Connections that wait for their turn, each once, in the order in which they came. Connections
// that have ended in the meantime are skipped.
#pragma once

#include <cstddef>

#include "base/ring.h"
#include "iwarp/connection_table.h"

namespace urnic::iwarp {

// `kWaits`: the member that tells whether a connection is in this queue.
template <bool Connection::*kWaits>
class TurnQueue {
 public:
  void push(Connection& c) {
    if (c.*kWaits || c.is_over()) return;
    waiting_.push_back(c.id);
    c.*kWaits = true;
  }
  // Removes the next one; nullptr if it has ended.
  Connection* pop(const ConnectionTable& table) {
    Connection* c = table.find(waiting_.front());
    waiting_.pop_front();
    if (c != nullptr) c->*kWaits = false;
    return c;
  }
  bool empty() const { return waiting_.empty(); }
  std::size_t size() const { return waiting_.size(); }

 private:
  Ring<ConnectionId> waiting_;
};

}  // namespace urnic::iwarp
