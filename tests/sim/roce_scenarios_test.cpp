// The shipped scenarios of RoCE show what they claim, within limits.
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

// One run of each variant (`runs` for all of them). Every run must complete without a wrong byte,
// report no gap twice, and send nothing during an RNR wait. Every item that the scenario names must
// be shown by some run.
std::vector<RunResult> first_runs(const std::string& name) {
  const Scenario scenario = shipped(name);
  std::vector<RunResult> out;
  std::set<std::string> seen;
  for (const Setup& v : scenario.variants) {
    EXPECT_TRUE(v.roce.on) << name;
    for (std::uint32_t i = 0; i < scenario.runs; ++i) {
      RunResult r = run_once(v, scenario.limit, scenario.seed + i, i == 0);
      EXPECT_TRUE(r.complete) << name << ", " << v.name << ": " << r.end;
      EXPECT_EQ(r.wrong_bytes, 0u) << name << ", " << v.name;
      EXPECT_EQ(r.failed, 0u) << name << ", " << v.name;
      EXPECT_EQ(r.roce.from_right.naks_told_twice, 0u) << name << ", " << v.name;
      EXPECT_EQ(r.roce.sent_in_waits, 0u) << name << ", " << v.name;
      seen.insert(r.rules_seen.begin(), r.rules_seen.end());
      if (i == 0) out.push_back(std::move(r));
    }
  }
  const std::vector<std::string> known = known_rules();
  for (const std::string& rule : scenario.rules) {
    EXPECT_NE(std::find(known.begin(), known.end(), rule), known.end()) << name << ": " << rule;
    EXPECT_EQ(seen.count(rule), 1u) << name << ": " << rule << " was not seen";
  }
  return out;
}

const RoceStats& asks(const RunResult& r) {
  return r.sender.roce;
}
const RoceStats& serves(const RunResult& r) {
  return r.receiver.roce;
}
std::size_t count(const RunResult& r, std::string_view what) {
  std::size_t n = 0;
  for (const Event& e : r.events) n += e.what == what ? 1 : 0;
  return n;
}

TEST(RoceScenarios, ADoubleLossCostsAProbeOrATimer) {
  const auto runs = first_runs("roce-double-loss");
  EXPECT_LT(runs[0].took, Duration::ms(2));
  EXPECT_EQ(asks(runs[0]).response_timeouts, 0u);
  EXPECT_GT(runs[1].took, Duration::ms(67));
  EXPECT_GT(runs[2].took, Duration::ms(2100));
  for (const RunResult& r : runs) {
    EXPECT_EQ(serves(r).sequence_naks_sent, 1u);
    EXPECT_EQ(count(r, "gap opens"), 1u);
    EXPECT_EQ(count(r, "gap closes"), 1u);
    ASSERT_EQ(r.repairs.size(), 1u);
    EXPECT_LT(r.repairs[0], r.took);
  }
}

TEST(RoceScenarios, ALostTailCostsAProbeOrATimer) {
  const auto runs = first_runs("roce-tail-loss");
  EXPECT_LT(runs[0].took, Duration::ms(4));
  EXPECT_EQ(asks(runs[0]).response_timeouts, 0u);
  EXPECT_GT(runs[1].took, Duration::ms(67));
  EXPECT_EQ(asks(runs[1]).response_timeouts, 1u);
}

