#include "port/memif_port.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "port/adapter.h"
#include "port/kinds.h"

namespace urnic::port {

using memif::Link;
using memif::Reason;

namespace {

// Receive calls between two checks of the control socket: often enough to detect a dead peer within
// milliseconds, rarely enough to cost nothing. Without a peer it is checked more often. During a
// handshake every call checks it, because a slowly polling caller would otherwise exceed the time
// limits.
constexpr std::uint32_t kControlEvery = 1024;
constexpr std::uint32_t kControlEveryAlone = 16;
constexpr std::uint32_t kEthernetHeader = 14;
constexpr std::uint32_t kVlanTag = 4;

// DPDK's sender does not order its index update against its read of our mask, so it can miss an
// unmasking at the same moment. We check once more, this long after unmasking.
constexpr std::uint64_t kLookAgainUs = 1000;
// Intervals for waiting for room: an urnic receiver wakes us, other implementations do not.
constexpr std::uint32_t kRoomFirstUs = 250;
constexpr std::uint32_t kRoomMostUs = 16000;

enum EventTag : std::uint64_t { kTagRing, kTagTimer, kTagControl };

unsigned default_log2_ring(std::uint32_t buffer_size) {
  // Rings whose buffers fit into the cache are the fastest.
  if (buffer_size <= 4096) return 8;
  if (buffer_size <= 9728) return 7;
  return 6;
}

bool add_to_epoll(int epoll, int fd, std::uint32_t events, EventTag tag) {
  epoll_event e{};
  e.events = events;
  e.data.u64 = tag;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

Outcome<memif::Config, std::string> read_config(Args& args) {
  memif::Config c;
  const std::string socket = args.str("socket");
  const std::string role = args.str("role", "auto");
  c.id = static_cast<std::uint32_t>(args.num("id", 0, 0, UINT32_MAX));
  const std::uint64_t mtu = args.num("mtu", 1500, 68, 65535 - kEthernetHeader);
  c.max_frame = static_cast<std::uint32_t>(mtu) + kEthernetHeader;
  const std::uint64_t least = c.max_frame + kVlanTag;
  c.buffer_size = static_cast<std::uint32_t>(
      args.num("bsize", std::max<std::uint64_t>(2048, (least + 63) / 64 * 64), 64, 1 << 20));
  c.log2_ring = static_cast<unsigned>(
      args.num("rsize", default_log2_ring(c.buffer_size), 3, memif::kMaxLog2Ring));
  c.queues = static_cast<unsigned>(args.num("queues", 1, 1, memif::kMaxQueues));
  c.secret = args.str("secret");
  const std::string peer_user = args.str("peer_user");
  c.serves = args.str("serves");
  if (std::string wrong = args.finish(); !wrong.empty()) return fail(wrong);

  if (role == "server") {
    c.role = memif::Role::kServer;
  } else if (role == "client") {
    c.role = memif::Role::kClient;
  } else if (role == "auto") {
    c.role = memif::Role::kAuto;
  } else {
    return fail("role=" + role + ": must be server, client or auto");
  }
  if (c.secret.size() > memif::kSecretSize) {
    return fail("secret= must be at most " + std::to_string(memif::kSecretSize) + " bytes");
  }
  if (c.serves.size() > memif::kMostServes) {
    return fail("serves= must be at most " + std::to_string(memif::kMostServes) + " bytes");
  }
  if (c.buffer_size < least) {
    return fail("bsize=" + std::to_string(c.buffer_size) + ": too small for mtu=" +
                std::to_string(mtu) + ", must be at least " + std::to_string(least));
  }
  if (memif::layout_bytes({c.queues, c.log2_ring, c.buffer_size}) >> 32 != 0) {
    return fail(
        std::string("queues, rsize, bsize: the rings need more than 4 GiB; use smaller values"));
  }
  auto user = PeerUser::parse(peer_user);
  if (!user.ok()) return fail(user.error());
  c.peer_user = user.value();
  auto address = UnixAddress::parse(socket, "socket");
  if (!address.ok()) return fail(address.error());
  c.address = address.value();
  return c;
}

}  // namespace

std::string check_memif_args(Args& args) {
  auto config = read_config(args);
  return config.ok() ? std::string() : config.error();
}

MemifPort::MemifPort(memif::Config config)
    : config_(std::move(config)), owner_(getpid()), queues_(new Queue[config_.queues]) {}

Outcome<std::unique_ptr<MemifPort>, std::string> MemifPort::make(Args& args) {
  auto config = read_config(args);
  if (!config.ok()) return fail(config.error());
  std::unique_ptr<MemifPort> p(new MemifPort(std::move(config.value())));
  auto control = memif::Control::start(p->config_);
  if (!control.ok()) return fail(control.error());
  p->control_ = std::move(control.value());
  if (std::string wrong = p->open_sleepers(); !wrong.empty()) return fail(wrong);
  p->serve_control(p->queues_[0]);
  return p;
}

// Creates one epoll descriptor per queue, so that the caller's poll set never changes. It contains
// the eventfd of the current connection's ring (edge-triggered: never read), a timer and the
// control side.
std::string MemifPort::open_sleepers() {
  for (unsigned q = 0; q < config_.queues; ++q) {
    Queue& me = queues_[q];
    me.epoll.reset(epoll_create1(EPOLL_CLOEXEC));
    me.timer.reset(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
    if (!me.epoll || !me.timer ||
        !add_to_epoll(me.epoll.get(), me.timer.get(), EPOLLIN, kTagTimer) ||
        !add_to_epoll(me.epoll.get(), control_->wait_fd(), EPOLLIN, kTagControl)) {
      return std::string("cannot create a descriptor to wait on: ") + std::strerror(errno);
    }
  }
  return "";
}

MemifPort::~MemifPort() {
  // A forked child shares the socket with the parent, which owns the connection.
  if (control_ != nullptr && getpid() == owner_) control_->shut_down();
}

void MemifPort::info(urnic_port_info* i) {
  *i = {};
  i->link_up = link_.load(std::memory_order_acquire) != nullptr ? 1 : 0;
  i->server_side = control_->side() == memif::Side::kServer ? 1 : 0;
  i->max_frame = config_.max_frame;
  i->queues = config_.queues;
  if (control_lock_.try_lock()) {
    if (control_->link() != nullptr) {
      i->queues = std::min(config_.queues, control_->link()->queues());
    }
    control_lock_.unlock();
  }
  i->link_epoch = epoch_.load(std::memory_order_relaxed);
}

std::string MemifPort::why() {
  const std::lock_guard guard(control_lock_);
  return control_->last_reason();
}

void MemifPort::stats(urnic_port_stats* s) const {
  *s = {};
  for (unsigned q = 0; q < config_.queues; ++q) queues_[q].counters.add_to(s);
}

// ---- the control side, run by the thread of any queue ----

std::uint32_t MemifPort::control_every() const {
  if (link_.load(std::memory_order_relaxed) != nullptr) return kControlEvery;
  return shaking_.load(std::memory_order_relaxed) ? 1 : kControlEveryAlone;
}

void MemifPort::serve_control(Queue& me) {
  me.next_control = me.calls + control_every();
  me.control_due.store(false, std::memory_order_relaxed);
  if (!control_lock_.try_lock()) return;  // another queue's thread is running it
  me.counters.syscalls.add(control_->run());
  Link* now = control_->link().get();
  deadline_ms_.store(control_->deadline_ms(), std::memory_order_relaxed);
  shaking_.store(control_->is_handshaking(), std::memory_order_relaxed);
  if (now != link_.load(std::memory_order_relaxed)) {
    if (now != nullptr) epoch_.fetch_add(1, std::memory_order_relaxed);
    link_.store(now, std::memory_order_release);
    me.next_control = me.calls + 1;
  } else {
    me.next_control = me.calls + control_every();
  }
  control_lock_.unlock();
}

void MemifPort::attach(Queue& me, unsigned q) {
  if (me.link == nullptr || q >= me.link->queues()) return;
  me.rx.attach(me.link.get(), q, config_.max_frame + kVlanTag);
  me.tx.attach(me.link.get(), q, config_.max_frame);
  me.watched_event = me.rx.event_fd();
  add_to_epoll(me.epoll.get(), me.watched_event, EPOLLIN | EPOLLET, kTagRing);
}

void MemifPort::detach(Queue& me) {
  if (me.watched_event >= 0) {
    epoll_ctl(me.epoll.get(), EPOLL_CTL_DEL, me.watched_event, nullptr);
    me.watched_event = -1;
  }
  me.rx.detach();
  me.tx.detach();
  me.link.reset();
  me.broken = me.draining = me.fell_short = false;
}

// Releases a connection that has ended and attaches to the new one. First waits for frames that the
// caller has borrowed and for frames that the peer sent before it left.
void MemifPort::follow_link(Queue& me) {
  if (me.rx.attached()) {
    if (me.rx.borrowed() || !me.tx.is_committed()) return;
    if (!me.draining && !me.broken) {
      me.draining = true;
      // An invalid index ends the draining at the first burst; an increasing one cannot prolong it.
      me.drain_left = me.rx.waiting();
    }
    if (me.draining && me.drain_left != 0 && !me.broken) return;
  }
  if (!control_lock_.try_lock()) return;
  std::shared_ptr<Link> next = control_->link();
  control_lock_.unlock();
  detach(me);
  me.link = std::move(next);
  attach(me, index_of(me));
}

void MemifPort::report(Queue& me, Reason fault) {
  me.broken = true;
  Reason none = nullptr;
  me.link->fault.compare_exchange_strong(none, fault, std::memory_order_acq_rel);
  me.control_due.store(true, std::memory_order_relaxed);
}

// ---- frames ----

unsigned MemifPort::rx_burst(unsigned q, urnic_frame* frames, unsigned n) {
  Queue& me = queues_[q];
  if (++me.calls == me.next_control || me.control_due.load(std::memory_order_relaxed)) {
    serve_control(me);
  }
  if (me.rx.attached() && me.rx.borrowed()) me.rx.release();
  if (!current(me)) follow_link(me);
  if (!me.rx.attached() || me.broken) return 0;
  if (me.draining) n = std::min(n, me.drain_left);
  Reason fault = nullptr;
  const unsigned got = me.rx.burst(frames, n, me.counters, &fault);
  if (me.draining) me.drain_left = got == 0 ? 0 : me.drain_left - got;
  if (fault != nullptr) report(me, fault);
  return got;
}

void MemifPort::rx_release(unsigned q, const urnic_frame*, unsigned n) {
  Queue& me = queues_[q];
  if (n == 0 || !me.rx.attached()) return;
  const std::uint16_t before = me.rx.released();
  me.rx.release();
  // A sender without room sleeps on the ring that we send into. Only urnic senders need this; the
  // others poll and have the mask set.
  if (me.tx.receiver_asks_for_wakeup() && me.rx.crossed_half(before)) me.tx.wake(me.counters);
}

unsigned MemifPort::tx_reserve(unsigned q, std::uint32_t len, urnic_frame* frames, unsigned n) {
  Queue& me = queues_[q];
  me.tx.abandon();
  if (!current(me)) follow_link(me);
  unsigned got = 0;
  if (me.tx.attached() && current(me) && !me.broken && len <= config_.max_frame) {
    Reason fault = nullptr;
    got = me.tx.reserve(len, frames, n, &fault);
    if (fault != nullptr) report(me, fault);
  }
  me.fell_short = got < n && me.tx.attached() && !me.broken;
  if (got < n) me.counters.tx_full.add();
  return got;
}

void MemifPort::tx_commit(unsigned q, urnic_frame* frames, unsigned n) {
  Queue& me = queues_[q];
  if (!me.tx.attached() || me.broken) {
    for (unsigned i = 0; i < n; ++i) {
      if (frames[i].len[0] != 0) me.counters.tx_dropped.add();
    }
    me.tx.abandon();
    return;
  }
  me.tx.commit(frames, n, me.counters);
}

// ---- sleeping ----

unsigned MemifPort::wait_fds(unsigned q, int* fds, unsigned max) {
  if (max == 0) return 0;
  fds[0] = queues_[q].epoll.get();
  return 1;
}

void MemifPort::set_timer(Queue& me, std::uint64_t us) {
  itimerspec t{};
  t.it_value.tv_sec = static_cast<time_t>(us / 1000000);
  t.it_value.tv_nsec = static_cast<long>(us % 1000000) * 1000;
  me.counters.syscalls.add();
  timerfd_settime(me.timer.get(), 0, &t, nullptr);
  me.timer_set = us != 0;
}

void MemifPort::set_sleep_timer(Queue& me, bool newly_asked) {
  std::uint64_t us = 0;
  if (me.fell_short) {
    me.room_wait_us = std::clamp(me.room_wait_us * 2, kRoomFirstUs, kRoomMostUs);
    us = me.room_wait_us;
  } else {
    me.room_wait_us = 0;
    if (newly_asked && !me.link->peer_is_urnic) us = kLookAgainUs;
  }
  // Only the sleeping thread of queue 0 handles the client's next connection attempt.
  const std::uint64_t deadline = deadline_ms_.load(std::memory_order_relaxed);
  if (deadline != 0 && index_of(me) == 0) {
    const std::uint64_t now = memif::monotonic_ms();
    const std::uint64_t left_us = deadline > now ? (deadline - now) * 1000 : 1;
    if (us == 0 || left_us < us) us = left_us;
  }
  if (us != 0) set_timer(me, us);
}

int MemifPort::arm(unsigned q) {
  Queue& me = queues_[q];
  if (me.control_due.load(std::memory_order_relaxed) || !current(me)) return 1;
  // If the link has changed since the last call, the caller should check it before it sleeps.
  if (me.link.get() != me.last_armed_on) {
    me.last_armed_on = me.link.get();
    return 1;
  }
  bool newly_asked = false;
  if (me.rx.attached() && !me.broken) {
    newly_asked = !me.rx.asks_for_wakeup();
    if (newly_asked) me.rx.ask_for_wakeup();
    if (me.rx.waiting() != 0) return 1;
    if (me.fell_short && me.tx.has_room()) {  // report it only once
      me.fell_short = false;
      return 1;
    }
  }
  set_sleep_timer(me, newly_asked);
  return 0;
}

void MemifPort::disarm(unsigned q) {
  Queue& me = queues_[q];
  std::array<epoll_event, 4> events;
  me.counters.syscalls.add();
  const int n = epoll_wait(me.epoll.get(), events.data(), events.size(), 0);
  if (n > 0) me.counters.wakeups.add();
  bool timer_fired = false;
  for (int i = 0; i < n; ++i) {
    if (events[static_cast<std::size_t>(i)].data.u64 == kTagTimer) timer_fired = true;
    if (events[static_cast<std::size_t>(i)].data.u64 == kTagControl) {
      me.control_due.store(true, std::memory_order_relaxed);
    }
  }
  if (timer_fired) {
    // The control side may also be due; it checks its own deadline.
    me.control_due.store(true, std::memory_order_relaxed);
  }
  if (me.timer_set) set_timer(me, 0);  // also clears a timer that has fired
}

constinit const urnic_port_ops kMemifPortOps = Adapter<MemifPort>::table("memif");

}  // namespace urnic::port
