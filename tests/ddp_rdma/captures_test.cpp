// What the Linux kernel's iWARP really sent, read by our parsers and counted against tshark.
//
// The numbers frozen below come from, per capture (initiator and responder by the source port):
//   tshark -r F --disable-protocol nvme-tcp --disable-protocol rpcordma
//     --disable-protocol smb_direct -o tcp.reassemble_out_of_order:TRUE -Y iwarp_mpa.fpdu
//     -T fields -e tcp.srcport -e iwarp_rdma.opcode -e iwarp_mpa.ulpdulength
// with FPDUs and ULPDU octets summed up per opcode. The last test runs that command again.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "ddp_rdma/header.h"
#include "ddp_rdma/terminate.h"
#include "mpa/builder.h"
#include "mpa/fpdu.h"
#include "mpa/startup.h"
#include "support/golden.h"
#include "support/pcap.h"

namespace urnic::ddp {
namespace {

using test::Bytes;
using test::to_hex;

struct Count {
  std::uint32_t fpdus = 0;
  std::uint64_t ulpdu_octets = 0;
  bool operator==(const Count&) const = default;
};
// By who sent it and RDMAP opcode.
using Counts = std::map<std::pair<bool, int>, Count>;

constexpr bool kInitiator = true, kResponder = false;

std::ostream& operator<<(std::ostream& os, const Count& c) {
  return os << c.fpdus << " FPDUs, " << c.ulpdu_octets << " octets";
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

// Takes the start-up frame off the stream.
mpa::StartupFrame take_startup(ByteView& stream, bool reply) {
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

void take_fpdus(ByteView stream, bool initiator, Connection& c) {
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

Capture load(const std::string& name) {
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

Counts count(const Capture& capture) {
  Counts counts;
  for (const Connection& c : capture.connections) {
    for (const Fpdu& f : c.fpdus) {
      Count& n = counts[{f.initiator, static_cast<int>(f.segment.header.op)}];
      ++n.fpdus;
      n.ulpdu_octets += mpa::ulpdu_of(f.bytes).size();
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

const std::vector<Expected>& expected() {
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

void expect_counts(const Counts& got, const Counts& want) {
  EXPECT_EQ(got.size(), want.size());
  for (const auto& [who, n] : want) {
    const auto it = got.find(who);
    EXPECT_EQ(it == got.end() ? Count{} : it->second, n)
        << (who.first ? "initiator" : "responder") << " opcode " << who.second;
  }
}

TEST(Captures, EveryFpduOfLinuxSiwIsParsedAndCountedAsByTshark) {
  for (const Expected& e : expected()) {
    SCOPED_TRACE(e.file);
    const Capture capture = load(e.file);
    EXPECT_EQ(capture.connections.size(), e.connections);
    for (const Connection& c : capture.connections) EXPECT_EQ(c.crc, e.crc);
    expect_counts(count(capture), e.counts);
  }
}

// The builder makes the same octets out of what the parsers understood (siw too sends a CRC field
// of 0 when it is off). Only the pad may differ: siw leaves what was there in some short FPDUs, and
// the CRC covers it.
TEST(Captures, EveryFpduIsRebuiltByteForByte) {
  std::size_t whole = 0;
  for (const Expected& e : expected()) {
    SCOPED_TRACE(e.file);
    const Capture capture = load(e.file);
    for (const Connection& c : capture.connections) {
      for (const Fpdu& f : c.fpdus) {
        std::uint8_t header[kMaxHeader];
        const std::uint32_t n = emit_header(f.segment.header, header);
        Bytes again(f.bytes.size());
        const auto built =
            mpa::build_fpdu(again.data(), {header, n}, {&f.segment.payload, 1}, c.crc);
        ASSERT_EQ(built.len, f.bytes.size());
        const std::size_t pad = mpa::kLengthField + mpa::ulpdu_of(f.bytes).size();
        const bool zero = std::all_of(f.bytes.begin() + pad, f.bytes.end() - mpa::kCrcField,
                                      [](std::uint8_t b) { return b == 0; });
        const std::size_t compared = zero ? again.size() : pad;
        ASSERT_EQ(to_hex(ByteView(again).first(compared)),
                  to_hex(ByteView(f.bytes).first(compared)));
        whole += zero;
      }
    }
  }
  EXPECT_GT(whole, 280u);
}

TEST(Captures, StartupFramesAreUnderstoodAndRebuilt_RFC6581_9) {
  for (const Expected& e : expected()) {
    SCOPED_TRACE(e.file);
    for (const Connection& c : load(e.file).connections) {
      EXPECT_EQ(c.request.revision, 2);
      EXPECT_TRUE(c.request.enhanced && c.reply.enhanced);
      EXPECT_LE(c.reply.ord, c.request.ird);
      for (const auto* f : {&c.request, &c.reply}) {
        EXPECT_FALSE(f->markers);
        EXPECT_FALSE(f->reject);
        EXPECT_EQ(f->reserved, 0);
        EXPECT_EQ(f->private_len, 0);
      }
    }
  }
  const auto p2p = load("siw-siw-rping-p2p-rtr-write-and-read-offered.pcap");
  ASSERT_EQ(p2p.connections.size(), 1u);
  const Connection& c = p2p.connections[0];
  EXPECT_TRUE(c.request.peer_to_peer && c.reply.peer_to_peer);
  EXPECT_EQ(c.request.rtr, mpa::kRtrWrite | mpa::kRtrRead);
  // Our initiator reads siw's Reply as siw's own did: the first FPDU is the Write RTR.
  const auto agreement = mpa::read_reply(c.request, c.reply, {});
  ASSERT_TRUE(agreement.ok());
  EXPECT_EQ(agreement->rtr, mpa::kRtrWrite);
  ASSERT_FALSE(c.fpdus.empty());
  EXPECT_EQ(c.fpdus[0].segment.header.op, Opcode::Write);
  EXPECT_TRUE(c.fpdus[0].segment.payload.empty());
}

// The requests and the data that answer them meet: all responses of a Read carry its sink STag, in
// order and without a gap.
TEST(Captures, ReadResponsesFillWhatTheReadsAskedFor) {
  const auto capture = load("siw-siw-ib_read_bw-default-16K-n8.pcap");
  std::uint64_t asked = 0, answered = 0;
  for (const Connection& c : capture.connections) {
    std::vector<ReadRequest> reads;
    for (const Fpdu& f : c.fpdus) {
      if (f.segment.header.op == Opcode::ReadRequest) reads.push_back(f.segment.header.read);
    }
    std::size_t current = 0;
    std::uint64_t filled = 0;
    for (const Fpdu& f : c.fpdus) {
      const SegmentHeader& h = f.segment.header;
      if (h.op != Opcode::ReadResponse) continue;
      ASSERT_LT(current, reads.size());
      EXPECT_EQ(h.stag, reads[current].sink_stag);
      EXPECT_EQ(h.to, reads[current].sink_to + filled);
      filled += f.segment.payload.size();
      EXPECT_EQ(h.last, filled == reads[current].size);
      if (!h.last) continue;
      asked += reads[current].size;
      answered += filled;
      filled = 0;
      ++current;
    }
    EXPECT_EQ(current, reads.size());
  }
  EXPECT_EQ(asked, 8u * 16384);
  EXPECT_EQ(answered, 8u * 16384);
}

TEST(Captures, SiwsTerminateIsReadAsMeant_RFC5040_4_8) {
  const auto capture = load("siw-terminate-no-recv-buffer.pcap");
  ASSERT_EQ(capture.connections.size(), 1u);
  for (const Fpdu& f : capture.connections[0].fpdus) {
    if (f.segment.header.op != Opcode::Terminate) continue;
    const TerminateInfo t = parse_terminate(f.segment.payload);
    EXPECT_TRUE(t.swapped);
    EXPECT_EQ(t.layer, 1);
    EXPECT_EQ(t.etype, 2);
    EXPECT_EQ(t.code, 2);
    EXPECT_TRUE(t.has_ddp);
    EXPECT_FALSE(t.has_rdmap);
  }
}

// Columns of one line of tshark's output; fields with several values have them comma-separated.
std::vector<std::string> split(const std::string& s, char by) {
  std::vector<std::string> parts;
  std::istringstream in(s);
  for (std::string part; std::getline(in, part, by);) parts.push_back(part);
  return parts;
}

TEST(Captures, TsharkOfThisMachineCountsTheSame) {
  if (std::system("command -v tshark >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "tshark is not installed";
  }
  for (const Expected& e : expected()) {
    SCOPED_TRACE(e.file);
    const Capture capture = load(e.file);
    const std::string command =
        "tshark -n -r '" + test::golden_path(std::string("captures/") + e.file) +
        "' --disable-protocol nvme-tcp --disable-protocol rpcordma --disable-protocol smb_direct "
        "-o tcp.reassemble_out_of_order:TRUE -Y iwarp_mpa.fpdu -T fields -e tcp.srcport "
        "-e iwarp_rdma.opcode -e iwarp_mpa.ulpdulength 2>/dev/null";
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), pclose);
    ASSERT_NE(pipe, nullptr);
    Counts counts;
    std::array<char, 4096> line;
    while (std::fgets(line.data(), line.size(), pipe.get()) != nullptr) {
      const auto columns = split(std::string(line.data()), '\t');
      ASSERT_EQ(columns.size(), 3u);
      const bool initiator =
          capture.initiator_ports.count(static_cast<std::uint16_t>(std::stoul(columns[0]))) != 0;
      const auto opcodes = split(columns[1], ','), lengths = split(columns[2], ',');
      ASSERT_EQ(opcodes.size(), lengths.size());
      for (std::size_t i = 0; i < opcodes.size(); ++i) {
        Count& n = counts[{initiator, std::stoi(opcodes[i], nullptr, 0)}];
        ++n.fpdus;
        n.ulpdu_octets += std::stoul(lengths[i]);
      }
    }
    expect_counts(counts, count(capture));
  }
}

}  // namespace
}  // namespace urnic::ddp
