#include <gtest/gtest.h>

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "ddp_rdma/segments.h"

namespace urnic::ddp::test {
namespace {

class Placement : public StreamFixture {};

Bytes counting(std::size_t n, std::uint8_t from = 1) {
  Bytes v(n);
  for (auto& b : v) b = from++;
  return v;
}

TEST_F(Placement, EveryLengthArrivesWholeAndNothingElseChanges) {
  for (std::size_t n = 0; n <= 200; ++n) {
    std::fill(bytes.begin(), bytes.end(), 0xEE);
    const Bytes payload = counting(n);
    const MessageCounts c = put(write_segment(key, address(bytes.data() + 300), payload));
    EXPECT_FALSE(c.any()) << "R-94: Writes produce no report";
    Bytes want(4096, 0xEE);
    std::copy(payload.begin(), payload.end(), want.begin() + 300);
    ASSERT_EQ(bytes, want) << n;
  }
}

// proves: R-88
TEST_F(Placement, SendIsScatteredToItsReceiveAlsoOutOfOrder) {
  post_receive(1, 0, 64);
  post_receive(2, {{address(bytes.data() + 100), 7, key},
                   {0, 0, 0},
                   {address(bytes.data() + 200), 90, key},
                   {address(bytes.data() + 400), 100, key}});
  const Bytes m = counting(150);
  // The second half of message 2 arrives first.
  const MessageCounts c = put(send_segment_of(2, 50, Bytes(m.begin() + 50, m.end())), false);
  EXPECT_EQ(c.sends, 1u);
  EXPECT_EQ(bytes[100], 0);
  EXPECT_EQ(put(send_segment_of(2, 0, Bytes(m.begin(), m.begin() + 50), false), false).sends, 0u);
  Bytes got(bytes.begin() + 100, bytes.begin() + 107);
  got.insert(got.end(), bytes.begin() + 200, bytes.begin() + 290);
  got.insert(got.end(), bytes.begin() + 400, bytes.begin() + 453);
  EXPECT_EQ(got, m);
  EXPECT_EQ(bytes[453], 0);
  EXPECT_EQ(s.held.size(), 1u) << "method 2: the completion of the first M waits in the RNIC";
  EXPECT_TRUE(done.empty()) << "R-111";
}

TEST_F(Placement, RepeatingItGivesTheSameResult) {
  post_receive(1, 0, 64);
  post_receive(2, 64, 64);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(put(send_segment_of(2, 0, counting(10)), false).sends, 1u);
    EXPECT_EQ(put(read_request(2, 10, source_key, address(source.data())), false).read_requests,
              1u);
  }
  ASSERT_EQ(take(send_segment_of(1, 0, {})), Violation::None);
  ASSERT_EQ(take(send_segment_of(2, 0, counting(10))), Violation::None);
  EXPECT_EQ(done.size(), 2u);
}

TEST_F(Placement, ReadResponseIsScatteredToItsSink) {
  const std::array<Sge, 4> sges{{{address(bytes.data()), 30, key},
                                 {0, 0, 1234},
                                 {address(bytes.data() + 100), 30, key},
                                 {address(bytes.data() + 200), 40, key}}};
  SendWr wr;
  wr.op = WrOp::Read;
  wr.sges = sges;
  ASSERT_EQ(s.sq.post(wr), verbs::Post::Ok);
  transmit();
  auto c = s.sender.outstanding_reads();
  std::uint32_t sink = 0, size = 0;
  ASSERT_TRUE(s.sender.next_read(&c, &sink, &size));
  const Bytes m = counting(100);
  put(response_segment(sink, 25, Bytes(m.begin() + 25, m.end())), false);
  put(response_segment(sink, 0, Bytes(m.begin(), m.begin() + 25), false));
  Bytes got(bytes.begin(), bytes.begin() + 30);
  got.insert(got.end(), bytes.begin() + 100, bytes.begin() + 130);
  got.insert(got.end(), bytes.begin() + 200, bytes.begin() + 240);
  EXPECT_EQ(got, m);
}

TEST_F(Placement, TerminateIsRecorded) {
  EXPECT_EQ(put(terminate_segment(Violation::UntaggedNoBuffer), false).terminates, 1u);
  EXPECT_FALSE(s.terminate_received) << "Q-25: only when delivered";
  EXPECT_EQ(s.terminate.info.layer, 1);
  EXPECT_EQ(s.terminate.info.etype, 2);
  EXPECT_EQ(s.terminate.info.code, 2);
}

// E-13, observed by a page that faults: when the first store reaches it, everything before it in
// the payload must already be stored.
struct FaultPage {
  static inline std::uint8_t* page = nullptr;
  static inline std::uint8_t* begin = nullptr;  // of the payload
  static inline bool faulted = false, rest_there = false;

  static void on_fault(int, siginfo_t* info, void*) {
    auto* at = static_cast<std::uint8_t*>(info->si_addr);
    if (at < begin || at >= page + 4096) _exit(3);  // another fault
    faulted = true;
    rest_there = true;
    for (const std::uint8_t* p = begin; p != page; ++p) rest_there = rest_there && *p == 0xC3;
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
  }
};

// proves: E-13
TEST_F(Placement, LastBytesAreStoredAfterTheRest) {
  auto* memory = static_cast<std::uint8_t*>(
      mmap(nullptr, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  const std::uint32_t stag =
      table.register_memory(kPd, memory, 3 * 4096, kLocalWrite | kRemoteWrite | kZeroBased);
  struct sigaction action = {}, before = {};
  action.sa_sigaction = FaultPage::on_fault;
  action.sa_flags = SA_SIGINFO;
  ASSERT_EQ(sigaction(SIGSEGV, &action, &before), 0);
  // Length of the payload, and how many bytes at its end are stored after all others.
  std::vector<std::pair<std::size_t, std::size_t>> cases;
  for (const std::size_t n : {2, 3, 5}) cases.emplace_back(n, 1);  // 4, 6, 7 end in one wide store
  for (std::size_t n = 9; n <= 300; ++n) cases.emplace_back(n, 8);
  for (std::size_t n = 65; n <= 300; ++n) cases.emplace_back(n, 64);
  cases.emplace_back(4000, 64);
  cases.emplace_back(4000, 8);
  for (const auto& [n, tail] : cases) {
    std::memset(memory, 0, 3 * 4096);
    FaultPage::page = memory + 4096;
    FaultPage::begin = memory + 4096 - (n - tail);
    FaultPage::faulted = false;
    const Bytes u = write_segment(stag, 4096 - (n - tail), Bytes(n, 0xC3));
    const Admission a = Admitter(s, true).next(u);
    ASSERT_EQ(a.what, Admit::Place);
    ASSERT_EQ(mprotect(FaultPage::page, 4096, PROT_NONE), 0);
    place(s, a);
    EXPECT_TRUE(FaultPage::faulted);
    EXPECT_TRUE(FaultPage::rest_there) << n << " bytes, the last " << tail;
    for (std::size_t k = 0; k < n; ++k) ASSERT_EQ(FaultPage::begin[k], 0xC3);
  }
  sigaction(SIGSEGV, &before, nullptr);
  munmap(memory, 3 * 4096);
}

}  // namespace
}  // namespace urnic::ddp::test
