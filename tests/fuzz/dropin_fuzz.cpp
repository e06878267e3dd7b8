// The C libraries, libibverbs and librdmacm, with four devices in one process. Each byte of the
// input is a call, in any order, with any arguments that do not violate memory safety: objects of
// another device, missing members, unsuitable masks and states, lists of requests with a wrong one,
// objects destroyed in any order, unacknowledged events. Memory and descriptors may run out in any
// call. Engines, threads, sockets and clocks are real, so an input repeats the calls but not their
// exact timing.
//
// Requirements: the same as in verbs_fuzz.cpp, as far as it is visible in C. Destroying an object
// in use fails with EBUSY; destroying any other succeeds. At the end no object is counted any more,
// and no descriptor is left.
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>

#include "dropin/adapter.h"
#include "dropin/memory.h"
#include "dropin/process.h"
#include "tests/fuzz/dropin_addresses.h"
#include "tests/fuzz/dropin_program.h"
#include "tests/fuzz/verbs_spared.h"

namespace urnic::fuzz {
namespace {

int descriptors() {
  DIR* const folder = opendir("/proc/self/fd");
  int n = 0;
  while (readdir(folder) != nullptr) ++n;
  closedir(folder);
  return n;
}

// State that lasts from one input to the next: the devices and their untouched connections.
class Machine {
 public:
  Machine() {
    char file[] = "/tmp/urnic-fuzz-XXXXXX";
    const int fd = mkstemp(file);
    require(fd >= 0, "no file");
    close(fd);
    std::ofstream(file) << devices_text();
    setenv("URNIC_CONFIG", file, 1);
    dropin::Process& process = dropin::Process::get();
    require(process.configure() == 0, "the devices cannot be had");
    unlink(file);
    for (const auto& a : process.adapters()) {
      require(a->open() == 0, "a device does not open");
      require(a->default_pd() != nullptr && a->shared_context() != nullptr, "no domain");
    }
    for (const auto& a : process.adapters()) {
      require(a->device().wait_link(10000), "a device has no link");
    }
    // The last eight destroyed channels are kept.
    for (int i = 0; i < 16; ++i) rdma_destroy_event_channel(rdma_create_event_channel());
    make_spared();
  }
  void use() {
    if (spared_.empty()) make_spared();
    for (SparedConnection& s : spared_) {
      s.say(0);
      s.say(1);
      s.listen();
    }
  }
  // They may have ended after an out-of-memory failure; then they are replaced.
  void finish(bool may_have_ended) {
    if (may_have_ended) {
      for (SparedConnection& s : spared_) s.allow_end();
    }
    for (int i = 0; i < 20000 && !all_heard(); ++i) {
      for (SparedConnection& s : spared_) s.listen();
      if (i > 100) usleep(500);
    }
    require(all_heard(), "the spared connections have not delivered all within ten seconds");
    for (const SparedConnection& s : spared_) s.check();
    if (may_have_ended) spared_.clear();
  }
  void require_nothing_left() const {
    static constexpr std::uint64_t kSpared[] = {2, 0, 1, 1};  // regions of each device
    for (const auto& a : dropin::Process::get().adapters()) {
      const std::uint64_t wanted = spared_.empty() ? 0 : kSpared[a->index()];
      const auto left = [&] { return a->device().stats().verbs.regions; };
      // Data that a destroyed queue pair still had to send is in a region of the engine until its
      // peer has received it or is given up, which takes ten seconds for a peer that never answers.
      for (int i = 0; i < 60 && left() != wanted; ++i) usleep(500'000);
      require(left() == wanted, "a region is left behind");
      const dropin::Counts& c = a->counts();
      require(c.queue_pairs == 0, "a queue pair is counted that is gone");
      require(c.completion_queues == 0, "a completion queue is counted that is gone");
      require(c.shared_queues == 0, "a shared receive queue is counted that is gone");
      require(c.regions == 0 && c.windows == 0, "a region or window is counted that is gone");
      require(c.domains == 1, "a protection domain is counted that is gone");
      require(dropin::Pd::of(a->default_pd())->users == 0, "rdma_cm's domain has users");
    }
  }

 private:
  void make_spared() {
    const auto& all = dropin::Process::get().adapters();
    spared_.emplace_back(all[0]->device(), all[0]->device(), Transport::roce, address_of(0));
    spared_.emplace_back(all[2]->device(), all[3]->device(), Transport::iwarp, address_of(3));
  }
  bool all_heard() const {
    for (const SparedConnection& s : spared_) {
      if (!s.all_heard()) return false;
    }
    return true;
  }

  std::vector<SparedConnection> spared_;
};

Machine& machine() {
  static auto* const one = new Machine;  // until the process ends
  return *one;
}

void run(Input& in) {
  Shortage shortage;
  CProgram program(&shortage);
  const bool may_lack = in.u8() % 4 == 0;
  for (unsigned n = 0; !in.empty(); ++n) {
    if (may_lack) shortage.choose(in);
    program.move(in);
    if (n % 16 != 0) continue;
    shortage.end();
    machine().use();
    program.check_memory();
    if (in.often(16)) usleep(in.u8());
  }
  program.finish(in);
  machine().finish(shortage.refused() != 0);
}

}  // namespace
}  // namespace urnic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace urnic::fuzz;
  machine();
  static const int before = descriptors();
  Input in(data, size);
  run(in);
  machine().require_nothing_left();
  // Ends that are still closing release their descriptors.
  for (int i = 0; descriptors() > before; ++i) {
    require(i < 1500, "a descriptor is left behind");
    usleep(10000);
  }
  return 0;
}
