// Scenarios with intentionally failing requests: reliable datagrams, and a UD queue pair in Sqe.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "sim/experiment.h"
#include "sim/roce_rules.h"
#include "tests/support/source_dir.h"

namespace urnic::sim {
namespace {

Scenario shipped(const std::string& name) {
  std::ifstream in(source_dir() + "/scenarios/" + name + ".toml");
  std::ostringstream text;
  text << in.rdbuf();
  const auto s = parse_scenario(text.str(), name + ".toml");
  EXPECT_TRUE(s.ok()) << (s.ok() ? "" : s.error());
  return s.ok() ? *s : Scenario{};
}

// One run of each variant, which must complete without a wrong byte and show all items that the
// scenario names.
std::vector<RunResult> first_runs(const std::string& name) {
  const Scenario scenario = shipped(name);
  std::vector<RunResult> out;
  std::set<std::string> seen;
  for (const Setup& v : scenario.variants) {
    out.push_back(run_once(v, scenario.limit, scenario.seed, true));
    const RunResult& r = out.back();
    EXPECT_TRUE(r.complete) << name << ", " << v.name << ": " << r.end;
    EXPECT_EQ(r.wrong_bytes, 0u) << name << ", " << v.name;
    seen.insert(r.rules_seen.begin(), r.rules_seen.end());
  }
  const std::vector<std::string> known = known_rules();
  for (const std::string& rule : scenario.rules) {
    EXPECT_NE(std::find(known.begin(), known.end(), rule), known.end()) << name << ": " << rule;
    EXPECT_EQ(seen.count(rule), 1u) << name << ": " << rule << " was not seen";
  }
  return out;
}

std::size_t count(const RunResult& r, std::string_view what, std::string_view note = "") {
  return static_cast<std::size_t>(std::count_if(
      r.events.begin(), r.events.end(),
      [&](const Event& e) { return e.what == what && (note.empty() || e.note == note); }));
}

// proves: IB-114
TEST(SqeScenario, AUdSendQueueFailsAndRecoversWhileReceivesContinue) {
  const auto runs = first_runs("roce-sqe-ud");
  const RunResult& r = runs.at(0);
  EXPECT_EQ(r.messages, 400u);
  EXPECT_EQ(r.failed, 1u);
  // 2 ms, with a datagram every 100 us.
  EXPECT_GE(r.roce.came_in_sqe, 19u);
  EXPECT_LE(r.roce.came_in_sqe, 21u);
  EXPECT_EQ(count(r, "state", "SQE"), 1u);
  EXPECT_EQ(count(r, "state", "RTS"), 1u);
  const auto at = [&](const char* note) {
    return std::find_if(r.events.begin(), r.events.end(),
                        [&](const Event& e) { return e.note == note; })
        ->at;
  };
  EXPECT_EQ(at("RTS") - at("SQE"), Duration::ms(2));
}

// proves: IB-175, IB-176, IB-179
TEST(RdScenario, OnlyRefusedMessagesFail) {
  const auto runs = first_runs("roce-rd-resync");
  ASSERT_EQ(runs.size(), 3u);
  for (const RunResult& r : runs) {
    EXPECT_EQ(r.rd.resyncs, r.rd.resyncs_taken);
    EXPECT_EQ(r.rd.stops, r.rd.given_up);
    EXPECT_EQ(r.messages + r.rd.given_up, 400u);
    EXPECT_GE(r.rd.invalid_rd, 10u);
    EXPECT_EQ(r.messages - r.rd.first, 300u) << "the other queue pairs lose nothing";
  }
  for (int i = 0; i < 2; ++i) EXPECT_EQ(runs[i].rd.given_up, 10u) << "the tenth part, no more";
  EXPECT_EQ(runs[0].rd.put_back, 0u);
  EXPECT_GT(runs[1].rd.put_back, 10u);
  EXPECT_GT(runs[2].rd.given_up, 20u);
}

// proves: IB-177
TEST(RdScenario, ADeferredMessageLetsOthersGoFirst) {
  const auto runs = first_runs("roce-rd-resync");
  // The time when the others have received all their messages.
  const auto others_done = [](const RunResult& r) {
    for (const Sample& s : r.samples) {
      if (s[3] - s[4] == 300) return s[0];
    }
    return std::int64_t{-1};
  };
  ASSERT_GT(others_done(runs[0]), 0);
  EXPECT_LT(others_done(runs[1]) * 2, others_done(runs[0]));
}

TEST(RdScenario, TheSameSeedGivesTheSameRun) {
  const Scenario s = shipped("roce-rd-resync");
  std::string once[2];
  for (std::string& o : once) {
    const auto& v = s.variants.at(1);
    Scenario one = s;
    one.variants = {v};
    o = to_json(one, {{v.name, {run_once(v, s.limit, 9, true)}}});
  }
  EXPECT_EQ(once[0], once[1]);
  EXPECT_NE(once[0].find("\"resyncs_accepted\""), std::string::npos);
}

TEST(RdScenario, ARefusedWriteEndsLikeARefusedSend) {
  const auto s = parse_scenario(R"(
transport = "roce"
service = "rd"
[wire]
loss = 0.02
[qp]
ack_timeout = 8
[work]
op = "write"
size = [100, 10000]
count = 50
flows = 3
bad_every = 7
)",
                                "write.toml");
  ASSERT_TRUE(s.ok()) << s.error();
  const RunResult r = run_once(s->variants.front(), s->limit, 1, true);
  EXPECT_TRUE(r.complete) << r.end;
  EXPECT_EQ(r.wrong_bytes, 0u);
  EXPECT_EQ(r.rd.given_up, 7u);
  EXPECT_EQ(r.messages, 143u);
}

TEST(RdScenario, APeerThatIsCutOffEndsTheRun) {
  const auto s = parse_scenario(R"(
transport = "roce"
service = "rd"
[wire]
loss = 1
[qp]
ack_timeout = 8
[work]
op = "send"
flows = 2
)",
                                "cut.toml");
  ASSERT_TRUE(s.ok()) << s.error();
  const RunResult r = run_once(s->variants.front(), s->limit, 1, true);
  EXPECT_FALSE(r.complete);
  EXPECT_EQ(r.end, "left: the EE context is in Error");
}

