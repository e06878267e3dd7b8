// Repeats the result of classify() for another frame of a known flow, at the cost of a masked
// comparison. This is for bulk transfers, where consecutive frames are alike.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/bytes.h"
#include "base/inet_checksum.h"
#include "net/classify.h"
#include "net/ethernet.h"
#include "net/ipv4.h"
#include "net/ipv6.h"

namespace urnic::net {

class FlowMatch {
 public:
  // The number of compared bytes: enough for tagged Ethernet, IPv6 and the ports.
  static constexpr std::size_t kSpan = 64;

  struct Match {
    std::uint32_t l4_offset, l4_len;  // as in Classified
    std::uint32_t pseudo_sum;         // for TCP
    std::uint8_t ecn;
  };

  // Learns the flow of a frame that classify() called Tcp, or Other for UDP. `head` has kSpan
  // bytes; bytes after the frame's end are ignored. Returns false for frames with IP options or
  // extension headers.
  bool learn(const std::uint8_t* head, const Classified& c) {
    forget();
    const std::size_t ip_len = c.v6 ? kIpv6Header : kIpv4Header;
    const bool udp = c.kind == FrameKind::Other && c.protocol == kProtoUdp;
    if ((c.kind != FrameKind::Tcp && !udp) || c.l4_offset != c.l3_offset + ip_len) return false;
    std::array<std::uint8_t, kSpan> mask{};
    // Compare addresses, EtherType and ports; the fields between are checked one by one.
    std::memset(mask.data(), 0xff, c.l3_offset);
    if (c.l3_offset != kEthernetHeader) mask[kEthernetHeader] = 0x0f;  // of the tag, only the VLAN
    std::uint8_t* ip = mask.data() + c.l3_offset;
    if (c.v6) {
      ip[0] = 0xf0;  // version
      std::memset(ip + 6, 0xff, 1);
      std::memset(ip + 8, 0xff, 32);
    } else {
      ip[0] = 0xff;  // version and header length
      ip[6] = 0x3f;  // not a fragment: more-fragments and offset are zero
      ip[7] = 0xff;
      ip[9] = 0xff;
      std::memset(ip + 12, 0xff, 8);
    }
    std::memset(ip + ip_len, 0xff, 4);
    std::memcpy(mask_.data(), mask.data(), kSpan);
    std::memcpy(want_.data(), head, kSpan);
    for (std::size_t i = 0; i < want_.size(); ++i) want_[i] &= mask_[i];
    l3_offset_ = c.l3_offset;
    l4_offset_ = c.l4_offset;
    v6_ = c.v6;
    pseudo_ = c.v6 ? pseudo_sum_v6(head + l3_offset_ + 8, kProtoTcp, 0)
                   : pseudo_sum_v4(head + l3_offset_ + 12, kProtoTcp, 0);
    return true;
  }
  void forget() { l4_offset_ = 0; }
  bool known() const { return l4_offset_ != 0; }

  // Returns true if the frame belongs to that flow and classify() would return the same kind.
  // `head` as for learn(). `in_head`: available bytes of the frame, possibly more than kSpan; they
  // must include a TCP header, or as many bytes of UDP. `total_len`: the length of the frame.
  bool match(const std::uint8_t* head, std::size_t in_head, std::uint32_t total_len,
             Match* out) const {
    Word differs{};
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kWords; ++i) {
      Word h;
      std::memcpy(&h, head + i * sizeof h, sizeof h);
      differs |= (h & mask_[i]) ^ want_[i];
    }
    if ((differs[0] | differs[1]) != 0 || l4_offset_ == 0 || in_head < l4_offset_ + kTcpHeader)
      return false;
    const std::uint8_t* ip = head + l3_offset_;
    const std::uint32_t room = total_len - l3_offset_;
    if (v6_) {
      out->l4_len = load_be16(ip + 4);
      if (out->l4_len + kIpv6Header > room) return false;
      out->ecn = (ip[1] >> 4) & 3;
    } else {
      const std::uint32_t total = load_be16(ip + 2);
      if (total > room || total < kIpv4Header) return false;
      if (inet_fold(inet_sum_words(ip, kIpv4Header)) != 0xffff) return false;
      out->l4_len = total - static_cast<std::uint32_t>(kIpv4Header);
      out->ecn = ip[1] & 3;
    }
    if (out->l4_len < kTcpHeader) return false;
    out->l4_offset = l4_offset_;
    out->pseudo_sum = pseudo_ + out->l4_len;
    return true;
  }

 private:
  // The largest type that every 64-bit machine can compare at once.
  using Word = std::uint64_t __attribute__((vector_size(16)));
  static constexpr std::size_t kWords = kSpan / sizeof(Word);
  static constexpr std::uint32_t kTcpHeader = 20;

  std::array<Word, kWords> want_{}, mask_{};
  std::uint32_t l3_offset_ = 0, l4_offset_ = 0;  // l4_offset_ 0: no flow is known
  std::uint32_t pseudo_ = 0;
  bool v6_ = false;
};

}  // namespace urnic::net
