// Connections that wait for their turn at something, each once, in the order in which they came.
// Who has ended meanwhile is passed over.
#pragma once

#include <cstddef>

#include "base/ring.h"
#include "iwarp/connection_table.h"

namespace urnic::iwarp {

// `kWaits`: where a connection says that it stands in this queue.
template <bool Connection::*kWaits>
class TurnQueue {
 public:
  void push(Connection& c) {
    if (c.*kWaits || c.is_over()) return;
    waiting_.push_back(c.id);
    c.*kWaits = true;
  }
  // The next one, which waits no more; nullptr when it has ended.
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