// proves: S-10
TEST(RoceScenarios, AMarkingQueueStaysShortIfWindowsClose) {
  const auto runs = first_runs("roce-ecn-incast");
  EXPECT_EQ(runs[0].to_right.of(fault::FaultKind::Overflow), 0u);
  EXPECT_GT(runs[2].to_right.of(fault::FaultKind::Overflow), 10'000u);
  EXPECT_LT(runs[0].took, runs[2].took);
  EXPECT_LT(runs[1].took, runs[2].took);
  for (const RunResult* r : {&runs[0], &runs[1]}) {
    ASSERT_EQ(r->beside.size(), 7u);
    for (const Beside& b : r->beside) {
      EXPECT_EQ(b.wrong_bytes, 0u);
      EXPECT_GT(b.bytes * 4, r->bytes * 3) << "all get about the same";
      EXPECT_LT(b.bytes * 3, r->bytes * 4);
    }
    // The line is fully used: 1 Gb/s minus headers.
    EXPECT_GT(r->goodput() * 8, 850'000'000u);
  }
}

// proves: S-10
TEST(RoceScenarios, BesideTcpEachGetsAtLeastAQuarterOfTheOther) {
  const auto runs = first_runs("roce-beside-tcp");
  for (std::size_t i = 0; i + 1 < runs.size(); ++i) {
    ASSERT_EQ(runs[i].beside.size(), 1u);
    const Beside& tcp = runs[i].beside[0];
    EXPECT_EQ(tcp.transport, "iwarp");
    EXPECT_EQ(tcp.wrong_bytes, 0u);
    EXPECT_GE(tcp.bytes * 4, runs[i].bytes) << i;
    EXPECT_GE(runs[i].bytes * 4, tcp.bytes) << i;
  }
  EXPECT_LT(runs.back().beside[0].bytes * 4, runs.back().bytes) << "off, TCP starves";
}

TEST(RoceScenarios, HolesInReadsAreRequestedAgain) {
  const auto runs = first_runs("roce-read-hole");
  for (const RunResult& r : runs) {
    EXPECT_GT(asks(r).response_parts_requested, 50u);
    EXPECT_EQ(asks(r).implied_naks, 0u) << "what came behind a hole was thrown away";
  }
  EXPECT_EQ(asks(runs[1]).response_timeouts, 0u);
}

TEST(RoceScenarios, ReorderingHurtsFastLessThanSlow) {
  const auto runs = first_runs("roce-reordering");
  EXPECT_GT(runs[0].goodput() * 10, runs[2].goodput() * 11);
  EXPECT_EQ(runs[1].took, runs[2].took);  // without keeping packets it is SLOW
  EXPECT_LT(asks(runs[0]).requests_repeated, asks(runs[2]).requests_repeated);
}

TEST(RoceScenarios, WaitingSendsAreTransmittedOnce) {
  const auto runs = first_runs("roce-empty-receive-queue");
  EXPECT_EQ(asks(runs[0]).requests_sent, 60u);
  EXPECT_EQ(serves(runs[0]).rnr_naks_sent, 0u);
  for (int i = 1; i < 3; ++i) EXPECT_GT(asks(runs[i]).requests_sent, 20 * 60u);
}

TEST(RoceScenarios, AnRnrNakMakesThePeerWaitForTheEncodedTime) {
  const auto runs = first_runs("roce-rnr-codes");
  const double ms[] = {0.01, 0.64, 10.24, 491.52, 655.36};
  ASSERT_EQ(runs.size(), std::size(ms));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const double waited = static_cast<double>(runs[i].roce.longest_rnr_wait.count_ns()) * 1e-6;
    EXPECT_NEAR(waited, ms[i], 0.002) << i;
  }
}

TEST(RoceScenarios, CreditsAvoidRnrNaks) {
  const auto runs = first_runs("roce-credits");
  EXPECT_EQ(asks(runs[0]).requests_repeated, 0u);
  EXPECT_EQ(serves(runs[0]).rnr_naks_sent, 0u);
  EXPECT_GT(serves(runs[1]).rnr_naks_sent, 100u);
  EXPECT_EQ(runs[1].roce.from_right.acks_with_credits, 0u);
}

TEST(RoceScenarios, DuplicatesAreNotExecutedTwice) {
  for (const RunResult& r : first_runs("roce-duplicates")) {
    // 3 % of 400 to 3200 packets are duplicated; Reads only request missing parts.
    EXPECT_GT(serves(r).requests_duplicate, 50u);
    EXPECT_EQ(r.messages, 400u);
  }
}

TEST(RoceScenarios, ABadWireDowngradesAndAGoodOneUpgrades) {
  const auto runs = first_runs("roce-downgrade-upgrade");
  EXPECT_EQ(serves(runs[0]).roce_downgrades, 0u);
  EXPECT_EQ(serves(runs[1]).store_full_downgrades, 0u);
  EXPECT_EQ(serves(runs[2]).store_full_downgrades, serves(runs[2]).roce_downgrades);
  for (int i = 1; i < 3; ++i) {
    EXPECT_GT(serves(runs[i]).roce_downgrades, 1u);
    EXPECT_EQ(serves(runs[i]).roce_upgrades, serves(runs[i]).roce_downgrades);
    EXPECT_TRUE(serves(runs[i]).fast);
    EXPECT_GE(count(runs[i], "downgrade"), 1u);  // among the recorded events
    EXPECT_GT(runs[0].goodput(), runs[i].goodput());
  }
  EXPECT_LE(runs[2].roce.most_held, 128u);
}

