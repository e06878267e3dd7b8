#include "port/memory_port.h"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "port/adapter.h"
#include "port/counters.h"
#include "port/kinds.h"

namespace urnic::port {
namespace {

constexpr const char* kNoDescriptor = "no file descriptor left for this port (see ulimit -n)";

// The state for waking a sleeping thread. The descriptor is created by the first arm() and lives as
// long as the pair, so that a waker never writes to a reused descriptor number.
struct Sleeper {
  std::atomic<int> fd{-1};
  std::atomic<bool> armed{false};

  ~Sleeper() {
    if (fd.load() >= 0) close(fd.load());
  }
  int descriptor() {
    int have = fd.load(std::memory_order_acquire);
    if (have < 0) {
      have = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
      fd.store(have, std::memory_order_release);
    }
    return have;
  }
  // Call this after publishing the data that the sleeper waits for.
  void wake() {
    // Pairs with the fence in arm: either we see `armed`, or the sleeper sees the published data.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!armed.load(std::memory_order_relaxed)) return;
    if (!armed.exchange(false, std::memory_order_acq_rel)) return;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = write(fd.load(std::memory_order_acquire), &one, sizeof one);
  }
};

// One direction of one queue: a ring with one producer and one consumer. Buffer i always belongs to
// slot i.
struct Lane {
  alignas(64) std::atomic<std::uint64_t> head{0};  // frames published
  alignas(64) std::atomic<std::uint64_t> tail{0};  // frames returned by the consumer
  alignas(64) std::uint64_t reserved = 0;          // producer: slots handed out
  std::uint64_t next_commit = 0;                   // producer: first slot handed out, uncommitted
  bool fell_short = false;                         // producer: a reserve found the ring full
  alignas(64) std::uint64_t taken = 0;             // consumer: slots borrowed
  std::uint8_t* buffers = nullptr;
  std::vector<std::uint32_t> length;
};

struct Pair {
  explicit Pair(const MemoryPairOptions& o)
      : max_frame(o.max_frame),
        ring(std::bit_ceil(std::max(o.ring, 2u))),
        queues(std::max(o.queues, 1u)),
        // An odd number of cache lines: headers of consecutive frames fall into different cache
        // sets.
        stride((((o.max_frame + 63) / 64) | 1) * std::size_t{64}),
        lanes(2 * queues),
        sleepers(2 * queues) {}
  ~Pair() {
    if (memory != MAP_FAILED) munmap(memory, bytes());
  }
  bool allocate() {
    // Unused buffers only occupy address space.
    memory = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      lanes[i].buffers = static_cast<std::uint8_t*>(memory) + i * ring * stride;
      lanes[i].length.resize(ring);
    }
    return true;
  }
  std::size_t bytes() const { return lanes.size() * ring * stride; }
  // The lane on which `end` sends, and the sleeper at `end`.
  Lane& from(unsigned end, unsigned q) { return lanes[end * queues + q]; }
  Sleeper& sleeper(unsigned end, unsigned q) { return sleepers[end * queues + q]; }

  const std::uint32_t max_frame, ring, queues;
  const std::size_t stride;
  std::vector<Lane> lanes;
  std::vector<Sleeper> sleepers;
  void* memory = MAP_FAILED;
  std::atomic<bool> open[2] = {true, true};
  std::atomic<int> owners{2};
};

class MemoryPort {
 public:
  MemoryPort(Pair* pair, unsigned end) : pair_(pair), end_(end), counters_(pair->queues) {}
  ~MemoryPort();
  static Outcome<std::unique_ptr<MemoryPort>, std::string> make(Args& args);

  void info(urnic_port_info* i) const;
  void stats(urnic_port_stats* s) const;
  unsigned rx_burst(unsigned q, urnic_frame* frames, unsigned n);
  void rx_release(unsigned q, const urnic_frame* frames, unsigned n);
  unsigned tx_reserve(unsigned q, std::uint32_t len, urnic_frame* frames, unsigned n);
  void tx_commit(unsigned q, urnic_frame* frames, unsigned n);
  unsigned wait_fds(unsigned q, int* fds, unsigned max);
  int arm(unsigned q);
  void disarm(unsigned q);

 private:
  bool peer_open() const { return pair_->open[1 - end_].load(std::memory_order_acquire); }

