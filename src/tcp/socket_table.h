// The endpoints of a stack, found by handle, and its listeners, found by port. A generation number
// makes the handle of a closed endpoint invalid.
#pragma once

#include <memory>
#include <vector>

#include "tcp/stack_socket.h"

namespace urnic::tcp {

class SocketTable {
 public:
  Socket& add(ChunkPool* pool, const EndpointOptions& options);
  void remove(Socket&);
  std::size_t size() const { return live_; }

  // Null if the slot is free.
  Socket* at(std::uint32_t slot) const { return sockets_[slot].get(); }
  // ... or if another endpoint has it now.
  Socket* at(std::uint32_t slot, std::uint32_t generation) const;
  static Endpoint handle(const Socket& s);
  // Null if the program holds no such endpoint.
  Socket* find(Endpoint) const;
  // The endpoint of a handle, whether the program holds it or not; null if it is gone.
  Socket* of(Endpoint) const;
  // Visits every endpoint, in the order of slots; `visit` may end some.
  template <class Visit>
  void each(Visit&& visit) {
    for (std::size_t i = 0; i < sockets_.size(); ++i) {
      if (sockets_[i] != nullptr) visit(*sockets_[i]);
    }
  }

  // ---- listeners
  void listen(const Socket&);
  void unlisten(const Socket&);
  // True if there is a listener at `local`, or on all addresses, or on any address if `local` is
  // all.
  bool in_use(const SocketAddress& local) const;
  // The listener for a SYN to `local`: one bound to that address, else one bound to all addresses.
  Socket* listener(const SocketAddress& local) const;

 private:
  std::size_t first_listener(std::uint16_t port) const;

  std::vector<std::unique_ptr<Socket>> sockets_;
  std::vector<std::uint32_t> generations_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> listeners_;  // sorted by port
  std::size_t live_ = 0;
};

}  // namespace urnic::tcp
