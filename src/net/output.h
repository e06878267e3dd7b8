// The frames that an interface itself sends, from the Ethernet header on, in a bounded queue.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/ip_address.h"
#include "net/counters.h"
#include "net/frame_queue.h"
#include "net/ndp.h"
#include "net/own_addresses.h"

namespace urnic::net {

class Output {
 public:
  // `bytes`: the limit of queued frames. `counters` must outlive this object.
  Output(const MacAddress& mac, std::uint16_t vlan, std::uint32_t mtu, std::size_t bytes,
         Counters* counters)
      : mac_(mac), vlan_(vlan), mtu_(mtu), queue_(bytes), counters_(counters) {}

  const MacAddress& mac() const { return mac_; }
  FrameQueue& queue() { return queue_; }
  const FrameQueue& queue() const { return queue_; }
  // While the link is down, frames are rejected.
  bool is_up() const { return up_; }
  void go_up() { up_ = true; }
  void go_down() {
    up_ = false;
    queue_.clear();
  }

  void arp(std::uint16_t operation, const IpAddress& sender, const MacAddress& to,
           const MacAddress& target_mac, const IpAddress& target);
  void nd(const NdMessage& m, const IpAddress& src, const IpAddress& dst, const MacAddress& to);
  void announce_nd(const IpAddress& own);
  // Sends a listener report for the groups of these addresses (RFC 3810).
  void mld_report(const OwnAddresses& own);
  // Writes the headers of an IP datagram and returns the space for its payload; empty if there is
  // none.
  MutBytes datagram(const MacAddress& to, const IpAddress& src, const IpAddress& dst,
                    std::uint8_t protocol, std::uint8_t ttl, std::size_t l4_len);

 private:
  MutBytes frame(const MacAddress& to, std::uint16_t ether_type, std::size_t l3_len);

  MacAddress mac_;
  std::uint16_t vlan_;
  std::uint32_t mtu_;
  bool up_ = false;
  FrameQueue queue_;
  Counters* counters_;
};

}  // namespace urnic::net
