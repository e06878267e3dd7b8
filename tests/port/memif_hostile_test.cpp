// A hostile client: in the handshake, in shared memory, at any moment. The port must refuse it with
// a reason and continue (E-19).
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "base/rng.h"
#include "port/memif_raw_client.h"

namespace urnic::port {
namespace {

using namespace raw;  // NOLINT: the test speaks the protocol itself
using ::testing::HasSubstr;

TEST(MemifHostile, ACorrectRawClientIsAccepted) {
  Lab lab;
  auto c = lab.linked();
  std::memset(c->base + RawClient::kBuffers, 0x42, 300);
  Descriptor{0, 0, 300, RawClient::kBuffers}.store(c->ring(true), 0);
  c->set_index(true, ring::kHead, 1);
  EXPECT_EQ(check::receive_one(lab.server, 0), check::Bytes(300, 0x42));
  // The server uses the client's buffers and reports the length that it wrote.
  c->set_index(false, ring::kHead, 16);
  ASSERT_TRUE(check::send_one(lab.server, 0, check::pattern(200, 9)));
  EXPECT_EQ(ring::u16(c->ring(false), ring::kTail).load(), 1);
  EXPECT_EQ(Descriptor::load(c->ring(false), 0).length, 200u);
  const std::uint8_t* at = c->base + RawClient::kBuffers + 16 * RawClient::kBufferSize;
  EXPECT_EQ(check::Bytes(at, at + 200), check::pattern(200, 9));
}

TEST(MemifHostile, LiesInTheHandshakeAreRefusedWithAReason) {
  struct Case {
    const char* reason;
    std::function<void(RawClient::Lies&)> lie;
  };
  const std::vector<Case> cases = {
      {"Incompatible memif version", [](auto& l) { l.version = 0x0100; }},
      {"Only ethernet", [](auto& l) { l.mode = 1; }},
      {"Unexpected message", [](auto& l) { l.skip_init = true; }},
      {"sealed with F_SEAL_SHRINK", [](auto& l) { l.seals = 0; }},
      {"sealed with F_SEAL_SHRINK", [](auto& l) { l.seals = F_SEAL_GROW; }},
      {"smaller than stated", [](auto& l) { l.stated_size = 1 << 24; }},
      {"Invalid region size", [](auto& l) { l.stated_size = std::uint64_t{1} << 40; }},
      {"Invalid region index", [](auto& l) { l.region_index = 1; }},
      {"Missing region fd", [](auto& l) { l.send_region_fd = false; }},
      {"cannot be mapped", [](auto& l) { l.seals = F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE; }},
      {"Invalid ring region", [](auto& l) { l.ring_region = 1; }},
      {"Invalid ring region", [](auto& l) { l.ring_region = 0xffff; }},
      {"Ring outside", [](auto& l) { l.ring_offset = 1 << 20; }},
      {"Ring outside", [](auto& l) { l.ring_offset = 0xfffff000; }},
      {"Invalid ring offset", [](auto& l) { l.ring_offset = 1; }},
      {"Invalid ring size", [](auto& l) { l.log2 = 15; }},
      {"Invalid ring size", [](auto& l) { l.log2 = 255; }},
      {"Ring outside", [](auto& l) { l.log2 = 14; }},
      {"Invalid ring index", [](auto& l) { l.ring_index = 1; }},
      {"Wrong ring cookie", [](auto& l) { l.cookie = 0x12345678; }},
      {"Missing interrupt fd", [](auto& l) { l.event = [] { return -1; }; }},
      {"not an eventfd", [](auto& l) { l.event = [] { return open("/dev/zero", O_RDWR); }; }},
      {"No rings", [](auto& l) { l.skip_m2s = true; }},
  };
  Lab lab;
  for (const Case& one : cases) {
    RawClient::Lies lies;
    one.lie(lies);
    EXPECT_THAT(lab.client()->shake(lies), HasSubstr(one.reason));
    EXPECT_EQ(lab.server.info().link_up, 0) << one.reason;
  }
  lab.expect_alive();
}

TEST(MemifHostile, ARegionMustBeAMemoryFile) {
  for (const char* file : {"/dev/zero", "/proc/self/exe", "/dev/null", "/tmp"}) {
    auto r = Region::adopt(Fd(open(file, O_RDONLY | O_CLOEXEC)), 4096);
    EXPECT_FALSE(r.ok()) << file;
  }
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  Fd other(pipes[1]);
  EXPECT_FALSE(Region::adopt(Fd(pipes[0]), 4096).ok());
}

TEST(MemifHostile, AnAcceptedRegionCannotBeTruncated) {
  Lab lab;
  auto c = lab.linked();
  EXPECT_NE(ftruncate(c->memory.get(), 0), 0);
  // The server also cannot truncate the memory that a urnic client provides.
  auto own = Region::create(8192);
  ASSERT_TRUE(own.ok());
  EXPECT_NE(ftruncate(own->fd(), 0), 0);
  EXPECT_NE(fcntl(own->fd(), F_ADD_SEALS, F_SEAL_WRITE), 0);
}

// proves: E-19
TEST(MemifHostile, BadDescriptorsEndTheConnectionWithAReason) {
  struct Case {
    const char* reason;
    Descriptor d;
  };
  const Case cases[] = {
      {"names no region", {0, 1, 100, 4096}},
      {"names no region", {0, 0xffff, 100, 4096}},
      {"outside its region", {0, 0, 0xffffffff, 4096}},
      {"outside its region", {0, 0, 100, 0xffffffff}},
      {"outside its region", {0, 0, 4096, 4096 + 32 * 2048 - 100}},
      {"outside its region", {0, 0, 0x80000000, 0x80000000}},
      {"without end", {1, 0, 100, 4096}},
  };
  for (const Case& one : cases) {
    Lab lab;
    auto c = lab.linked();
    one.d.store(c->ring(true), 0);
    c->set_index(true, ring::kHead, 1);
    Frame f[4];
    EXPECT_EQ(lab.server.rx_burst(0, f, 4), 0u);
    EXPECT_EQ(lab.server.stats().rx_bad, 1u);
    EXPECT_THAT(c->reason(), HasSubstr(one.reason));
    lab.expect_alive();
  }
}

TEST(MemifHostile, FramesBeforeABadDescriptorAreDelivered) {
  Lab lab;
  auto c = lab.linked();
  Descriptor{0, 0, 64, RawClient::kBuffers}.store(c->ring(true), 0);
  Descriptor{0, 7, 64, RawClient::kBuffers}.store(c->ring(true), 1);
  c->set_index(true, ring::kHead, 2);
  Frame f[4];
  ASSERT_EQ(lab.server.rx_burst(0, f, 4), 1u);
  EXPECT_EQ(f[0].len[0], 64u);
  lab.server.rx_release(0, f, 1);
  lab.expect_alive();
}

// proves: E-19
TEST(MemifHostile, EmptyAndOversizedFramesAreSkippedAndCounted) {
  Lab lab;
  auto c = lab.linked();
  Descriptor{0, 0, 0, RawClient::kBuffers}.store(c->ring(true), 0);
  Descriptor{0, 0, 20000, RawClient::kBuffers}.store(c->ring(true), 1);
  Descriptor{0, 0, 64, RawClient::kBuffers}.store(c->ring(true), 2);
  c->set_index(true, ring::kHead, 3);
  Frame f[4];
  ASSERT_EQ(lab.server.rx_burst(0, f, 4), 1u);
  EXPECT_EQ(f[0].len[0], 64u);
  lab.server.rx_release(0, f, 1);
  EXPECT_EQ(lab.server.stats().rx_bad, 2u);
  EXPECT_EQ(ring::u16(c->ring(true), ring::kTail).load(), 3);
  EXPECT_EQ(lab.server.info().link_up, 1);
}

TEST(MemifHostile, BogusIndexesEndTheConnection) {
  for (std::uint16_t head : {17, 1000, 0x8000, 0xffff}) {
    Lab lab;
    auto c = lab.linked();
    c->set_index(true, ring::kHead, head);
    Frame f[4];
    EXPECT_EQ(lab.server.rx_burst(0, f, 4), 0u);
    EXPECT_THAT(c->reason(), HasSubstr("index out of range"));
    lab.expect_alive();
  }
  for (std::uint16_t head : {17, 1000, 0xffff}) {
    Lab lab;
    auto c = lab.linked();
    c->set_index(false, ring::kHead, head);
    Frame f[4];
    EXPECT_EQ(lab.server.tx_reserve(0, 64, f, 4), 0u);
    EXPECT_THAT(c->reason(), HasSubstr("index out of range"));
    lab.expect_alive();
  }
}

TEST(MemifHostile, BadTransmitBuffersEndTheConnection) {
  for (const Descriptor& d : {Descriptor{0, 9, 2048, 4096}, Descriptor{0, 0, 2048, 0xfffff000},
                              Descriptor{0, 0, 0, 4096}}) {
    Lab lab;
    auto c = lab.linked();
    d.store(c->ring(false), 0);
    c->set_index(false, ring::kHead, 16);
    Frame f[4];
    EXPECT_EQ(lab.server.tx_reserve(0, 64, f, 4), 0u);
    EXPECT_THAT(c->reason(), HasSubstr("Descriptor"));
    lab.expect_alive();
  }
}

TEST(MemifHostile, ChainsAreJoinedAndTheirLengthIsBounded) {
  Lab lab;
  auto c = lab.linked();
  // Three descriptors make one frame.
  check::Bytes want;
  for (std::uint32_t i = 0; i < 3; ++i) {
    const auto part = check::pattern(400 + i, i);
    std::memcpy(c->base + RawClient::kBuffers + i * 2048, part.data(), part.size());
    Descriptor{static_cast<std::uint16_t>(i < 2), 0, 400 + i,
               static_cast<std::uint32_t>(RawClient::kBuffers) + i * 2048}
        .store(c->ring(true), i);
    want.insert(want.end(), part.begin(), part.end());
  }
  c->set_index(true, ring::kHead, 3);
  EXPECT_EQ(check::receive_one(lab.server, 0), want);
  EXPECT_EQ(ring::u16(c->ring(true), ring::kTail).load(), 3);
  // A chain longer than the largest frame is skipped completely.
  for (std::uint32_t i = 3; i < 6; ++i) {
    Descriptor{static_cast<std::uint16_t>(i < 5), 0, 1000, RawClient::kBuffers}.store(c->ring(true),
                                                                                      i);
  }
  c->set_index(true, ring::kHead, 6);
  Frame f;
  EXPECT_EQ(lab.server.rx_burst(0, &f, 1), 0u);
  EXPECT_EQ(lab.server.stats().rx_bad, 1u);
  EXPECT_EQ(lab.server.info().link_up, 1);
  // A full ring of descriptors that all have the "next" flag.
  for (std::uint32_t i = 0; i < 16; ++i) {
    Descriptor{1, 0, 10, RawClient::kBuffers}.store(c->ring(true), i);
  }
  c->set_index(true, ring::kHead, 6 + 16);
  EXPECT_EQ(lab.server.rx_burst(0, &f, 1), 0u);
  EXPECT_THAT(c->reason(), HasSubstr("without end"));
  lab.expect_alive();
}

// The peer's buffers are small and of different sizes: frames are split to fit. If its buffers
// shrink during sending, frames are lost and counted, but nothing else happens.
TEST(MemifHostile, BuffersThatShrinkOnlyLoseFrames) {
  Lab lab;
  auto c = lab.linked();
  for (std::uint32_t i = 0; i < 16; ++i) {
    Descriptor{0, 0, 600, static_cast<std::uint32_t>(RawClient::kBuffers) + i * 2048}.store(
        c->ring(false), i);
  }
  c->set_index(false, ring::kHead, 16);
  ASSERT_TRUE(check::send_one(lab.server, 0, check::pattern(1500, 1)));
  EXPECT_EQ(ring::u16(c->ring(false), ring::kTail).load(), 3);
  check::Bytes got;
  for (std::uint32_t i = 0; i < 3; ++i) {
    const Descriptor d = Descriptor::load(c->ring(false), i);
    EXPECT_EQ(d.flags, i < 2 ? 1 : 0);
    got.insert(got.end(), c->base + d.offset, c->base + d.offset + d.length);
  }
  EXPECT_EQ(got, check::pattern(1500, 1));
  Frame f[8];
  const unsigned n = lab.server.tx_reserve(0, 1500, f, 8);
  ASSERT_GT(n, 0u);
  for (std::uint32_t i = 0; i < 16; ++i) {
    Descriptor{0, 0, 1, RawClient::kBuffers}.store(c->ring(false), i);
  }
  lab.server.tx_commit(0, f, n);
  EXPECT_EQ(lab.server.stats().tx_dropped, n);
}

TEST(MemifHostile, FloodsAndGarbageOnTheSocketAreSurvived) {
  Lab lab;
  const std::uint64_t seed = 20240607;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  for (int round = 0; round < 200; ++round) {
    auto c = lab.client();
    for (int i = 0; i < 10; ++i) {
      Message m;
      for (auto& b : m.bytes) b = static_cast<std::uint8_t>(rng.next());
      m.set_u16(0, static_cast<std::uint16_t>(rng.below(11)));
      Fd fd;
      if (rng.chance(0.5)) fd.reset(eventfd(0, EFD_NONBLOCK));
      m.fd = fd.get();
      // Messages of other sizes too.
      if (rng.chance(0.2)) {
        send(c->socket(), m.bytes.data(), rng.below(128), MSG_NOSIGNAL | MSG_DONTWAIT);
      } else {
        send_message(c->socket(), m);
      }
    }
    check::idle_turn(lab.server);
  }
  lab.expect_alive();
}

TEST(MemifHostile, SilentClientsDoNotBlockOthers) {
  Lab lab;
  std::vector<std::unique_ptr<RawClient>> silent;
  for (int i = 0; i < 50; ++i) {
    silent.push_back(lab.client());
    for (int k = 0; k < 50; ++k) check::idle_turn(lab.server);
  }
  lab.expect_alive();
}

TEST(MemifHostile, ABlockingEventfdWithAFullCounterDoesNotHangThePort) {
  Lab lab;
  auto c = lab.client();
  int event = -1;
  RawClient::Lies lies;
  lies.event = [&event] { return event = eventfd(0, EFD_NONBLOCK); };
  ASSERT_EQ(c->shake(lies), "");  // `event` is the M2S one, added last
  check::idle_turn(lab.server);
  const std::uint64_t full = 0xfffffffffffffffe;
  ASSERT_EQ(write(event, &full, sizeof full), static_cast<ssize_t>(sizeof full));
  fcntl(event, F_SETFL, 0);
  c->set_index(false, ring::kHead, 16);
  c->set_index(false, ring::kFlags, 0);
  ASSERT_TRUE(check::send_one(lab.server, 0, check::pattern(64, 1)));  // would hang
}

// Random data everywhere in shared memory, from another thread, while the port uses it.
TEST(MemifHostile, RandomGarbageInSharedMemoryIsSurvived) {
  const std::uint64_t seed = 777;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  Lab lab;
  std::uint64_t bad = 0, too_long = 0;
  for (int round = 0; round < 60; ++round) {
    auto c = lab.linked();
    std::atomic<bool> stop{false};
    std::thread vandal([&, s = rng.next()] {
      Rng r(s);
      while (!stop.load(std::memory_order_relaxed)) {
        // Plausible indexes with arbitrary descriptors reach the most code.
        const bool s2m = r.chance(0.5);
        Descriptor d;
        d.flags = static_cast<std::uint16_t>(r.below(2));
        d.region = static_cast<std::uint16_t>(r.chance(0.02) ? r.next() : 0);
        d.length = static_cast<std::uint32_t>(r.chance(0.02) ? r.next() : r.below(2048));
        d.offset = static_cast<std::uint32_t>(r.chance(0.02) ? r.next() : r.below(69632));
        d.store(c->ring(s2m), r.below(16));
        if (r.chance(0.3)) {
          auto at = s2m || r.chance(0.5) ? ring::kHead : ring::kTail;
          auto index = ring::u16(c->ring(s2m), at);
          index.store(static_cast<std::uint16_t>(
              r.chance(0.01) ? r.next() : index.load(std::memory_order_relaxed) + r.below(3)));
        }
        if (r.chance(0.05)) ring::u16(c->ring(s2m), ring::kFlags).store(r.below(2) != 0);
      }
    });
    const std::uint64_t end = check::monotonic_ms() + 20;
    while (check::monotonic_ms() < end) {
      Frame f[8];
      const unsigned n = lab.server.rx_burst(0, f, 8);
      std::uint32_t sum = 0;
      for (unsigned k = 0; k < n; ++k) {
        too_long += f[k].len[0] > 1518u;
        for (std::uint32_t b = 0; b < f[k].len[0]; ++b) sum += f[k].data[0][b];
      }
      asm volatile("" ::"r"(sum));
      lab.server.rx_release(0, f, n);
      const unsigned t = lab.server.tx_reserve(0, 1514, f, 4);
      for (unsigned k = 0; k < t; ++k) std::memset(f[k].data[0], 1, 1514);
      lab.server.tx_commit(0, f, t);
    }
    stop = true;
    vandal.join();
    bad = lab.server.stats().rx_bad;
    c.reset();
    ASSERT_TRUE(turn_until([&] { return lab.server.info().link_up == 0; }, {&lab.server}));
  }
  EXPECT_EQ(too_long, 0u);
  EXPECT_GT(bad, 0u) << "the vandal did no harm; the test proves nothing";
  lab.expect_alive();
}

TEST(MemifHostile, RegionsOfAClientAreLimited) {
  Lab lab;
  RawClient::Lies lies;
  lies.further_regions = 16;
  EXPECT_EQ(lab.client()->shake(lies), "Invalid region index");
  lies.further_regions = 15;
  {
    auto most = lab.client();
    EXPECT_EQ(most->shake(lies), "");
    EXPECT_TRUE(turn_until([&] { return lab.server.info().link_up == 1; }, {&lab.server}));
  }
  lab.expect_alive();
}

}  // namespace
}  // namespace urnic::port
