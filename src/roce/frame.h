// A packet of the InfiniBand transport as a frame: Ethernet, IP, UDP to port 4791, BTH to ICRC. The
// UDP checksum is not used, neither way: the ICRC covers more.
//
// Values and views; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/guarded.h"
#include "base/ip_address.h"
#include "ib/context.h"
#include "ib/icrc.h"
#include "ib/packet.h"
#include "net/classify.h"
#include "net/header_template.h"

namespace urnic::roce {

inline constexpr std::size_t kUdpHeader = 8;
inline constexpr std::size_t kMaxFrameHeaders = net::kHeaderTemplateMax + kUdpHeader;
// What stands around the payload of the largest packet with one: IP header not counted.
inline constexpr std::uint32_t kMostAround =
    kUdpHeader + ib::kBthBytes + 16 + 4 + ib::kIcrcBytes;  // RETH and ImmDt

// ---- received

// Where the packet lies in its frame.
struct Datagram {
  ByteView ip_udp;           // IP and UDP header, in the `head` that was looked at
  std::uint32_t offset = 0;  // of the BTH in the frame
  std::uint32_t bytes = 0;   // BTH to ICRC
};
// Well-formed IP, UDP to our port? `head`: beginning of the frame, which `c` was made of.
bool is_ours(const net::Classified& c, ByteView head);
// nullopt: lengths disagree, or IPv6 extension headers stand between. is_ours() has said yes.
std::optional<Datagram> find_packet(const net::Classified& c, ByteView head);

// ---- sent

struct FrameConfig {
  MacAddress source, destination;
  std::uint16_t vlan = 0;  // 0 untagged
  ib::AddressVector av;
  std::uint32_t flow_label = 0;         // IPv6
  std::uint16_t fixed_source_port = 0;  // instead of the address vector's, where nobody may choose
};

// Packets whose headers differ in PSN and AckReq alone (FrameHeaders::run_of).
class FrameRun {
 public:
  // All of a frame. Each byte of payload is read once. Returns the bytes of the frame; 0 when the
  // payload's memory has gone.
  std::size_t write(std::uint8_t* dst, ib::Psn psn, bool ask, const std::uint8_t* payload) const {
    std::memcpy(dst, bytes_.data(), kCopied);  // in a few moves; the payload goes over the rest
    std::uint8_t* const behind = dst + headers_;
    store_be32(behind - 4, (ask ? kAckRequest : 0) | psn.value());
    ib::RunningIcrc icrc(icrc_);
    icrc.words({behind - 4, behind});
    if (!guarded(payload, payload_, [&] { icrc.copy(behind, {payload, payload_}); })) return 0;
    store_le32(behind + payload_, icrc.value());
    return headers_ + std::size_t{payload_} + ib::kIcrcBytes;
  }

 private:
  friend class FrameHeaders;
  static constexpr std::uint32_t kAckRequest = 1u << 31;
  static constexpr std::size_t kCopied = kMaxFrameHeaders + ib::kBthBytes;

  std::array<std::uint8_t, kCopied> bytes_{};
  std::uint32_t headers_ = 0, payload_ = 0;  // bytes of each
  std::uint32_t icrc_ = 0;                   // of what stands before the PSN
};

// Everything in front of the packets of one queue pair.
class FrameHeaders {
 public:
  FrameHeaders() = default;
  explicit FrameHeaders(const FrameConfig&);

  // Bytes in front of the BTH.
  std::size_t size() const { return size_; }
  MacAddress destination() const { return MacAddress::from_bytes(bytes_.data()); }
  // A packet of `packet` bytes lies at dst + size(), whole but for its ICRC: writes what stands
  // before it, and the ICRC. Returns the bytes of the frame. DF is set, so that any
  // `identification` (IPv4) will do.
  std::size_t finish(std::uint8_t* dst, std::size_t packet, std::uint16_t identification) const;
  // All of a frame: these headers, those of `header`, `pieces`, which are `payload` bytes
  // together, pad and ICRC. Each byte of payload is read once. Returns the bytes of the frame; 0
  // when the memory of a piece has gone.
  std::size_t write(std::uint8_t* dst, const ib::PacketHeader& header,
                    std::span<const ByteView> pieces, std::uint32_t payload);
  // Frames that write() would make, but for PSN and AckReq of the same headers, no others than a
  // BTH, in front of `payload` bytes each, a multiple of four.
  FrameRun run_of(const ib::PacketHeader& header, std::uint32_t payload) const;

 private:
  // What stands before a packet of so many bytes.
  void write_front(std::uint8_t* dst, std::size_t packet, std::uint16_t identification) const;
  // The ICRC of a frame through the first eight bytes of its BTH: what differs between the packets
  // of a message stands behind them.
  struct Front {
    std::uint64_t bth = 0;
    std::uint32_t payload = ~0u;
    std::uint32_t icrc = 0;
  };
  ib::RunningIcrc front(const std::uint8_t* frame, const ib::PacketHeader&, std::uint32_t payload);

  std::array<std::uint8_t, kMaxFrameHeaders> bytes_{};
  std::uint8_t size_ = 0, ip_ = 0;  // ip_: where the IP header begins
  std::uint32_t ipv4_sum_ = 0;      // of its header, length and identification zero
  bool v6_ = false;
  std::array<Front, 2> fronts_;  // the newest, by opcode: requests in the middle, and ACKs, are odd
};

}  // namespace urnic::roce
