// Two ends over the kernel's TCP on this machine, and data transfer between them, through the
// public API.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/soon.h"
#include "urnic/urnic.h"

namespace urnic::stream_test {

inline constexpr std::uint32_t kAll = access_local_write | access_remote_write | access_remote_read;

using Settings = std::vector<std::pair<const char*, const char*>>;

inline Device open(const Settings& settings = {}) {
  Config c;
  EXPECT_TRUE(c.set("port", "tcp").ok());
  EXPECT_TRUE(c.set("stat", "off").ok());
  for (const auto& [name, value] : settings) {
    const auto set = c.set(name, value);
    EXPECT_TRUE(set.ok()) << (set.ok() ? "" : set.error().message);
  }
  auto d = Device::open(c);
  EXPECT_TRUE(d.ok()) << (d.ok() ? "" : d.error().message);
  return d.ok() ? *d : Device();
}

struct End {
  explicit End(Device& d, std::size_t size = 1 << 20) : device(&d) {
    pd = *d.alloc_pd();
    cq = *d.create_cq(1024);
    events = *d.create_event_queue();
    memory.resize(size);
    mr = *d.register_memory(pd, memory.data(), memory.size(), kAll);
    QpOptions o;
    o.send_cq = o.receive_cq = cq;
    o.events = events;
    o.max_receive = 256;
    qp = *d.create_qp(pd, o);
  }
  Sge sge(std::size_t at, std::uint32_t n) const {
    return {reinterpret_cast<std::uint64_t>(memory.data()) + at, n, mr.lkey()};
  }
  SendRequest request(Opcode op, const Sge& sge, std::uint64_t id) const {
    SendRequest r;
    r.opcode = op;
    r.sges = {&sge, 1};
    r.wr_id = id;
    return r;
  }
  SendRequest towards(Opcode op, const Sge& sge, const End& peer, std::size_t at,
                      std::uint64_t id) const {
    SendRequest r = request(op, sge, id);
    r.remote_address = peer.mr.remote_address() + at;
    r.rkey = peer.mr.rkey();
    return r;
  }
  Completion wait() {
    Completion c[1];
    for (const auto end = std::chrono::steady_clock::now() + test::kSoon;
         std::chrono::steady_clock::now() < end;) {
      if (cq.poll(c) == 1) return c[0];
      cq.wait(10);
    }
    ADD_FAILURE() << "no completion";
    Completion none;
    none.status = WcStatus::flushed;
    return none;
  }
  // The next event other than `established`.
  Event ending(int ms = 60000) {
    Event e;
    for (int i = 0; i < 3; ++i) {
      if (!events.wait(&e, ms)) break;
      if (e.kind != EventKind::established) return e;
    }
    ADD_FAILURE() << "no event";
    return e;
  }
  void fill(std::uint8_t seed) {
    for (std::size_t i = 0; i < memory.size(); ++i) {
      memory[i] = static_cast<std::uint8_t>(i * 7 + i / 251 + seed);
    }
  }
  Device* device;
  ProtectionDomain pd;
  CompletionQueue cq;
  EventQueue events;
  std::vector<std::uint8_t> memory;
  MemoryRegion mr;
  QueuePair qp;
};

inline void join(Device& server, End& s, End& c, const std::string& address = "127.0.0.1",
                 const ConnectionOptions& options = {}) {
  auto listener = server.listen(0);
  ASSERT_TRUE(listener.ok()) << listener.error().message;
  std::thread accepting([&] {
    auto request = listener->next(60000);
    ASSERT_TRUE(request.ok()) << request.error().message;
    const auto accepted = request->accept(s.qp, options);
    EXPECT_TRUE(accepted.ok()) << accepted.error().message;
    Event e;  // peer-to-peer: when the RTR has arrived
    EXPECT_TRUE(s.events.wait(&e, 60000));
    EXPECT_EQ(e.kind, EventKind::established);
  });
  const auto ok = c.qp.connect(address + ":" + std::to_string(listener->port()), options);
  EXPECT_TRUE(ok.ok()) << (ok.ok() ? "" : ok.error().message);
  accepting.join();
}

// Writes, Sends and Reads of odd and large sizes in both directions. Every byte is checked.
inline void exchange(End& a, End& b) {
  // The responder of a Read gets no completion for it. Calling its engine makes sure that it has
  // finished using the memory.
  a.qp.stats();
  b.qp.stats();
  a.fill(1);
  b.fill(2);
  const std::size_t half = a.memory.size() / 2;
  std::size_t at = 0;
  std::uint64_t id = 0;
  for (const std::uint32_t n : {1u, 13u, 255u, 4096u, 65521u, 65536u, 200003u}) {
    const Sge from = a.sge(at, n), into = b.sge(half + at, n), back = a.sge(half + at, n);
    ASSERT_TRUE(b.qp.post_receive({1000 + id, {&into, 1}}).ok());
    ASSERT_TRUE(a.qp.post_send(a.towards(Opcode::write, from, b, at, id)).ok());
    ASSERT_TRUE(a.qp.post_send(a.request(Opcode::send, from, id + 1)).ok());
    ASSERT_TRUE(a.qp.post_send(a.towards(Opcode::read, back, b, at, id + 2)).ok());
    for (std::uint64_t k = 0; k < 3; ++k) {
      const Completion done = a.wait();
      EXPECT_EQ(done.wr_id, id + k);
      ASSERT_EQ(done.status, WcStatus::success) << to_string(done.status);
    }
    const Completion got = b.wait();
    EXPECT_EQ(got.wr_id, 1000 + id);
    EXPECT_EQ(got.byte_len, n);
    EXPECT_EQ(std::memcmp(b.memory.data() + at, a.memory.data() + at, n), 0) << "write " << n;
    EXPECT_EQ(std::memcmp(b.memory.data() + half + at, a.memory.data() + at, n), 0) << "send " << n;
    EXPECT_EQ(std::memcmp(a.memory.data() + half + at, a.memory.data() + at, n), 0) << "read " << n;
    at += n;
    id += 3;
  }
}

}  // namespace urnic::stream_test
