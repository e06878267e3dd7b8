// IPv6 neighbour discovery (RFC 4861) and listener reports (RFC 3810) for an interface.
#include <algorithm>

#include "net/addressing.h"
#include "net/interface.h"
#include "net/ipv4.h"
#include "net/ipv6.h"

namespace urnic::net {

void Interface::input_nd(const Classified& c, ByteView message, Instant now) {
  ++counters_.nd.rx;
  // A hop limit of 255 proves that no router forwarded the packet (RFC 4861, 7.1).
  const auto m = c.ttl == kNdHopLimit ? parse_nd(message) : std::nullopt;
  const bool sane =
      m && !(m->link_layer && (m->link_layer->is_multicast() || m->link_layer->is_zero()));
  if (!sane) {
    ++counters_.nd.bad;
    return;
  }
  if (c.src_mac == mac()) return;  // our own multicast, reflected
  if (m->type == kIcmp6NeighbourSolicitation) {
    input_solicitation(c, *m, now);
  } else {
    input_advertisement(c, *m, now);
  }
}

void Interface::input_solicitation(const Classified& c, const NdMessage& m, Instant now) {
  const bool detection = c.src.is_any();  // duplicate detection of another host
  if (detection && (m.link_layer || c.dst != solicited_node(m.target))) {
    ++counters_.nd.bad;  // RFC 4861, 7.1.1
    return;
  }
  OwnAddress* own = addresses_.find(m.target);
  if (own == nullptr || own->state == AddressState::Duplicate) return;
  if (own->state == AddressState::Tentative) {
    // RFC 4862, 5.4.3: only another host's detection conflicts with ours; a normal solicitation is
    // ignored.
    if (detection) duplicate(*own, c.src_mac);
    return;
  }
  NdMessage reply;
  reply.type = kIcmp6NeighbourAdvertisement;
  reply.override_entry = true;
  reply.target = m.target;
  reply.link_layer = mac();
  if (detection) return output_.nd(reply, m.target, all_nodes(), multicast_mac(all_nodes()));
  if (OwnAddress* claimed = addresses_.find(c.src); claimed != nullptr) {
    if (claimed->state == AddressState::Usable) conflict(*claimed, c.src_mac, now);
    return;
  }
  if (m.link_layer && routes_.on_link(c.src))
    count(&counters_.neighbours, cache_.learn(c.src, *m.link_layer, now));
  reply.solicited = true;
  output_.nd(reply, m.target, c.src, m.link_layer.value_or(c.src_mac));
}

void Interface::input_advertisement(const Classified& c, const NdMessage& m, Instant now) {
  if (m.solicited && c.dst.is_multicast()) {
    ++counters_.nd.bad;  // RFC 4861, 7.1.2
    return;
  }
  if (OwnAddress* own = addresses_.find(m.target); own != nullptr) {
    const MacAddress with = m.link_layer.value_or(c.src_mac);
    if (with == mac()) return;
    if (own->state == AddressState::Tentative) duplicate(*own, with);
    if (own->state == AddressState::Usable) conflict(*own, with, now);
    return;
  }
  const bool solicited = m.solicited && c.dst_mac == mac() && is_own(c.dst);
  count(&counters_.neighbours,
        cache_.advertised(m.target, {m.link_layer, solicited, m.override_entry}, now));
}

// ---- listener reports -----------------------------------------------------------------------

// Answers any query with the full report, after a random delay below the querier's maximum and one
// second (RFC 3810, 6.2).
void Interface::input_mld_query(const Classified& c, ByteView message, Instant now) {
  if (c.ttl != 1 || !c.src.is_link_local() || !addresses_.any_v6() || !output_.is_up()) {
    ++counters_.nd.bad;
    return;
  }
  const std::uint64_t allowed_ms = std::min<std::uint64_t>(load_be16(message.data() + 4), 1000);
  const auto delay = static_cast<std::int64_t>(rng_.below(allowed_ms + 1));
  mld_left_ = std::max(mld_left_, 1u);
  mld_due_ = earlier(mld_due_, now + Duration::ms(delay));
}

}  // namespace urnic::net