  Pair* pair_;
  unsigned end_;
  std::vector<QueueCounters> counters_;
};

// Ends opened by name that wait for their other end.
struct Waiting {
  std::mutex lock;
  std::map<std::string, Pair*, std::less<>> by_name;
};
Waiting& waiting() {
  static Waiting* w = new Waiting;  // never destroyed: ports may outlive static destruction
  return *w;
}

MemoryPort::~MemoryPort() {
  {
    std::lock_guard hold(waiting().lock);
    const auto unmet =
        std::erase_if(waiting().by_name, [&](const auto& entry) { return entry.second == pair_; });
    // The second end was never opened, so its half must be released here.
    if (unmet != 0) pair_->owners.fetch_sub(1);
  }
  pair_->open[end_].store(false, std::memory_order_release);
  for (unsigned q = 0; q < pair_->queues; ++q) pair_->sleeper(1 - end_, q).wake();
  if (pair_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete pair_;
}

Outcome<MemoryPairOptions, std::string> read_args(Args& args, std::string* name) {
  *name = args.str("name");
  MemoryPairOptions o;
  o.max_frame = static_cast<std::uint32_t>(args.num("mtu", 65521, 64, 65521)) + 14;
  o.ring = static_cast<std::uint32_t>(args.num("ring", 1024, 2, 65536));
  o.queues = static_cast<std::uint32_t>(args.num("queues", 1, 1, 64));
  if (std::string wrong = args.finish(); !wrong.empty()) return fail(wrong);
  if (name->empty()) return fail(std::string("name= is required, the same for both ends"));
  return o;
}

Outcome<std::unique_ptr<MemoryPort>, std::string> MemoryPort::make(Args& args) {
  std::string name;
  auto read = read_args(args, &name);
  if (!read.ok()) return fail(read.error());
  const MemoryPairOptions o = *read;
  std::lock_guard hold(waiting().lock);
  auto& by_name = waiting().by_name;
  if (auto it = by_name.find(name); it != by_name.end()) {
    Pair* pair = it->second;
    if (pair->max_frame != o.max_frame || pair->queues != o.queues) {
      return fail("the other end of '" + name + "' has another mtu or queues: set both ends alike");
    }
    for (unsigned q = 0; q < pair->queues; ++q) {
      if (pair->sleeper(1, q).descriptor() < 0) return fail(std::string(kNoDescriptor));
    }
    by_name.erase(it);
    pair->open[1].store(true, std::memory_order_release);
    for (unsigned q = 0; q < pair->queues; ++q) pair->sleeper(0, q).wake();
    return std::make_unique<MemoryPort>(pair, 1);
  }
  auto pair = std::make_unique<Pair>(o);
  if (!pair->allocate()) return fail(std::string("out of memory for the ring"));
  pair->open[1].store(false);
  for (unsigned q = 0; q < pair->queues; ++q) {
    if (pair->sleeper(0, q).descriptor() < 0) return fail(std::string(kNoDescriptor));
  }
  auto port = std::make_unique<MemoryPort>(pair.get(), 0);
  by_name.emplace(name, pair.release());
  return port;
}

void MemoryPort::info(urnic_port_info* i) const {
  *i = {};
  i->link_up = peer_open() ? 1 : 0;
  i->server_side = end_ == 0 ? 1 : 0;
  i->max_frame = pair_->max_frame;
  i->queues = pair_->queues;
  i->link_epoch = 1;
}

void MemoryPort::stats(urnic_port_stats* s) const {
  *s = {};
  for (const QueueCounters& c : counters_) c.add_to(s);
}

unsigned MemoryPort::rx_burst(unsigned q, urnic_frame* frames, unsigned n) {
  Lane& lane = pair_->from(1 - end_, q);
  const std::uint64_t have = lane.head.load(std::memory_order_acquire) - lane.taken;
  const unsigned got = static_cast<unsigned>(std::min<std::uint64_t>(have, n));
  std::uint64_t bytes = 0;
  for (unsigned i = 0; i < got; ++i) {
    const std::size_t slot = (lane.taken + i) & (pair_->ring - 1);
    frames[i] = {};
    frames[i].data[0] = lane.buffers + slot * pair_->stride;
    frames[i].len[0] = lane.length[slot];
    bytes += lane.length[slot];
  }
  lane.taken += got;
  if (got != 0) {
    counters_[q].rx_frames.add(got);
    counters_[q].rx_bytes.add(bytes);
  }
  return got;
}

void MemoryPort::rx_release(unsigned q, const urnic_frame*, unsigned n) {
  if (n == 0) return;
  Lane& lane = pair_->from(1 - end_, q);
  lane.tail.store(lane.taken, std::memory_order_release);
  pair_->sleeper(1 - end_, q).wake();
}

unsigned MemoryPort::tx_reserve(unsigned q, std::uint32_t len, urnic_frame* frames, unsigned n) {
  Lane& lane = pair_->from(end_, q);
  lane.fell_short = false;
  if (len > pair_->max_frame || !peer_open()) {
    if (n != 0) counters_[q].tx_full.add();
    return 0;
  }
  lane.next_commit = lane.head.load(std::memory_order_relaxed);
  const std::uint64_t room =
      pair_->ring - (lane.next_commit - lane.tail.load(std::memory_order_acquire));
  const unsigned got = static_cast<unsigned>(std::min<std::uint64_t>(room, n));
  for (unsigned i = 0; i < got; ++i) {
    const std::size_t slot = (lane.next_commit + i) & (pair_->ring - 1);
    frames[i] = {};
    frames[i].data[0] = lane.buffers + slot * pair_->stride;
    frames[i].len[0] = len;
    frames[i].cookie = slot;
  }
  lane.reserved = lane.next_commit + got;
  if (got < n) {
    lane.fell_short = true;
    counters_[q].tx_full.add();
  }
  return got;
}

void MemoryPort::tx_commit(unsigned q, urnic_frame* frames, unsigned n) {
  Lane& lane = pair_->from(end_, q);
  QueueCounters& c = counters_[q];
  std::uint64_t bytes = 0;
  unsigned sent = 0;
  for (unsigned i = 0; i < n && lane.next_commit < lane.reserved; ++i) {
    const urnic_frame& f = frames[i];
    if (f.len[0] == 0) continue;  // returned unsent; later frames move up
    const std::uint64_t total = std::uint64_t{f.len[0]} + f.len[1];
    if (total > pair_->max_frame) {
      c.tx_dropped.add();
      continue;
    }
    const std::size_t slot = lane.next_commit & (pair_->ring - 1);
    std::uint8_t* to = lane.buffers + slot * pair_->stride;
    if (to != f.data[0]) std::memcpy(to, f.data[0], f.len[0]);
    if (f.len[1] != 0) std::memcpy(to + f.len[0], f.data[1], f.len[1]);
    lane.length[slot] = static_cast<std::uint32_t>(total);
    bytes += total;
    ++lane.next_commit;
    ++sent;
  }
  if (sent == 0) return;
  lane.head.store(lane.next_commit, std::memory_order_release);
  c.tx_frames.add(sent);
  c.tx_bytes.add(bytes);
  pair_->sleeper(1 - end_, q).wake();
}

unsigned MemoryPort::wait_fds(unsigned q, int* fds, unsigned max) {
  const int fd = pair_->sleeper(end_, q).descriptor();
  if (fd < 0 || max == 0) return 0;
  fds[0] = fd;
  return 1;
}

int MemoryPort::arm(unsigned q) {
  Sleeper& s = pair_->sleeper(end_, q);
  if (s.descriptor() < 0) return 1;  // out of descriptors: no wake-up is possible
  s.armed.store(true, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const Lane& in = pair_->from(1 - end_, q);
  Lane& out = pair_->from(end_, q);
  const bool frames = in.head.load(std::memory_order_acquire) != in.taken;
  const bool room = out.fell_short && peer_open() &&
                    out.head.load() - out.tail.load(std::memory_order_acquire) < pair_->ring;
  if (!frames && !room) return 0;
  if (room) out.fell_short = false;  // report it once: a caller with nothing to send may sleep
  disarm(q);
  return 1;
}

void MemoryPort::disarm(unsigned q) {
  Sleeper& s = pair_->sleeper(end_, q);
  if (s.armed.exchange(false, std::memory_order_acq_rel)) return;  // there was no wake-up
  const int fd = s.fd.load(std::memory_order_relaxed);
  if (fd < 0) return;
  std::uint64_t count;
  if (read(fd, &count, sizeof count) == sizeof count) counters_[q].wakeups.add();
}

}  // namespace

std::string check_memory_args(Args& args) {
  std::string name;
  auto read = read_args(args, &name);
  return read.ok() ? std::string() : read.error();
}

constinit const urnic_port_ops kMemoryPortOps = Adapter<MemoryPort>::table("mem");

std::pair<Port, Port> make_memory_pair(const MemoryPairOptions& options) {
  try {
    auto pair = std::make_unique<Pair>(options);
    if (!pair->allocate()) return {};
    auto a = std::make_unique<MemoryPort>(pair.get(), 0);
    auto b = std::make_unique<MemoryPort>(pair.get(), 1);
    static_cast<void>(pair.release());  // the two ends share ownership from here on
    return {Port(&kMemoryPortOps, as_handle(a.release())),
            Port(&kMemoryPortOps, as_handle(b.release()))};
  } catch (const std::bad_alloc&) {
    return {};
  }
}

}  // namespace urnic::port
