// A TCP segment in an Ethernet frame, for middleboxes: finds its parts, and changes them so that
// lengths and checksums stay correct.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "net/classify.h"
#include "port/port_abi.h"
#include "tcp/segment.h"

namespace urnic::fault {

// A frame owned by the line.
struct Frame {
  std::vector<std::uint8_t> bytes;
  std::uint8_t csum = URNIC_CSUM_UNKNOWN;
};

// Offsets into a frame; functions that read or write the frame take it as an argument.
struct TcpView {
  net::Classified net;
  std::uint16_t src_port = 0, dst_port = 0;
  std::uint32_t seq = 0, ack = 0;
  std::uint8_t flags = 0;
  std::uint32_t header_len = 0;  // TCP header with options
  std::uint32_t payload_len = 0;

  std::uint32_t payload_offset() const { return net.l4_offset + header_len; }
  bool has(tcp::Flag f) const { return (flags & f) != 0; }
  // The number of bytes before the payload.
  std::uint32_t overhead() const { return payload_offset(); }
  SocketAddress src() const { return {net.src, src_port}; }
  SocketAddress dst() const { return {net.dst, dst_port}; }
};

// nullopt if the frame is not a well-formed TCP segment (or is a fragment, or is truncated). The
// first form needs only the beginning of the frame with all its headers.
std::optional<TcpView> parse_tcp_frame(ByteView head, std::uint32_t total_len);
// The same for a frame that has been classified.
std::optional<TcpView> view_tcp(const net::Classified& c, ByteView head);
inline std::optional<TcpView> parse_tcp_frame(const Frame& f) {
  return parse_tcp_frame(f.bytes, static_cast<std::uint32_t>(f.bytes.size()));
}

// True if the TCP checksum is right, or known to be right by the frame's state.
bool tcp_checksum_ok(const Frame& f, const TcpView& v);
// Sets length fields, IPv4 header checksum and TCP checksum of a frame whose payload now has
// `payload_len` bytes. Removes everything after it (Ethernet padding). The state becomes "unknown",
// because the field now holds a full checksum.
void finish_tcp_frame(Frame& f, const TcpView& v, std::uint32_t payload_len);
// Call it after payload bytes were changed from `was` to their current value. Updates the checksum
// (RFC 1624) so that a right one stays right and a wrong one stays wrong. `at` is the offset in the
// frame; both ranges have the same length.
void patch_tcp_checksum(Frame& f, const TcpView& v, std::uint32_t at, ByteView was);
// The same for any checksum of layer 4 that is `field` bytes after its beginning `l4`.
void mend_checksum(Frame& f, std::uint32_t l4, std::uint32_t field, std::uint32_t at, ByteView was);

// Makes a segment from the bytes [from, from + len) of the payload of `f`. Only the last piece has
// FIN and PSH; only the first has CWR (RFC 3168, 6.1.2).
Frame piece_of(const Frame& f, const TcpView& v, std::uint32_t from, std::uint32_t len);
// Splits `f` into pieces of at most `max_payload` bytes each.
std::vector<Frame> split(const Frame& f, const TcpView& v, std::uint32_t max_payload);

// Joins two segments, where `b` begins where `a` ends. The result has the header of `b` (its ACK,
// window and options are newer), the sequence number of `a`, and the flags of both. It may be
// longer than any MTU: the caller splits it.
Frame join(const Frame& a, const TcpView& va, const Frame& b, const TcpView& vb);
// The requirements of join(): the same flow, consecutive, only data, no FIN on the first segment,
// and a total size within one IP datagram.
bool can_join(const TcpView& a, const TcpView& b);

// True if the segment carries payload and may be cut and joined.
inline bool plain_data(const TcpView& v) {
  return v.payload_len != 0 && !v.has(tcp::kSyn) && !v.has(tcp::kRst) && !v.has(tcp::kUrg);
}

}  // namespace urnic::fault
