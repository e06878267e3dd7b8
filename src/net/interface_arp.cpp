// ARP (RFC 826, RFC 5227) for an interface.
#include "net/arp.h"
#include "net/interface.h"

namespace urnic::net {

void Interface::input_arp(const Classified& c, ByteView frame, Instant now) {
  ++counters_.arp.rx;
  if (frame.size() < c.l3_offset) return counters_.drop(DropReason::Short);
  const auto arp = parse_arp(frame.subspan(c.l3_offset));
  const bool usable = arp && !arp->sender_mac.is_multicast() && !arp->sender_mac.is_zero() &&
                      !arp->sender_ip.is_multicast() && !arp->sender_ip.is_broadcast();
  if (!usable) {
    ++counters_.arp.bad;
    return;
  }
  if (arp->sender_mac == mac()) return;  // our own broadcast, reflected

  // Detects conflicts with our addresses. Another host that probes for an address we are probing
  // for is also a conflict (RFC 5227, 2.1.1).
  const bool probe = arp->operation == kArpRequest && arp->sender_ip.is_any();
  if (OwnAddress* own = addresses_.find(arp->sender_ip); own != nullptr) {
    if (own->state == AddressState::Tentative) return duplicate(*own, arp->sender_mac);
    if (own->state == AddressState::Usable) return conflict(*own, arp->sender_mac, now);
    return;
  }
  OwnAddress* target = addresses_.find(arp->target_ip);
  if (probe && target != nullptr && target->state == AddressState::Tentative) {
    return duplicate(*target, arp->sender_mac);
  }

  const bool for_us = target != nullptr && target->state == AddressState::Usable;
  const bool request = arp->operation == kArpRequest;
  if (!arp->sender_ip.is_any() && routes_.on_link(arp->sender_ip)) {
    if (for_us && request) {
      count(&counters_.neighbours, cache_.learn(arp->sender_ip, arp->sender_mac, now));
    } else {
      // Replies and packets for other hosts create no entries, so the cache cannot be poisoned;
      // they only update existing entries (the merge of RFC 826). Only a reply to our own MAC
      // proves that the path works in both directions.
      const bool solicited = !request && for_us && c.dst_mac == mac();
      count(&counters_.neighbours,
            cache_.advertised(arp->sender_ip, {arp->sender_mac, solicited, true}, now));
    }
  }
  if (request && for_us) {
    output_.arp(kArpReply, target->prefix.address, arp->sender_mac, arp->sender_mac,
                arp->sender_ip);
  }
}

}  // namespace urnic::net
