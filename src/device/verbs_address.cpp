// The public API of own addresses and ports: queries, binding, listening.
#include <algorithm>
#include <cstring>

#include "device/device_impl.h"
#include "device/mapping.h"
#include "device/udp_addresses.h"
#include "device/zones.h"
#include "kernel_tcp/host_addresses.h"

namespace urnic {
namespace {

Error not_an_address(std::string_view text) {
  return {Errc::invalid_argument,
          "invalid IP address: '" + std::string(text) + "' (for example 10.77.0.1 or fd77::1)"};
}

Error no_route(const IpAddress& to) {
  return {Errc::unreachable, "no route to " + to.to_string()};
}

// bound: addresses and prefixes of a listener's lists; beyond: binding fails with invalid_argument
// and the number; test: Access.AnInvalidRuleIsRefusedAndNothingIsBound
constexpr std::size_t kMostPrefixes = 1024;
constexpr std::uint32_t kMostRate = 1'000'000;

Result<GateRules> rules_of(const AccessOptions& o) {
  GateRules rules{{}, o.max_connections, o.max_peer_connections, o.accept_rate};
  if (o.allow.size() + o.deny.size() > kMostPrefixes) {
    return Error{Errc::invalid_argument,
                 "allow, deny: must not have more than 1024 prefixes together"};
  }
  if (o.accept_rate > kMostRate) {
    return Error{Errc::invalid_argument, "accept_rate: must be at most 1000000 per second"};
  }
  for (const auto* list : {&o.allow, &o.deny}) {
    for (const std::string& text : *list) {
      const auto prefix = IpPrefix::parse(text);
      if (!prefix) {
        return Error{Errc::invalid_argument, "invalid address or prefix: '" + text +
                                                 "' (for example 10.77.0.0/24 or fd77::1)"};
      }
      list == &o.allow ? rules.access.allow(*prefix) : rules.access.deny(*prefix);
    }
  }
  return rules;
}

Error no_list(int error) {
  if (device::is_none_left(error)) return device::no_descriptor("a list of addresses");
  return {Errc::io, std::string("cannot list addresses: ") + strerror(error)};
}

// Over the kernel's TCP: the address to which bind= restricts the device.
const IpAddress* only_address(const device::DeviceImpl& device) {
  const engine::KernelTcp& kernel = *device.engine->iwarp().state().kernel;
  return kernel.options.bind.is_any() ? nullptr : &kernel.options.bind;
}

bool is_over_udp(const device::DeviceImpl& device) {
  return device.engine->options().socket_port != 0;
}

// If two links have the same address, it gets the zone of the first.
void name_zones(const device::DeviceImpl& device, std::vector<IpAddress>* own) {
  if (std::none_of(own->begin(), own->end(),
                   [](const IpAddress& a) { return a.is_link_local(); })) {
    return;
  }
  const std::vector<IpAddress> there = device::zoned_addresses_of_udp_port(device.port_spec);
  for (IpAddress& a : *own) {
    const auto zoned = std::find_if(there.begin(), there.end(), [&](const IpAddress& other) {
      return other.without_zone() == a;
    });
    if (zoned != there.end()) a = *zoned;
  }
}

// An address without a zone matches the same address on any link of the device.
bool is_same(const IpAddress& own, const IpAddress& named) {
  const bool one_link = own.zone() == named.zone() || own.zone() == 0 || named.zone() == 0;
  return one_link && own.without_zone() == named.without_zone();
}

Result<std::vector<IpAddress>> own_addresses(device::DeviceImpl& device) {
  if (!device.engine->over_kernel_tcp()) {
    auto own = device.driver->own([&](Instant) {
      std::vector<IpAddress> found;
      for (const net::OwnAddress& a : device.engine->interface().addresses()) {
        if (a.state != net::AddressState::Duplicate) found.push_back(a.prefix.address);
      }
      return found;
    });
    if (is_over_udp(device)) name_zones(device, &own);
    return own;
  }
  if (const IpAddress* only = only_address(device)) return std::vector<IpAddress>{*only};
  auto all = kernel_tcp::host_addresses();
  if (!all) return no_list(all.error());
  return std::move(*all);
}

// Over the kernel's TCP or UDP: the networks of the machine that contain an address of the device.
Result<std::vector<IpPrefix>> own_networks(device::DeviceImpl& device) {
  const auto own = device.driver->own([&](Instant) {
    std::vector<IpPrefix> found;
    for (const net::OwnAddress& a : device.engine->interface().addresses()) {
      if (a.state != net::AddressState::Duplicate) found.push_back(a.prefix);
    }
    return found;
  });
  const bool over_tcp = device.engine->over_kernel_tcp();
  if (!over_tcp && device.engine->options().socket_port == 0) return own;
  auto all = kernel_tcp::host_prefixes();
  if (!all) return no_list(all.error());
  const IpAddress* const only = over_tcp ? only_address(device) : nullptr;
  std::erase_if(*all, [&](const IpPrefix& p) {
    if (over_tcp) return only != nullptr && p.address != *only;
    const IpAddress address = p.address.without_zone();
    return std::none_of(own.begin(), own.end(),
                        [&](const IpPrefix& o) { return o.address == address; });
  });
  return std::move(*all);
}

// Over UDP: the own address on the link of a link-local one; that address itself if it is an own
// one.
std::optional<IpAddress> source_on_link(device::DeviceImpl& device, const IpAddress& to) {
  auto own = own_addresses(device);
  if (!own.ok()) return std::nullopt;
  std::optional<IpAddress> found;
  for (const IpAddress& a : *own) {
    if (a.zone() != 0 && a.zone() == to.zone() && (!found || a == to)) found = a;
  }
  return found;
}

}  // namespace

Result<std::optional<IpAddress>> device::source_by_zone(DeviceImpl& device,
                                                        std::string_view place) {
  const auto to = SocketAddress::parse_zoned(port::number_zone(place));
  if (!to || !is_over_udp(device) || !to->ip.is_v6() || !to->ip.is_link_local()) {
    return std::optional<IpAddress>();
  }
  const auto source = source_on_link(device, to->ip);
  if (!source) return no_route(to->ip);
  return std::optional(source->without_zone());
}

Binding& Binding::operator=(Binding&&) noexcept = default;
Binding::~Binding() = default;
std::string Binding::address() const {
  return device::or_nothing([&] { return impl_ ? impl_->at.to_string() : std::string(); });
}
std::uint16_t Binding::port() const {
  return impl_ ? impl_->at.port : 0;
}

Result<std::vector<std::string>> Device::addresses() const {
  return device::guarded([&]() -> Result<std::vector<std::string>> {
    if (auto no = device::unusable(impl_)) return *no;
    auto own = own_addresses(*impl_);
    if (!own) return own.error();
    std::vector<std::string> text;
    for (const IpAddress& a : *own) text.push_back(a.to_string());
    return text;
  });
}

bool Device::has_address(std::string_view address) const {
  const auto ip = port::parse_with_zone(address);
  if (!impl_ || !ip || impl_->driver->inherited()) return false;
  if (impl_->engine->over_kernel_tcp() && only_address(*impl_) == nullptr) {
    return kernel_tcp::is_host_address(*ip);
  }
  return device::or_nothing([&] {
    const auto own = own_addresses(*impl_);
    return own.ok() && std::any_of(own->begin(), own->end(),
                                   [&](const IpAddress& a) { return is_same(a, *ip); });
  });
}

Result<std::string> Device::source_for(std::string_view address) const {
  return device::guarded([&]() -> Result<std::string> {
    if (auto no = device::unusable(impl_)) return *no;
    const auto given = port::parse_with_zone(address);
    if (!given) return not_an_address(address);
    const IpAddress to = device::as_device_has(*impl_, *given);
    if (impl_->engine->over_kernel_tcp()) {
      if (const IpAddress* only = only_address(*impl_)) {
        const bool other_link = only->is_link_local() && to.is_link_local() && to.zone() != 0 &&
                                only->zone() != to.zone();
        if (only->is_v6() == to.is_v6() && !other_link) return only->to_string();
        return no_route(to);
      }
      auto source = kernel_tcp::host_source_for(to);
      if (source) return source->to_string();
      if (device::is_none_left(source.error())) return device::no_descriptor("a route request");
      return no_route(to);
    }
    // Over UDP only the kernel's routes count.
    const bool over_udp = is_over_udp(*impl_);
    const bool on_link = over_udp && to.is_v6() && to.is_link_local();
    const auto source = on_link ? source_on_link(*impl_, *given) : impl_->driver->own([&](Instant) {
      const net::Interface& interface = impl_->engine->interface();
      return interface.has_route(to) ? interface.choose_source(to) : std::nullopt;
    });
    if (!source) return no_route(*given);
    const int wrong = over_udp ? kernel_tcp::why_no_way(*source, *given) : 0;
    if (device::is_none_left(wrong)) return device::no_descriptor("a route request");
    return wrong == 0 ? Result<std::string>(source->to_string()) : no_route(*given);
  });
}

Result<unsigned> Device::prefix_length_for(std::string_view address) const {
  if (const auto source = source_for(address); !source) return source.error();
  return device::guarded([&]() -> Result<unsigned> {
    const IpAddress given = *port::parse_with_zone(address);
    // A zone names an interface of the kernel: a device that has this interface is nearer.
    const bool is_kernels = impl_->engine->over_kernel_tcp() || is_over_udp(*impl_);
    if (given.zone() != 0 && !is_kernels) return 0u;
    const IpAddress to = device::as_device_has(*impl_, given);
    if (has_address(address)) return to.bits();
    auto networks = own_networks(*impl_);
    if (!networks) return networks.error();
    unsigned longest = 0;
    for (const IpPrefix& p : *networks) {
      if (p.contains(to)) longest = std::max<unsigned>(longest, p.length);
    }
    return longest;
  });
}

Result<Binding> Device::bind(std::string_view address, const BindOptions& options) {
  return device::guarded([&]() -> Result<Binding> {
    if (auto no = device::unusable(impl_)) return *no;
    auto control = device::control_of(*impl_->engine, options.transport);
    if (!control) return control.error();
    if (options.service > Service::xrc_receive) {
      return Error{Errc::invalid_argument, "invalid service: must be a value of enum Service"};
    }
    const auto at = device::parse_place(*impl_, address);
    if (!at) {
      return Error{Errc::invalid_argument, "invalid address and port: '" + std::string(address) +
                                               "' (for example 10.77.0.1:18515 or [fd77::1]:0)"};
    }
    auto rules = options.access ? rules_of(*options.access) : GateRules();
    if (!rules) return rules.error();
    auto gate = make_gate(*rules);
    auto b = std::make_shared<device::BindingImpl>();
    b->device = impl_;
    auto bound = impl_->driver->own([&](Instant) -> Result<verbs::Listener*> {
      const verbs::LocalEnd local{*at, options.ipv6_only, options.shared};
      auto made = (*control)->bind(local, device::to_inner(options.service));
      if (!made) return made;
      if (options.access) (*made)->gate = std::move(gate);
      b->bound = *made;
      b->at = {at->ip, b->bound->port()};
      return made;
    });
    if (!bound) return bound.error();
    return Binding(std::move(b));
  });
}

Result<Listener> Device::listen(Binding& at, int backlog, const EventQueue& events, void* context) {
  return device::guarded([&]() -> Result<Listener> {
    if (auto no = device::unusable(impl_)) return *no;
    if (!at) return device::empty_handle("binding");
    if (at.impl_->device != impl_) {
      return Error{Errc::invalid_argument, "the binding belongs to another device"};
    }
    if (events && events.impl_->device != impl_) {
      return Error{Errc::invalid_argument, "the event queue belongs to another device"};
    }
    auto l = std::make_shared<device::ListenerImpl>();
    l->device = impl_;
    l->context = context;
    l->events = events.impl_;
    if (!l->events) {
      l->events = std::make_shared<device::EventQueueImpl>();
      if (!l->events->usable()) return device::no_descriptor("a listener");
      l->events->device = impl_;
    }
    l->port = at.port();
    auto listens = impl_->driver->own([&](Instant) {
      verbs::Listener& bound = *at.impl_->bound;
      bound.owner = l.get();  // before the first request can arrive
      auto begun = device::guarded([&] { return bound.control->listen(bound, backlog); });
      if (begun) {
        l->place = std::exchange(at.impl_->bound, nullptr);
      } else {
        bound.owner = nullptr;
      }
      return begun;
    });
    if (!listens) return listens.error();
    at = Binding();
    return Listener(std::move(l));
  });
}

Result<Listener> Device::listen(std::uint16_t port, int backlog, const EventQueue& events,
                                void* context) {
  return device::guarded([&]() -> Result<Listener> {
    auto all = bind("[::]:" + std::to_string(port));
    if (!all) return all.error();
    return listen(*all, backlog, events, context);
  });
}

}  // namespace urnic
