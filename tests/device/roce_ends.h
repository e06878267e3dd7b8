// Two devices of one process that speak RoCE besides iWARP, and queue pairs connected by hand.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "support/loopback_network.h"
#include "support/soon.h"
#include "urnic/urnic.h"

namespace urnic::test {

using Settings = std::map<std::string, std::string>;

// The program's objects at one end.
struct RoceEnd {
  RoceEnd() = default;
  explicit RoceEnd(const Settings& settings, std::size_t bytes = 256 << 10,
                   std::uint32_t depth = 1024) {
    Config c;
    for (const auto& [name, value] : settings) {
      const auto set = c.set(name, value);
      EXPECT_TRUE(set.ok()) << (set.ok() ? "" : set.error().message);
    }
    auto opened = Device::open(c);
    EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().message);
    if (!opened) return;
    device = *opened;
    events = *device.create_event_queue();
    pd = *device.alloc_pd();
    cq = *device.create_cq(depth, &tag);
    memory.resize(bytes);
    Rng rng(reinterpret_cast<std::uintptr_t>(this));
    for (std::uint8_t& b : memory) b = static_cast<std::uint8_t>(rng.next());
    mr = *device.register_memory(
        pd, memory.data(), memory.size(),
        access_local_write | access_remote_write | access_remote_read | access_remote_atomic);
  }
  QpOptions options(Transport transport) {
    QpOptions o;
    o.send_cq = o.receive_cq = cq;
    o.events = events;
    o.context = &tag;
    o.asynchronous_events = true;
    o.transport = transport;
    return o;
  }
  QueuePair make(Transport transport = Transport::roce) { return make(options(transport)); }
  QueuePair make(const QpOptions& o) {
    auto made = device.create_qp(pd, o);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    return made.ok() ? std::move(*made) : QueuePair();
  }
  Sge sge(std::size_t offset, std::uint32_t length) const {
    return {reinterpret_cast<std::uintptr_t>(memory.data()) + offset, length, mr.lkey()};
  }
  std::uint64_t at(std::size_t offset) const {
    return reinterpret_cast<std::uintptr_t>(memory.data()) + offset;
  }
  // Orders this thread's accesses to the memory before later accesses of the engine. The wire
  // orders them in any case, but tools cannot see that.
  void in_order() const { static_cast<void>(device.stats()); }
  // Waits for `n` completions; returns fewer when none arrived for a minute.
  std::vector<Completion> wait(std::size_t n) {
    std::vector<Completion> all;
    Completion c[16];
    using Clock = std::chrono::steady_clock;
    for (auto end = Clock::now() + kSoon; all.size() < n;) {
      cq.arm();
      const int got = cq.poll({c, std::min<std::size_t>(std::size(c), n - all.size())});
      if (got < 0 || (got == 0 && Clock::now() > end)) break;
      all.insert(all.end(), c, c + got);
      if (got != 0) {
        end = Clock::now() + kSoon;
      } else {
        cq.wait(100);
      }
    }
    EXPECT_EQ(all.size(), n);
    all.resize(n);
    return all;
  }
  Completion one() { return wait(1).front(); }
  // The next event of that kind; other events are skipped.
  std::optional<Event> next(EventKind kind, int ms = 60000) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
    Event e;
    while (std::chrono::steady_clock::now() < until) {
      if (events.wait(&e, 50) && e.kind == kind) return e;
    }
    return std::nullopt;
  }

  Device device;
  EventQueue events;
  ProtectionDomain pd;
  CompletionQueue cq;
  std::vector<std::uint8_t> memory;
  MemoryRegion mr;
  int tag = 0;  // its address is a context
};

// The attributes that the programs of two queue pairs have agreed on.
struct Agreed {
  bool v6 = false;
  std::string network = "10.77.0.";  // for version 4
  std::uint32_t psn[2] = {0xffffff, 0x123456};
  std::uint32_t path_mtu = 1024;
  std::uint32_t depth = 4;
  std::uint32_t access = access_remote_write | access_remote_read | access_remote_atomic;
  // 1.07 s and eight tries: an end that is preempted for seconds is not given up.
  std::uint32_t min_rnr_timer = 1, ack_timeout = 18, retry_count = 7, rnr_retry = 7;

