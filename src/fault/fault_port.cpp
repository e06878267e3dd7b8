#include "fault/fault_port.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <utility>

#include "fault/fault_line.h"
#include "fault/machine.h"
#include "port/adapter.h"
#include "port/fd.h"

namespace urnic::fault {
namespace {

constexpr unsigned kBatch = port::kBurst;
// The limit for due frames that the inner port has no room for; above it the sender must wait too.
constexpr std::size_t kTxPressure = 256;

// Both directions of one queue. Locked once per burst.
struct Lane {
  Lane(const FaultOptions& o, std::uint16_t queue, FaultLog* log)
      : rx(o.rx, Direction::Rx, queue, log), tx(o.tx, Direction::Tx, queue, log) {}

  std::mutex lock;
  FaultLine rx, tx;
  // How the user got its current frames.
  enum class Mode : std::uint8_t { Bypass, InPlace, Line };
  Mode rx_mode = Mode::Bypass, tx_mode = Mode::Bypass;
  std::vector<Frame> lent;            // lent to the user until rx_release
  std::vector<urnic_frame> borrowed;  // borrowed from the inner port meanwhile (InPlace)
  std::vector<Frame> reserved;        // lent to the user until tx_commit
  port::Fd timer;
};

}  // namespace

class FaultLanes {
 public:
  FaultLanes(const FaultOptions& o, unsigned queues)
      : log(o.log_capacity, o.watch), plans_{o.rx, o.tx} {
    FaultLog* to = o.log_capacity != 0 || o.watch ? &log : nullptr;
    for (unsigned q = 0; q < std::max(queues, 1u); ++q) {
      lanes.emplace_back(std::make_unique<Lane>(o, static_cast<std::uint16_t>(q), to));
    }
  }

  FaultCounters set_plan(Direction d, const FaultPlan& plan) {
    std::lock_guard hold(plans_lock_);
    plans_[static_cast<std::size_t>(d)] = plan;
    FaultCounters before;
    for (auto& lane : lanes) {
      std::lock_guard lane_hold(lane->lock);
      before += line(*lane, d).counters();
      line(*lane, d).set_plan(plan);
    }
    return before;
  }
  FaultPlan plan(Direction d) {
    std::lock_guard hold(plans_lock_);
    return plans_[static_cast<std::size_t>(d)];
  }
  static FaultLine& line(Lane& lane, Direction d) { return d == Direction::Rx ? lane.rx : lane.tx; }

  FaultLog log;
  std::vector<std::unique_ptr<Lane>> lanes;

 private:
  std::mutex plans_lock_;
  FaultPlan plans_[2];
};

namespace {

class FaultPort {
 public:
  FaultPort(port::Port inner, WireClock clock, std::shared_ptr<FaultLanes> lanes)
      : inner_(std::move(inner)), clock_(clock), lanes_(std::move(lanes)) {}
  static Outcome<std::unique_ptr<FaultPort>, std::string> make(port::Args&) {
    return fail(std::string("'fault' wraps another port and cannot be opened by name"));
  }

  void info(urnic_port_info* i) const {
    *i = inner_.info();
    i->queues = std::min(i->queues, static_cast<std::uint32_t>(lanes_->lanes.size()));
  }
  void stats(urnic_port_stats* s) const { *s = inner_.stats(); }
  unsigned rx_burst(unsigned q, urnic_frame* frames, unsigned n);
  void rx_release(unsigned q, const urnic_frame* frames, unsigned n);
  unsigned tx_reserve(unsigned q, std::uint32_t len, urnic_frame* frames, unsigned n);
  void tx_commit(unsigned q, urnic_frame* frames, unsigned n);
  unsigned wait_fds(unsigned q, int* fds, unsigned max);
  int arm(unsigned q);
  void disarm(unsigned q);
  std::string why() const { return inner_.why(); }

