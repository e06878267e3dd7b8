// RoCE through the public API: queue pairs connected by hand, all operations, besides iWARP on the
// same port.
#include "tests/device/roce_ends.h"

#include <atomic>

namespace urnic::test {
namespace {

using Roce = RoceDevices;

// ---- every operation

struct Case {
  Opcode op;
  std::uint32_t length;
};
constexpr Case kCases[] = {
    {Opcode::write, 5000},
    {Opcode::write, 0},
    {Opcode::read, 5000},
    {Opcode::send, 3000},
    {Opcode::send, 0},
    {Opcode::send_with_immediate, 17},
    {Opcode::write_with_immediate, 1024},
    {Opcode::send_with_invalidate, 1025},
    {Opcode::fetch_add, 8},
    {Opcode::compare_swap, 8},
};
constexpr std::size_t kSlot = 8192;

void all_operations(RoceEnd (&ends)[2], QueuePair (&qps)[2]) {
  for (std::size_t i = 0; i < std::size(kCases); ++i) {
    SCOPED_TRACE(i);
    const auto [op, length] = kCases[i];
    const std::size_t offset = i * kSlot, inbox = (16 + i) * kSlot;
    const bool sends = op == Opcode::send || op == Opcode::send_with_immediate ||
                       op == Opcode::send_with_invalidate;
    const bool takes = sends || op == Opcode::write_with_immediate;
    std::vector<std::uint8_t> mine = ends[0].memory, theirs = ends[1].memory;
    ends[1].in_order();
    const Sge from = ends[0].sge(offset, length), into = ends[1].sge(inbox, kSlot);
    SendRequest r;
    r.wr_id = 100 + i;
    r.opcode = op;
    r.sges = {&from, length != 0 ? 1u : 0u};
    r.remote_address = ends[1].at(offset);
    r.rkey = ends[1].mr.rkey();
    r.immediate = 0x89abcdef;
    MemoryRegion spare;
    if (op == Opcode::send_with_invalidate) {
      spare = *ends[1].device.register_memory(ends[1].pd, ends[1].memory.data(), 8,
                                              access_local_write | access_remote_write);
      r.invalidate_rkey = spare.rkey();
    }
    std::uint64_t cell;
    std::memcpy(&cell, &theirs[offset], 8);
    if (op == Opcode::fetch_add) r.atomic.data = 1000;
    if (op == Opcode::compare_swap) {
      r.atomic.compare = cell;
      r.atomic.data = 0x0123456789abcdef;
    }
    if (takes) {
      ASSERT_TRUE(qps[1].post_receive({200 + i, {&into, 1}}).ok());
    }
    const auto posted = qps[0].post_send(r);
    ASSERT_TRUE(posted.ok()) << posted.error().message;
    const Completion sent = ends[0].one();
    EXPECT_EQ(sent.status, WcStatus::success);
    EXPECT_EQ(sent.wr_id, 100 + i);
    EXPECT_EQ(sent.opcode, op);
    EXPECT_EQ(sent.qp_number, qps[0].number());
    if (takes) {
      const Completion received = ends[1].one();
      EXPECT_EQ(received.status, WcStatus::success);
      EXPECT_EQ(received.opcode, Opcode::receive);
      EXPECT_EQ(received.wr_id, 200 + i);
      EXPECT_EQ(received.qp_number, qps[1].number());
      EXPECT_EQ(received.byte_len, length);
      EXPECT_EQ(received.with_immediate,
                op == Opcode::send_with_immediate || op == Opcode::write_with_immediate);
      EXPECT_EQ(received.immediate, received.with_immediate ? 0x89abcdefu : 0u);
      EXPECT_EQ(received.behind_write, op == Opcode::write_with_immediate);
      EXPECT_EQ(received.invalidated, op == Opcode::send_with_invalidate);
      if (received.invalidated) {
        EXPECT_EQ(received.invalidated_rkey, spare.rkey());
      }
    }
    if (op == Opcode::read) std::memcpy(&mine[offset], &theirs[offset], length);
    if (op == Opcode::write || op == Opcode::write_with_immediate) {
      std::memcpy(&theirs[offset], &mine[offset], length);
    }
    if (sends) std::memcpy(&theirs[inbox], &mine[offset], length);
    if (op == Opcode::fetch_add || op == Opcode::compare_swap) {
      const std::uint64_t next = op == Opcode::fetch_add ? cell + 1000 : r.atomic.data;
      std::memcpy(&theirs[offset], &next, 8);
      std::memcpy(&mine[offset], &cell, 8);
    }
    // Waits for the thread that served the arrivals.
    for (RoceEnd& e : ends) e.device.stats();
    EXPECT_EQ(ends[0].memory, mine);
    EXPECT_EQ(ends[1].memory, theirs);
  }
}

TEST_P(Roce, EveryOperationOverIpv4) {
  up();
  all_operations(ends, qps);
}

TEST_P(Roce, EveryOperationOverIpv6WithLargePackets) {
  Agreed agreed;
  agreed.v6 = true;
  agreed.path_mtu = 4096;
  up(agreed);
  all_operations(ends, qps);
}

TEST_P(Roce, InlineDataAndListsOfElements) {
  up();
  const Sge pieces[] = {ends[0].sge(0, 100), ends[0].sge(5000, 1500), ends[0].sge(200, 7)};
  SendRequest r = request(Opcode::write, 1, pieces[0], 0);
  r.sges = pieces;
  ASSERT_TRUE(qps[0].post_send(r).ok());
  EXPECT_EQ(ends[0].one().status, WcStatus::success);
  std::vector<std::uint8_t> whole;
  for (const auto& [from, n] : {std::pair{0, 100}, {5000, 1500}, {200, 7}}) {
    whole.insert(whole.end(), &ends[0].memory[from], &ends[0].memory[from] + n);
  }
  ends[1].device.stats();
  EXPECT_EQ(std::memcmp(ends[1].memory.data(), whole.data(), whole.size()), 0);

  char text[] = "copied when it is posted";
  const Sge loose{reinterpret_cast<std::uintptr_t>(text), sizeof text, 0};
  r = request(Opcode::write, 2, loose, 8000);
  r.flags |= send_inline;
  ASSERT_TRUE(qps[0].post_send(r).ok());
  std::memset(text, 'x', sizeof text);
  EXPECT_EQ(ends[0].one().status, WcStatus::success);
  ends[1].device.stats();
  EXPECT_STREQ(reinterpret_cast<const char*>(&ends[1].memory[8000]), "copied when it is posted");
}

TEST_P(Roce, WindowsOfBothTypesAndTheirKeys) {
  up();
  auto window = *ends[1].device.create_window(ends[1].pd, WindowType::type2);
  auto whole = *ends[1].device.register_memory(
      ends[1].pd, ends[1].memory.data(), ends[1].memory.size(),
      access_local_write | access_remote_write | access_bind_window);
  WindowBind bind;
  bind.address = ends[1].at(1000);
  bind.length = 100;
  bind.lkey = whole.lkey();
  bind.rkey = window.rkey() + 1;
  bind.access = access_remote_write;
  SendRequest r;
  r.opcode = Opcode::bind_window;
  r.bind = &bind;
  const auto posted = qps[1].post_send(r);
  ASSERT_TRUE(posted.ok()) << posted.error().message;
  ASSERT_EQ(ends[1].one().status, WcStatus::success);
  const Sge sge = ends[0].sge(1000, 100);
  SendRequest write = request(Opcode::write, 1, sge, 1000);
  write.rkey = bind.rkey;
  ASSERT_TRUE(qps[0].post_send(write).ok());
  EXPECT_EQ(ends[0].one().status, WcStatus::success);
  ends[1].device.stats();
  EXPECT_EQ(std::memcmp(&ends[1].memory[1000], &ends[0].memory[1000], 100), 0);
  write.remote_address = ends[1].at(1001);
  ASSERT_TRUE(qps[0].post_send(write).ok());
  EXPECT_EQ(ends[0].one().status, WcStatus::remote_access) << "beyond the window";
}

// ---- shared receives

TEST_P(Roce, ASharedReceiveQueueServesQueuePairsOfBothTransports) {
  open();
  SrqOptions so;
  so.events = ends[1].events;
  so.limit = 2;
  auto srq = *ends[1].device.create_srq(ends[1].pd, so);
  QpOptions o = ends[1].options(Transport::roce);
  o.srq = srq;
  qps[0] = ends[0].make();
  qps[1] = ends[1].make(o);
  Agreed().connect(qps[0], qps[1]);
  o.transport = Transport::iwarp;
  QueuePair served = ends[1].make(o), stream = ends[0].make(Transport::iwarp);
  auto listener = *ends[1].device.listen(0);
  std::thread accepting([&] {
    auto asked = listener.next(10000);
    ASSERT_TRUE(asked.ok());
    EXPECT_TRUE(asked->accept(served).ok());
  });
  const auto connected = stream.connect("10.77.0.2:" + std::to_string(listener.port()));
  accepting.join();
  ASSERT_TRUE(connected.ok());
  for (std::uint64_t i = 0; i < 4; ++i) {
    const Sge into = ends[1].sge(i * kSlot, kSlot);
    ASSERT_TRUE(srq.post_receive({i, {&into, 1}}).ok());
  }
  for (std::uint64_t i = 0; i < 4; ++i) {
    const Sge from = ends[0].sge(i * kSlot, 100);
    ASSERT_TRUE((i % 2 == 0 ? qps[0] : stream).post_send(request(Opcode::send, i, from, 0)).ok());
    EXPECT_EQ(ends[0].one().status, WcStatus::success);
    const Completion got = ends[1].one();
    EXPECT_EQ(got.status, WcStatus::success);
    EXPECT_EQ(got.qp_number, (i % 2 == 0 ? qps[1] : served).number());
    EXPECT_EQ(got.wr_id, i);
    ends[1].device.stats();
    EXPECT_EQ(std::memcmp(&ends[1].memory[i * kSlot], &ends[0].memory[i * kSlot], 100), 0);
  }
  EXPECT_TRUE(ends[1].next(EventKind::receive_limit));
  ASSERT_TRUE(qps[1].modify(QpState::error).ok());
  EXPECT_TRUE(ends[1].next(EventKind::last_receive));
}

// A receive that is posted late only makes the sender wait.
TEST_P(Roce, ASendWaitsForItsReceive) {
  up();
  const Sge from = ends[0].sge(0, 100), into = ends[1].sge(0, 100);
  ASSERT_TRUE(qps[0].post_send(request(Opcode::send, 1, from, 0)).ok());
  ASSERT_TRUE(soon([&] { return qps[1].stats().roce.rnr_naks_sent != 0; }));
  ASSERT_TRUE(qps[1].post_receive({2, {&into, 1}}).ok());
  EXPECT_EQ(ends[0].one().status, WcStatus::success);
  EXPECT_EQ(ends[1].one().status, WcStatus::success);
  EXPECT_GE(qps[0].stats().roce.rnr_naks_received, 1u);
  EXPECT_GE(qps[1].stats().roce.rnr_naks_sent, 1u);
}

// ---- besides iWARP

TEST_P(Roce, BothTransportsByTurnsOnOnePort) {
  up();
  QueuePair stream = ends[0].make(Transport::iwarp), served = ends[1].make(Transport::iwarp);
  auto listener = *ends[1].device.listen(0);
  std::thread accepting([&] {
    auto asked = listener.next(10000);
    ASSERT_TRUE(asked.ok());
    EXPECT_TRUE(asked->accept(served).ok());
  });
  const auto connected = stream.connect("10.77.0.2:" + std::to_string(listener.port()));
  accepting.join();
  ASSERT_TRUE(connected.ok());
  constexpr std::uint32_t kPiece = 2048, kPieces = 64;
  std::vector<std::uint8_t> mine = ends[0].memory, theirs = ends[1].memory;
  ends[1].in_order();
  for (std::uint32_t round = 0; round < 8; ++round) {
    for (std::uint32_t i = 0; i < kPieces; ++i) {
      const std::size_t at = std::size_t{i} * kPiece;
      const bool reads = (i / 2 + round) % 3 == 0;
      const Sge sge = ends[0].sge(at, kPiece);
      const SendRequest r = request(reads ? Opcode::read : Opcode::write, i, sge, at);
      ASSERT_TRUE((i % 2 == 0 ? qps[0] : stream).post_send(r).ok());
      if (reads) {
        std::memcpy(&mine[at], &theirs[at], kPiece);
      } else {
        std::memcpy(&theirs[at], &mine[at], kPiece);
      }
    }
    for (const Completion& c : ends[0].wait(kPieces)) {
      EXPECT_EQ(c.status, WcStatus::success);
      EXPECT_EQ(c.qp_number, (c.wr_id % 2 == 0 ? qps[0] : stream).number());
    }
    for (RoceEnd& e : ends) e.device.stats();
    ASSERT_EQ(ends[0].memory, mine);
    ASSERT_EQ(ends[1].memory, theirs);
    for (std::size_t i = 0; i < ends[0].memory.size(); i += 97) {
      mine[i] = ++ends[0].memory[i];
    }
    ends[1].in_order();
  }
  const EngineStats s = ends[0].device.stats();
  EXPECT_GT(s.roce.tx_roce, 256u);
  EXPECT_GT(s.roce.rx_roce, 0u);
  EXPECT_EQ(s.roce.rx_bad_icrc, 0u);
  ASSERT_EQ(s.connections.size(), 2u);
  const ConnectionStats& r = s.connections[s.connections[0].transport == "roce" ? 0 : 1];
  EXPECT_EQ(r.transport, "roce");
  EXPECT_EQ(r.qp_number, qps[0].number());
  EXPECT_EQ(r.local, "10.77.0.1:4791");
  EXPECT_EQ(r.peer, "10.77.0.2:" + std::to_string(qps[1].number()));
  EXPECT_EQ(r.state, "RTS");
  EXPECT_GE(r.roce.requests_sent, 256u);
  EXPECT_GT(r.roce.acks_received, 0u);
  const std::uint64_t sent = r.roce.requests_sent;
  qps[0] = QueuePair();
  EXPECT_GE(ends[0].device.stats().ended.roce.requests_sent, sent) << "what has gone is counted";
}

// One thread polls, others post: no thread waits for another.
TEST_P(Roce, ThreadsPostWhileAnotherPolls) {
  up();
  constexpr std::uint64_t kEach = 200;
  std::atomic<std::uint64_t> done{0};
  std::atomic<bool> stop{false};
  std::thread polling([&] {
    Completion c[8];
    while (!stop && done < 2 * kEach) {
      const int n = ends[0].cq.poll(c);
      for (int i = 0; i < n; ++i) EXPECT_EQ(c[i].status, WcStatus::success);
      done += static_cast<std::uint64_t>(std::max(0, n));
    }
  });
  std::vector<std::thread> posting;
  for (std::uint64_t t = 0; t < 2; ++t) {
    posting.emplace_back([&, t] {
      const Sge sge = ends[0].sge(t * 65536, 3000);
      for (std::uint64_t i = 0; i < kEach;) {
        if (qps[0].post_send(request(Opcode::write, i, sge, t * 65536)).ok()) {
          ++i;
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  for (std::thread& t : posting) t.join();
  EXPECT_TRUE(soon([&] { return done >= 2 * kEach; }));
  stop = true;
  polling.join();
  EXPECT_EQ(done, 2 * kEach);
  ends[1].device.stats();
  for (const std::size_t at : {0, 65536}) {
    EXPECT_EQ(std::memcmp(&ends[1].memory[at], &ends[0].memory[at], 3000), 0);
  }
}

// Only the application drives, and a lossy wire makes it wait for the transport's timer.
TEST_P(Roce, TheApplicationAloneDrivesOverABadWire) {
  up({}, {{"progress", "poll"}, {"faults", "loss=0.05,reorder=0.05,dup=0.05"}});
  constexpr std::uint64_t kMany = 100;
  std::atomic<bool> stop{false};
  std::thread far([&] {
    while (!stop) ends[1].device.progress();
  });
  for (std::uint64_t i = 0; i < kMany; ++i) {
    const Sge sge = ends[0].sge(i * 2048, 2048);
    ASSERT_TRUE(qps[0].post_send(request(Opcode::write, i, sge, i * 2048)).ok());
  }
  for (const Completion& c : ends[0].wait(kMany)) EXPECT_EQ(c.status, WcStatus::success);
  stop = true;
  far.join();
  EXPECT_EQ(std::memcmp(ends[1].memory.data(), ends[0].memory.data(), kMany * 2048), 0);
  EXPECT_GT(qps[0].stats().roce.requests_repeated, 0u);
}

INSTANTIATE_TEST_SUITE_P(Devices, Roce, ::testing::Values("memif", "mem"));

// ---- over the kernel's UDP

using RoceOverUdp = RoceDevices;

TEST_P(RoceOverUdp, EveryOperation) {
  Agreed agreed;
  agreed.network = loopback_network();
  agreed.path_mtu = 4096;
  up(agreed);
  all_operations(ends, qps);
  EXPECT_EQ(ends[0].device.info().addresses, loopback_network() + "1/32");
}

// Our own packets have the IP identification that a socket sets; those of other stacks have any.
TEST_P(RoceOverUdp, ADamagedPacketIsRepeatedAndHurtsNothing) {
  Agreed agreed;
  agreed.network = loopback_network();
  up(agreed, {{"faults", "corrupt=0.02,seed=3"}});
  for (int round = 0; round < 4; ++round) {
    const Sge sge = ends[0].sge(0, 128 << 10);
    ASSERT_TRUE(qps[0].post_send(request(Opcode::write, 1, sge, 0)).ok());
    EXPECT_EQ(ends[0].one().status, WcStatus::success);
    ends[1].device.stats();
    EXPECT_EQ(std::memcmp(ends[1].memory.data(), ends[0].memory.data(), 128 << 10), 0);
    for (auto& b : ends[0].memory) b = static_cast<std::uint8_t>(b + 1);
    ends[0].in_order();
  }
}

TEST_P(RoceOverUdp, AnUnusedAddressExceedsTheRetries) {
  Agreed agreed;
  agreed.network = loopback_network(1);
  agreed.ack_timeout = 10;
  agreed.retry_count = 2;
  up(agreed);
  const Sge sge = ends[0].sge(0, 100);
  ASSERT_TRUE(qps[0].post_send(request(Opcode::write, 1, sge, 0)).ok());
  EXPECT_EQ(ends[0].one().status, WcStatus::retry_exceeded);
}

INSTANTIATE_TEST_SUITE_P(Devices, RoceOverUdp, ::testing::Values("udp"));

// Contradicting settings are reported before anything is opened.
TEST(UdpSettings, SettingsThatTheKernelsUdpCannotSupportAreRefused) {
  const auto error_of = [](const Settings& settings) {
    Config c;
    for (const auto& [name, value] : settings) EXPECT_TRUE(c.set(name, value).ok());
    const auto ok = c.check();
    return ok.ok() ? std::string() : ok.error().message;
  };
  EXPECT_EQ(error_of({{"port", "udp"}, {"transport", "roce"}}), "");
  for (const char* transport : {"iwarp", "both"}) {
    EXPECT_NE(error_of({{"port", "udp"}, {"transport", transport}}).find("use transport = roce"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace urnic::test
