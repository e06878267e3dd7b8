// The switch of `urnic switch` over memory ports; time is an argument.
#include "cli/lan/l2_switch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "port/memory_port.h"

namespace urnic::cli {
namespace {

constexpr std::size_t kLength = 64;

MacAddress mac(std::uint8_t n) {
  return MacAddress{{2, 0, 0, 0, 0, n}};
}
Instant at(int seconds) {
  return Instant() + Duration::s(seconds + 1);
}

struct Lan : ::testing::Test {
  void make(unsigned members, const SwitchOptions& options = {},
            const port::MemoryPairOptions& memory = {}) {
    lan = std::make_unique<Switch>(options);
    for (unsigned i = 0; i < members; ++i) {
      auto [inside, outside] = port::make_memory_pair(memory);
      lan->add(std::move(inside), "m" + std::to_string(i));
      ends.push_back(std::move(outside));
    }
  }
  bool put(unsigned end, const MacAddress& to, const MacAddress& from, std::uint8_t mark,
           std::size_t length = kLength) {
    port::Frame f;
    if (ends[end].tx_reserve(0, static_cast<std::uint32_t>(length), &f, 1) != 1) return false;
    std::memset(f.data[0], mark, length);
    std::memcpy(f.data[0], to.bytes.data(), 6);
    std::memcpy(f.data[0] + 6, from.bytes.data(), 6);
    f.len[0] = static_cast<std::uint32_t>(length);
    f.len[1] = 0;
    ends[end].tx_commit(0, &f, 1);
    return true;
  }
  // The marks of the frames that arrived at `end`.
  std::string out(unsigned end) {
    std::string marks;
    port::Frame f[port::kBurst];
    while (const unsigned n = ends[end].rx_burst(0, f, port::kBurst)) {
      for (unsigned i = 0; i < n; ++i) marks += static_cast<char>(f[i].data[0][20]);
      ends[end].rx_release(0, f, n);
    }
    return marks;
  }
  void run(Instant now = at(0)) {
    while (lan->run_once(now)) {
    }
  }
  std::unique_ptr<Switch> lan;
  std::vector<port::Port> ends;
};

TEST_F(Lan, AnUnknownDestinationIsFloodedAKnownOneIsNot) {
  make(4);
  put(0, mac(2), mac(1), 'a');
  run();
  EXPECT_EQ(out(0) + "|" + out(1) + "|" + out(2) + "|" + out(3), "|a|a|a");
  put(2, mac(1), mac(2), 'b');  // the reply makes both addresses known
  run();
  put(0, mac(2), mac(1), 'c');
  run();
  EXPECT_EQ(out(0) + "|" + out(1) + "|" + out(2) + "|" + out(3), "b||c|");
  EXPECT_EQ(lan->counters(0).flooded, 1u);
  EXPECT_EQ(lan->addresses(at(0)), 2u);
}

TEST_F(Lan, GroupFramesGoToAllAndNothingComesBack) {
  make(3);
  put(0, MacAddress::broadcast(), mac(1), 'a');
  put(1, MacAddress{{0x33, 0x33, 0, 0, 0, 1}}, mac(2), 'b');
  put(0, mac(1), mac(1), 'c');  // to itself: it must not come back
  run();
  EXPECT_EQ(out(0) + "|" + out(1) + "|" + out(2), "b|a|ab");
}

TEST_F(Lan, AMovedAddressIsFollowedAndASilentOneForgotten) {
  make(3);
  put(0, mac(9), mac(1), 'a');
  run(at(0));
  put(1, mac(9), mac(1), 'b');  // the same address at another member
  put(2, mac(1), mac(3), 'c');
  run(at(10));
  EXPECT_EQ(out(0), "b");
  EXPECT_EQ(out(1), "ac");
  put(2, mac(1), mac(3), 'd');
  run(at(10 + 301));
  EXPECT_EQ(out(0) + "|" + out(1), "d|d");
}

TEST_F(Lan, AMemberThatLeavesIsForgottenAndTheOthersContinue) {
  make(3);
  put(1, mac(9), mac(2), 'a');
  put(0, mac(2), mac(1), 'b');
  run();
  (void)out(1), (void)out(2), (void)out(0);
  ends[1] = port::Port();
  put(0, mac(2), mac(1), 'c');
  run();
  EXPECT_FALSE(lan->is_up(1));
  put(0, mac(2), mac(1), 'd');
  run();
  EXPECT_NE(out(2).find('d'), std::string::npos);  // unknown again, so it is flooded
  EXPECT_TRUE(lan->is_up(0) && lan->is_up(2));
}

TEST_F(Lan, AMemberThatDoesNotReadFillsOnlyItsOwnBoundedQueue) {
  SwitchOptions options;
  options.queue = 16;
  port::MemoryPairOptions memory;
  memory.ring = 64;
  make(3, options, memory);
  put(1, mac(9), mac(2), 'x');
  put(2, mac(9), mac(3), 'y');
  run();
  (void)out(0), (void)out(1), (void)out(2);
  int passed = 0;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(put(0, mac(2), mac(1), 'a'));  // these are not received
    ASSERT_TRUE(put(0, mac(3), mac(1), 'b'));
    run();
    passed += static_cast<int>(out(2).size());
  }
  EXPECT_EQ(passed, 1000);
  EXPECT_GE(lan->counters(1).full, 1000u - 64 - 16 - 1);
  const std::string late = out(1);
  EXPECT_LE(late.size(), 64u);
  run();  // the waiting frames are sent now
  EXPECT_EQ(lan->counters(1).full + lan->counters(1).sent, 1000u + 1);
}

TEST_F(Lan, TheSwitchPollsLongerOnlyIfItsMembersLeaveItACore) {
  make(3);
  EXPECT_GT(lan->turns_before_sleep(4), 1);
  EXPECT_EQ(lan->turns_before_sleep(3), 1);
  EXPECT_EQ(lan->turns_before_sleep(1), 1);
  ends[2] = port::Port();
  run();
  EXPECT_GT(lan->turns_before_sleep(3), 1) << "a member has gone";
}

TEST_F(Lan, OversizedAndInvalidFramesAreCounted) {
  auto [inside, outside] = port::make_memory_pair({.max_frame = 100});
  make(1);
  lan->add(std::move(inside), "short");
  ends.push_back(std::move(outside));
  put(0, mac(2), mac(1), 'a', 101);
  put(0, mac(2), mac(1), 'b', 100);
  put(0, mac(2), MacAddress::broadcast(), 'c');  // a group address cannot be a source
  run();
  EXPECT_EQ(out(1), "b");
  EXPECT_EQ(lan->counters(1).too_long, 1u);
  EXPECT_EQ(lan->counters(0).bad, 1u);
}

TEST(MacTable, IsBoundedAndAFloodOfAddressesOnlyEvictsEntries) {
  MacTable table(64, Duration::s(300), 7);
  for (int i = 0; i < 100000; ++i) {
    table.learn(MacAddress{{2, 1, 0, static_cast<std::uint8_t>(i >> 16),
                            static_cast<std::uint8_t>(i >> 8), static_cast<std::uint8_t>(i)}},
                static_cast<unsigned>(i % 5), at(i / 1000));
  }
  EXPECT_LE(table.count(at(100)), 64u);
  table.learn(mac(1), 3, at(101));
  EXPECT_EQ(table.find(mac(1), at(101)), 3u);
  table.forget(3);
  EXPECT_EQ(table.find(mac(1), at(101)), std::nullopt);
}

}  // namespace
}  // namespace urnic::cli
