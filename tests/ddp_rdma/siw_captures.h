// Captures of the Linux kernel's iWARP, with tshark's counts for them.
//
// The numbers below come, per capture, from (initiator and responder by the source port):
//   tshark -r F --disable-protocol nvme-tcp --disable-protocol rpcordma
//     --disable-protocol smb_direct -o tcp.reassemble_out_of_order:TRUE -Y iwarp_mpa.fpdu
//     -T fields -e tcp.srcport -e iwarp_rdma.opcode -e iwarp_mpa.ulpdulength
// with FPDUs and ULPDU bytes summed per opcode. captures_real_test.cpp runs that command again.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "ddp_rdma/header.h"
#include "ddp_rdma/violation.h"
#include "mpa/fpdu.h"
#include "mpa/startup.h"
#include "support/golden.h"
#include "support/pcap.h"

namespace urnic::ddp::siw_captures {

using test::Bytes;
using test::to_hex;

struct Count {
  std::uint32_t fpdus = 0;
  std::uint64_t ulpdu_bytes = 0;
  bool operator==(const Count&) const = default;
};
// By sender and RDMAP opcode.
using Counts = std::map<std::pair<bool, int>, Count>;

inline constexpr bool kInitiator = true, kResponder = false;

inline std::ostream& operator<<(std::ostream& os, const Count& c) {
  return os << c.fpdus << " FPDUs, " << c.ulpdu_bytes << " bytes";
}

struct Fpdu {
  bool initiator;
  Bytes bytes;
  ParsedSegment segment;  // refers to `bytes`
};

struct Connection {
  mpa::StartupFrame request, reply;
  bool crc = false;
  std::vector<Fpdu> fpdus;
};

struct Capture {
  std::vector<Connection> connections;
  std::set<std::uint16_t> initiator_ports;
};

// Removes the start-up frame from the stream.
inline mpa::StartupFrame take_startup(ByteView& stream, bool reply) {
  const auto length = mpa::frame_length(stream, reply);
  if (!length.ok() || !length->has_value() || **length > stream.size()) {
    ADD_FAILURE() << "no start-up frame";
    return {};
  }
  const auto frame = mpa::parse_frame(stream.first(**length), reply);
  EXPECT_TRUE(frame.ok());
  stream = stream.subspan(**length);
  return frame.ok() ? *frame : mpa::StartupFrame{};
}

inline void take_fpdus(ByteView stream, bool initiator, Connection& c) {
  while (!stream.empty()) {
    ASSERT_GE(stream.size(), mpa::kLengthField);
    const std::uint32_t size = mpa::fpdu_size(load_be16(stream.data()));
    ASSERT_LE(size, stream.size()) << "the stream ends within an FPDU";
    Fpdu f{initiator, Bytes(stream.begin(), stream.begin() + size), {}};
    if (c.crc) {
      ASSERT_EQ(mpa::crc_of(f.bytes), crc32c(ByteView(f.bytes).first(size - mpa::kCrcField)));
    }
    const auto s = parse_segment(mpa::ulpdu_of(f.bytes));
    ASSERT_TRUE(s.ok()) << violation_row(s.error()).name << ": " << to_hex(f.bytes);
    f.segment = *s;
    c.fpdus.push_back(std::move(f));
    stream = stream.subspan(size);
  }
}

inline Capture load(const std::string& name) {
  Capture capture;
  const auto frames = test::read_pcap(test::golden_path("captures/" + name));
  if (!frames) {
    ADD_FAILURE() << "cannot read " << name;
    return capture;
  }
  const auto flows = test::reassemble(*frames);
  for (const auto& [key, flow] : flows) {
    if (!flow.initiator) continue;
    const auto back = flows.find(key.reversed());
    if (back == flows.end()) {
      ADD_FAILURE() << "one direction only";
      continue;
    }
    capture.initiator_ports.insert(key.sport);
    Connection c;
    ByteView out = flow.bytes, in = back->second.bytes;
    c.request = take_startup(out, false);
    c.reply = take_startup(in, true);
    c.crc = c.request.crc || c.reply.crc;
    take_fpdus(out, true, c);
    take_fpdus(in, false, c);
    capture.connections.push_back(std::move(c));
  }
  return capture;
}

inline Counts count(const Capture& capture) {
  Counts counts;
  for (const Connection& c : capture.connections) {
    for (const Fpdu& f : c.fpdus) {
      Count& n = counts[{f.initiator, static_cast<int>(f.segment.header.op)}];
      ++n.fpdus;
      n.ulpdu_bytes += mpa::ulpdu_of(f.bytes).size();
    }
  }
  return counts;
}

struct Expected {
  const char* file;
  std::size_t connections;
  bool crc;
  Counts counts;
};

inline const std::vector<Expected>& expected() {
  static const std::vector<Expected> all = {
      {"siw-siw-ib_read_bw-default-16K-n8.pcap",
       2,
       false,
       {{{kInitiator, 1}, {8, 368}},
        {{kInitiator, 3}, {16, 746}},
        {{kResponder, 2}, {96, 132416}},
        {{kResponder, 3}, {16, 746}}}},
      {"siw-siw-ib_write_bw-default-16K-n8.pcap",
       2,
       false,
       {{{kInitiator, 0}, {96, 132416}},
        {{kInitiator, 3}, {16, 746}},
        {{kResponder, 3}, {16, 746}}}},
      {"siw-siw-rping-crc-both.pcap",
       1,
       true,
       {{{kInitiator, 2}, {2, 156}},
        {{kInitiator, 3}, {4, 136}},
        {{kResponder, 0}, {2, 156}},
        {{kResponder, 1}, {2, 92}},
        {{kResponder, 3}, {4, 136}}}},
      {"siw-siw-rping-default-C3-S64.pcap",
       1,
       false,
       {{{kInitiator, 2}, {3, 234}},
        {{kInitiator, 3}, {6, 204}},
        {{kResponder, 0}, {3, 234}},
        {{kResponder, 1}, {3, 138}},
        {{kResponder, 3}, {6, 204}}}},
      {"siw-siw-rping-p2p-rtr-write-and-read-offered.pcap",
       1,
       false,
       {{{kInitiator, 0}, {1, 14}},
        {{kInitiator, 2}, {2, 156}},
        {{kInitiator, 3}, {4, 136}},
        {{kResponder, 0}, {2, 156}},
        {{kResponder, 1}, {2, 92}},
        {{kResponder, 3}, {4, 136}}}},
      {"siw-terminate-no-recv-buffer.pcap",
       1,
       false,
       {{{kInitiator, 7}, {1, 42}}, {{kResponder, 3}, {8, 944}}}},
  };
  return all;
}

inline void expect_counts(const Counts& got, const Counts& want) {
  EXPECT_EQ(got.size(), want.size());
  for (const auto& [who, n] : want) {
    const auto it = got.find(who);
    EXPECT_EQ(it == got.end() ? Count{} : it->second, n)
        << (who.first ? "initiator" : "responder") << " opcode " << who.second;
  }
}

}  // namespace urnic::ddp::siw_captures
