#include <gtest/gtest.h>

#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "urnic/stats.h"

namespace urnic {
namespace {

// Every counter has a different value, so that a missing or swapped member is detected.
ConnectionStats numbered(std::uint64_t from) {
  ConnectionStats s;
  std::uint64_t n = from;
  s.qp_number = static_cast<std::uint32_t>(n++);
  s.local = "10.77.0.1:18515";
  s.peer = "[fd77::2]:49152";
  s.state = "established";
  s.iwarp.fast = true;
  s.iwarp.slow_reason = "down\"graded\\";
  s.roce.fast = true;
  s.roce.slow_reason = "store-full";
  s.iwarp.mpa.crc = false;
  for (const auto& c : connection_counters()) c.of(s) = n++;
  for (std::uint64_t& r : s.iwarp.reasons) r = n++;
  for (std::uint64_t& f : s.iwarp.ddp.fpdus_sent) f = n++;
  for (std::uint64_t& f : s.iwarp.ddp.fpdus_received) f = n++;
  for (std::uint32_t* p : {&s.iwarp.tcp.cwnd, &s.iwarp.tcp.ssthresh, &s.iwarp.tcp.srtt_us,
                           &s.iwarp.tcp.rto_us, &s.iwarp.tcp.mss}) {
    *p = static_cast<std::uint32_t>(n++);
  }
  return s;
}

EngineStats sample() {
  EngineStats s;
  s.name = "urnic target";
  s.port.spec = "memif:socket=/tmp/x";
  s.port.mac = "02:00:0a:4d:00:01";
  s.net.addresses = "10.77.0.1/24";
  s.port.link_up = true;
  std::uint64_t n = 1'000'000'000'000;
  for (std::uint64_t* p : {&s.pid, &s.uptime_ms}) {
    *p = n++;
  }
  for (const auto& c : engine_counters()) c.of(s) = n++;
  for (const auto& c : engine_gauges()) c.of(s) = n++;
  s.ended = numbered(5000);
  s.connections = {numbered(1), numbered(100)};
  return s;
}

TEST(StatsJson, EveryCounterSurvivesARoundTrip) {
  const std::string text = stats_to_json(sample());
  auto back = stats_from_json(text);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(stats_to_json(*back), text);
  EXPECT_EQ(back->connections.size(), 2u);
  EXPECT_EQ(back->connections[1].iwarp.tcp.dup_acks_out,
            sample().connections[1].iwarp.tcp.dup_acks_out);
  EXPECT_EQ(back->connections[0].iwarp.reasons, sample().connections[0].iwarp.reasons);
  EXPECT_EQ(back->connections[0].iwarp.ddp.fpdus_sent,
            sample().connections[0].iwarp.ddp.fpdus_sent);
  EXPECT_EQ(back->connections[0].iwarp.ddp.fpdus_received,
            sample().connections[0].iwarp.ddp.fpdus_received);
  EXPECT_EQ(back->ended.iwarp.tcp.mss, sample().ended.iwarp.tcp.mss);
  EXPECT_EQ(back->iwarp.rx_bad_tcp_checksum, sample().iwarp.rx_bad_tcp_checksum);
  EXPECT_TRUE(back->connections[0].roce.fast);
  EXPECT_EQ(back->connections[0].roce.slow_reason, "store-full");
  EXPECT_EQ(back->connections[0].iwarp.slow_reason, "down\"graded\\");
}

// The number of values, including those of nested objects.
std::size_t leaves(const nlohmann::json& j) {
  if (!j.is_structured()) return 1;
  std::size_t n = 0;
  for (const auto& inner : j) n += leaves(inner);
  return n;
}

TEST(StatsJson, AllNumbersOfTheSampleAreDistinctInTheDocument) {
  // A counter written twice with one name, or not at all, would lose a number.
  const auto j = nlohmann::json::parse(stats_to_json(sample()));
  const auto& c = j["connections"][0];
  EXPECT_EQ(c["iwarp"]["reasons"].size(), kReasonCount);
  EXPECT_EQ(c["iwarp"]["ddp"]["fpdus_sent"].size(), kOpcodeCount);
  EXPECT_EQ(c["iwarp"]["ddp"]["fpdus_received"].size(), kOpcodeCount);
  const std::size_t connection =
      13u + connection_counters().size() + 5 + kReasonCount + 2 * kOpcodeCount;
  EXPECT_EQ(leaves(c), connection);
  EXPECT_EQ(leaves(j), 8u + engine_counters().size() + engine_gauges().size() + 3 * connection);
}

// Counters of verbs and of iWARP are in separate objects (docs/cli.md).
TEST(StatsJson, EachTransportHasAnObjectOfItsOwn) {
  const auto j = nlohmann::json::parse(stats_to_json(sample()));
  EXPECT_EQ(j["port"]["rx_frames"], sample().port.rx_frames);
  EXPECT_EQ(j["net"]["rx_fragments"], sample().net.rx_fragments);
  EXPECT_EQ(j["iwarp"]["cookies_sent"], sample().iwarp.cookies_sent);
  EXPECT_EQ(j["verbs"]["regions"], sample().verbs.regions);
  const auto& c = j["ended"];
  EXPECT_EQ(c["verbs"]["writes_sent"], sample().ended.verbs.writes_sent);
  EXPECT_EQ(c["iwarp"]["downgrades"], sample().ended.iwarp.downgrades);
  EXPECT_EQ(c["iwarp"]["ddp"]["terminates_sent"], sample().ended.iwarp.ddp.terminates_sent);
  EXPECT_EQ(c["iwarp"]["mpa"]["crc"], false);
  EXPECT_EQ(c["iwarp"]["tcp"]["mss"], sample().ended.iwarp.tcp.mss);
}

// Prometheus and the table identify a counter only by its name.
TEST(StatsJson, NamesAreUniqueOverAllLists) {
  std::set<std::string> names;
  std::size_t n = 0;
  const auto walk = [&](const auto& list) {
    for (const auto& c : list) names.insert(c.name), ++n;
  };
  walk(connection_counters());
  walk(engine_counters());
  walk(engine_gauges());
  EXPECT_EQ(names.size(), n);
}

TEST(StatsJson, OtherVersionsAreUnderstood) {
  auto s = stats_from_json(R"({"name":"x","something_new":[1,2],"connections":[{"peer":"p"}]})");
  ASSERT_TRUE(s.ok());
  EXPECT_EQ(s->name, "x");
  EXPECT_EQ(s->port.rx_frames, 0u);
  ASSERT_EQ(s->connections.size(), 1u);
  EXPECT_EQ(s->connections[0].peer, "p");
}

TEST(StatsJson, InvalidDocumentsAreRefused) {
  for (const char* text :
       {"", "{", "[]", "7", "null", R"({"pid":"x"})", R"({"pid":-1})", R"({"port":{"link_up":1}})",
        R"({"port":"memif"})", R"({"connections":{}})", R"({"connections":[7]})", R"({"ended":[]})",
        R"({"ended":{"iwarp":{"reasons":[]}}})",
        R"({"ended":{"iwarp":{"reasons":{"aligned":"x"}}}})", R"({"ended":{"iwarp":7}})",
        "\xff\xfe"}) {
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
