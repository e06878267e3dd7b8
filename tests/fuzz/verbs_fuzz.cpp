// Two devices that support both transports, connected by a memory wire and driven only by their
// program, in virtual time. Each byte of the input is a call on either device, in any order, with
// any arguments that C++ accepts; or an interval of time. Memory and descriptors may run out in any
// call.
//
// Requirements: work completes once and in order (work_ledger.h); memory that was not granted is
// unchanged (guarded_memory.h); every attempt has an outcome, and no event refers to a destroyed
// object; two untouched connections, one of each transport, deliver their data; at the end all
// tables are empty, and destroying the devices releases all memory and descriptors.
#include <dirent.h>

#include "tests/fuzz/verbs_end.h"
#include "tests/fuzz/verbs_spared.h"
#include "tests/support/engine_of.h"
#include "tests/support/virtual_time.h"

namespace urnic::fuzz {
namespace {

using test::engine_of;

int descriptors() {
  DIR* const folder = opendir("/proc/self/fd");
  int n = 0;
  while (readdir(folder) != nullptr) ++n;
  closedir(folder);
  return n;
}

Config configuration(Input& in) {
  Config c;
  const auto set = [&](const char* name, const char* value) {
    require(c.set(name, value).ok(), "a setting is refused");
  };
  set("port", "mem:name=fuzz,mtu=2000");
  set("transport", "both");
  set("progress", "poll");
  set("stat", "off");
  const unsigned what = in.u8();
  if (what % 8 == 1) set("connection_type", "slow");
  if (what % 8 == 2) set("framing", "markers");
  if (what % 8 == 3) set("out_of_order", "drop");
  if (what % 8 == 4) set("completion_method", "1");
  if (what % 8 == 5) set("receive_wait_ms", "500");
  if (what % 8 == 6) set("ooo_without_markers", "store");
  if (what >= 192) {
    set("faults", "loss=0.02,reorder=0.02:3,dup=0.01,seed=7");
    // About once in ten thousand runs, three keepalive probes or their answers are lost together,
    // and the untouched connection ends.
    set("keepalive", "off");
  }
  return c;
}

Device opened(Config c, const char* address) {
  require(c.set("address", address).ok(), "an address is refused");
  auto device = Device::open(c);
  if (!device) fail("a device does not open: " + device.error().message);
  return *device;
}

class World {
 public:
  explicit World(Input& in) : World(in, configuration(in)) {}

  void run() {
    const unsigned how = in_.u8();
    may_lack_ = how % 4 == 0;
    if (how >= 64) ends_[0].begin(ends_[1]);
    for (unsigned n = 0; !in_.empty(); ++n) {
      if (may_lack_) shortage_.choose(in_);
      move();
      if (shortage_.refused() != 0) {
        for (SparedConnection& s : spared_) s.allow_end();
      }
      if (n % 32 == 0) check();
    }
    shortage_.end();
    finish();
  }

 private:
  World(Input& in, const Config& c)
      : in_(in),
        ends_{{{opened(c, "10.77.0.1/24"), 0, &shortage_},
               {opened(c, "10.77.0.2/24"), 1, &shortage_}}} {
    bool ready = false;
    for (int i = 0; i < 1000 && !ready; ++i) {
      ready = ends_[0].device.wait_link(1);
      ready = ends_[1].device.wait_link(1) && ready;
    }
    require(ready, "the devices have no link");
    for (const Transport t : {Transport::iwarp, Transport::roce}) {
      spared_.emplace_back(ends_[0].device, ends_[1].device, t, ends_[1].address());
    }
  }

  void move() {
    const unsigned what = in_.u8();
    End &end = ends_[what & 1], &other = ends_[1 - (what & 1)];
    if (what < 176) return end.move(other, in_);
    if (what < 224) return drive(1 + static_cast<int>(what) % 8);
    if (what < 240) return talk();
    static constexpr int kWhile[] = {1, 10, 50, 200, 1000, 3000, 11000, 70000};
    pass(kWhile[what / 2 % 8]);
  }

