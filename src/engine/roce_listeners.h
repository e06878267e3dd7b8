// Where connections of RoCE are waited for, and questions about services of UD, and the addresses
// and ports kept for somebody: two port spaces of rdma_cm's IP services, neither of which is that
// of TCP. Owned here until they are closed.
//
// Under the ownership of the engine.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/gate.h"
#include "ib_cm/manager.h"
#include "iwarp/listener.h"
#include "net/interface.h"
#include "urnic/status.h"

namespace urnic::engine {

struct RoceListener {
  iwarp::LocalEnd local;
  ib_cm::ListenerId id = 0;  // 0: it is only kept, and who connects is refused
  void* owner = nullptr;
  std::shared_ptr<Gate> gate;                      // null: everybody may come
  ib_cm::PortSpace space = ib_cm::PortSpace::Tcp;  // of connections; Udp: of services of UD
  bool xrc = false;                                // of XRC's connections
  std::uint16_t port() const { return local.at.port; }
};

class RoceListeners {
 public:
  // `key`: in what order ports are chosen; `gate`: of those that nobody tells otherwise. What is
  // pointed to outlives it.
  RoceListeners(const SipKey& key, const GateRules* gate, const net::Interface* interface)
      : key_(key), gate_(*gate), interface_(*interface) {}
  // Who is told what is waited for; before the first listen().
  void use(ib_cm::Manager* manager) { manager_ = manager; }

  // Keeps it for the caller; port 0 chooses one. Null and *error when it is taken, or the address
  // is none of ours.
  RoceListener* bind(iwarp::LocalEnd local, Error* error,
                     ib_cm::PortSpace space = ib_cm::PortSpace::Tcp);
  // False and *error when another listens there.
  bool listen(RoceListener* l, int backlog, Error* error);
  // Listening or bound. Requests that were told of stay the consumer's to answer.
  void close(const RoceListener* l);

  // The one that waits by that id; null when it has gone.
  RoceListener* find(ib_cm::ListenerId id) const;
  // A port of `local` for a connection, or a question, to leave from; 0 when there is none.
  std::uint16_t choose_port(const IpAddress& local, ib_cm::PortSpace space = ib_cm::PortSpace::Tcp);

 private:
  bool is_taken(const iwarp::LocalEnd& local, ib_cm::PortSpace space) const;

  SipKey key_;
  const GateRules& gate_;
  const net::Interface& interface_;
  ib_cm::Manager* manager_ = nullptr;
  std::uint64_t chosen_ = 0;
  std::vector<std::unique_ptr<RoceListener>> all_;
};

}  // namespace urnic::engine
