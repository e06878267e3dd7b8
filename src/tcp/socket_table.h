// The endpoints of a stack: by handle, which a generation makes useless once the endpoint is gone,
// and its listeners by port.
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

  // Null when the slot is free.
  Socket* at(std::uint32_t slot) const { return sockets_[slot].get(); }
  // ... or has another endpoint by now.
  Socket* at(std::uint32_t slot, std::uint32_t generation) const;
  static Endpoint handle(const Socket& s);
  // Null when nobody holds such an endpoint.
  Socket* find(Endpoint) const;
  // The one of a handle, held or not; null when it is gone.
  Socket* of(Endpoint) const;
  // Every endpoint, in the order of slots; `visit` may end some.
  template <class Visit>
  void each(Visit&& visit) {
    for (std::size_t i = 0; i < sockets_.size(); ++i) {
      if (sockets_[i] != nullptr) visit(*sockets_[i]);
    }
  }

  // ---- listeners
  void listen(const Socket&);
  void unlisten(const Socket&);
  // Does one listen there, or on all addresses (or on one, where `local` is all)?
  bool in_use(const SocketAddress& local) const;
  // Whose a SYN to `local` is: the one of that very address, else the one of all.
  Socket* listener(const SocketAddress& local) const;

 private:
  std::size_t first_listener(std::uint16_t port) const;

  std::vector<std::unique_ptr<Socket>> sockets_;
  std::vector<std::uint32_t> generations_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> listeners_;  // by port
  std::size_t live_ = 0;
};

}  // namespace urnic::tcp
