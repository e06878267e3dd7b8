// Reads capture files (classic pcap, Ethernet, IPv4, TCP) and reassembles the byte streams: just
// enough to feed the data of real peers to our parsers.
#pragma once

#include <compare>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace urnic::test {

// The frames of a pcap file in order; nullopt if the file is not pcap, or is truncated.
inline std::optional<std::vector<std::vector<std::uint8_t>>> read_pcap(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::vector<std::uint8_t> file((std::istreambuf_iterator<char>(in)), {});
  constexpr std::size_t kFileHeader = 24, kRecordHeader = 16;
  constexpr std::uint32_t kEthernet = 1;
  if (file.size() < kFileHeader) return std::nullopt;
  const std::uint32_t magic = load_le32(file.data());
  const bool little = magic == 0xa1b2c3d4 || magic == 0xa1b23c4d;  // in us and ns
  if (!little && magic != 0xd4c3b2a1 && magic != 0x4d3cb2a1) return std::nullopt;
  const auto load32 = [little](const std::uint8_t* p) {
    return little ? load_le32(p) : load_be32(p);
  };
  if (load32(file.data() + 20) != kEthernet) return std::nullopt;

  std::vector<std::vector<std::uint8_t>> frames;
  for (std::size_t at = kFileHeader; at != file.size();) {
    if (file.size() - at < kRecordHeader) return std::nullopt;
    const std::uint32_t n = load32(file.data() + at + 8);
    at += kRecordHeader;
    if (file.size() - at < n) return std::nullopt;
    frames.emplace_back(file.begin() + at, file.begin() + at + n);
    at += n;
  }
  return frames;
}

// One direction of a connection.
struct FlowKey {
  std::uint32_t src = 0, dst = 0;
  std::uint16_t sport = 0, dport = 0;
  auto operator<=>(const FlowKey&) const = default;
  FlowKey reversed() const { return {dst, src, dport, sport}; }
};

struct TcpView {
  FlowKey flow;
  std::uint32_t seq = 0;
  bool syn = false, ack = false;
  ByteView payload;
};

inline std::optional<TcpView> parse_tcp(ByteView frame) {
  constexpr std::size_t kEth = 14;
  if (frame.size() < kEth + 20 || load_be16(frame.data() + 12) != 0x0800) return std::nullopt;
  ByteView ip = frame.subspan(kEth);
  const std::size_t ip_header = (ip[0] & 15u) * 4u, total = load_be16(ip.data() + 2);
  if (ip[0] >> 4 != 4 || ip[9] != 6 || ip_header < 20 || total > ip.size()) return std::nullopt;
  if (total < ip_header + 20) return std::nullopt;
  const ByteView tcp = ip.subspan(ip_header, total - ip_header);  // without Ethernet padding
  const std::size_t tcp_header = (tcp[12] >> 4) * 4u;
  if (tcp_header < 20 || tcp_header > tcp.size()) return std::nullopt;
  TcpView v;
  v.flow = {load_be32(ip.data() + 12), load_be32(ip.data() + 16), load_be16(tcp.data()),
            load_be16(tcp.data() + 2)};
  v.seq = load_be32(tcp.data() + 4);
  v.syn = (tcp[13] & 2) != 0;
  v.ack = (tcp[13] & 16) != 0;
  v.payload = tcp.subspan(tcp_header);
  return v;
}

// The stream of one direction, up to the first hole.
struct Flow {
  bool initiator = false;  // has sent the SYN without ACK
  std::vector<std::uint8_t> bytes;
};

inline std::map<FlowKey, Flow> reassemble(const std::vector<std::vector<std::uint8_t>>& frames) {
  struct State {
    bool initiator = false;
    std::uint32_t first = 0;                                // sequence number of the first byte
    std::map<std::uint32_t, std::vector<std::uint8_t>> at;  // by offset; the longest among equals
  };
  std::map<FlowKey, State> states;
  for (const auto& frame : frames) {
    const auto v = parse_tcp(frame);
    if (!v) continue;
    if (v->syn) {
      states[v->flow].first = v->seq + 1;
      states[v->flow].initiator = !v->ack;
    }
    const auto s = states.find(v->flow);
    if (s == states.end() || v->payload.empty()) continue;
    auto& piece = s->second.at[v->seq + (v->syn ? 1 : 0) - s->second.first];
    if (piece.size() < v->payload.size()) piece.assign(v->payload.begin(), v->payload.end());
  }
  std::map<FlowKey, Flow> flows;
  for (const auto& [key, state] : states) {
    Flow& flow = flows[key];
    flow.initiator = state.initiator;
    for (const auto& [offset, piece] : state.at) {
      if (offset > flow.bytes.size()) break;  // a hole: later data cannot be placed
      const std::size_t known = flow.bytes.size() - offset;
      if (known < piece.size())
        flow.bytes.insert(flow.bytes.end(), piece.begin() + known, piece.end());
    }
  }
  return flows;
}

}  // namespace urnic::test
