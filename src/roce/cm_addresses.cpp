#include "roce/cm_addresses.h"

namespace urnic::roce {

Result<ib_cm::AddressPair> choose_addresses(const net::Interface& interface,
                                            const SocketAddress& to, const verbs::LocalEnd& from) {
  const IpAddress& given = from.at.ip;
  const auto source = given.is_any() ? interface.choose_source(to.ip) : given;
  if (!source || !interface.has_route(to.ip)) {
    return Error{Errc::unreachable,
                 "no route to " + to.ip.to_string() +
                     ": no address in its network and no gateway (set 'address' or 'gateway')"};
  }
  if (given.is_any() ? !from.covers(*source) : source->is_v6() != to.ip.is_v6()) {
    return Error{Errc::unreachable, "no route to " + to.ip.to_string() + ": " + given.to_string() +
                                        " has another IP version"};
  }
  return ib_cm::AddressPair{*source, to.ip};
}

}  // namespace urnic::roce
