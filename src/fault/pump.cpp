#include "fault/pump.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "fault/machine.h"
#include "fault/tcp_frame.h"

namespace urnic::fault {
namespace {

constexpr unsigned kBatch = port::kBurst;
constexpr unsigned kBurstsPerTurn = 4;
constexpr unsigned kSpins = 200;  // idle turns before sleeping
constexpr unsigned kFdsPerQueue = 16;

Frame copy(const urnic_frame& f) {
  Frame out;
  out.bytes.resize(port::frame_len(f));
  std::memcpy(out.bytes.data(), f.data[0], f.len[0]);
  if (f.len[1] != 0) std::memcpy(out.bytes.data() + f.len[0], f.data[1], f.len[1]);
  out.csum = f.csum;
  return out;
}

}  // namespace

Pump::Pump(port::Port& a, port::Port& b)
    : queues_(std::max(1u, std::min(a.info().queues, b.info().queues))) {
  a_to_b_.from = b_to_a_.to = &a;
  a_to_b_.to = b_to_a_.from = &b;
  a_to_b_.late.resize(queues_);
  b_to_a_.late.resize(queues_);
}

// Turns one received frame into one frame to send, several, or none.
void Pump::take(Leg& w, unsigned q, const urnic_frame& f, std::uint32_t max_frame) {
  std::vector<Frame>& late = w.late[q];
  const std::uint32_t length = port::frame_len(f);
  if (length <= max_frame && f.csum != URNIC_CSUM_PARTIAL) {
    late.push_back(copy(f));
    return;
  }
  Frame whole = copy(f);
  const auto v = parse_tcp_frame(whole);
  if (length <= max_frame) {
    // The kernel left the checksum to the hardware. We compute it, because the next port may be a
    // wire.
    if (v) finish_tcp_frame(whole, *v, v->payload_len);
    late.push_back(std::move(whole));
    return;
  }
  if (!v || v->payload_len == 0 || v->overhead() >= max_frame || !tcp_checksum_ok(whole, *v)) {
    ++w.stats.too_long;
    return;
  }
  ++w.stats.split;
  for (Frame& piece : split(whole, *v, max_frame - v->overhead())) late.push_back(std::move(piece));
}

// Returns true if no frames remain.
bool Pump::send_late(Leg& w, unsigned q) {
  std::vector<Frame>& late = w.late[q];
  std::size_t sent = 0;
  while (sent < late.size()) {
    // One reservation serves frames of different lengths: it has the length of the longest.
    const auto n = static_cast<unsigned>(std::min<std::size_t>(kBatch, late.size() - sent));
    std::size_t longest = 0;
    for (unsigned i = 0; i < n; ++i) longest = std::max(longest, late[sent + i].bytes.size());
    std::array<urnic_frame, kBatch> out;
    const unsigned got = w.to->tx_reserve(q, static_cast<std::uint32_t>(longest), out.data(), n);
    for (unsigned i = 0; i < got; ++i) {
      const Frame& f = late[sent + i];
      std::memcpy(out[i].data[0], f.bytes.data(), f.bytes.size());
      out[i].len[0] = static_cast<std::uint32_t>(f.bytes.size());
      out[i].len[1] = 0;
      ++w.stats.frames;
      w.stats.bytes += f.bytes.size();
    }
    if (got != 0) w.to->tx_commit(q, out.data(), got);
    sent += got;
    if (got < n) break;
  }
  late.erase(late.begin(), late.begin() + static_cast<std::ptrdiff_t>(sent));
  if (late.empty()) return true;
  const port::Info to = w.to->info();
  if (to.link_up == 0) {
    // If the receiver's link is down, frames are lost.
    w.stats.no_link += late.size();
    late.clear();
  } else {
    const auto unfit = [&](const Frame& f) { return f.bytes.size() > to.max_frame; };
    w.stats.too_long += std::erase_if(late, unfit);  // the link came back with a smaller frame size
  }
  return late.empty();
}

bool Pump::forward(Leg& w, unsigned q) {
  bool busy = false;
  for (unsigned turn = 0; turn < kBurstsPerTurn; ++turn) {
    if (!w.late[q].empty() && !send_late(w, q)) return busy;
    std::array<urnic_frame, kBatch> in;
    const unsigned got = w.from->rx_burst(q, in.data(), kBatch);
    const std::uint32_t max_frame = got != 0 ? w.to->info().max_frame : 0;
    for (unsigned i = 0; i < got; ++i) take(w, q, in[i], max_frame);
    w.from->rx_release(q, in.data(), got);
    busy = busy || got != 0;
    if (got != 0) send_late(w, q);
    if (got < kBatch) break;
  }
  return busy;
}

bool Pump::run_once() {
  bool busy = false;
  for (unsigned q = 0; q < queues_; ++q) {
    busy = forward(a_to_b_, q) || busy;
    busy = forward(b_to_a_, q) || busy;
  }
  return busy;
}

// Sleeps until an event. False if a port has no descriptors to wait for.
bool Pump::sleep(int wake_fd, Duration max_sleep) {
  // A blocked direction waits for room at its far end. Frames received at its near end cannot move
  // until then and must not keep us awake, so that port is not polled. If both directions are
  // blocked, we check every millisecond.
  const auto stuck = [](const Leg& w) {
    return std::any_of(w.late.begin(), w.late.end(), [](const auto& l) { return !l.empty(); });
  };
  const bool stuck_a = stuck(a_to_b_), stuck_b = stuck(b_to_a_);
  std::int64_t ms = max_sleep <= Duration() ? -1 : std::max<std::int64_t>(max_sleep.count_ms(), 1);
  const auto at_most = [&](std::int64_t limit) { ms = ms < 0 ? limit : std::min(ms, limit); };
  std::vector<port::Port*> ports;
  if (!stuck_a || stuck_b) ports.push_back(a_to_b_.from);
  if (!stuck_b || stuck_a) ports.push_back(b_to_a_.from);
  if (stuck_a && stuck_b) {
    ports.clear();
    at_most(1);
  } else if (stuck_a || stuck_b) {
    at_most(100);  // the port that is not polled may lose its link
  }

  std::vector<int> fds;
  bool work = false, can_sleep = true;
  for (port::Port* p : ports) {
    for (unsigned q = 0; q < queues_; ++q) {
      int some[kFdsPerQueue];
      const unsigned n = p->wait_fds(q, some, kFdsPerQueue);
      if (n == 0) can_sleep = false;
      fds.insert(fds.end(), some, some + n);
      work = p->arm(q) || work;
    }
  }
  if (!work && can_sleep) {
    if (wake_fd >= 0) fds.push_back(wake_fd);
    machine::wait_readable(fds, ms);
  }
  for (port::Port* p : ports) {
    for (unsigned q = 0; q < queues_; ++q) p->disarm(q);
  }
  return can_sleep;
}

bool Pump::run(const std::atomic<bool>& stop, int wake_fd, Duration max_sleep) {
  unsigned idle = 0;
  while (!stop.load(std::memory_order_relaxed)) {
    if (run_once()) {
      idle = 0;
      continue;
    }
    if (++idle < kSpins) continue;
    if (!sleep(wake_fd, max_sleep)) return false;
    idle = 0;
  }
  return true;
}

}  // namespace urnic::fault
