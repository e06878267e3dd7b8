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
#include "net/interface.h"
#include "urnic/status.h"
#include "verbs/connection.h"

namespace urnic::roce {

struct Listener : verbs::Listener {
  ib_cm::ListenerId id = 0;  // 0: it is only kept, and connecting there is refused
  ib_cm::PortSpace space() const {
    return service == verbs::Service::Ud ? ib_cm::PortSpace::Udp : ib_cm::PortSpace::Tcp;
  }
};

class Listeners {
 public:
  // `key`: in what order ports are chosen; `gate`: of those that nobody tells otherwise. What is
  // pointed to outlives it.
  Listeners(const SipKey& key, const GateRules* gate, const net::Interface* interface)
      : key_(key), gate_(*gate), interface_(*interface) {}
  // Who is told what is waited for; before the first listen().
  void use(ib_cm::Manager* manager) { manager_ = manager; }

  // Keeps it for the caller; port 0 chooses one. Null and *error when it is taken, or the address
  // is none of ours.
  Listener* bind(verbs::LocalEnd local, Error* error, verbs::Service service = verbs::Service::Rc);
  // False and *error when another listens there.
  bool listen(Listener* l, int backlog, Error* error);
  // Listening or bound. Requests that were told of stay the consumer's to answer.
  void close(const Listener* l);

  // The one that waits by that id; null when it has gone.
  Listener* find(ib_cm::ListenerId id) const;
  // A port of `local` for a connection, or a question, to leave from; 0 when there is none.
  std::uint16_t choose_port(const IpAddress& local, ib_cm::PortSpace space = ib_cm::PortSpace::Tcp);

 private:
  bool is_taken(const verbs::LocalEnd& local, ib_cm::PortSpace space) const;

  SipKey key_;
  const GateRules& gate_;
  const net::Interface& interface_;
  ib_cm::Manager* manager_ = nullptr;
  std::uint64_t chosen_ = 0;
  std::vector<std::unique_ptr<Listener>> all_;
};

}  // namespace urnic::roce