 private:
  Lane& lane(unsigned q) { return *lanes_->lanes[q]; }
  static Lane::Mode mode_of(const FaultLine& line) {
    if (line.transparent()) return Lane::Mode::Bypass;
    return line.in_place() ? Lane::Mode::InPlace : Lane::Mode::Line;
  }
  unsigned receive_in_place(Lane& l, unsigned q, urnic_frame* frames, unsigned n, Instant now);
  unsigned receive_from_line(Lane& l, unsigned q, urnic_frame* frames, unsigned n, Instant now);
  void commit_in_place(Lane& l, unsigned q, urnic_frame* frames, unsigned n, Instant now);
  void send_due(Lane& l, unsigned q, Instant now);

  port::Port inner_;
  WireClock clock_;
  std::shared_ptr<FaultLanes> lanes_;
};

unsigned FaultPort::rx_burst(unsigned q, urnic_frame* frames, unsigned n) {
  Lane& l = lane(q);
  std::lock_guard hold(l.lock);
  const Instant now = clock_.now();
  send_due(l, q, now);
  l.rx_mode = mode_of(l.rx);
  switch (l.rx_mode) {
    case Lane::Mode::Bypass: {
      const unsigned got = inner_.rx_burst(q, frames, n);
      l.rx.count_bypassed(got);
      return got;
    }
    case Lane::Mode::InPlace:
      return receive_in_place(l, q, frames, n, now);
    case Lane::Mode::Line:
      break;
  }
  return receive_from_line(l, q, frames, n, now);
}

// Frames stay in the inner port's memory. Lost frames are skipped; changed frames are copies.
unsigned FaultPort::receive_in_place(Lane& l, unsigned q, urnic_frame* frames, unsigned n,
                                     Instant now) {
  for (;;) {
    l.borrowed.resize(n);
    const unsigned got = inner_.rx_burst(q, l.borrowed.data(), n);
    l.borrowed.resize(got);
    unsigned give = 0;
    for (const urnic_frame& f : l.borrowed) {
      Frame changed;
      const FaultLine::Fate verdict = l.rx.inspect(f, now, &changed);
      if (verdict == FaultLine::Fate::Lost) continue;
      frames[give] = f;
      if (verdict == FaultLine::Fate::Change) {
        Frame& own = l.lent.emplace_back(std::move(changed));
        frames[give].data[0] = own.bytes.data();
        frames[give].len[0] = static_cast<std::uint32_t>(own.bytes.size());
        frames[give].len[1] = 0;
        frames[give].csum = own.csum;
      }
      ++give;
    }
    // All frames of the burst were lost: the user has none to return, and there may be more.
    if (give != 0 || got == 0) return give;
    inner_.rx_release(q, l.borrowed.data(), got);
    l.borrowed.clear();
  }
}

unsigned FaultPort::receive_from_line(Lane& l, unsigned q, urnic_frame* frames, unsigned n,
                                      Instant now) {
  // Receive from the inner port only while there are not enough ready frames. Then its own ring
  // limits the sender, and a slow user does not overflow the line.
  while (l.rx.ready(now) < n) {
    std::array<urnic_frame, kBatch> in;
    const unsigned got = inner_.rx_burst(q, in.data(), kBatch);
    for (unsigned i = 0; i < got; ++i) {
      const urnic_frame& f = in[i];
      l.rx.push({f.data[0], f.len[0]}, {f.data[1], f.len[1]}, f.csum, now);
    }
    inner_.rx_release(q, in.data(), got);
    if (got < kBatch) break;
  }
  const auto give = static_cast<unsigned>(std::min<std::size_t>(l.rx.ready(now), n));
  for (unsigned i = 0; i < give; ++i) {
    Frame& f = l.lent.emplace_back(l.rx.pop());
    frames[i] = {};
    frames[i].data[0] = f.bytes.data();
    frames[i].len[0] = static_cast<std::uint32_t>(f.bytes.size());
    frames[i].csum = f.csum;
    frames[i].arrival_ns = static_cast<std::uint64_t>(now.ns());
  }
  return give;
}

void FaultPort::rx_release(unsigned q, const urnic_frame* frames, unsigned n) {
  Lane& l = lane(q);
  std::lock_guard hold(l.lock);
  if (l.rx_mode == Lane::Mode::Bypass) return inner_.rx_release(q, frames, n);
  for (Frame& f : l.lent) l.rx.recycle(std::move(f));
  l.lent.clear();
  if (!l.borrowed.empty()) {
    inner_.rx_release(q, l.borrowed.data(), static_cast<unsigned>(l.borrowed.size()));
    l.borrowed.clear();
  }
}

unsigned FaultPort::tx_reserve(unsigned q, std::uint32_t len, urnic_frame* frames, unsigned n) {
  Lane& l = lane(q);
  std::lock_guard hold(l.lock);
  const Instant now = clock_.now();
  send_due(l, q, now);
  l.tx_mode = mode_of(l.tx);
  if (l.tx_mode != Lane::Mode::Line) return inner_.tx_reserve(q, len, frames, n);
  l.reserved.clear();
  const port::Info i = inner_.info();
  if (len > i.max_frame || i.link_up == 0 || l.tx.ready(now) > kTxPressure) return 0;
  const unsigned give = std::min(n, kBatch);
  for (unsigned k = 0; k < give; ++k) {
    Frame& f = l.reserved.emplace_back(l.tx.new_blank_frame(len));
    frames[k] = {};
    frames[k].data[0] = f.bytes.data();
    frames[k].len[0] = len;
    frames[k].cookie = k;
  }
  return give;
}

void FaultPort::tx_commit(unsigned q, urnic_frame* frames, unsigned n) {
  Lane& l = lane(q);
  std::lock_guard hold(l.lock);
  const Instant now = clock_.now();
  switch (l.tx_mode) {
    case Lane::Mode::Bypass: {
      const auto sent =
          std::count_if(frames, frames + n, [](const auto& f) { return f.len[0] != 0; });
      l.tx.count_bypassed(static_cast<std::uint64_t>(sent));
      return inner_.tx_commit(q, frames, n);
    }
    case Lane::Mode::InPlace:
      return commit_in_place(l, q, frames, n, now);
    case Lane::Mode::Line:
      break;
  }
  for (unsigned k = 0; k < n; ++k) {
    const urnic_frame& f = frames[k];
    if (f.len[0] == 0) continue;
    l.tx.push({f.data[0], f.len[0]}, {f.data[1], f.len[1]}, f.csum, now);
  }
  for (Frame& f : l.reserved) l.tx.recycle(std::move(f));
  l.reserved.clear();
  send_due(l, q, now);
}

// Frames are in the inner port's buffers. Lost frames are returned unsent; changed frames are
// rewritten. The second span is foreign memory, so it is replaced by the copy.
void FaultPort::commit_in_place(Lane& l, unsigned q, urnic_frame* frames, unsigned n, Instant now) {
  for (unsigned k = 0; k < n; ++k) {
    urnic_frame& f = frames[k];
    if (f.len[0] == 0) continue;
    Frame changed;
    const FaultLine::Fate verdict = l.tx.inspect(f, now, &changed);
    if (verdict == FaultLine::Fate::Lost) f.len[0] = f.len[1] = 0;
    if (verdict != FaultLine::Fate::Change) continue;
    const auto total = static_cast<std::uint32_t>(changed.bytes.size());
    f.len[0] = std::min(f.len[0], total);
    f.len[1] = total - f.len[0];
    std::memcpy(f.data[0], changed.bytes.data(), f.len[0]);
    Frame& own = l.reserved.emplace_back(std::move(changed));
    f.data[1] = own.bytes.data() + f.len[0];
  }
  inner_.tx_commit(q, frames, n);
  for (Frame& f : l.reserved) l.tx.recycle(std::move(f));
  l.reserved.clear();
}

// Sends due frames through the inner port while it has room.
void FaultPort::send_due(Lane& l, unsigned q, Instant now) {
  std::size_t due = l.tx.ready(now);
  while (due != 0) {
    // A reservation has one length for all frames, so frames are reserved one by one.
    const std::size_t len = l.tx.front().bytes.size();
    urnic_frame out;
    if (inner_.tx_reserve(q, static_cast<std::uint32_t>(len), &out, 1) == 0) {
      // Too large for the port (joined beyond its frame size): it would block all other frames.
      if (len <= inner_.info().max_frame) return;
      l.tx.recycle(l.tx.pop());
      --due;
      continue;
    }
    Frame f = l.tx.pop();
    std::memcpy(out.data[0], f.bytes.data(), len);
    out.len[0] = static_cast<std::uint32_t>(len);
    out.len[1] = 0;
    inner_.tx_commit(q, &out, 1);
    l.tx.recycle(std::move(f));
    --due;
  }
}

unsigned FaultPort::wait_fds(unsigned q, int* fds, unsigned max) {
  unsigned n = inner_.wait_fds(q, fds, max);
  if (!clock_.real || n >= max) return n;
  Lane& l = lane(q);
  std::lock_guard hold(l.lock);
  if (!l.timer) l.timer = machine::make_timer();
  if (l.timer) fds[n++] = l.timer.get();
  return n;
}

int FaultPort::arm(unsigned q) {
  Lane& l = lane(q);
  std::lock_guard hold(l.lock);
  const Instant now = clock_.now();
  send_due(l, q, now);
  if (l.rx.ready(now) != 0) return 1;
  const Instant next = earlier(l.rx.next_release(), l.tx.next_release());
  if (!next.is_never()) {
    if (next <= now) return 1;
    if (clock_.real) {
      if (!l.timer) return 1;  // no timer to wake us: stay awake
      machine::set_timer(l.timer, next - now);
    }
  }
  return inner_.arm(q) ? 1 : 0;
}

void FaultPort::disarm(unsigned q) {
  Lane& l = lane(q);
  std::lock_guard hold(l.lock);
  if (l.timer) machine::set_timer(l.timer, Duration());
  inner_.disarm(q);
}

constinit const urnic_port_ops kFaultPortOps = port::Adapter<FaultPort>::table("fault");

}  // namespace

FaultCounters FaultControl::set_plan(Direction d, const FaultPlan& plan) {
  return lanes_->set_plan(d, plan);
}
FaultPlan FaultControl::plan(Direction d) const {
  return lanes_->plan(d);
}

FaultCounters FaultControl::counters(Direction d) const {
  FaultCounters sum;
  for (auto& lane : lanes_->lanes) {
    std::lock_guard hold(lane->lock);
    sum += FaultLanes::line(*lane, d).counters();
  }
  return sum;
}

std::vector<FaultRecord> FaultControl::records() const {
  return lanes_->log.records();
}

Instant FaultControl::next_release() const {
  Instant next = Instant::never();
  for (auto& lane : lanes_->lanes) {
    std::lock_guard hold(lane->lock);
    next = earlier(next, earlier(lane->rx.next_release(), lane->tx.next_release()));
  }
  return next;
}

std::size_t FaultControl::backlog() const {
  std::size_t sum = 0;
  for (auto& lane : lanes_->lanes) {
    std::lock_guard hold(lane->lock);
    sum += lane->rx.backlog() + lane->tx.backlog();
  }
  return sum;
}

FaultyPort wrap_faults(port::Port inner, const FaultOptions& options) {
  const unsigned queues = inner.info().queues;
  auto lanes = std::make_shared<FaultLanes>(options, queues);
  auto* wrapped = new FaultPort(std::move(inner), options.clock, lanes);
  return {port::Port(&kFaultPortOps, port::as_handle(wrapped)),
          std::make_shared<FaultControl>(std::move(lanes))};
}

}  // namespace urnic::fault
