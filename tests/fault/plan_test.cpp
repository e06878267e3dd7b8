#include "fault/plan.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace urnic::fault {
namespace {

TEST(FaultPlan, ReadsEveryKey) {
  const auto p = FaultPlan::parse(
      "loss=0.01:4, reorder=0.02:3,corrupt=0.001,badsum=0.002,reseg=0.3,dup=0.004,delay=2ms,"
      "jitter=1.5us,rate=500mbit,limit=7,hold=3ms,mtu=9000,payload_only=64,after=64k,"
      "skip_handshake,at=loss:17+corrupt:3,seed=7");
  ASSERT_TRUE(p.ok()) << p.error();
  EXPECT_EQ(p->loss, 0.01);
  EXPECT_EQ(p->loss_burst, 4u);
  EXPECT_EQ(p->reorder, 0.02);
  EXPECT_EQ(p->reorder_frames, 3u);
  EXPECT_EQ(p->corrupt, 0.001);
  EXPECT_EQ(p->bad_checksum, 0.002);
  EXPECT_EQ(p->resegment, 0.3);
  EXPECT_EQ(p->duplicate, 0.004);
  EXPECT_EQ(p->delay, Duration::ms(2));
  EXPECT_EQ(p->jitter, Duration::ns(1500));
  EXPECT_EQ(p->rate_bps, 500000000u);
  EXPECT_EQ(p->limit, 7u);
  EXPECT_EQ(p->hold, Duration::ms(3));
  EXPECT_EQ(p->mtu, 9000u);
  EXPECT_TRUE(p->tcp_only);
  EXPECT_EQ(p->payload_only, 64u);
  EXPECT_EQ(p->after, 65536u);
  EXPECT_TRUE(p->skip_handshake);
  ASSERT_EQ(p->at.size(), 2u);
  EXPECT_EQ(p->at[1], (FaultPlan::At{FaultKind::Corrupt, 3}));
  EXPECT_EQ(p->seed, 7u);
  EXPECT_FALSE(p->idle());
}

TEST(FaultPlan, ReorderTakesFramesOrATime) {
  EXPECT_EQ(FaultPlan::parse("reorder=0.5:5ms")->reorder_frames, 0u);
  EXPECT_EQ(FaultPlan::parse("reorder=0.5:5ms")->reorder_delay, Duration::ms(5));
  EXPECT_EQ(FaultPlan::parse("reorder=0.5")->reorder_frames, 3u);
}

TEST(FaultPlan, NothingIsIdle) {
  EXPECT_TRUE(FaultPlan::parse("")->idle());
  EXPECT_TRUE(FaultPlan::parse("seed=3,mtu=1500,after=3")->idle());
  for (const char* busy : {"loss=0.1", "dup=1", "reorder=1", "corrupt=1", "badsum=1", "reseg=1",
                           "delay=1us", "jitter=1us", "rate=1gbit", "at=dup:1"}) {
    EXPECT_FALSE(FaultPlan::parse(busy)->idle()) << busy;
  }
}

TEST(FaultPlan, ErrorsNameTheItemAndTheExpectedFormat) {
  const auto error = [](const char* text) {
    const auto p = FaultPlan::parse(text);
    return p.ok() ? std::string() : p.error();
  };
  EXPECT_EQ(error("loss=2"), "fault plan: loss=2: expected a probability from 0 to 1");
  EXPECT_NE(error("lost=0.1").find("unknown key 'lost'"), std::string::npos);
  EXPECT_NE(error("loss=0.1,loss=0.2").find("twice"), std::string::npos);
  for (const char* bad : {"loss",
                          "loss=",
                          "loss=x",
                          "loss=-0.1",
                          "loss=nan",
                          "loss=0.1:0",
                          "loss=0.1x",
                          "reorder=0.1:",
                          "reorder=0.1:0",
                          "reorder=0.1:x",
                          "delay=5",
                          "delay=-1ms",
                          "delay=2h",
                          "delay=9999s",
                          "rate=500",
                          "rate=1bit",
                          "limit=0",
                          "mtu=100",
                          "mtu=70000",
                          "after=x",
                          "skip_handshake=maybe",
                          "at=loss",
                          "at=loss:0",
                          "at=join:1",
                          "at=bogus:1",
                          "seed=-1",
                          "seed=1.5",
                          "=1"}) {
    EXPECT_NE(error(bad), "") << bad;
    EXPECT_EQ(error(bad).find('\n'), std::string::npos) << bad;
  }
}

TEST(FaultPlan, TextParsesBackToThePlan) {
  for (const char* text :
       {"", "loss=0.25:2", "reorder=0.5:5ms", "reorder=0.01:9,hold=250us",
        "dup=0.1,corrupt=1e-3,badsum=0.5,reseg=1,delay=1s,jitter=3ns,rate=1.5gbit,limit=5",
        "payload_only=0", "mtu=576,after=1m,skip_handshake=on,at=cut:4+badsum:9,seed=99"}) {
    const auto p = FaultPlan::parse(text);
    ASSERT_TRUE(p.ok()) << p.error();
    const auto again = FaultPlan::parse(p->to_string());
    ASSERT_TRUE(again.ok()) << p->to_string() << ": " << again.error();
    EXPECT_EQ(*again, *p) << p->to_string();
  }
}

TEST(FaultPlan, AStreamHasKeysOfItsOwn) {
  const char* const text =
      "loss=0.01,corrupt=0.001,reseg=0.3,stall=0.1:7ms,reset=0.02,close_window=0.3:9ms,delay=2ms,"
      "jitter=1us,rate=8mbit,hold=3ms,rto=5ms,payload_only=64,after=64,skip_handshake,"
      "at=loss:1+corrupt:2+cut:3+stall:4+reset:5+close_window:6,cut_at=3-9,seed=7";
  const auto p = FaultPlan::parse(text, Carrier::Stream);
  ASSERT_TRUE(p.ok()) << p.error();
  EXPECT_EQ(p->stall, 0.1);
  EXPECT_EQ(p->stall_time, Duration::ms(7));
  EXPECT_EQ(p->reset, 0.02);
  EXPECT_EQ(p->close_window, 0.3);
  EXPECT_EQ(p->window_time, Duration::ms(9));
  EXPECT_EQ(p->rto, Duration::ms(5));
  ASSERT_EQ(p->at.size(), 6u);
  EXPECT_EQ(p->at[5], (FaultPlan::At{FaultKind::CloseWindow, 6}));
  const auto again = FaultPlan::parse(p->to_string(), Carrier::Stream);
  ASSERT_TRUE(again.ok()) << p->to_string();
  EXPECT_EQ(*again, *p);
  for (const char* busy : {"stall=1", "reset=1", "close_window=1"}) {
    EXPECT_FALSE(FaultPlan::parse(busy, Carrier::Stream)->idle()) << busy;
  }
  EXPECT_TRUE(FaultPlan::parse("rto=1s,hold=1s", Carrier::Stream)->idle());
}

TEST(FaultPlan, AKeyWithoutAMeaningIsRefusedInOneLine) {
  for (const char* frames : {"dup", "reorder", "badsum", "limit", "mark", "mtu"}) {
    const auto p = FaultPlan::parse(std::string(frames) + "=1", Carrier::Stream);
    ASSERT_FALSE(p.ok()) << frames;
    EXPECT_EQ(
        p.error().find("fault plan: '" + std::string(frames) +
                       "' needs frames, and port = tcp sends a stream of bytes; keys: loss, "),
        0u)
        << p.error();
    EXPECT_EQ(p.error().find('\n'), std::string::npos);
  }
  for (const char* stream : {"stall", "reset", "close_window", "rto"}) {
    const auto p = FaultPlan::parse(std::string(stream) + "=1");
    ASSERT_FALSE(p.ok()) << stream;
    EXPECT_EQ(
        p.error().find("fault plan: '" + std::string(stream) +
                       "' is only for port = tcp, which sends a stream of bytes; keys: loss, "),
        0u)
        << p.error();
  }
  EXPECT_EQ(FaultPlan::parse("loss=0.1:3", Carrier::Stream).error(),
            "fault plan: loss=0.1:3: expected a probability from 0 to 1; a stream has no bursts of "
            "losses");
  EXPECT_EQ(FaultPlan::parse("at=dup:1", Carrier::Stream).error(),
            "fault plan: at=dup:1: expected KIND:N+KIND:N..., KIND is one of loss, corrupt, cut, "
            "stall, reset, close_window");
  EXPECT_EQ(FaultPlan::parse("at=stall:1").error(),
            "fault plan: at=stall:1: expected KIND:N+KIND:N..., KIND is one of loss, dup, reorder, "
            "corrupt, badsum, cut");
  for (const char* bad : {"stall=2", "stall=0.1:x", "close_window=", "reset=0.1:1ms", "rto=5"}) {
    EXPECT_FALSE(FaultPlan::parse(bad, Carrier::Stream).ok()) << bad;
  }
}

TEST(FaultPlan, HostileTextIsRefusedOrRead) {
  constexpr std::uint64_t kSeed = 4;
  SCOPED_TRACE(kSeed);
  Rng rng(kSeed);
  constexpr char kAlphabet[] = "loss=dup,reorder:at+0123456789.msnkbit-e ";
  for (int i = 0; i < 50000; ++i) {
    std::string text;
    for (std::uint64_t n = rng.below(40); n != 0; --n) {
      text += kAlphabet[rng.below(sizeof kAlphabet - 1)];
    }
    const auto p = FaultPlan::parse(text);
    if (p.ok()) {
      const auto again = FaultPlan::parse(p->to_string());
      ASSERT_TRUE(again.ok()) << text << " -> " << p->to_string();
      ASSERT_EQ(*again, *p) << text;
    }
  }
}

}  // namespace
}  // namespace urnic::fault
