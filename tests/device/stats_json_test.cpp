#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "urnic/stats.h"

namespace urnic {
namespace {

// Every counter with a value of its own: a member that is forgotten or mixed up shows.
ConnectionStats numbered(std::uint64_t from) {
  ConnectionStats s;
  std::uint64_t n = from;
  s.qp_number = static_cast<std::uint32_t>(n++);
  s.local = "10.77.0.1:18515";
  s.peer = "[fd77::2]:49152";
  s.state = "established";
  s.fast = true;
  s.slow_reason = "down\"graded\\";
  s.crc = false;
  for (const auto& c : connection_counters()) s.*c.value = n++;
  for (std::uint64_t& r : s.reasons) r = n++;
  for (std::uint64_t& f : s.fpdus_sent) f = n++;
  for (std::uint64_t& f : s.fpdus_received) f = n++;
  for (std::uint32_t* p : {&s.cwnd, &s.ssthresh, &s.srtt_us, &s.rto_us, &s.mss}) {
    *p = static_cast<std::uint32_t>(n++);
  }
  return s;
}

EngineStats sample() {
  EngineStats s;
  s.name = "urnic target";
  s.port = "memif:socket=/tmp/x";
  s.mac = "02:00:0a:4d:00:01";
  s.addresses = "10.77.0.1/24";
  s.link_up = true;
  std::uint64_t n = 1'000'000'000'000;
  for (std::uint64_t* p : {&s.pid, &s.uptime_ms}) {
    *p = n++;
  }
  for (const auto& c : engine_counters()) s.*c.value = n++;
  for (const auto& c : engine_gauges()) s.*c.value = n++;
  s.ended = numbered(5000);
  s.connections = {numbered(1), numbered(100)};
  return s;
}

TEST(StatsJson, EveryCounterSurvivesTheWayThereAndBack) {
  const std::string text = stats_to_json(sample());
  auto back = stats_from_json(text);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(stats_to_json(*back), text);
  EXPECT_EQ(back->connections.size(), 2u);
  EXPECT_EQ(back->connections[1].dup_acks_out, sample().connections[1].dup_acks_out);
  EXPECT_EQ(back->connections[0].reasons, sample().connections[0].reasons);
  EXPECT_EQ(back->connections[0].fpdus_sent, sample().connections[0].fpdus_sent);
  EXPECT_EQ(back->connections[0].fpdus_received, sample().connections[0].fpdus_received);
  EXPECT_EQ(back->ended.mss, sample().ended.mss);
  EXPECT_EQ(back->rx_bad_tcp_checksum, sample().rx_bad_tcp_checksum);
  EXPECT_EQ(back->connections[0].slow_reason, "down\"graded\\");
}

TEST(StatsJson, AllNumbersOfTheSampleAreDistinctInTheDocument) {
  // A counter written twice under one name, or not at all, would leave a number out.
  const auto j = nlohmann::json::parse(stats_to_json(sample()));
  EXPECT_EQ(j["connections"][0].size(), 9u + 3 + connection_counters().size() + 5);
  EXPECT_EQ(j["connections"][0]["reasons"].size(), kReasonCount);
  EXPECT_EQ(j["connections"][0]["fpdus_sent"].size(), kOpcodeCount);
  EXPECT_EQ(j["connections"][0]["fpdus_received"].size(), kOpcodeCount);
  EXPECT_EQ(j.size(), 8u + engine_counters().size() + engine_gauges().size() + 2);
}

TEST(StatsJson, OtherVersionsAreUnderstood) {
  auto s = stats_from_json(R"({"name":"x","something_new":[1,2],"connections":[{"peer":"p"}]})");
  ASSERT_TRUE(s.ok());
  EXPECT_EQ(s->name, "x");
  EXPECT_EQ(s->rx_frames, 0u);
  ASSERT_EQ(s->connections.size(), 1u);
  EXPECT_EQ(s->connections[0].peer, "p");
}

TEST(StatsJson, WhatIsNoCountersIsRefused) {
  for (const char* text : {"", "{", "[]", "7", "null", R"({"pid":"x"})", R"({"pid":-1})",
                           R"({"link_up":1})", R"({"connections":{}})", R"({"connections":[7]})",
                           R"({"ended":[]})", R"({"ended":{"reasons":[]}})", "\xff\xfe"}) {
    EXPECT_FALSE(stats_from_json(text).ok()) << text;
  }
}

TEST(StatsJson, TextThatIsNotUtf8StillGivesADocument) {
  EngineStats s;
  s.name = "\xff\xfe";
  EXPECT_TRUE(stats_from_json(stats_to_json(s)).ok());
}

}  // namespace
}  // namespace urnic
