// A packet of the InfiniBand transport as a frame: Ethernet, IP, UDP to port 4791, BTH to ICRC. The
// UDP checksum is neither sent nor checked: the ICRC covers more.
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
// Bytes around the payload of the packet with the most headers, without the IP header.
inline constexpr std::uint32_t kMostAround =
    kUdpHeader + ib::kBthBytes + 16 + 4 + ib::kIcrcBytes;  // RETH and ImmDt

// ---- received

// The position of the packet in its frame.
struct Datagram {
  ByteView ip_udp;           // IP and UDP header, in the `head` that was classified
  std::uint32_t offset = 0;  // of the BTH in the frame
  std::uint32_t bytes = 0;   // BTH to ICRC
};
// True for well-formed IP and UDP to our port. `head`: the beginning of the frame, which `c`
// classifies.
bool is_ours(const net::Classified& c, ByteView head);
// nullopt if lengths disagree or there are IPv6 extension headers. Only if is_ours().
std::optional<Datagram> find_packet(const net::Classified& c, ByteView head);

// ---- sent

struct FrameConfig {
  MacAddress source, destination;
  std::uint16_t vlan = 0;  // 0: untagged
  ib::AddressVector av;
  std::uint32_t flow_label = 0;  // IPv6
  // replaces that of the address vector where the port is fixed
  std::uint16_t fixed_source_port = 0;
};

// Packets whose headers differ only in PSN and AckReq (FrameHeaders::run_of).
class FrameRun {
 public:
  // Writes a whole frame and reads each byte of payload once. Returns the bytes of the frame; 0 if
  // the payload's memory is gone.
  std::size_t write(std::uint8_t* dst, ib::Psn psn, bool ask, const std::uint8_t* payload) const {
    // a few wide moves; the payload then overwrites the rest
    std::memcpy(dst, bytes_.data(), kCopied);
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
  std::uint32_t icrc_ = 0;                   // of the bytes before the PSN
};

// The headers in front of all packets of one queue pair.
class FrameHeaders {
 public:
  FrameHeaders() = default;
  explicit FrameHeaders(const FrameConfig&);

  // Bytes in front of the BTH.
  std::size_t size() const { return size_; }
  MacAddress destination() const { return MacAddress::from_bytes(bytes_.data()); }
  // A packet of `packet` bytes lies at dst + size(), complete except for its ICRC: writes the
  // headers before it and the ICRC. Returns the bytes of the frame. DF is set, so any
  // `identification` (IPv4) is allowed.
  std::size_t finish(std::uint8_t* dst, std::size_t packet, std::uint16_t identification) const;
  // Writes a whole frame: these headers, those of `header`, `pieces`, which are `payload` bytes
  // together, pad and ICRC. Reads each byte of payload once. Returns the bytes of the frame; 0 if
  // the memory of a piece is gone.
  std::size_t write(std::uint8_t* dst, const ib::PacketHeader& header,
                    std::span<const ByteView> pieces, std::uint32_t payload);
  // Frames like those of write() that differ only in PSN and AckReq. `header` must consist of a BTH
  // alone, and each frame has `payload` bytes, a multiple of four.
  FrameRun run_of(const ib::PacketHeader& header, std::uint32_t payload) const;

 private:
  // Writes the headers before a packet of that many bytes.
  void write_front(std::uint8_t* dst, std::size_t packet, std::uint16_t identification) const;
  // The ICRC of a frame through the first eight bytes of its BTH. The packets of a message only
  // differ after those bytes.
  struct Front {
    std::uint64_t bth = 0;
    std::uint32_t payload = ~0u;
    std::uint32_t icrc = 0;
  };
  ib::RunningIcrc front(const std::uint8_t* frame, const ib::PacketHeader&, std::uint32_t payload);

  std::array<std::uint8_t, kMaxFrameHeaders> bytes_{};
  std::uint8_t size_ = 0, ip_ = 0;  // ip_: where the IP header begins
  std::uint32_t ipv4_sum_ = 0;      // of the IPv4 header with length and identification zero
  bool v6_ = false;
  // the newest, by the lowest opcode bit: middle requests and ACKs are odd
  std::array<Front, 2> fronts_;
};

}  // namespace urnic::roce
