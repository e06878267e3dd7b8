// Windows in the memory table: which binds are allowed, and their effects.
#include <gtest/gtest.h>

#include <vector>

#include "verbs/memory.h"
#include "verbs/send_queue.h"

namespace urnic::verbs {
namespace {

using I = MemoryTable::Invalidate;
using V = AccessVerdict;

constexpr PdId kPd = 5, kOtherPd = 6;
constexpr std::uint32_t kQp = 70, kOtherQp = 71;
constexpr std::uint64_t kIova = 0x10000;
const Requester kUs(kPd, kQp), kOther(kPd, kOtherQp), kForeign(kOtherPd, kQp);

class WindowTable : public ::testing::Test {
 protected:
  std::uint32_t add(std::uint8_t access, PdId pd = kPd) {
    return table.register_memory(pd, {bytes.data(), kIova, bytes.size()}, access);
  }
  static WindowBind part(std::uint32_t region, std::uint32_t rkey, std::uint8_t access) {
    return {kIova + 100, 200, region, rkey, access};
  }
  MemoryTable table;
  std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(1000);
  std::uint32_t region = add(kLocalWrite | kBindWindow);
};

// proves: E-54
TEST_F(WindowTable, AWindowGivesNoAccessUntilItIsBound) {
  const std::uint32_t w = table.allocate_window(kPd, WindowType::Two);
  ASSERT_NE(w, 0u);
  EXPECT_EQ(table.find(w), nullptr);
  EXPECT_EQ(check_remote_read(table, w, kIova, 1, kUs), V::BadKey);
  EXPECT_EQ(table.invalidate(w, kUs), I::Ok) << "as if it had been";
  EXPECT_FALSE(table.deregister(w)) << "it is no region";
  EXPECT_TRUE(table.free_window(w));
  EXPECT_FALSE(table.free_window(w));
  EXPECT_FALSE(table.free_window(region));
  EXPECT_EQ(table.in_use(), 1u);
}

// proves: E-54
TEST_F(WindowTable, WindowAccessIsCheckedLikeRegionAccess) {
  const std::uint32_t w = table.allocate_window(kPd, WindowType::Two) + 1;
  ASSERT_TRUE(table.bind(part(region, w, kRemoteWrite), kUs));
  EXPECT_EQ(check_remote_write(table, w, kIova + 100, 200, kUs), V::Ok);
  EXPECT_EQ(check_remote_write(table, w, kIova + 99, 1, kUs), V::Bounds);
  EXPECT_EQ(check_remote_write(table, w, kIova + 101, 200, kUs), V::Bounds);
  EXPECT_EQ(check_remote_read(table, w, kIova + 100, 200, kUs), V::Rights);
  EXPECT_EQ(check_remote_write(table, w, kIova + 100, 1, kOther), V::WrongDomain);
  EXPECT_EQ(check_remote_write(table, w, kIova + 100, 1, kForeign), V::WrongDomain);
  const Region& r = *table.find(w);
  EXPECT_EQ(r.base, bytes.data() + 100);
  EXPECT_TRUE(r.may_write(kUs, kIova + 100, 200));
  EXPECT_FALSE(r.may_write(kOther, kIova + 100, 200));
  EXPECT_FALSE(r.may_write(kForeign, kIova + 100, 200));
  EXPECT_EQ(resolve_sge(table, {kIova + 100, 1, w}, kPd, false).data(), nullptr)
      << "it is no key of our own";
  EXPECT_EQ(check_remote_write(table, region, kIova, 1, kUs), V::Rights);
}

// proves: E-54
TEST_F(WindowTable, WindowAtomicsNeedTheirOwnRight) {
  const std::uint32_t two = table.allocate_window(kPd, WindowType::Two) + 1;
  const std::uint32_t one = table.allocate_window(kPd, WindowType::One) + 1;
  ASSERT_TRUE(table.bind(part(region, two, kRemoteAtomic), kUs));
  ASSERT_TRUE(table.bind(part(region, one, kRemoteRead | kRemoteWrite), kUs));
  EXPECT_EQ(check_remote_atomic(table, two, kIova + 104, 8, kUs), V::Ok);
  EXPECT_EQ(check_remote_atomic(table, two, kIova + 104, 8, kOther), V::WrongDomain);
  EXPECT_EQ(check_remote_atomic(table, two, kIova + 296, 8, kUs), V::Bounds);
  EXPECT_EQ(check_remote_write(table, two, kIova + 104, 8, kUs), V::Rights);
  EXPECT_EQ(check_remote_atomic(table, one, kIova + 104, 8, kUs), V::Rights);
}

// proves: E-54
TEST_F(WindowTable, Type2IsUnboundOnlyByInvalidation) {
  const std::uint32_t first = table.allocate_window(kPd, WindowType::Two), w = first + 1;
  WindowBind nothing = part(region, w, kRemoteRead);
  nothing.length = 0;
  EXPECT_FALSE(table.bind(nothing, kUs));
  ASSERT_TRUE(table.bind(part(region, w, kRemoteRead), kUs));
  nothing.rkey = w + 1;
  EXPECT_FALSE(table.bind(nothing, kUs));
  EXPECT_EQ(check_remote_read(table, w, kIova + 100, 1, kUs), V::Ok);
}

// proves: E-54
TEST_F(WindowTable, Type1IsForEachQueuePairOfTheDomain) {
  const std::uint32_t w = table.allocate_window(kPd, WindowType::One) + 1;
  ASSERT_TRUE(table.bind(part(region, w, kRemoteRead), kUs));
  EXPECT_EQ(check_remote_read(table, w, kIova + 100, 1, kOther), V::Ok);
  EXPECT_EQ(check_remote_read(table, w, kIova + 100, 1, kForeign), V::WrongDomain);
  ASSERT_TRUE(table.bind(part(region, w + 1, kRemoteRead), kOther));
  EXPECT_EQ(check_remote_read(table, w, kIova + 100, 1, kUs), V::BadKey);
  EXPECT_EQ(table.find(region)->windows, 1u);
}

// proves: E-54
TEST_F(WindowTable, AnInvalidBindIsRefusedAndChangesNothing) {
  const std::uint32_t w = table.allocate_window(kPd, WindowType::One) + 1;
  ASSERT_TRUE(table.bind(part(region, w, kRemoteRead), kUs));
  const auto refused = [&](const WindowBind& b, const Requester& by, const char* why) {
    EXPECT_FALSE(table.bind(b, by)) << why;
    EXPECT_EQ(check_remote_read(table, w, kIova + 100, 200, kUs), V::Ok) << why;
    EXPECT_EQ(table.find(region)->windows, 1u) << why;
  };
  const std::uint32_t closed = add(kLocalWrite | kRemoteRead), reading = add(kBindWindow);
  const std::uint32_t foreign = add(kLocalWrite | kBindWindow, kOtherPd);
  refused(part(region, w + 1, kRemoteRead), kForeign, "a queue pair of another domain");
  refused(part(foreign, w + 1, kRemoteRead), kUs, "a region of another domain");
  refused(part(closed, w + 1, kRemoteRead), kUs, "a region without the right to bind");
  refused(part(reading, w + 1, kRemoteWrite), kUs, "writing without local write");
  refused(part(reading, w + 1, kRemoteAtomic), kUs, "atomics without local write");
  refused(part(region, w + 1, kLocalWrite), kUs, "no remote right");
  refused(part(region, w + 1, kBindWindow), kUs, "no remote right");
  refused(part(region ^ 1, w + 1, kRemoteRead), kUs, "a stale key");
  refused(part(region, region, kRemoteRead), kUs, "a region is no window");
  refused(part(w, w + 1, kRemoteRead), kUs, "a window is no region");
  refused(part(region, w + 0x100, kRemoteRead), kUs, "no such window");
  refused({kIova + 900, 101, region, w + 1, kRemoteRead}, kUs, "beyond the end");
  refused({kIova - 1, 10, region, w + 1, kRemoteRead}, kUs, "before the beginning");
  refused({kIova + 10, ~0ull, region, w + 1, kRemoteRead}, kUs, "wraps");
  EXPECT_TRUE(table.bind(part(reading, w + 1, kRemoteRead), kUs)) << "reading needs no local write";
  EXPECT_EQ(table.find(region)->windows, 0u);
  const std::uint32_t gone = add(kBindWindow);
  ASSERT_EQ(table.invalidate(gone, kUs), I::Ok);
  EXPECT_FALSE(table.bind(part(gone, w + 2, kRemoteRead), kUs)) << "an invalidated region";
}

// proves: E-54
TEST_F(WindowTable, InvalidationWorksOnlyForType2AndItsQueuePair) {
  const std::uint32_t one = table.allocate_window(kPd, WindowType::One) + 1;
  const std::uint32_t two = table.allocate_window(kPd, WindowType::Two) + 1;
  ASSERT_TRUE(table.bind(part(region, one, kRemoteRead), kUs));
  ASSERT_TRUE(table.bind(part(region, two, kRemoteRead), kUs));
  EXPECT_EQ(table.invalidate(one, kUs), I::Other);
  EXPECT_EQ(table.invalidate(two, kOther), I::Other);
  EXPECT_EQ(table.invalidate(two, kForeign), I::Other);
  EXPECT_EQ(table.invalidate(two ^ 1, kUs), I::Unknown);
  EXPECT_EQ(table.invalidate(region, kUs), I::Other) << "windows are bound to it";
  EXPECT_FALSE(table.bind(part(region, two + 1, kRemoteRead), kUs)) << "it is bound";
  EXPECT_EQ(table.invalidate(two, kUs), I::Ok);
  EXPECT_EQ(table.invalidate(two, kUs), I::Ok) << "again is no error";
  EXPECT_EQ(table.find(two), nullptr);
  EXPECT_TRUE(table.bind(part(region, two + 1, kRemoteRead), kOther));
  EXPECT_EQ(check_remote_read(table, two + 1, kIova + 100, 1, kOther), V::Ok);
  EXPECT_EQ(check_remote_read(table, two + 1, kIova + 100, 1, kUs), V::WrongDomain);
}

// proves: E-54
TEST_F(WindowTable, ARegionWithWindowsCannotBeDeregistered) {
  std::vector<std::uint32_t> windows;
  for (int i = 0; i < 5; ++i) {
    windows.push_back(table.allocate_window(kPd, i % 2 == 0 ? WindowType::One : WindowType::Two));
    ASSERT_TRUE(table.bind(part(region, windows.back() + 1, kRemoteRead), i < 3 ? kUs : kOther));
  }
  const Extent all{bytes.data(), kIova, bytes.size()};
  ASSERT_FALSE(table.deregister(region));
  EXPECT_EQ(table.reregister(region, kPd, all, kLocalWrite), 0u);
  table.unbind_windows_of(kOtherQp);
  EXPECT_EQ(table.find(region)->windows, 4u) << "one of type 2";
  EXPECT_TRUE(table.free_window(windows[0]));
  EXPECT_EQ(table.find(region)->windows, 3u);
  EXPECT_EQ(check_remote_read(table, windows[1] + 1, kIova + 100, 1, kUs), V::Ok);
  table.unbind_windows_on(region);
  EXPECT_EQ(table.find(region)->windows, 0u);
  EXPECT_EQ(check_remote_read(table, windows[1] + 1, kIova + 100, 1, kUs), V::BadKey);
  EXPECT_TRUE(table.deregister(region));
  for (std::size_t i = 1; i < windows.size(); ++i) EXPECT_TRUE(table.free_window(windows[i]));
  EXPECT_EQ(table.in_use(), 0u);
}

// Frees two windows from the middle, in either order; none of the others may be lost.
TEST_F(WindowTable, FreeingWindowsInTheMiddleKeepsTheOthers) {
  for (const auto& [first, second] : {std::pair(1, 5), std::pair(1, 2), std::pair(4, 1)}) {
    std::vector<std::uint32_t> windows;
    for (int i = 0; i < 6; ++i) {
      windows.push_back(table.allocate_window(kPd, WindowType::Two));
      ASSERT_TRUE(table.bind(part(region, windows.back() + 1, kRemoteRead), kUs));
    }
    EXPECT_TRUE(table.free_window(windows[static_cast<std::size_t>(first)]));
    EXPECT_TRUE(table.free_window(windows[static_cast<std::size_t>(second)]));
    table.unbind_windows_of(kUs.qp);
    EXPECT_EQ(table.find(region)->windows, 0u) << first << " and " << second;
    for (const std::uint32_t w : windows) table.free_window(w);
  }
}

// proves: E-54
TEST_F(WindowTable, TheSendQueueStoresAllFieldsOfABind) {
  const WindowBind b{0x1122334455667788, 0x99aabbccddeeff00, 0x12345678, 0x9abcdef0, kRemoteRead};
  SendQueue sq(4, 0, 0, 16);
  SendWr wr;
  wr.op = WrOp::Bind;
  EXPECT_EQ(sq.post(wr), Post::BadOp) << "of nothing";
  wr.bind = &b;
  wr.flags = kInline;
  EXPECT_EQ(sq.post(wr), Post::BadOp);
  wr.flags = kFence;
  ASSERT_EQ(sq.post(wr), Post::Ok);
  ASSERT_EQ(sq.post(wr), Post::Ok);
  for (const std::uint32_t i : {0u, 1u}) {
    const WindowBind got = sq.window_bind(i);
    EXPECT_EQ(got.address, b.address);
    EXPECT_EQ(got.length, b.length);
    EXPECT_EQ(got.lkey, b.lkey);
    EXPECT_EQ(got.rkey, b.rkey);
    EXPECT_EQ(got.access, b.access);
    EXPECT_EQ(sq.wqe(i).length, 0u);
    EXPECT_EQ(sq.sges(i).size(), 0u);
  }
}

}  // namespace
}  // namespace urnic::verbs
