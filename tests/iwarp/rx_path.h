// A whole engine with a simulated peer that has four Writes ready to send.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "engine/engine.h"
#include "sim/pair.h"
#include "tests/support/hand_peer.h"

namespace urnic::test {

using fastpath::ConnectionType;

// Four FPDUs of the same size, a Write each, at 0, kSize, 2 kSize, 3 kSize of the stream.
constexpr std::uint32_t kPayload = 402;
constexpr std::uint64_t kSize = 2 + 14 + kPayload + 2 + 4;

struct RxPath : ::testing::Test {
  HandPeer p;
  Rng rng{17};
  std::vector<Bytes> data, fpdus;

  void prepare(std::size_t n = 4) {
    for (std::size_t i = 0; i < n; ++i) {
      data.push_back(testing::random_bytes(rng, kPayload));
      fpdus.push_back(p.write(i * 1000, data.back()));
      ASSERT_EQ(fpdus.back().size(), kSize);
    }
  }
  void up(std::uint32_t max_attempts = 32) {
    ASSERT_TRUE(p.up([&](engine::ConnectParams& c) {
      c.context.max_recovery_attempts = max_attempts;
      c.context.max_same_segment = 0;
    }));
    ASSERT_TRUE(p.fast());
    prepare();
  }
  void up_slow() {
    ASSERT_TRUE(
        p.up([](engine::ConnectParams& c) { c.context.initiated_as = ConnectionType::Slow; }));
    prepare();
  }
  std::vector<Answer> send(std::size_t i) { return p.send(i * kSize, fpdus[i]); }
  Bytes spoiled(std::size_t i) const {
    Bytes f = fpdus[i];
    f[100] ^= 0x40;
    return f;
  }
  std::vector<Answer> send_spoiled(std::size_t i) { return p.send(i * kSize, spoiled(i)); }
  bool placed(std::size_t i) const { return p.at(i * 1000, kPayload) == data[i]; }
  // Goes from FAST to SLOW by sending segment 0 in two pieces until the limit is reached. All of it
  // has then been received.
  void make_downgraded() {
    const auto cut = fpdus[0].begin() + 100;
    for (int i = 0; i < 50 && p.fast(); ++i) p.send(0, Bytes(fpdus[0].begin(), cut));
    ASSERT_FALSE(p.fast());
    p.send(100, Bytes(cut, fpdus[0].end()));
    ASSERT_EQ(p.rcv_nxt(), kSize);
  }
};

// Receives completed so far. All are completed by a message, none by a flush.
inline std::size_t good_receives(HandPeer& p) {
  for (const verbs::Cqe& c : p.receives()) EXPECT_EQ(c.completion.status, verbs::Status::Success);
  return p.receives().size();
}

inline Bytes joined(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts) testing::append(all, part);
  return all;
}

}  // namespace urnic::test
