// A TCP segment inside an Ethernet frame, for middleboxes: where its parts are, and how to change
// them so that lengths and checksums stay right.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "net/classify.h"
#include "port/port_abi.h"
#include "tcp/segment.h"

namespace urnic::fault {

// A frame that the line owns.
struct Frame {
  std::vector<std::uint8_t> bytes;
  std::uint8_t csum = URNIC_CSUM_UNKNOWN;
};

// Offsets into a frame; the frame is given again to every function that reads or writes.
struct TcpView {
  net::Classified net;
  std::uint16_t src_port = 0, dst_port = 0;
  std::uint32_t seq = 0, ack = 0;
  std::uint8_t flags = 0;
  std::uint32_t header_len = 0;  // TCP header with options
  std::uint32_t payload_len = 0;

  std::uint32_t payload_offset() const { return net.l4_offset + header_len; }
  bool has(tcp::Flag f) const { return (flags & f) != 0; }
  // Bytes in front of the payload.
  std::uint32_t overhead() const { return payload_offset(); }
  SocketAddress src() const { return {net.src, src_port}; }
  SocketAddress dst() const { return {net.dst, dst_port}; }
};

// nullopt when the frame is no well-formed TCP segment (or is a fragment, or is cut short). The
// first form needs only the beginning of the frame, with all its headers.
std::optional<TcpView> parse_tcp_frame(ByteView head, std::uint32_t total_len);
// The same of a frame that has been classified.
std::optional<TcpView> view_tcp(const net::Classified& c, ByteView head);
inline std::optional<TcpView> parse_tcp_frame(const Frame& f) {
  return parse_tcp_frame(f.bytes, static_cast<std::uint32_t>(f.bytes.size()));
}

// The TCP checksum is right, or known to be by the frame's state.
bool tcp_checksum_ok(const Frame& f, const TcpView& v);
// Length fields, IPv4 header and TCP checksum of a frame whose payload is `payload_len` long now;
// anything behind it (Ethernet padding) is cut off. The state becomes "unknown": the field is real.
void finish_tcp_frame(Frame& f, const TcpView& v, std::uint32_t payload_len);
// After payload bytes changed from `was` to what they are now: the checksum changes in the same
// way (RFC 1624), so that a right one stays right and a wrong one wrong. `at` is the offset in the
// frame, both ranges have the same length.
void patch_tcp_checksum(Frame& f, const TcpView& v, std::uint32_t at, ByteView was);
// The same of any checksum of layer 4, which lies `field` bytes behind its beginning `l4`.
void mend_checksum(Frame& f, std::uint32_t l4, std::uint32_t field, std::uint32_t at, ByteView was);

// A segment of its own with bytes [from, from + len) of the payload of `f`: FIN and PSH only on
// the last piece, CWR only on the first (RFC 3168, 6.1.2).
Frame piece_of(const Frame& f, const TcpView& v, std::uint32_t from, std::uint32_t len);
// `f` in pieces with at most `max_payload` bytes each.
std::vector<Frame> split(const Frame& f, const TcpView& v, std::uint32_t max_payload);

// One segment out of two of which `b` begins where `a` ends: header of `b` (its ACK, window and
// options are the newer ones), sequence number of `a`, flags of both. Longer than any MTU perhaps:
// the caller splits it.
Frame join(const Frame& a, const TcpView& va, const Frame& b, const TcpView& vb);
// What join needs: same flow, in sequence, nothing but data, no FIN on the first, together within
// one IP datagram.
bool can_join(const TcpView& a, const TcpView& b);

// The payload, and only the payload, may be cut and joined.
inline bool plain_data(const TcpView& v) {
  return v.payload_len != 0 && !v.has(tcp::kSyn) && !v.has(tcp::kRst) && !v.has(tcp::kUrg);
}

}  // namespace urnic::fault