TEST(RoceScenarios, UnreliableServicesLoseWholeMessages) {
  const auto runs = first_runs("roce-uc-resync");
  for (const RunResult& r : runs) {
    EXPECT_GT(r.messages, 500u);
    EXPECT_LT(r.messages, 1000u);
    EXPECT_EQ(r.roce.from_right.responses, 0u);
  }
  EXPECT_GT(runs[0].messages, runs[1].messages);
}

TEST(RoceScenarios, XrcWorksLikeRcWithQueuesByNumber) {
  const auto runs = first_runs("roce-xrc");
  for (const RunResult& r : runs) {
    EXPECT_EQ(r.messages, 500u);
    EXPECT_GT(asks(r).requests_repeated, 0u);
    EXPECT_EQ(serves(r).requests_refused, 0u);
    EXPECT_EQ(r.roce.from_right.acks_with_credits, 0u);
  }
  EXPECT_TRUE(asks(runs[0]).selective && serves(runs[0]).selective) << "by a hello";
  EXPECT_TRUE(asks(runs[1]).selective && serves(runs[1]).selective) << "by connection management";
  EXPECT_EQ(serves(runs[2]).requests_held, 0u);
  EXPECT_GT(runs[0].goodput(), runs[2].goodput());
}

TEST(RoceScenarios, ConnectionsComeUpOverABadWire) {
  const auto runs = first_runs("roce-cm-loss");
  EXPECT_EQ(runs[0].roce.management_again, 0u);
  EXPECT_LT(runs[0].setup, Duration::ms(1));
}

TEST(RoceScenarios, TheSendQueueDrainsAndContinues) {
  for (const RunResult& r : first_runs("roce-sqd")) {
    EXPECT_EQ(r.roce.drained, 1u);
    EXPECT_EQ(count(r, "state"), 2u);
    // Nothing moves between drained and Rts.
    const auto drained = std::find_if(r.events.begin(), r.events.end(),
                                      [](const Event& e) { return e.what == "drained"; });
    ASSERT_NE(drained, r.events.end());
    ASSERT_NE(drained + 1, r.events.end());
    EXPECT_EQ((drained + 1)->what, "state");
    EXPECT_EQ((drained + 1)->note, "RTS");
    EXPECT_EQ((drained + 1)->at - drained->at, Duration::ms(2));
    EXPECT_LT(r.took, Duration::ms(60));
  }
}

TEST(RoceScenarios, SelectiveRepeatBeatsFastAndFastBeatsGoBackN) {
  const auto runs = first_runs("roce-go-back-n-vs-selective");
  ASSERT_EQ(runs.size(), 24u);
  for (int trip = 0; trip < 2; ++trip) {
    const RunResult* const selective = &runs[trip * 12];
    const RunResult* const fast = selective + 4;
    const RunResult* const slow = fast + 4;
    EXPECT_EQ(fast[0].took, slow[0].took);
    for (int loss = 1; loss < 4; ++loss) {
      EXPECT_GE(selective[loss].goodput(), fast[loss].goodput()) << trip << loss;
      EXPECT_GE(fast[loss].goodput() * 100, slow[loss].goodput() * 99) << trip << loss;
      EXPECT_LT(fast[loss].goodput(), fast[loss - 1].goodput());
      EXPECT_EQ(asks(fast[loss]).response_timeouts, 0u);
      EXPECT_EQ(asks(selective[loss]).response_timeouts, 0u);
    }
    EXPECT_GT(fast[3].goodput(), 4 * slow[3].goodput());
    EXPECT_GT(selective[3].goodput() * 10, 9 * selective[0].goodput());
  }
}

// ---- observation

TEST(RoceExperiment, TheSameScenarioGivesTheSameBytes) {
  const Scenario s = shipped("roce-duplicates");
  std::string once[2];
  for (std::string& o : once) {
    std::vector<VariantResult> results;
    for (const auto& v : s.variants) results.push_back({v.name, {run_once(v, s.limit, 9, true)}});
    o = to_json(s, results);
  }
  EXPECT_EQ(once[0], once[1]);
  EXPECT_NE(once[0].find("\"psn_in_order\""), std::string::npos);
  EXPECT_EQ(once[0].find("\"cwnd\""), std::string::npos);
}