  QpAttributes to_init() const {
    QpAttributes a;
    a.access = access;
    return a;
  }
  // For end `which`, 0 or 1.
  QpAttributes to_rtr(int which, std::uint32_t dest) const {
    QpAttributes a;
    a.dest_qp = dest;
    a.path.emplace();
    a.path->remote = address(1 - which);
    a.path_mtu = path_mtu;
    a.rq_psn = psn[1 - which];
    a.responder_depth = depth;
    a.min_rnr_timer = min_rnr_timer;
    return a;
  }
  QpAttributes to_rts(int which) const {
    QpAttributes a;
    a.sq_psn = psn[which];
    a.ack_timeout = ack_timeout;
    a.retry_count = retry_count;
    a.rnr_retry = rnr_retry;
    a.initiator_depth = depth;
    return a;
  }
  std::string address(int which) const {
    return (v6 ? "fd77::" : network) + std::to_string(which + 1);
  }
  // Moves it from reset up to state `to`.
  void move(QueuePair& qp, int which, std::uint32_t dest, QpState to = QpState::rts) const {
    const auto step = [&](QpState state, const QpAttributes& a) {
      const auto moved = qp.modify(state, a);
      ASSERT_TRUE(moved.ok()) << moved.error().message;
      ASSERT_EQ(qp.state(), state);
    };
    if (to == QpState::reset) return;
    step(QpState::init, to_init());
    if (to == QpState::init) return;
    step(QpState::rtr, to_rtr(which, dest));
    if (to == QpState::rtr) return;
    step(QpState::rts, to_rts(which));
    if (to == QpState::sqd || to == QpState::error) step(to, {});
  }
  void connect(QueuePair& a, QueuePair& b) const {
    move(a, 0, b.number());
    move(b, 1, a.number());
  }
};

// The parameter is the kind of port: "memif", "mem" or "udp".
class RoceDevices : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    char name[] = "/tmp/urnic-roce-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory_ = name;
  }
  void TearDown() override {
    for (auto& qp : qps) qp = QueuePair();
    for (RoceEnd& e : ends) e = RoceEnd();
    std::filesystem::remove_all(directory_);
  }
  Settings settings(int which, const Settings& more = {}) const {
    Settings s = more;
    if (std::string(GetParam()) == "udp") {
      s.insert(
          {"port", "udp:bind=" + loopback_network() + std::to_string(which + 1) + ",mtu=5000"});
      s.insert({"stat", "off"});
      s.insert({"transport", "roce"});
      return s;
    }
    const bool memif = std::string(GetParam()) == "memif";
    s.insert({"port", memif ? "memif:socket=" + directory_ +
                                  "/r.sock,role=" + (which == 0 ? "server" : "client") + ",mtu=9000"
                            : "mem:name=" + directory_ + ",mtu=9000"});
    const std::string host = std::to_string(which + 1);
    s.insert({"address", "10.77.0." + host + "/24,fd77::" + host + "/64"});
    s.insert({"stat", "off"});
    s.insert({"transport", "both"});
    return s;
  }
  void open(const Settings& more = {}, std::uint32_t depth = 1024) {
    for (int i = 0; i < 2; ++i) ends[i] = RoceEnd(settings(i, more), 256 << 10, depth);
    bool ready = false;  // both in turn: they may have no threads of their own
    const auto end = std::chrono::steady_clock::now() + kSoon;
    while (!ready && std::chrono::steady_clock::now() < end) {
      ready = ends[0].device.wait_link(1);
      ready = ends[1].device.wait_link(1) && ready;
    }
    ASSERT_TRUE(ready);
  }
  void up(const Agreed& agreed = {}, const Settings& more = {}) {
    open(more);
    for (int i = 0; i < 2; ++i) qps[i] = ends[i].make();
    agreed.connect(qps[0], qps[1]);
  }
  // A request of the first end, from its memory to the same place of the second's.
  SendRequest request(Opcode op, std::uint64_t id, const Sge& sge, std::size_t offset) const {
    SendRequest r;
    r.wr_id = id;
    r.opcode = op;
    r.sges = {&sge, sge.length != 0 ? 1u : 0u};
    r.remote_address = ends[1].at(offset);
    r.rkey = ends[1].mr.rkey();
    return r;
  }

  RoceEnd ends[2];
  QueuePair qps[2];

 private:
  std::string directory_;
};

}  // namespace urnic::test