TEST(RdScenario, InvalidScenariosGiveOneLine) {
  const auto wrong = [](const std::string& text) {
    const auto s = parse_scenario("transport = \"roce\"\n" + text, "one.toml");
    EXPECT_FALSE(s.ok()) << text;
    return s.ok() ? "" : s.error();
  };
  const std::string rd = "service = \"rd\"\n";
  EXPECT_NE(wrong(rd + "[work]\nop = \"read\"\n").find("send or write"), std::string::npos);
  EXPECT_NE(wrong(rd + "[work]\nsize = 10000000\nflows = 64\n").find("256 MiB"), std::string::npos);
  EXPECT_NE(wrong(rd + "connect = \"cm\"\n").find("service = rd"), std::string::npos);
  EXPECT_NE(wrong(rd + "[[phase]]\nbegin = \"1ms\"\n").find("phases"), std::string::npos);
  EXPECT_NE(wrong("[work]\nbad_every = 3\n").find("service = rd"), std::string::npos);
  EXPECT_NE(wrong("[qp]\non_rnr = \"suspend\"\n").find("service = rd"), std::string::npos);
  EXPECT_NE(wrong("[work]\nsqe_begin = \"1ms\"\n").find("service = ud"), std::string::npos);
  EXPECT_NE(wrong(rd + "[qp]\non_rnr = \"wait\"\n").find("retry, suspend, abandon or error"),
            std::string::npos);
}

}  // namespace
}  // namespace urnic::sim
