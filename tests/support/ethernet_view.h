// An Ethernet header as a value. The engine itself parses it by hand (net/classify.cpp).
#pragma once

#include <optional>

#include "base/bytes.h"
#include "net/ethernet.h"

namespace urnic::net {

// A parsed header and the offset of the bytes after it (a priority tag also takes room).
struct EthernetView {
  EthernetHeader header;
  std::size_t payload_offset = 0;
};

inline std::optional<EthernetView> parse_ethernet(ByteView frame) {
  if (frame.size() < kEthernetHeader) return std::nullopt;
  EthernetView v;
  v.header.dst = MacAddress::from_bytes(frame.data());
  v.header.src = MacAddress::from_bytes(frame.data() + 6);
  v.header.ether_type = load_be16(frame.data() + 12);
  v.payload_offset = kEthernetHeader;
  if (v.header.ether_type == kEtherTypeVlan) {
    if (frame.size() < kEthernetHeader + kVlanTag) return std::nullopt;
    v.header.vlan = load_be16(frame.data() + 14) & kVlanMask;
    v.header.ether_type = load_be16(frame.data() + 16);
    v.payload_offset += kVlanTag;
  }
  return v;
}

}  // namespace urnic::net
