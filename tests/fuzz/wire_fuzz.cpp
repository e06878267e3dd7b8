// Data that is parsed from a wire before any peer is trusted: TCP segments, IP and ARP, ICMP, MPA
// start-up frames, DDP headers, Terminates, FPDUs. Parsed data can be written again and parses to
// the same values.
#include <algorithm>

#include "ddp_rdma/header.h"
#include "ddp_rdma/terminate.h"
#include "fault/tcp_frame.h"
#include "iwarp/startup.h"
#include "mpa/startup.h"
#include "net/arp.h"
#include "net/icmp.h"
#include "net/ndp.h"
#include "port/tcp_frame.h"
#include "reassembly/extract.h"
#include "tests/fuzz/input.h"

namespace urnic::fuzz {
namespace {

using Bytes = std::vector<std::uint8_t>;

void segment(const Bytes& b) {
  std::size_t header = 0;
  const auto s = tcp::parse_segment(b, &header);
  tcp::Segment plain;
  std::size_t plain_header = 0;
  if (tcp::parse_plain_segment(b, &plain, &plain_header)) {
    require(s.ok() && plain_header == header && plain.seq == s->seq &&
                plain.flags == (s->flags & 0xff) && plain.opts.has_ts == s->opts.has_ts,
            "the short way reads another segment");
  }
  if (!s.ok()) return;
  require(header >= tcp::kHeaderMin && header <= b.size(), "a header longer than the segment");
  std::uint8_t again[tcp::kHeaderMax];
  const std::size_t n = tcp::emit_header(*s, again);
  std::size_t again_header = 0;
  const auto t = tcp::parse_segment({again, n}, &again_header);
  // Options that do not belong in such a segment, or do not fit, are omitted.
  require(n <= tcp::kHeaderMax && t.ok() && t->seq == s->seq && t->ack == s->ack &&
              t->flags == s->flags && t->window == s->window &&
              t->opts.sack_count <= s->opts.sack_count,
          "a segment that was written is not the one that was read");
  if (t->opts.has_ts)
    require(s->opts.has_ts && t->opts.tsval == s->opts.tsval, "another timestamp");
}

void frame(const Bytes& b) {
  const auto length = static_cast<std::uint32_t>(b.size());
  const net::Classified c = net::classify(b, length);
  net::classify_datagram(b, length);
  if (c.kind != net::FrameKind::Drop && c.kind != net::FrameKind::Arp) {
    require(std::uint64_t{c.l4_offset} + c.l4_len <= length, "layer 4 reaches beyond the frame");
    const ByteView l4 = ByteView(b).subspan(c.l4_offset, c.l4_len);
    net::parse_icmp_error(l4, c.v6);
    net::parse_nd(l4);
  }
  if (b.size() > 14) net::parse_arp(ByteView(b).subspan(14));
  net::parse_icmp_error(b, false);
  net::parse_icmp_error(b, true);
  net::parse_nd(b);
  if (const auto v = fault::parse_tcp_frame(b, length)) {
    require(v->payload_offset() + v->payload_len <= length, "a payload beyond the frame");
    fault::Frame f{b, URNIC_CSUM_UNKNOWN};
    fault::finish_tcp_frame(f, *v, v->payload_len);
    require(fault::parse_tcp_frame(f).has_value(), "a finished frame cannot be read");
  }
  if (const auto v = port::parse_tcp_frame(b, length)) {
    require(v->payload <= v->end && v->end <= length, "a payload beyond the frame");
  }
}

void startup_frame(const Bytes& b, Input& in) {
  for (const bool reply : {false, true}) {
    const auto whole = mpa::frame_length(b, reply);
    if (whole.ok() && *whole && **whole > b.size()) continue;
    const auto f = mpa::parse_frame(b, reply);
    if (!f.ok()) continue;
    Bytes again(mpa::emitted_length(*f));
    require(mpa::emit_frame(*f, again.data()) == again.size(),
            "a start-up frame of another length");
    const auto g = mpa::parse_frame(again, reply);
    require(g.ok() && g->crc == f->crc && g->markers == f->markers && g->ird == f->ird &&
                g->private_len == f->private_len,
            "a start-up frame that was written is not the one that was read");
  }
  mpa::StartupOptions o;
  o.revision = static_cast<std::uint8_t>(1 + in.below(2));
  o.policy = static_cast<mpa::Policy>(in.below(4));
  o.peer_to_peer = in.often(128);
  for (const bool active : {false, true}) {
    iwarp::Startup s = active ? iwarp::Startup::active(o, {}) : iwarp::Startup::passive(o);
    s.set_first_sns(in.u32(), in.u32());
    if (active) s.request_bytes();
    // Byte by byte at first: the boundaries of arrivals must not matter.
    std::size_t have = 0;
    while (have < b.size()) {
      have = std::min(b.size(), have + 1 + in.below(40));
      const auto step = s.feed({b.data(), have});
      require(step.consumed <= have, "more was consumed than fed");
      if (step.what == iwarp::Startup::What::NeedMore) continue;
      if (step.what == iwarp::Startup::What::Request) {
        s.preview(o);
        mpa::Refusal refusal = mpa::Refusal::None;
        if (in.often(200)) {
          s.accept(o, b.size() > 20 ? ByteView(b).first(20) : ByteView(), &refusal);
        } else {
          s.reject({});
        }
      }
      s.send_policy();
      break;
    }
  }
}

void ulpdu(const Bytes& b) {
  const auto s = ddp::parse_segment(b);
  if (s.ok()) {
    std::uint8_t head[ddp::kMaxHeader];
    const std::uint32_t n = ddp::emit_header(s->header, head);
    require(n <= b.size() && s->payload.size() == b.size() - n, "a header longer than the segment");
    Bytes again(head, head + n);
    again.insert(again.end(), s->payload.begin(), s->payload.end());
    const auto t = ddp::parse_segment(again);
    require(t.ok() && t->header.op == s->header.op && t->header.stag == s->header.stag &&
                t->header.msn == s->header.msn && t->header.last == s->header.last,
            "a DDP segment that was written is not the one that was read");
    if (s->header.op == ddp::Opcode::Terminate) ddp::parse_terminate(s->payload);
  } else {
    std::uint8_t terminate[ddp::kMaxTerminate];
    const std::uint32_t n = ddp::build_terminate(s.error(), b, terminate);
    require(n <= sizeof terminate, "a Terminate longer than any");
    const auto t = ddp::parse_segment({terminate, n});
    require(t.ok() && t->header.op == ddp::Opcode::Terminate, "our Terminate cannot be read");
    ddp::parse_terminate(t->payload);
  }
  ddp::parse_terminate(b);
}

void fpdus(const Bytes& b) {
  for (const bool crc : {true, false}) {
    ByteView rest = b, payload;
    for (std::uint32_t n = 0; !rest.empty(); rest = rest.subspan(n)) {
      n = 0;
      if (reassembly::next_fpdu(rest, crc, &payload, &n) != reassembly::Extracted::Fpdu) break;
      require(n > 0 && n <= rest.size() && payload.data() >= rest.data() &&
                  payload.data() + payload.size() <= rest.data() + n,
              "an FPDU outside its bytes");
    }
  }
}

}  // namespace
}  // namespace urnic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace urnic::fuzz;
  Input in(data, size);
  // The data follows the few bytes that select its kind; most inputs are short.
  const unsigned what = in.below(5);
  const unsigned begin = in.u8();
  Bytes b = in.bytes(in.often(200) ? in.below(200) : in.below(2000));
  constexpr std::string_view kRequest = "MPA ID Req Frame", kReply = "MPA ID Rep Frame";
  switch (what) {
    case 0:
      if (b.size() > 12 && begin < 200) b[12] = static_cast<std::uint8_t>((5 + begin % 11) << 4);
      segment(b);
      break;
    case 1:
      if (b.size() > 14 && begin < 240) {
        constexpr std::uint16_t kTypes[] = {0x0800, 0x86dd, 0x0806, 0x8100};
        b[12] = static_cast<std::uint8_t>(kTypes[begin % 4] >> 8);
        b[13] = static_cast<std::uint8_t>(kTypes[begin % 4]);
        if (begin < 200) b[14] = begin % 4 == 1 ? 0x60 : 0x45;
      }
      frame(b);
      break;
    case 2: {
      const std::string_view key = begin % 2 == 0 ? kRequest : kReply;
      if (begin < 230) b.insert(b.begin(), key.begin(), key.end());
      if (begin < 200 && b.size() > 20) {
        const std::size_t n = std::min<std::size_t>(b.size() - 20, 512);
        b[17] = static_cast<std::uint8_t>(1 + begin % 3 % 2);
        b[18] = static_cast<std::uint8_t>(n >> 8);
        b[19] = static_cast<std::uint8_t>(n);
      }
      startup_frame(b, in);
      break;
    }
    case 3:
      if (b.size() > 2 && begin < 230) {
        b[0] = static_cast<std::uint8_t>(1 | (begin & 0xc0));
        b[1] = static_cast<std::uint8_t>(0x40 | (begin & 15));
      }
      ulpdu(b);
      break;
    default:
      if (b.size() > 2 && begin < 230) {
        b[0] = 0;
        b[1] = static_cast<std::uint8_t>(begin);
      }
      fpdus(b);
      break;
  }
  return 0;
}
