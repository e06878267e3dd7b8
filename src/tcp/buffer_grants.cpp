// Buffers that grow with what a connection transfers (Option::AutoTune). Each grows up to its own
// bound, and all together up to StackConfig::memory_limit.
//
//   receiving   twice what was read within a round trip (dynamic right-sizing, Fisk and Feng 2001):
//               a sender in slow start doubles as often
//   sending     twice the congestion window: one window in flight, another waiting
//
// A grant is taken back only after the connection is gone: the peer has been promised the window.
#include <algorithm>

#include "tcp/buffer_grants.h"

namespace urnic::tcp {
namespace {

// Bytes granted to each direction when a connection opens.
constexpr std::uint32_t kFirst = 64 * 1024;

}  // namespace

std::uint32_t BufferGrants::grant(std::uint32_t have, std::uint64_t want) {
  const std::uint64_t left = limit_ > granted_ ? limit_ - granted_ : 0;
  const std::uint64_t more = std::min<std::uint64_t>(want > have ? want - have : 0, left);
  granted_ += more;
  return have + static_cast<std::uint32_t>(more);
}

void BufferGrants::open(Socket& s) {
  std::uint32_t send = s.options.send_buffer, receive = s.options.tcp.receive_buffer;
  if (s.options.auto_tune) {
    for (std::uint32_t* bound : {&receive, &send}) {
      const std::uint32_t first = grant(0, std::min(*bound, kFirst));
      const std::uint32_t least = std::min(*bound, kLeastBuffer);
      if (first < least) granted_ += least - first;
      *bound = std::max(first, least);
    }
  }
  s.receive_granted = receive;
  s.send_granted = send;
  s.tx.set_capacity(send);
  s.rx.set_capacity(receive);
}

void BufferGrants::close(Socket& s) {
  if (s.options.auto_tune && s.kind == Socket::Kind::Stream) {
    granted_ -=
        std::min<std::uint64_t>(granted_, std::uint64_t{s.receive_granted} + s.send_granted);
  }
  s.receive_granted = s.send_granted = 0;
}

void BufferGrants::on_read(Socket& s, std::uint64_t bytes, Instant now) {
  const std::uint32_t bound = s.options.tcp.receive_buffer;
  if (!s.options.auto_tune || s.receive_granted >= bound) return;
  s.round_bytes += bytes;
  // Before the first measurement, assume the round trip of a long path.
  const Duration rtt =
      s.tcb.rtt.measured ? std::max(s.tcb.rtt.srtt, Duration::ms(1)) : Duration::ms(100);
  if (now - s.round_begin < rtt) return;
  // A round that lasted longer because data was missing counts only the share of one round trip.
  const std::uint64_t moved = s.round_bytes * static_cast<std::uint64_t>(rtt.count_us()) /
                              static_cast<std::uint64_t>((now - s.round_begin).count_us());
  s.round_begin = now;
  s.round_bytes = 0;
  const std::uint64_t want = std::min<std::uint64_t>(2 * moved + 16 * s.tcb.config.mss, bound);
  if (want <= s.receive_granted) return;
  s.receive_granted = grant(s.receive_granted, want);
  s.rx.set_capacity(s.receive_granted);
  s.tcb.config.receive_buffer = s.receive_granted;
}

void BufferGrants::on_acknowledged(Socket& s) {
  if (!s.options.auto_tune || s.send_granted >= s.options.send_buffer) return;
  const std::uint64_t want =
      std::min<std::uint64_t>(2 * std::uint64_t{s.tcb.cc.cwnd}, s.options.send_buffer);
  if (want <= s.send_granted || s.tx.size() < s.send_granted / 2) return;
  s.send_granted = grant(s.send_granted, want);
  s.tx.set_capacity(s.send_granted);
}

}  // namespace urnic::tcp
