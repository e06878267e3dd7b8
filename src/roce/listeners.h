// Listeners for RoCE connections and for UD service requests, and reserved local addresses and
// ports. There are two port spaces of rdma_cm's IP services, separate from that of TCP. A listener
// is owned here until it is closed.
//
// Called under the ownership of the engine.
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
  ib_cm::ListenerId id = 0;  // 0: only reserved, connecting there is refused
  ib_cm::PortSpace space() const {
    return service == verbs::Service::Ud ? ib_cm::PortSpace::Udp : ib_cm::PortSpace::Tcp;
  }
};

class Listeners {
 public:
  // `key`: determines the order in which ports are chosen. `gate`: rules for listeners without
  // rules of their own. All that is passed by pointer must outlive it.
  Listeners(const SipKey& key, const GateRules* gate, const net::Interface* interface)
      : key_(key), gate_(*gate), interface_(*interface) {}
  // The manager to register listeners with; to be set before the first listen().
  void use(ib_cm::Manager* manager) { manager_ = manager; }

  // As in verbs::ControlPath.
  Result<Listener*> bind(verbs::LocalEnd local, verbs::Service service = verbs::Service::Rc);
  Result<void> listen(Listener* l, int backlog);
  // For a listening or a bound one. Connection requests already reported still have to be answered
  // by the consumer.
  void close(const Listener* l);

  // The listener with that id; null if it has been closed.
  Listener* find(ib_cm::ListenerId id) const;
  // A source port on `local` for a connection or a service request; 0 if there is none.
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
