#include "tcp/syn_cookie.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace urnic::tcp {
namespace {

// The sequence number: 5 bits of time, 3 of MSS, 24 of proof.
constexpr unsigned kProofBits = 24, kMssBits = 3;
constexpr std::uint32_t kProofMask = (1u << kProofBits) - 1;
constexpr std::array<std::uint16_t, 8> kMss = {536, 1024, 1220, 1380, 1440, 1460, 4000, 8940};

// The timestamp: 4 bits of window shift (15: none), 1 of SACK, 1 of ECN.
constexpr std::uint32_t kTsMask = 63, kTsSack = 16, kTsEcn = 32, kNoShift = 15;

std::uint32_t period(Instant now) {
  return static_cast<std::uint32_t>(now.ns() / kCookieLife.count_ns()) & 31;
}

std::uint32_t proof(const SipKey& key, const SocketAddress& local, const SocketAddress& remote,
                    Seq peer_iss, std::uint32_t time_and_mss) {
  std::uint8_t in[2 * (16 + 2) + 8 + 1] = {};
  std::size_t n = 0;
  for (const SocketAddress* a : {&local, &remote}) {
    std::memcpy(in + n, a->ip.bytes().data(), a->ip.size());
    n += a->ip.size();
    store_be16(in + n, a->port);
    n += 2;
  }
  store_be32(in + n, peer_iss.value());
  store_be32(in + n + 4, time_and_mss);
  n += 8;
  in[n++] = 0x43;  // keeps it apart from initial sequence numbers and timestamp offsets
  return static_cast<std::uint32_t>(siphash24(key, ByteView{in, n})) & kProofMask;
}

std::uint32_t clock_of(const Config& c, Instant now) {
  return c.ts_offset + static_cast<std::uint32_t>(now.ns() / 1000000);
}

}  // namespace

Segment cookie_syn_ack(const SipKey& key, const SocketAddress& local, const SocketAddress& remote,
                       const Segment& syn, const Config& config, std::uint16_t window,
                       Instant now) {
  const int theirs = syn.opts.has_mss ? syn.opts.mss : config.ip_header >= 40 ? 1220 : 536;
  std::uint32_t index = 0;
  while (index + 1 < kMss.size() && kMss[index + 1] <= theirs) ++index;
  const std::uint32_t top = period(now) << kMssBits | index;
  Segment s;
  s.src_port = local.port;
  s.dst_port = remote.port;
  s.seq = Seq(top << kProofBits | proof(key, local, remote, syn.seq, top));
  s.ack = syn.seq + 1;
  s.flags = kSyn | kAck;
  s.window = window;
  s.opts.has_mss = true;
  s.opts.mss = config.mss;
  if (!config.timestamps || !syn.opts.has_ts) return s;
  std::uint32_t kept = kNoShift;
  if (config.window_scaling && syn.opts.has_wscale) {
    kept = syn.opts.wscale;
    s.opts.has_wscale = true;
    s.opts.wscale = config.window_shift;
  }
  if (config.sack && syn.opts.sack_permitted) {
    kept |= kTsSack;
    s.opts.sack_permitted = true;
  }
  if (config.ecn != EcnMode::Off && syn.has(kEce) && syn.has(kCwr)) {
    kept |= kTsEcn;
    s.flags |= kEce;
  }
  // Never ahead of the clock: timestamps sent later must not look older (RFC 7323 5).
  const std::uint32_t clock = clock_of(config, now);
  std::uint32_t value = (clock & ~kTsMask) | kept;
  if (static_cast<std::int32_t>(value - clock) > 0) value -= kTsMask + 1;
  s.opts.has_ts = true;
  s.opts.tsval = value;
  s.opts.tsecr = syn.opts.tsval;
  return s;
}

std::optional<Segment> syn_of_cookie(const SipKey& key, const SocketAddress& local,
                                     const SocketAddress& remote, const Segment& ack,
                                     const Config& config, Instant now) {
  const Seq ours = ack.ack - 1;
  const std::uint32_t top = ours.value() >> kProofBits;
  const std::uint32_t age = (period(now) - (top >> kMssBits)) & 31;
  if (age > 1) return std::nullopt;
  if ((ours.value() & kProofMask) != proof(key, local, remote, ack.seq - 1, top)) {
    return std::nullopt;
  }
  Segment syn;
  syn.src_port = remote.port;
  syn.dst_port = local.port;
  syn.seq = ack.seq - 1;
  syn.ack = ours;
  syn.flags = kSyn;
  // The window of the SYN is no longer known. The connection can open with the window of this ACK.
  syn.window = ack.window;
  syn.opts.has_mss = true;
  syn.opts.mss = kMss[top & ((1u << kMssBits) - 1)];
  if (!config.timestamps || !ack.opts.has_ts) return syn;
  syn.opts.has_ts = true;
  syn.opts.tsval = ack.opts.tsval;
  const std::uint32_t kept = ack.opts.tsecr & kTsMask;
  if ((kept & 15) != kNoShift) {
    syn.opts.has_wscale = true;
    syn.opts.wscale = static_cast<std::uint8_t>(kept & 15);
  }
  syn.opts.sack_permitted = (kept & kTsSack) != 0;
  if ((kept & kTsEcn) != 0) syn.flags |= kEce | kCwr;
  return syn;
}

}  // namespace urnic::tcp
