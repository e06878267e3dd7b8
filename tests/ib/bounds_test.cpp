// Bounded tables of a requester and a responder: at the last entry, and beyond it.
#include <gtest/gtest.h>

#include "ib/read_ahead.h"
#include "ib/resources.h"
#include "ib/sent_log.h"

namespace urnic::ib {
namespace {

constexpr Instant kNow = Instant::from_ns(1'000'000);

TEST(SentLogBound, AFullLogRestartsAndCoversOnlyLaterPackets) {
  HeldPool pool;
  SentLog log(&pool, 10);
  for (std::uint32_t i = 0; i < 10; ++i) log.append(Psn(i), Psn(i + 1), kNow);
  EXPECT_TRUE(log.covers(Psn(0)));
  log.append(Psn(10), Psn(11), kNow);
  EXPECT_FALSE(log.covers(Psn(0)));
  EXPECT_EQ(log.size(), 1u);
  log.passed(Psn(10), kNow);
  EXPECT_TRUE(log.covers(Psn(10))) << "what left before is acknowledged";
  log.clear();
  EXPECT_EQ(pool.in_use(), 0u);
}

TEST(ResourcesBound, PartsUpToTheLimitWaitAndOneMoreIsDropped) {
  Resources all(1);
  Resource read;
  read.family = Family::Read;
  read.packets = 100;
  all.add(read);
  Resource* const r = all.due();
  for (std::uint32_t i = 0; i <= Resources::kMostAsides; ++i) {
    all.ask_aside(r, {Psn(2 * i), 0, 1, 0});
  }
  ASSERT_EQ(r->asides, Resources::kMostAsides);
  for (std::uint32_t i = 0; i < Resources::kMostAsides; ++i) {
    EXPECT_EQ(all.aside_of(*r).psn, Psn(2 * i));
    all.aside_done(r);
  }
  EXPECT_EQ(r->asides, 0u);
  all.ask_aside(r, {Psn(7), 0, 1, 0});
  EXPECT_EQ(r->asides, 1u);
  all.done(r);
  EXPECT_EQ(r->asides, 0u) << "what is not answered any more has no parts";
}

TEST(ReadAheadBound, PartsUpToTheLimitAreRequestedAtOnce) {
  HeldPool pool;
  ReadAhead ahead(&pool);
  for (std::uint32_t i = 0; i < ReadAhead::kMostParts; ++i) {
    EXPECT_TRUE(ahead.ask(Psn(10 * i), Psn(10 * i + 2), Psn(0), kNow)) << i;
  }
  EXPECT_FALSE(ahead.ask(Psn(1000), Psn(1001), Psn(0), kNow));
  // The first has arrived: its place is free.
  ahead.keep(Psn(0), kNow);
  ahead.keep(Psn(1), kNow);
  Instant until;
  EXPECT_FALSE(ahead.asked(Psn(0), Psn(2), kNow, {Duration::s(1), Duration::s(1)}, &until));
  EXPECT_TRUE(ahead.ask(Psn(1000), Psn(1001), Psn(0), kNow));
  EXPECT_FALSE(ahead.ask(Psn(1010), Psn(1011), Psn(0), kNow));
  ahead.clear();
  EXPECT_EQ(pool.in_use(), 0u);
}

}  // namespace
}  // namespace urnic::ib
