#include "roce/listeners.h"

#include <algorithm>
#include <string>

namespace urnic::roce {
namespace {

constexpr std::uint32_t kFirstPort = 49152, kPorts = 16384;  // dynamic ones (RFC 6335)

std::string port_text(const verbs::LocalEnd& local, ib_cm::PortSpace space) {
  return "port " + std::to_string(local.at.port) +
         (space == ib_cm::PortSpace::Udp ? " of RoCE's datagrams" : " of RoCE");
}

}  // namespace

bool Listeners::is_taken(const verbs::LocalEnd& local, ib_cm::PortSpace space) const {
  return std::any_of(all_.begin(), all_.end(), [&](const auto& l) {
    return l->space() == space && l->local.overlaps(local) &&
           (l->id != 0 || !l->local.shared || !local.shared);
  });
}

// The search begins at a random port that depends on a secret (RFC 6056).
std::uint16_t Listeners::choose_port(const IpAddress& local, ib_cm::PortSpace space) {
  const std::uint64_t begin = siphash24(key_, {++chosen_}) % kPorts;
  for (std::uint32_t i = 0; i < kPorts; ++i) {
    const auto port = static_cast<std::uint16_t>(kFirstPort + (begin + i) % kPorts);
    if (!is_taken({{local, port}, false, false}, space)) return port;
  }
  return 0;
}

Result<Listener*> Listeners::bind(verbs::LocalEnd local, verbs::Service service) {
  auto made = std::make_unique<Listener>();
  made->service = service;
  const ib_cm::PortSpace space = made->space();
  if (!net::may_bind(interface_.addresses(), local.at.ip)) {
    return Error{Errc::invalid_argument,
                 local.at.ip.to_string() + " is not an address of this device (setting 'address')"};
  }
  if (local.at.port == 0) {
    local.at.port = choose_port(local.at.ip, space);
    if (local.at.port == 0) {
      return Error{Errc::in_use, "no free ephemeral RoCE port on this device"};
    }
  } else if (is_taken(local, space)) {
    return Error{Errc::in_use, port_text(local, space) + ": already in use by this device"};
  }
  made->local = local;
  made->gate = make_gate(gate_);
  all_.push_back(std::move(made));
  return all_.back().get();
}

Result<void> Listeners::listen(Listener* l, int backlog) {
  const bool listened_on = std::any_of(all_.begin(), all_.end(), [&](const auto& other) {
    return other->id != 0 && other->space() == l->space() && other->local.overlaps(l->local);
  });
  if (listened_on) {
    return Error{Errc::in_use,
                 port_text(l->local, l->space()) + ": this device is already listening on it"};
  }
  ib_cm::Listen what;
  what.service = ib_cm::service_of(l->space(), l->port());
  what.backlog = static_cast<std::uint32_t>(std::max(backlog, 1));
  what.gate = l->gate;
  what.transport =
      l->service == verbs::Service::XrcReceive ? ib_cm::Transport::Extended : ib_cm::Transport::Rc;
  const IpAddress& ip = l->local.at.ip;
  if (ip != IpAddress::any_v6() || l->local.v6_only) what.local = ip;
  l->id = manager_->listen(what);
  return {};
}

void Listeners::close(const Listener* l) {
  if (l->id != 0) manager_->unlisten(l->id);
  std::erase_if(all_, [&](const auto& other) { return other.get() == l; });
}

Listener* Listeners::find(ib_cm::ListenerId id) const {
  const auto at =
      std::find_if(all_.begin(), all_.end(), [&](const auto& l) { return l->id == id; });
  return at == all_.end() ? nullptr : at->get();
}

}  // namespace urnic::roce
