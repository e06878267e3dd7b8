// Scenario files: their syntax, which values take precedence, and errors in one line.
#include "sim/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fault/plan.h"

namespace urnic::sim {
namespace {

using fastpath::ConnectionType;
using testing::HasSubstr;

Scenario parsed(std::string_view text, std::vector<Override> overrides = {}) {
  auto s = parse_scenario(text, "dir/one.toml", overrides);
  EXPECT_TRUE(s.ok()) << (s.ok() ? "" : s.error());
  if (s.ok()) return *s;
  Scenario none;
  none.variants.emplace_back().phases.emplace_back();
  return none;
}

std::string wrong(std::string_view text, std::vector<Override> overrides = {}) {
  const auto s = parse_scenario(text, "one.toml", overrides);
  EXPECT_FALSE(s.ok());
  if (s.ok()) return "";
  EXPECT_EQ(s.error().find('\n'), std::string::npos) << s.error();
  return s.error();
}

TEST(Scenario, AnEmptyFileIsOneVariantWithTheProductsDefaults) {
  const Scenario s = parsed("");
  EXPECT_EQ(s.name, "one");
  EXPECT_EQ(s.title, "one");
  ASSERT_EQ(s.variants.size(), 1u);
  const auto& v = s.variants.front();
  EXPECT_EQ(v.left.tcp.ack_policy, tcp::AckPolicy::PerBurst);  // E-7
  EXPECT_EQ(v.right.context.max_recovery_attempts, 32u);       // E-35
  ASSERT_EQ(v.phases.size(), 1u);
  EXPECT_EQ(v.phases.front().to_right, "");
}

TEST(Scenario, InvalidTomlGivesOneLineWithItsPosition) {
  EXPECT_EQ(wrong("\n[=]").substr(0, 12), "one.toml:2: ");
  EXPECT_EQ(wrong("[both]\ntype = \xc3\xa9").substr(0, 12), "one.toml:2: ");
  EXPECT_EQ(wrong("[,").substr(0, 12), "one.toml:1: ");
}

TEST(Scenario, SettingsForOneNodeOverrideSettingsForBoth) {
  const Scenario s = parsed("[both]\ntype = \"slow\"\nhole_limit = 7\n[left]\ntype = \"fast\"\n");
  const auto& v = s.variants.front();
  EXPECT_EQ(v.left.context.initiated_as, ConnectionType::Fast);
  EXPECT_EQ(v.right.context.initiated_as, ConnectionType::Slow);
  EXPECT_EQ(v.left.tcp.hole_limit, 7u);
}

TEST(Scenario, SettingsForOneDirectionOverrideSettingsForTheWire) {
  const Scenario s =
      parsed("[wire]\nloss = 0.1\ndelay = \"5us\"\nqueue = 9\n[wire.to_left]\nloss = 0\n");
  const Phase& p = s.variants.front().phases.front();
  const auto right = fault::FaultPlan::parse(p.to_right), left = fault::FaultPlan::parse(p.to_left);
  ASSERT_TRUE(right.ok() && left.ok());
  EXPECT_EQ(right->loss, 0.1);
  EXPECT_EQ(left->loss, 0);
  EXPECT_EQ(left->limit, 9u);
  EXPECT_EQ(left->delay, Duration::us(5));
}

TEST(Scenario, PhasesKeepUnchangedSettings) {
  const Scenario s = parsed(
      "[wire]\ndelay = \"1ms\"\nat = \"loss:3\"\n"
      "[[phase]]\nbegin = \"2ms\"\nname = \"box\"\nto_right.reseg = 1\nto_right.at = []\n"
      "[[phase]]\nbegin = \"3ms\"\npath_mtu = 1000\n");
  const auto& phases = s.variants.front().phases;
  ASSERT_EQ(phases.size(), 3u);
  EXPECT_EQ(phases[1].name, "box");
  EXPECT_EQ(phases[1].to_right, "delay=1ms,reseg=1");
  EXPECT_EQ(phases[1].to_left, "at=loss:3,delay=1ms");
  EXPECT_EQ(phases[2].to_right, phases[0].to_right);
  EXPECT_EQ(phases[2].path_mtu, 1000u);
}

TEST(Scenario, AVariantOverridesTheRestAndMayHaveItsOwnPhases) {
  const Scenario s = parsed(
      "[work]\nsize = [1, 2, 3]\ncount = 5\n[[phase]]\nbegin = \"1ms\"\n"
      "[[variant]]\nname = \"a\"\n"
      "[[variant]]\nname = \"b\"\nwork.count = 6\n[[variant.phase]]\nbegin = \"7ms\"\n");
  ASSERT_EQ(s.variants.size(), 2u);
  EXPECT_EQ(s.variants[0].work.count, 5u);
  EXPECT_EQ(s.variants[1].work.count, 6u);
  EXPECT_EQ(s.variants[1].work.sizes, (std::vector<std::uint32_t>{1, 2, 3}));
  EXPECT_EQ(s.variants[0].phases[1].begin, Duration::ms(1));
  EXPECT_EQ(s.variants[1].phases[1].begin, Duration::ms(7));
}

TEST(Scenario, SetOverridesEverythingInEveryVariant) {
  const std::string_view text =
      "[wire]\nloss = 0.5\n[[phase]]\nbegin = \"1ms\"\nloss = 0.25\n"
      "[[variant]]\nname = \"a\"\nright.upgrade_after = 3\n[[variant]]\nname = \"b\"\n";
  const Scenario s = parsed(text, {{"right.upgrade_after", "9"},
                                   {"seed", "44"},
                                   {"phase.1.begin", "8ms"},
                                   {"work.size", "10,20"}});
  EXPECT_EQ(s.seed, 44u);
  for (const auto& v : s.variants) {
    EXPECT_EQ(v.right.context.upgrade_after, 9u);
    EXPECT_EQ(v.phases[1].begin, Duration::ms(8));
    EXPECT_EQ(v.work.sizes, (std::vector<std::uint32_t>{10, 20}));
  }
}

TEST(Scenario, ErrorsGiveFileAndLine) {
  EXPECT_THAT(wrong("x = 1\n"), HasSubstr("one.toml:1: x: unknown key"));
  EXPECT_THAT(wrong("\n[right]\nupgrade = 1\n"), HasSubstr("one.toml:3: right.upgrade: unknown"));
  EXPECT_THAT(wrong("[wire]\nlos = 0.1\n"), HasSubstr("one.toml:2: wire.los: unknown key"));
  EXPECT_THAT(wrong("[wire]\nlos = 0.1\n"), HasSubstr("the nearest is 'loss'"));
  EXPECT_THAT(wrong("[left]\nrto_mn = 5\n"), HasSubstr("the nearest is 'left.rto_min'"));
  EXPECT_THAT(wrong("[wire]\nloss = 2\n"), HasSubstr("probability"));
  EXPECT_THAT(wrong("[wire]\nloss = true\n"), HasSubstr("one.toml:2: wire.loss: expected"));
  EXPECT_THAT(wrong("[wire]\nrate = \"fast\"\n"), HasSubstr("for example 500mbit"));
  EXPECT_THAT(wrong("[wire]\ndelay = \"1ms,loss=1\"\n"), HasSubstr("wire.delay: expected"));
  EXPECT_THAT(wrong("[wire]\npath_mtu = 10\n"), HasSubstr("576 to 9000"));
  EXPECT_THAT(wrong("[wire.to_left]\npath_mtu = 1000\n"), HasSubstr("both directions"));
  EXPECT_THAT(wrong("[work]\ncount = \"many\"\n"), HasSubstr("not 'many'"));
  EXPECT_THAT(wrong("[work]\ncount = 1.5\n"), HasSubstr("expected 1 to 10000000"));
  EXPECT_THAT(wrong("[work]\nsize = []\n"), HasSubstr("expected bytes"));
  EXPECT_THAT(wrong("[work]\nop = \"bind\"\n"), HasSubstr("write, send, read or atomic"));
  EXPECT_THAT(wrong("[left]\nsack = \"yes\"\n"), HasSubstr("true or false"));
  EXPECT_THAT(wrong("[left]\nrto_min = 3\n"), HasSubstr("for example \"2ms\""));
  EXPECT_THAT(wrong("seed = -1\n"), HasSubstr("one.toml:1: seed"));
  EXPECT_THAT(wrong("a = [\n"), HasSubstr("one.toml:"));
  EXPECT_THAT(wrong("phase = 3\n"), HasSubstr("write [[phase]]"));
  EXPECT_THAT(wrong("[work]\nsize = [[1]]\n"), HasSubstr("plain values"));
}

TEST(Scenario, ImpossibleScenariosAreRefused) {
  EXPECT_THAT(wrong("[work]\nsize = 16777216\ndepth = 1000\ncount = 1000\n"), HasSubstr("256 MiB"));
  EXPECT_THAT(wrong("[both]\nrto_min = \"2s\"\nrto_max = \"1s\"\n"), HasSubstr("rto_min"));
  EXPECT_THAT(wrong("[[phase]]\nloss = 0\n"), HasSubstr("phase 1 has no `begin`"));
  EXPECT_THAT(wrong("[[phase]]\nbegin = \"0ms\"\n"), HasSubstr("one.toml:2: phase: begin"));
  EXPECT_THAT(wrong("[[phase]]\nbegin = \"2ms\"\n[[phase]]\nbegin = \"1ms\"\n"),
              HasSubstr("one.toml:4: phase: begin"));
  EXPECT_THAT(wrong("[[variant]]\nmtu = 1500\n"), HasSubstr("no `name`"));
  EXPECT_THAT(wrong("[[variant]]\nname = \"a\"\n[[variant]]\nname = \"a\"\n"),
              HasSubstr("two variants have the name 'a'"));
  EXPECT_THAT(wrong("", {{"phase.1.begin", "1ms"}}), HasSubstr("only 0 phases"));
  EXPECT_THAT(wrong("", {{"phase.x", "1"}}), HasSubstr("--set phase.x"));
  EXPECT_THAT(wrong("", {{"wire.loss", "2"}}), HasSubstr("--set wire.loss"));
}

// proves: E-3
TEST(Scenario, FramingSelectsItsInLogic) {
  const Scenario s = parsed("[both]\nframing = \"modified-length\"\n");
  const auto& v = s.variants.front();
  for (const engine::Options* o : {&v.left, &v.right}) {
    EXPECT_EQ(o->mpa.policy, mpa::Policy::ModifiedLength);
    EXPECT_EQ(o->context.variant, fastpath::InLogicVariant::Fig3);
  }
  EXPECT_THAT(wrong("[both]\nframing = \"markers\"\nin_logic = \"fig9\"\n"), HasSubstr("Fig 3"));
  EXPECT_THAT(wrong("[left]\nframing = \"fig3\"\n"), HasSubstr("no-markers"));
}

TEST(Scenario, EveryListedKeyIsAccepted) {
  for (const KeyHelp& k : scenario_keys()) {
    // An invalid value of a known key must not be reported as an unknown key.
    const auto s = parse_scenario("", "x", std::vector<Override>{{std::string(k.key), "\x01"}});
    if (s.ok()) continue;  // a text accepts any value
    EXPECT_EQ(s.error().find("unknown key"), std::string::npos) << s.error();
  }
}

}  // namespace
}  // namespace urnic::sim
