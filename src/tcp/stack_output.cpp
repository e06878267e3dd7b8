// Segments into datagrams, timers, and what is reported at the end of each entry.
#include <algorithm>

#include "base/inet_checksum.h"
#include "net/ipv4.h"
#include "net/ipv6.h"
#include "tcp/listen.h"
#include "tcp/stack_socket.h"

namespace urnic::tcp {
namespace {

// Answers to strangers wait for the driver to drain no further than this.
constexpr std::size_t kMostQueuedReplies = 4096;
constexpr std::size_t kMostSpare = 256;

std::uint32_t pseudo_sum(const IpAddress& src, const IpAddress& dst) {
  std::uint8_t both[32];
  const ByteView s = src.bytes(), d = dst.bytes();
  std::copy(s.begin(), s.end(), both);
  std::copy(d.begin(), d.end(), both + s.size());
  return dst.is_v6() ? net::pseudo_sum_v6(both, net::kProtoTcp, 0)
                     : net::pseudo_sum_v4(both, net::kProtoTcp, 0);
}

std::size_t ip_header(const IpAddress& dst) {
  return dst.is_v6() ? net::kIpv6Header : net::kIpv4Header;
}

}  // namespace

// ---- segments
// ---------------------------------------------------------------------------------------

void Stack::pump(Socket& s, Instant now) {
  for (;;) {
    const SendPlan plan = plan_send(s.tcb, {StreamOffset(s.tx.end()), s.more}, now);
    if (plan.kind == Send::None) return;
    emit(s, plan, now);
  }
}

std::vector<std::uint8_t> Stack::new_packet(std::size_t size) {
  std::vector<std::uint8_t> bytes;
  if (!spare_.empty()) {
    bytes = std::move(spare_.back());
    spare_.pop_back();
  }
  bytes.resize(size);
  return bytes;
}

void Stack::emit(Socket& s, const SendPlan& plan, Instant now) {
  if (plan.kind == Send::None) return;
  const std::size_t ip = ip_header(s.remote.ip);
  const std::uint32_t len = plan.limit;
  std::vector<std::uint8_t> bytes = new_packet(ip + plan.header + len);
  std::uint8_t* const tcp_at = bytes.data() + ip;
  std::uint32_t sum = 0;
  bool psh = false;
  if (len != 0) {
    const MutBytes payload(tcp_at + plan.header, len);
    s.tx.copy(plan.begin.value(), payload);
    sum = inet_sum(payload);
    const std::uint64_t end = plan.begin.value() + len;
    psh = end == s.tx.end() && !s.more;
    if (s.options.psh_rule == PshRule::EndOfWrite) {
      psh = false;
      while (!s.write_ends.empty() && s.write_ends.front() <= end) {
        psh |= s.write_ends.front() > plan.begin.value();
        s.write_ends.pop_front();
      }
    }
  }
  std::uint8_t ect = 0;
  write_header(s.tcb, plan, len, psh, s.local.port, s.remote.port,
               pseudo_sum(s.local.ip, s.remote.ip), sum, now, tcp_at, &ect);
  finish_ip(&s, s.local.ip, s.remote.ip, ect, &bytes);
  if (plan.kind == Send::Retransmit) {
    ++s.retransmissions;
    ++counters_.retransmissions;
  }
  if (plan.kind == Send::Rst) ++counters_.resets_sent;
  sent(s.tcb, plan, len, psh, now);
  queue(std::move(bytes), now);
}

void Stack::finish_ip(Socket* s, const IpAddress& src, const IpAddress& dst, std::uint8_t ecn,
                      std::vector<std::uint8_t>* datagram) {
  const auto tos = static_cast<std::uint8_t>((s != nullptr ? s->options.tos & 0xfc : 0) | ecn);
  const std::size_t size = datagram->size();
  if (dst.is_v6()) {
    net::Ipv6Header h;
    h.traffic_class = tos;
    h.payload_len = static_cast<std::uint16_t>(size - net::kIpv6Header);
    h.next_header = net::kProtoTcp;
    h.hop_limit = config_.ttl;
    h.src = src;
    h.dst = dst;
    net::emit_ipv6(h, datagram->data());
  } else {
    net::Ipv4Header h;
    h.tos = tos;
    h.total_len = static_cast<std::uint16_t>(size);
    h.id = s != nullptr ? s->ip_id++ : std::uint16_t{0};  // RFC 6864 4: never fragmented
    h.ttl = config_.ttl;
    h.protocol = net::kProtoTcp;
    h.src = src;
    h.dst = dst;
    net::emit_ipv4(h, datagram->data());
  }
}

// A segment of no connection, to where `c` came from.
void Stack::emit_stateless(const net::Classified& c, const Segment& reply, Instant now) {
  if (output_.size() >= kMostQueuedReplies) return;
  std::uint8_t header[kHeaderMax];
  const std::size_t n = emit_header(reply, header);
  const std::uint64_t sum = std::uint64_t{pseudo_sum(c.dst, c.src)} + n + inet_sum({header, n});
  store_be16(header + 16, inet_checksum(sum));
  const std::size_t ip = ip_header(c.src);
  std::vector<std::uint8_t> bytes = new_packet(ip + n);
  std::copy(header, header + n, bytes.begin() + static_cast<std::ptrdiff_t>(ip));
  finish_ip(nullptr, c.dst, c.src, 0, &bytes);
  queue(std::move(bytes), now);
}

void Stack::emit_reset(const net::Classified& c, const Segment& reset, Instant now) {
  if (output_.size() >= kMostQueuedReplies) return;
  ++counters_.resets_sent;
  emit_stateless(c, reset, now);
}

void Stack::queue(std::vector<std::uint8_t> bytes, Instant now) {
  ++counters_.datagrams_out;
  output_.push_back({now, std::move(bytes)});
}

bool Stack::next_output(Datagram* out) {
  if (output_.empty()) return false;
  if (current_.capacity() != 0 && spare_.size() < kMostSpare) spare_.push_back(std::move(current_));
  out->send_time = output_.front().send_time;
  current_ = std::move(output_.front().bytes);
  output_.pop_front();
  out->bytes = current_;
  return true;
}

// ---- timers
// -----------------------------------------------------------------------------------------

Instant Stack::socket_deadline(const Socket& s) const {
  return earlier(tcp::next_deadline(s.tcb), s.orphan_deadline);
}

namespace {
// The heap keeps the earliest on top; equal times in the order of slots, so that runs repeat.
constexpr auto kLater = [](const auto& a, const auto& b) {
  return a.at != b.at ? a.at > b.at : a.slot > b.slot;
};
}  // namespace

void Stack::arm(Socket& s) {
  const Instant at = socket_deadline(s);
  if (at >= s.timer_at) return;  // an entry for an earlier time is on its way
  s.timer_at = at;
  timers_.push_back({at, s.slot, s.generation});
  std::push_heap(timers_.begin(), timers_.end(), kLater);
}

// Everything due before `until` (or at it, if `including`), in order. Entries that are out of date
// are put right on the way, so that the top of the heap is the truth afterwards.
void Stack::fire(Instant until, bool including) {
  while (!timers_.empty()) {
    const Timer top = timers_.front();
    Socket* s = sockets_[top.slot].get();
    const bool current =
        s != nullptr && s->generation == top.generation && !s->dead && s->timer_at == top.at;
    const Instant due = current ? socket_deadline(*s) : top.at;
    if (current && due <= top.at && !(top.at < until || (including && top.at == until))) return;
    std::pop_heap(timers_.begin(), timers_.end(), kLater);
    timers_.pop_back();
    if (!current) continue;
    s->timer_at = Instant::never();
    if (due > top.at) {  // it was put off meanwhile
      arm(*s);
      continue;
    }
    if (s->orphan_deadline <= top.at) {
      enter_closed(s->tcb, CloseReason::None);
    } else {
      on_deadline(s->tcb, top.at);
    }
    pump(*s, top.at);
    settle(*s, top.at);
  }
}

Instant Stack::next_deadline() const {
  return timers_.empty() ? Instant::never() : timers_.front().at;
}

void Stack::run(Instant at) {
  const Entry entry(*this, at);
  fire(entry.now(), true);
}

// ---- reports
// ----------------------------------------------------------------------------------------

void Stack::note(Socket& s, std::uint32_t changes) {
  if (on_change_ == nullptr) return;
  s.changes |= changes;
  if (s.reported) return;
  s.reported = true;
  changed_.push_back(static_cast<std::uint64_t>(handle(s)));
}

void Stack::deliver() {
  if (depth_ != 0 || delivering_) return;
  delivering_ = true;
  for (;;) {
    if (sink_ != nullptr && !output_.empty()) {
      Packet p = std::move(output_.front());
      output_.pop_front();
      sink_(sink_context_, p.bytes, p.send_time);
      if (spare_.size() < kMostSpare) spare_.push_back(std::move(p.bytes));
      continue;
    }
    if (changed_.empty()) break;
    const std::uint64_t e = changed_.front();
    changed_.pop_front();
    Socket* s = sockets_[(e & 0xffffffff) - 1].get();
    if (s == nullptr || s->generation != e >> 32) continue;  // gone since
    const std::uint32_t changes = std::exchange(s->changes, 0);
    s->reported = false;
    // Before accept() nobody knows the endpoint; accept()'s caller asks readiness().
    if (!s->has_handle || on_change_ == nullptr || changes == 0) continue;
    on_change_(change_context_, static_cast<Endpoint>(e), changes);
  }
  delivering_ = false;
}

}  // namespace urnic::tcp