TEST(RoceExperiment, APeerThatIsCutOffEndsTheRun) {
  const auto s = parse_scenario(R"(
transport = "roce"
[[phase]]
begin = "1ms"
loss = 1
[work]
count = 100000
[qp]
ack_timeout = 8
)",
                                "cut.toml");
  ASSERT_TRUE(s.ok()) << s.error();
  const RunResult r = run_once(s->variants.front(), s->limit, 1, true);
  EXPECT_FALSE(r.complete);
  EXPECT_EQ(r.end, "left: no response to any retransmission");
  EXPECT_NE(std::find(r.rules_seen.begin(), r.rules_seen.end(), "IB-71"), r.rules_seen.end());
}

TEST(RoceExperiment, DamageIsCountedAndRepaired) {
  const auto s = parse_scenario("transport = \"roce\"\n[wire]\ncorrupt = 0.01\n", "bad.toml");
  ASSERT_TRUE(s.ok()) << s.error();
  const RunResult r = run_once(s->variants.front(), s->limit, 1, true);
  EXPECT_TRUE(r.complete);
  EXPECT_EQ(r.wrong_bytes, 0u);
  const auto corrupted =
      r.to_right.of(fault::FaultKind::Corrupt) + r.to_left.of(fault::FaultKind::Corrupt);
  EXPECT_GT(corrupted, 50u);
  EXPECT_EQ(r.roce.bad_icrc, corrupted);
}

std::string wrong(const std::string& text) {
  const auto s = parse_scenario(text, "one.toml");
  EXPECT_FALSE(s.ok());
  return s.ok() ? "" : s.error();
}

TEST(RoceScenario, InvalidScenariosGiveOneLine) {
  const std::string roce = "transport = \"roce\"\n";
  EXPECT_EQ(wrong("transport = \"rocky\"\n"),
            "one.toml:1: transport: expected iwarp or roce, not 'rocky'");
  EXPECT_EQ(wrong("[both]\nprobe = true\n"),
            "one.toml:2: both.probe: applies only to RoCE, and no variant has transport = roce");
  EXPECT_EQ(wrong(roce + "[left]\nsender = \"rack\"\n"),
            "one.toml:3: left.sender: applies only to iWARP, and no variant has transport = iwarp");
  EXPECT_NE(wrong("[both]\nout_of_order = \"drop\"\n").find("transport = roce"), std::string::npos);
  EXPECT_NE(wrong("[work]\nop = \"atomic\"\n").find("transport = roce"), std::string::npos);
  EXPECT_NE(wrong("[work]\nsqd_begin = \"1ms\"\n").find("transport = roce"), std::string::npos);
  EXPECT_NE(wrong(roce + "work.embed = true\n").find("transport = iwarp"), std::string::npos);
  EXPECT_NE(wrong(roce + "service = \"uc\"\n").find("work.op = send"), std::string::npos);
  EXPECT_NE(wrong(roce + "service = \"uc\"\nconnect = \"cm\"\nwork.op = \"send\"\n").find("rc"),
            std::string::npos);
  EXPECT_NE(wrong(roce + "service = \"ud\"\n[work]\nop = \"send\"\nsize = 1025\n").find("path MTU"),
            std::string::npos);
  EXPECT_NE(wrong(roce + "qp.ack_timeout = 32\n").find("0 to 31"), std::string::npos);
}

TEST(RoceScenario, VariantsMayUseDifferentTransports) {
  const auto s = parse_scenario(R"(
[both]
probe = false
sender = "rack"
[[variant]]
name = "iWARP"
[[variant]]
name = "RoCE"
transport = "roce"
)",
                                "one.toml");
  ASSERT_TRUE(s.ok()) << s.error();
  EXPECT_FALSE(s->variants[0].left.speaks_roce);
  EXPECT_TRUE(s->variants[1].left.speaks_roce);
  EXPECT_FALSE(s->variants[1].right.roce.probe);
  const auto results = run_scenario(*s);
  for (const VariantResult& v : results) EXPECT_TRUE(v.runs[0].complete) << v.name;
  EXPECT_FALSE(to_json(*s, results).empty());
}

}  // namespace
}  // namespace urnic::sim
