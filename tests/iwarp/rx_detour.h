// A FAST connection that places nothing out of order (`ooo_without_markers = store`): data beyond a
// gap takes the detour through the reassembly buffer (E-41).
#pragma once

#include "tests/iwarp/rx_path.h"

namespace urnic::test {

using Block = std::pair<std::uint64_t, std::uint64_t>;

struct RxDetour : RxPath {
  RxDetour() { p.options.out_of_order = engine::Options::OutOfOrder::Store; }

  // Prepares `n` Writes instead of four.
  void more(std::size_t n) {
    data.clear();
    fpdus.clear();
    prepare(n);
  }
  std::uint64_t kept() { return p.node().engine().iwarp().state().pool.in_use(); }
  // Must hold as long as there was no error: FAST, and no counter of the other paths has changed.
  void expect_nothing_happened() {
    EXPECT_TRUE(p.fast());
    const ConnectionStats s = p.stats();
    EXPECT_EQ(s.iwarp.bytes_slow, 0u);
    EXPECT_EQ(s.iwarp.downgrades, 0u);
    EXPECT_EQ(s.iwarp.upgrades, 0u);
    EXPECT_EQ(s.iwarp.recovery_attempts, 0u);
    EXPECT_EQ(s.iwarp.ddp.terminates_sent, 0u);
    EXPECT_EQ(s.iwarp.immediate_dup_acks, 0u);
  }
  // Four Sends, 100 to 103 bytes, at `at` in the stream; `receives` receives for them at 1000 each.
  void sends(std::size_t receives = 4) {
    at = {0};
    for (std::uint64_t i = 0; i < 4; ++i) {
      if (i < receives) {
        ASSERT_TRUE(p.post_receive(i, i * 1000, 900));
      }
      m.push_back(HandPeer::send_message(static_cast<std::uint32_t>(i + 1),
                                         Bytes(100 + i, static_cast<std::uint8_t>(0x51 + i))));
      at.push_back(at.back() + m.back().size());
    }
  }
  void expect_all_delivered_once() {
    ASSERT_EQ(good_receives(p), 4u);
    for (std::uint64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(p.receives()[i].completion.wr_id, i);
      EXPECT_EQ(p.receives()[i].completion.byte_len, 100 + i);
      EXPECT_EQ(p.at(i * 1000, 100 + i), Bytes(100 + i, static_cast<std::uint8_t>(0x51 + i)));
    }
  }
  std::vector<Bytes> m;
  std::vector<std::uint64_t> at;
};

}  // namespace urnic::test