  void drive(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      for (End& e : ends_) {
        shortage_([&] { return e.device.progress(); });
      }
    }
  }
  void talk() {
    for (SparedConnection& s : spared_) {
      s.say(0);
      s.say(1);
      s.listen();
    }
    drive(2);
  }
  // Advances by `ms` milliseconds, from one deadline to the next.
  void pass(int ms) {
    const std::int64_t until = test::VirtualTime::now_ns() + std::int64_t{ms} * 1000000;
    for (int steps = 0; test::VirtualTime::now_ns() < until; ++steps) {
      require(steps < 2000000, "the devices do not come to rest");
      bool busy = false;
      for (End& e : ends_) busy = e.device.progress() || busy;
      if (busy && steps % 64 != 63) continue;
      std::int64_t next = until;
      for (End& e : ends_) {
        next = std::min(next, engine_of(e.device).next_deadline().ns());
      }
      const std::int64_t left = std::max<std::int64_t>(next - test::VirtualTime::now_ns(), 20000);
      test::VirtualTime::pass(std::min<std::int64_t>(left, 50000000));
    }
  }
  void check() {
    for (const End& e : ends_) e.check_memory();
    for (const SparedConnection& s : spared_) s.check();
    require(testing::allocated_bytes() < kMostMemory, "memory without bounds");
  }
  void poll_all() {
    for (End& e : ends_) e.poll_all();
  }

  void finish() {
    talk();
    for (int i = 0; i < 200 && !all_heard(); ++i) {
      pass(300);
      poll_all();
      for (SparedConnection& s : spared_) s.listen();
    }
    require(all_heard(), "the spared connections have not delivered all within a minute");
    for (int i = 0; i < 3; ++i) {
      pass(11000);
      poll_all();
    }
    for (End& e : ends_) e.check_outcomes();
    for (End& e : ends_) e.end_all_work();
    for (int i = 0; i < 3; ++i) {
      pass(100);
      poll_all();
    }
    for (End& e : ends_) e.check_work();
    check();
    for (End& e : ends_) e.destroy_all(in_);
    spared_.clear();
    // After lost frames the peer's FIN may arrive late, and TIME-WAIT restarts.
    for (int i = 0; i < 4 && !(is_empty(ends_[0].device) && is_empty(ends_[1].device)); ++i) {
      pass(150000);
    }
    check();
    for (End& e : ends_) require_empty(e.device);
  }
  bool all_heard() const {
    for (const SparedConnection& s : spared_) {
      if (!s.all_heard()) return false;
    }
    return true;
  }
  static engine::EngineTables left_in(Device& d) {
    engine::EngineTables t = engine_of(d).tables();
    t.neighbours = 0;  // may remain for a while
    return t;
  }
  static bool is_empty(Device& d) { return left_in(d) == engine::EngineTables{}; }
  static void require_empty(Device& d) {
    if (is_empty(d)) return;
    const engine::EngineTables t = left_in(d);
    fail("left behind: " + std::to_string(t.connections) + " connections, " +
         std::to_string(t.flows) + " flows, " + std::to_string(t.time_wait) + " in TIME-WAIT, " +
         std::to_string(t.pending) + " pending, " + std::to_string(t.half_open) + " half open, " +
         std::to_string(t.queue_pairs) + " queue pairs, " + std::to_string(t.kept_stats) +
         " counters, " + std::to_string(t.timers) + " timers, " +
         std::to_string(t.waiting_to_send) + " and " + std::to_string(t.waiting_to_drain) +
         " waiting, " + std::to_string(t.looped) + " looped, " + std::to_string(t.regions) +
         " regions, " + std::to_string(t.reassembly_bytes) + " bytes, " +
         std::to_string(t.roce_connections) + " connections of RoCE, " +
         std::to_string(t.cm_connections) + " of its management, " +
         std::to_string(t.numbers_in_time_wait) + " numbers");
  }

  static constexpr std::uint64_t kMostMemory = 256 << 20;

  Input& in_;
  Shortage shortage_;
  bool may_lack_ = false;
  std::array<End, 2> ends_;
  std::vector<SparedConnection> spared_;
};

void run(const std::uint8_t* data, std::size_t size) {
  const test::VirtualTime time(size);
  Input in(data, size);
  World(in).run();
}

}  // namespace
}  // namespace urnic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace urnic;
  const int descriptors = fuzz::descriptors();
  const std::uint64_t before = testing::allocated_bytes();
  fuzz::run(data, size);
  const std::uint64_t once = testing::allocated_bytes();
  // One-time allocations happen only in the first run.
  if (once > before) {
    fuzz::run(data, size);
    if (testing::allocated_bytes() > once) fuzz::fail("memory is left behind");
  }
  fuzz::require(fuzz::descriptors() == descriptors, "a descriptor is left behind");
  return 0;
}
