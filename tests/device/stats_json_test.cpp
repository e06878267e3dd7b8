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
  for (std::uint64_t* p : {&s.downgrades,
                           &s.upgrades,
                           &s.recovery_attempts,
                           &s.immediate_dup_acks,
                           &s.bytes_fast,
                           &s.bytes_slow,
                           &s.bytes_copied,
                           &s.payload_placed,
                           &s.holes_opened,
                           &s.holes_closed,
                           &s.empty_rq_drops,
                           &s.completion_wqe_writes,
                           &s.completion_cqe_writes,
                           &s.completion_partial_cqes,
                           &s.writes_sent,
                           &s.sends_sent,
                           &s.reads_sent,
                           &s.read_responses_sent,
                           &s.write_bytes_sent,
                           &s.send_bytes_sent,
                           &s.read_response_bytes_sent,
                           &s.write_bytes_received,
                           &s.send_bytes_received,
                           &s.read_response_bytes_received,
                           &s.sends_received,
                           &s.read_requests_received,
                           &s.terminates_sent,
                           &s.terminates_received,
                           &s.segments_in,
                           &s.segments_out,
                           &s.retransmits,
                           &s.rto_expirations,
                           &s.dup_acks_in,
                           &s.dup_acks_out}) {
    *p = n++;
  }
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
  for (std::uint64_t* p : {&s.pid,
                           &s.uptime_ms,
                           &s.rx_frames,
                           &s.rx_bytes,
                           &s.tx_frames,
                           &s.tx_bytes,
                           &s.rx_bad_port,
                           &s.rx_bad_ip,
                           &s.rx_bad_tcp_checksum,
                           &s.rx_fragments,
                           &s.rx_no_connection,
                           &s.rx_tcp_dropped,
                           &s.cookies_sent,
                           &s.cookies_taken,
                           &s.challenge_acks,
                           &s.challenge_acks_withheld,
                           &s.tx_full,
                           &s.polls,
                           &s.sleeps,
                           &s.wakeups,
                           &s.connections_opened,
                           &s.connections_closed,
                           &s.connections_failed,
                           &s.reassembly_bytes,
                           &s.regions}) {
    *p = n++;
  }
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
  EXPECT_EQ(j["connections"][0].size(), 51u);
  EXPECT_EQ(j["connections"][0]["reasons"].size(), kReasonCount);
  EXPECT_EQ(j["connections"][0]["fpdus_sent"].size(), kOpcodeCount);
  EXPECT_EQ(j["connections"][0]["fpdus_received"].size(), kOpcodeCount);
  EXPECT_EQ(j.size(), 30u);
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
