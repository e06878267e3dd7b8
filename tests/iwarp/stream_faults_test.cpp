// Plans of faults over the kernel's TCP, through the public API, on loopback. Data arrives intact
// after delays, and both ends report what ended a connection. Times are only lower bounds, which
// the plan guarantees.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

#include "iwarp/stream_ends.h"

namespace urnic {
namespace {

using namespace stream_test;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// The first record after the start-up is the first FPDU of the program.
Settings with(const std::string& plan, const char* progress = "auto") {
  static std::string kept;
  kept = plan;
  return {{"faults", kept.c_str()}, {"peer_to_peer", "off"}, {"progress", progress}};
}

// A client whose sends have faults, and a server.
struct Ends {
  explicit Ends(const std::string& to_server, const std::string& at_server = {},
                const char* progress = "auto")
      : server(open(with(at_server, progress))), client(open(with(to_server, progress))) {
    a.emplace(client);
    b.emplace(server);
    join(server, *b, *a);
  }
  // The server gets a Send of the client.
  void send(std::uint32_t n = 1000) {
    a->fill(3);
    const Sge from = a->sge(0, n), into = b->sge(0, n);
    ASSERT_TRUE(b->qp.post_receive({7, {&into, 1}}).ok());
    ASSERT_TRUE(a->qp.post_send(a->request(Opcode::send, from, 1)).ok());
  }
  void expect_arrival(std::uint32_t n = 1000) {
    const Completion got = b->wait();
    EXPECT_EQ(got.status, WcStatus::success);
    EXPECT_EQ(got.byte_len, n);
    EXPECT_EQ(std::memcmp(b->memory.data(), a->memory.data(), n), 0);
  }
  Device server, client;
  std::optional<End> a, b;
};

using Setting = std::tuple<const char*, const char*>;  // plan, progress
class StreamFaultsMatrix : public ::testing::TestWithParam<Setting> {};

TEST_P(StreamFaultsMatrix, DataArrivesAndTheConnectionClosesInOrder) {
  const auto [plan, progress] = GetParam();
  Ends e(plan, plan, progress);
  if (HasFailure()) return;
  exchange(*e.a, *e.b);
  if (HasFatalFailure()) return;
  exchange(*e.b, *e.a);
  if (HasFatalFailure()) return;
  e.a->qp.disconnect();
  EXPECT_EQ(e.a->ending().kind, EventKind::disconnected);
  EXPECT_EQ(e.b->ending().kind, EventKind::disconnected);
}

INSTANTIATE_TEST_SUITE_P(
    All, StreamFaultsMatrix,
    ::testing::Combine(::testing::Values("loss=0.1,rto=2ms", "delay=1ms,jitter=1ms",
                                         "stall=0.1:3ms", "reseg=1,hold=0s", "reseg=0.5,hold=200us",
                                         "close_window=0.1:3ms", "rate=400mbit",
                                         "loss=0.05,rto=2ms,stall=0.05:1ms,reseg=0.3,delay=200us,"
                                         "close_window=0.05:1ms,rate=1gbit,seed=5"),
                       ::testing::Values("auto", "thread")));

// The plan lets the only record of the client arrive after 300 ms.
class StreamFaultsDelay : public ::testing::TestWithParam<const char*> {};

TEST_P(StreamFaultsDelay, TheRecordArrivesIntactAfterItsTime) {
  for (const char* progress : {"auto", "thread"}) {
    Ends e(std::string(GetParam()) + ",skip_handshake", {}, progress);
    const auto began = Clock::now();
    e.send();
    EXPECT_EQ(e.a->wait().status, WcStatus::success) << "it is passed on, as to the kernel";
    e.expect_arrival();
    EXPECT_GE(Clock::now() - began, milliseconds(300));
  }
}

INSTANTIATE_TEST_SUITE_P(All, StreamFaultsDelay,
                         ::testing::Values("at=stall:1,stall=0:300ms", "at=loss:1,rto=300ms",
                                           "at=cut:1,cut_at=5-2000,hold=300ms", "delay=300ms",
                                           "rate=20kbit"));

// Nothing runs while a connection waits for the end of a stall.
TEST(StreamFaults, AStalledConnectionSleeps) {
  Ends e("at=stall:1,stall=0:400ms,skip_handshake", {}, "thread");
  const std::uint64_t before = e.client.stats().polls;
  e.send();
  e.expect_arrival();
  EXPECT_LT(e.client.stats().polls - before, 50u);
}

// proves: E-48
TEST(StreamFaults, AClosedWindowDelaysWhatComesAfterIt) {
  for (const char* progress : {"auto", "thread"}) {
    Ends e("", "at=close_window:1,close_window=0:300ms,skip_handshake", progress);
    const auto began = Clock::now();
    e.send();
    e.expect_arrival();  // it closes the window, and was read already
    e.send();
    e.expect_arrival();
    EXPECT_GE(Clock::now() - began, milliseconds(300));
  }
}

// Reads wait for the responses of earlier ones, which are read after a pause, without an event of
// the socket.
// proves: E-51
TEST(StreamFaults, ReadsGoOnAfterAClosedWindow) {
  Ends e("close_window=0.2:3ms,seed=3,skip_handshake");
  constexpr std::uint32_t kReads = 100, kBytes = 2000;
  e.b->fill(5);
  for (std::uint32_t i = 0; i < kReads; ++i) {
    const Sge into = e.a->sge(i * kBytes, kBytes);
    ASSERT_TRUE(e.a->qp.post_send(e.a->towards(Opcode::read, into, *e.b, i * kBytes, i)).ok());
  }
  for (std::uint32_t i = 0; i < kReads; ++i) {
    const Completion done = e.a->wait();
    ASSERT_EQ(done.status, WcStatus::success);
    EXPECT_EQ(done.wr_id, i);
  }
  EXPECT_EQ(std::memcmp(e.a->memory.data(), e.b->memory.data(), kReads * kBytes), 0);
}

// More than the sockets' buffers hold.
TEST(StreamFaults, AWriteLargerThanTheWindowWaitsForIt) {
  Ends e("", "at=close_window:1,close_window=0:300ms,skip_handshake");
  constexpr std::uint32_t kLarge = 32u << 20;
  End from(e.client, kLarge), into(e.server, kLarge);
  join(e.server, into, from);
  from.fill(9);
  const auto began = Clock::now();
  ASSERT_TRUE(from.qp.post_send(from.towards(Opcode::write, from.sge(0, kLarge), into, 0, 1)).ok());
  const Sge word = from.sge(0, 8), there = into.sge(0, 8);
  ASSERT_TRUE(into.qp.post_receive({7, {&there, 1}}).ok());
  ASSERT_TRUE(from.qp.post_send(from.request(Opcode::send, word, 2)).ok());
  EXPECT_EQ(from.wait().status, WcStatus::success);
  EXPECT_EQ(from.wait().status, WcStatus::success);
  EXPECT_EQ(into.wait().status, WcStatus::success);
  EXPECT_GE(Clock::now() - began, milliseconds(300));
  EXPECT_EQ(std::memcmp(into.memory.data(), from.memory.data(), kLarge), 0);
}

TEST(StreamFaults, ACorruptedFpduEndsTheStreamByTerminate) {
  Ends e("at=corrupt:2,skip_handshake");
  e.send();
  e.expect_arrival();
  e.send();
  EXPECT_EQ(e.b->wait().status, WcStatus::flushed);
  const Event there = e.b->ending();
  EXPECT_EQ(there.kind, EventKind::failed);
  EXPECT_EQ(there.error.code, Errc::protocol);
  EXPECT_NE(there.error.message.find("CRC"), std::string::npos) << there.error.message;
  EXPECT_EQ(e.b->qp.stats().iwarp.ddp.terminates_sent, 1u);
  const Event here = e.a->ending();
  EXPECT_EQ(here.kind, EventKind::failed);
  EXPECT_EQ(here.error.code, Errc::reset);
  EXPECT_EQ(here.error.message, "the peer sent Terminate layer 2 type 0 code 2");
}

TEST(StreamFaults, AResetFlushesBothEnds) {
  Ends e("at=reset:2,skip_handshake");
  e.send();
  e.expect_arrival();
  EXPECT_EQ(e.a->wait().status, WcStatus::success);
  const Sge unused = e.a->sge(5000, 8);
  ASSERT_TRUE(e.a->qp.post_receive({8, {&unused, 1}}).ok());
  e.send();
  Completion last = e.a->wait();
  if (last.status == WcStatus::success) last = e.a->wait();  // the Send was passed on
  EXPECT_EQ(last.status, WcStatus::flushed);
  EXPECT_EQ(e.b->wait().status, WcStatus::flushed);
  for (End* end : {&*e.a, &*e.b}) {
    const Event event = end->ending();
    EXPECT_EQ(event.kind, EventKind::failed);
    EXPECT_EQ(event.error.code, Errc::reset);
    EXPECT_EQ(event.error.message, "connection reset by the peer");
  }
  EXPECT_EQ(e.a->qp.state(), QpState::error);
}

// The first connection of the client, which tries the older revision when the first Request is
// answered by a reset (E-35).
// proves: E-48
TEST(StreamFaults, AResetDuringStartUpFailsTheConnect) {
  Device server = open(), client = open(with("at=reset:1+reset:2"));
  End a(client), b(server);
  auto listener = server.listen(0);
  ASSERT_TRUE(listener.ok());
  const std::string to = "127.0.0.1:" + std::to_string(listener->port());
  ConnectionOptions o;
  o.timeout_ms = 60000;
  const auto failed = a.qp.connect(to, o);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, Errc::reset) << failed.error().message;
  End again(client);
  join(server, b, again);
}

// A real network would have had these bytes.
// proves: E-50
TEST(StreamFaults, BytesUnderWayArriveBeforeTheEnd) {
  Ends e("at=stall:1,stall=0:300ms,skip_handshake");
  e.send();
  EXPECT_EQ(e.a->wait().status, WcStatus::success);
  const std::vector<std::uint8_t> sent(e.a->memory.begin(), e.a->memory.begin() + 1000);
  e.a.reset();  // destroys the queue pair, which resets the connection
  e.client = Device();
  const Completion got = e.b->wait();
  EXPECT_EQ(got.status, WcStatus::success);
  EXPECT_EQ(std::memcmp(e.b->memory.data(), sent.data(), sent.size()), 0);
  const Event event = e.b->ending();
  EXPECT_EQ(event.kind, EventKind::failed);
  EXPECT_EQ(event.error.code, Errc::reset);
}

TEST(StreamFaults, WhatIsHeldBackLeavesBeforeTheProgramExits) {
  Ends e("at=stall:1,stall=0:200ms,skip_handshake");
  const auto began = Clock::now();
  e.send();
  EXPECT_EQ(e.a->wait().status, WcStatus::success);
  e.client.disconnect_all(60000);
  EXPECT_GE(Clock::now() - began, milliseconds(200));
  EXPECT_EQ(e.a->qp.state(), QpState::rts) << "the kernel ends the connection";
  e.expect_arrival();
}

}  // namespace
}  // namespace urnic
