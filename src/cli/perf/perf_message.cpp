#include "cli/perf/perf_message.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"

namespace urnic::cli {
namespace {

constexpr std::uint32_t kMagic = 0x55524e50;  // "URNP"
constexpr std::size_t kTextAt = 192, kMostText = kPerfMessage - kTextAt;

// Writes or reads fields one after another, so that both directions share one list.
struct Writer {
  std::uint8_t* p;
  void operator()(std::uint32_t& v) { store_be32(p, v), p += 4; }
  void operator()(std::uint64_t& v) { store_be64(p, v), p += 8; }
};
struct Reader {
  const std::uint8_t* p;
  void operator()(std::uint32_t& v) { v = load_be32(p), p += 4; }
  void operator()(std::uint64_t& v) { v = load_be64(p), p += 8; }
};

template <class F>
void fields(PerfMessage& m, F&& f) {
  switch (m.kind) {
    case PerfKind::Hello:
    case PerfKind::Welcome:
      f(m.connections), f(m.session), f(m.rkey), f(m.buffer), f(m.address);
      break;
    case PerfKind::Run: {
      PerfRun& r = m.run;
      std::uint32_t what =
          static_cast<std::uint32_t>(r.op) | static_cast<std::uint32_t>(r.test) << 8 |
          (r.bidirectional ? 1u << 16 : 0) | (r.verify ? 1u << 17 : 0) | (r.reverse ? 1u << 18 : 0);
      f(what), f(r.size), f(r.iterations), f(r.duration_ms), f(r.depth), f(r.cq_moderation);
      f(r.post_list), f(r.inline_size), f(r.warm_up), f(r.seed);
      f(r.interval_ms), f(r.limit);
      r.op = static_cast<PerfOp>(what & 0xff);
      r.test = static_cast<PerfTest>(what >> 8 & 0xff);
      r.bidirectional = (what >> 16 & 1) != 0;
      r.verify = (what >> 17 & 1) != 0;
      r.reverse = (what >> 18 & 1) != 0;
      break;
    }
    case PerfKind::Done:
    case PerfKind::Report:
    case PerfKind::Progress:
      f(m.messages), f(m.nanoseconds), f(m.errors), f(m.bytes_fast), f(m.bytes_slow);
      f(m.downgrades), f(m.upgrades), f(m.recoveries), f(m.retransmits), f(m.peak);
      for (std::uint64_t& nanoseconds : m.latency) f(nanoseconds);
      break;
    case PerfKind::Ready:
    case PerfKind::Error:
      break;
  }
}

bool fits(const PerfRun& r) {
  return r.op <= PerfOp::Send && r.test <= PerfTest::Latency && r.size >= 1 &&
         r.size <= (1u << 30) && r.depth >= 1 && r.depth <= 32768 && r.cq_moderation >= 1 &&
         r.post_list >= 1 && r.post_list <= r.depth && r.inline_size <= 4096 &&
         (r.iterations != 0 || r.duration_ms != 0) &&
         !(r.reverse && (r.bidirectional || r.verify || r.test == PerfTest::Latency)) &&
         (r.interval_ms == 0 || r.interval_ms >= 100);
}

}  // namespace

void encode(const PerfMessage& message, std::span<std::uint8_t, kPerfMessage> out) {
  std::memset(out.data(), 0, out.size());
  store_be32(out.data(), kMagic);
  out[4] = kPerfVersion;
  out[5] = static_cast<std::uint8_t>(message.kind);
  PerfMessage m = message;
  fields(m, Writer{out.data() + 8});
  const std::size_t text = std::min(m.text.size(), kMostText);
  store_be16(out.data() + 6, static_cast<std::uint16_t>(text));
  std::memcpy(out.data() + kTextAt, m.text.data(), text);
}

Outcome<PerfMessage, std::string> decode_perf(std::span<const std::uint8_t> bytes) {
  if (bytes.size() != kPerfMessage || load_be32(bytes.data()) != kMagic) {
    return fail(std::string("received a message that is not from urnic perf"));
  }
  if (bytes[4] != kPerfVersion) {
    return fail("the other end is another version of urnic perf (" + std::to_string(bytes[4]) +
                ")");
  }
  PerfMessage m;
  const std::size_t text = load_be16(bytes.data() + 6);
  if (bytes[5] < 1 || bytes[5] > static_cast<std::uint8_t>(PerfKind::Progress) ||
      text > kMostText) {
    return fail(std::string("a control message is malformed"));
  }
  m.kind = static_cast<PerfKind>(bytes[5]);
  fields(m, Reader{bytes.data() + 8});
  if (m.kind == PerfKind::Run && !fits(m.run)) {
    return fail(std::string("invalid measurement request"));
  }
  m.text.assign(reinterpret_cast<const char*>(bytes.data() + kTextAt), text);
  for (char& c : m.text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return m;
}

std::array<std::uint8_t, 16> encode(const PerfGreeting& g) {
  std::array<std::uint8_t, 16> out{};
  store_be32(out.data(), kMagic);
  out[4] = kPerfVersion;
  out[5] = g.control ? 1 : 2;
  store_be32(out.data() + 8, g.session);
  store_be32(out.data() + 12, g.index);
  return out;
}

Outcome<PerfGreeting, std::string> decode_greeting(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < 16 || load_be32(bytes.data()) != kMagic || bytes[5] < 1 || bytes[5] > 2) {
    return fail(std::string("this is urnic perf; the peer is another program"));
  }
  if (bytes[4] != kPerfVersion) {
    return fail("this is version " + std::to_string(kPerfVersion) +
                " of urnic perf, the other end is version " + std::to_string(bytes[4]));
  }
  return PerfGreeting{bytes[5] == 1, load_be32(bytes.data() + 8), load_be32(bytes.data() + 12)};
}

const char* name_of(PerfOp op) {
  switch (op) {
    case PerfOp::Write:
      return "write";
    case PerfOp::Read:
      return "read";
    case PerfOp::Send:
      return "send";
  }
  return "?";
}

}  // namespace urnic::cli
