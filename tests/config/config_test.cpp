#include "urnic/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

#include "device/engine_options.h"

namespace urnic {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Sets the environment for a test and restores it at the end.
class ConfigTest : public testing::Test {
 protected:
  ConfigTest() {
    char name[] = "/tmp/urnic-config-XXXXXX";
    folder_ = mkdtemp(name);
    env("URNIC_CONFIG", "");
    env("XDG_CONFIG_HOME", folder_);
    env("XDG_RUNTIME_DIR", "/run/nowhere");
  }
  ~ConfigTest() override {
    for (const auto& [name, value] : before_) {
      if (value) {
        setenv(name.c_str(), value->c_str(), 1);
      } else {
        unsetenv(name.c_str());
      }
    }
    std::filesystem::remove_all(folder_);
  }
  void env(const std::string& name, const std::string& value) {
    const char* old = getenv(name.c_str());
    before_.try_emplace(name, old == nullptr ? std::nullopt : std::optional<std::string>(old));
    setenv(name.c_str(), value.c_str(), 1);
  }
  std::string file(const std::string& text, const std::string& name = "urnic.toml") {
    std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  static std::string error_of(const Result<Config>& c) { return c ? "" : c.error().message; }

  std::string folder_;
  std::map<std::string, std::optional<std::string>> before_;
};

Setting setting(const Config& c, const std::string& name) {
  for (const Setting& s : c.settings()) {
    if (s.name == name) return s;
  }
  return {};
}

TEST_F(ConfigTest, DefaultsAreThoseOfE35AndConsistent) {
  const Config c;
  EXPECT_EQ(c.get("framing"), "no-markers");
  EXPECT_EQ(c.get("in_logic"), "auto");
  EXPECT_EQ(c.get_int("max_recovery_attempts"), 32);
  EXPECT_EQ(c.get_int("max_same_segment"), 4);
  EXPECT_EQ(c.get_int("upgrade_after"), 64);
  EXPECT_EQ(c.get_int("hole_limit"), 256);
  EXPECT_TRUE(c.get_bool("immediate_dup_ack"));
  EXPECT_TRUE(c.get_bool("crc"));
  EXPECT_EQ(c.get_int("mpa_revision"), 2);
  EXPECT_TRUE(c.get_bool("peer_to_peer"));
  EXPECT_EQ(c.get("rtr"), "write,read");
  EXPECT_EQ(c.get("port"), "memif:socket=/run/nowhere/urnic.sock,mtu=65000");
  EXPECT_TRUE(c.check().ok());
}

TEST_F(ConfigTest, EverySettingHasHelpAndAValidValue) {
  for (const Setting& s : Config().settings()) {
    EXPECT_GT(s.help.size(), 8u) << s.name;
    EXPECT_EQ(s.origin, Origin::standard) << s.name;
    Config c;
    EXPECT_TRUE(c.set(s.name, s.value).ok()) << s.name << " = " << s.value;
    EXPECT_EQ(c.get(s.name), s.value);
  }
}

TEST_F(ConfigTest, PrecedenceIsFileThenEnvironmentThenCommandLine) {
  const std::string path =
      file("mtu = 1500\nmax_recovery_attempts = 3\nconnection_type = \"slow\"\n");
  env("URNIC_MTU", "4000");
  env("URNIC_CONNECTION_TYPE", "fast");
  auto c = Config::load(path);
  ASSERT_TRUE(c.ok()) << error_of(c);
  ASSERT_TRUE(c->set("mtu", "9000").ok());
  EXPECT_EQ(c->get_int("mtu"), 9000);
  EXPECT_EQ(setting(*c, "mtu").origin, Origin::command_line);
  EXPECT_EQ(c->get("connection_type"), "fast");
  EXPECT_EQ(setting(*c, "connection_type").origin, Origin::environment);
  EXPECT_EQ(setting(*c, "connection_type").origin_detail, "URNIC_CONNECTION_TYPE");
  EXPECT_EQ(c->get_int("max_recovery_attempts"), 3);
  EXPECT_EQ(setting(*c, "max_recovery_attempts").origin_detail, path + ":2");
  EXPECT_EQ(setting(*c, "crc").origin, Origin::standard);
}

TEST_F(ConfigTest, TomlTypesAreAccepted) {
  auto c =
      Config::load(file("crc = false\nreceive_window = \"1M\"\nrtr = [\"read\"]\n"
                        "address = [\"10.1.0.1/16\", \"fd00::1/64\"]\nspin_us = 0x10\n"));
  ASSERT_TRUE(c.ok()) << error_of(c);
  EXPECT_FALSE(c->get_bool("crc"));
  EXPECT_EQ(c->get_int("receive_window"), 1 << 20);
  EXPECT_EQ(c->get("rtr"), "read");
  EXPECT_EQ(c->get("address"), "10.1.0.1/16,fd00::1/64");
  EXPECT_EQ(c->get_int("spin_us"), 16);
}

TEST_F(ConfigTest, ErrorsNameFileLineAndKey) {
  const std::string path = file("crc = true\nmtuu = 1500\n");
  EXPECT_THAT(error_of(Config::load(path)),
              AllOf(HasSubstr(path + ":2"), HasSubstr("'mtuu'"), HasSubstr("'mtu'")));
  EXPECT_THAT(error_of(Config::load(file("\n\nmtu = 1\n"))),
              AllOf(HasSubstr(":3"), HasSubstr("mtu"), HasSubstr("576 to 65521")));
  EXPECT_THAT(error_of(Config::load(file("mtu = 1.5\n"))), HasSubstr("mtu"));
  // Errors at which toml++ alone would abort the program.
  EXPECT_THAT(error_of(Config::load(file("mtu = 1500\n[=]\n"))), HasSubstr("urnic.toml:2: "));
  EXPECT_THAT(error_of(Config::load(file("[\xc3\xa9]\n"))), HasSubstr("urnic.toml:1: "));
  EXPECT_THAT(error_of(Config::load(file("[engine]\nmtu = 1500\n"))), HasSubstr("unknown section"));
  EXPECT_THAT(error_of(Config::load(file("rtr = []\n"))), HasSubstr("rtr"));
  EXPECT_THAT(error_of(Config::load(file("rtr = [1]\n"))), HasSubstr("rtr"));
  EXPECT_THAT(error_of(Config::load(file("mtu = \n"))), HasSubstr(":1"));
  EXPECT_THAT(error_of(Config::load(file("mtu = 1500\nmtu = 1501\n"))), HasSubstr("mtu"));
}

TEST_F(ConfigTest, BrokenFilesAreRefusedNotFatal) {
  std::string deep(100000, '[');
  EXPECT_FALSE(Config::load(file("mtu = " + deep)).ok());
  EXPECT_FALSE(Config::load(file(std::string("\xff\xfe\0\x01", 4))).ok());
  EXPECT_FALSE(Config::load(file(std::string(2 << 20, '#'))).ok());
  EXPECT_THAT(error_of(Config::load(folder_)), HasSubstr("directory"));
  EXPECT_THAT(error_of(Config::load(folder_ + "/none.toml")), HasSubstr("No such file"));
}

TEST_F(ConfigTest, AFileIsLimitedToOneMiB) {
  EXPECT_TRUE(Config::load(file(std::string(1 << 20, '#'))).ok());
  EXPECT_THAT(error_of(Config::load(file(std::string((1 << 20) + 1, '#')))),
              HasSubstr("limit 1 MiB"));
}

TEST_F(ConfigTest, TheDefaultFileIsReadIfItExists) {
  EXPECT_TRUE(Config::load().ok());
  ASSERT_EQ(mkdir((folder_ + "/urnic").c_str(), 0700), 0);
  file("hole_limit = 7\n", "urnic/urnic.toml");
  auto c = Config::load();
  ASSERT_TRUE(c.ok()) << error_of(c);
  EXPECT_EQ(c->get_int("hole_limit"), 7);
  env("URNIC_CONFIG", file("hole_limit = 8\n", "other.toml"));
  EXPECT_EQ(Config::load()->get_int("hole_limit"), 8);
  EXPECT_EQ(Config::load(file("hole_limit = 9\n", "third.toml"))->get_int("hole_limit"), 9);
  env("URNIC_CONFIG", folder_ + "/none.toml");  // explicitly named, so it must exist
  EXPECT_FALSE(Config::load().ok());
}

TEST_F(ConfigTest, UnknownVariablesAreRefusedExceptReservedOnes) {
  env("URNIC_PLUGIN_DIR", "/nowhere");
  env("URNIC_SYSFS", "/nowhere");
  env("URNIC_VERBS_FAULTS", "late=1");
  env("URNIC_VERBS_FAULTS_LOG", "/nowhere");
  env("URNIC_TEST_LONG", "1");
  EXPECT_TRUE(Config::load().ok());
  env("URNIC_HOLE_LIMITS", "3");
  EXPECT_THAT(error_of(Config::load()),
              AllOf(HasSubstr("URNIC_HOLE_LIMITS"), HasSubstr("did you mean URNIC_HOLE_LIMIT?")));
}

TEST_F(ConfigTest, LowerCaseVariablesAreNotSettings) {
  env("URNIC_mtu", "1500");
  EXPECT_FALSE(Config::load().ok());
}

struct BadValue {
  const char *name, *value, *says;
};
class ConfigValueTest : public testing::TestWithParam<BadValue> {};

TEST_P(ConfigValueTest, IsRefusedWithTheRange) {
  Config c;
  const std::string before = c.get(GetParam().name);
  const auto r = c.set(GetParam().name, GetParam().value);
  ASSERT_FALSE(r.ok());
  EXPECT_THAT(r.error().message, AllOf(HasSubstr(GetParam().name), HasSubstr(GetParam().says)));
  EXPECT_EQ(c.get(GetParam().name), before) << "a refused value changes nothing";
}

INSTANTIATE_TEST_SUITE_P(
    Values, ConfigValueTest,
    testing::Values(
        BadValue{"mtu", "575", "576 to 65521"}, BadValue{"mtu", "", "whole number"},
        BadValue{"mtu", "1500x", "whole number"}, BadValue{"mtu", "-1", "whole number"},
        BadValue{"vlan", "4095", "0 to 4094"}, BadValue{"vlan", "auto", "0 to 4094"},
        BadValue{"ird", "16383", "0 to 16382"}, BadValue{"hole_limit", "0", "1 to"},
        BadValue{"receive_window", "1", "K, M, G"}, BadValue{"receive_window", "4Q", "K, M, G"},
        BadValue{"receive_window", "99999999999999G", "K, M, G"},
        BadValue{"crc", "maybe", "on or off"}, BadValue{"connection_type", "FAST", "fast or slow"},
        BadValue{"rtr", "write,send", "write or read"}, BadValue{"rtr", ",", "at least one"},
        BadValue{"port", "memif", "kind:key=value"}, BadValue{"port", ":x", "kind:"},
        BadValue{"mac", "01:00:5e:00:00:01", "multicast"}, BadValue{"mac", "02:00", "MAC address"},
        BadValue{"address", "10.0.0.1", "prefix length"},
        BadValue{"address", "10.0.0.0/24", "host address"},
        BadValue{"address", "127.0.0.1/8", "host address"},
        BadValue{"address", "224.0.0.1/4", "host address"},
        BadValue{"gateway", "10.0.0.1,10.0.0.2", "at most one"},
        BadValue{"allow", "10.0.0.0/33", "'10.0.0.0/33'"},
        BadValue{"deny", "10.0.0.1,all", "'all' is neither"},
        BadValue{"accept_rate", "1000001", "0 to 1000000"},
        BadValue{"gateway", "0.0.0.0", "gateway"}, BadValue{"capture", "a\nb", "control character"},
        BadValue{"log", "trace", "off, error, warn, info or debug"}));

TEST_F(ConfigTest, ValuesAreNormalized) {
  Config c;
  ASSERT_TRUE(c.set("crc", "no").ok());
  EXPECT_EQ(c.get("crc"), "off");
  ASSERT_TRUE(c.set("allow", " 10.1.2.3/8 ,fd77::0001, 127.0.0.1/32").ok());
  EXPECT_EQ(c.get("allow"), "10.0.0.0/8,fd77::1/128,127.0.0.1/32");
  ASSERT_TRUE(c.set("allow", "").ok());
  EXPECT_EQ(c.get("allow"), "");
  ASSERT_TRUE(c.set("rtr", " read , write").ok());
  EXPECT_EQ(c.get("rtr"), "write,read");
  ASSERT_TRUE(c.set("mac", "02-00-0A-4D-00-01").ok());
  EXPECT_EQ(c.get("mac"), "02:00:0a:4d:00:01");
  ASSERT_TRUE(c.set("address", " fd77:0:0::1/64 ").ok());
  EXPECT_EQ(c.get("address"), "fd77::1/64");
  ASSERT_TRUE(c.set("address", "10.0.0.0/31").ok()) << "RFC 3021: both addresses are hosts";
  ASSERT_TRUE(c.set("mtu", "auto").ok());
  EXPECT_EQ(c.get_int("mtu"), 0);
}

TEST_F(ConfigTest, UnknownNamesAreRefusedWithTheNearestOne) {
  Config c;
  const auto r = c.set("max-recovery-attempts", "3");
  ASSERT_FALSE(r.ok());
  EXPECT_THAT(r.error().message, HasSubstr("'max_recovery_attempts'"));
  EXPECT_EQ(c.get("nothing"), "");
  EXPECT_EQ(c.get_int("nothing"), 0);
  EXPECT_FALSE(c.get_bool("nothing"));
}

// proves: E-3
TEST_F(ConfigTest, NoMarkersNeedsARecoveryAttempt) {
  Config c;
  ASSERT_TRUE(c.set("max_recovery_attempts", "0").ok());
  ASSERT_FALSE(c.check().ok());
  EXPECT_THAT(c.check().error().message, HasSubstr("max_recovery_attempts"));
  ASSERT_TRUE(c.set("transport", "roce").ok());
  EXPECT_TRUE(c.check().ok()) << "that is iWARP's alone";
  ASSERT_TRUE(c.set("transport", "both").ok());
  EXPECT_FALSE(c.check().ok());
  ASSERT_TRUE(c.set("max_recovery_attempts", "1").ok());
  EXPECT_TRUE(c.check().ok());
}

// proves: E-3
TEST_F(ConfigTest, OnlyLegalCombinationsOfFramingAndInLogicAreAccepted) {
  for (const char* framing : {"no-markers", "markers", "absolute-markers", "modified-length"}) {
    for (const char* logic : {"auto", "fig3", "fig9", "fig10"}) {
      Config c;
      ASSERT_TRUE(c.set("framing", framing).ok());
      ASSERT_TRUE(c.set("in_logic", logic).ok());
      const bool marked = std::string(framing) != "no-markers";
      const bool legal = std::string(logic) == "auto" || marked == (std::string(logic) == "fig3");
      EXPECT_EQ(c.check().ok(), legal) << framing << " " << logic;
      // Fig 3 only means max_recovery_attempts = 0; Figs 9 and 10 need section 4.
      ASSERT_TRUE(c.set("max_recovery_attempts", "0").ok());
      EXPECT_EQ(c.check().ok(), legal && marked) << framing << " " << logic;
    }
  }
  EXPECT_EQ(Config::matrix().size(), 5u);
  EXPECT_THAT(Config::matrix(), testing::Each(HasSubstr("fig")));
}

// proves: E-31
TEST_F(ConfigTest, KernelTcpHasNoMarkers) {
  Config c;
  ASSERT_TRUE(c.set("port", "tcp").ok());
  EXPECT_TRUE(c.check().ok());
  ASSERT_TRUE(c.set("framing", "markers").ok());
  ASSERT_FALSE(c.check().ok());
  EXPECT_THAT(c.check().error().message, HasSubstr("does not expose segments"));
}

// proves: E-3
TEST_F(ConfigTest, FramingAndInLogicBecomeOptions) {
  const auto options = [](const char* framing, const char* logic) {
    Config c;
    EXPECT_TRUE(c.set("framing", framing).ok());
    EXPECT_TRUE(c.set("in_logic", logic).ok());
    EXPECT_TRUE(c.check().ok());
    return device::options_from(c, "mem");
  };
  using fastpath::InLogicVariant;
  EXPECT_EQ(options("no-markers", "auto").context.variant, InLogicVariant::Fig9);
  EXPECT_EQ(options("no-markers", "fig10").context.variant, InLogicVariant::Fig10);
  for (const auto policy :
       {mpa::Policy::Markers, mpa::Policy::AbsoluteMarkers, mpa::Policy::ModifiedLength}) {
    const std::string name(mpa::policy_name(policy));
    for (const char* logic : {"auto", "fig3"}) {
      const engine::Options o = options(name.c_str(), logic);
      EXPECT_EQ(o.context.variant, InLogicVariant::Fig3);
      EXPECT_EQ(o.mpa.policy, policy);
    }
  }
}

TEST_F(ConfigTest, UnsetOptionsFollowTheKindOfPort) {
  const auto options = [](const char* kind) { return device::options_from(Config(), kind); };
  using OutOfOrder = engine::Options::OutOfOrder;
  EXPECT_EQ(options("memif").tcp.rto_min, Duration::ms(20));
  EXPECT_EQ(options("dgram").tcp.rto_min, Duration::ms(200));
  EXPECT_EQ(options("dgram").out_of_order, OutOfOrder::Place);  // E-12
  EXPECT_EQ(options("dpdk").out_of_order, OutOfOrder::Store);
  EXPECT_FALSE(options("memif").duplicate_address_detection);
  EXPECT_TRUE(options("tap").duplicate_address_detection);  // a network shared with others

  Config chosen;
  ASSERT_TRUE(chosen.set("rto_min_ms", "7").ok());
  ASSERT_TRUE(chosen.set("ooo_without_markers", "store").ok());
  EXPECT_EQ(device::options_from(chosen, "memif").tcp.rto_min, Duration::ms(7));
  EXPECT_EQ(device::options_from(chosen, "memif").out_of_order, OutOfOrder::Store);
}

TEST_F(ConfigTest, SettingsMustBeConsistent) {
  const auto why = [](std::initializer_list<std::pair<const char*, const char*>> values) {
    Config c;
    for (const auto& [name, value] : values) {
      EXPECT_TRUE(c.set(name, value).ok()) << name;
    }
    const auto r = c.check();
    return r.ok() ? std::string() : r.error().message;
  };
  EXPECT_EQ(why({{"identity", "ib-like"}}), "");
  EXPECT_THAT(why({{"identity", "roce"}}), HasSubstr("use transport = roce or both"));
  EXPECT_EQ(why({{"identity", "roce"}, {"transport", "roce"}}), "");
  EXPECT_EQ(why({{"identity", "roce"}, {"transport", "both"}}), "");
  EXPECT_THAT(why({{"identity", "iwarp"}, {"transport", "roce"}}),
              HasSubstr("use transport = iwarp or both"));
  EXPECT_THAT(why({{"address", "10.1.0.1/24"}, {"gateway", "10.2.0.1"}}),
              HasSubstr("not in the network"));
  EXPECT_THAT(why({{"address", "10.1.0.1/24"}, {"gateway", "10.1.0.1"}}),
              HasSubstr("local addresses"));
  EXPECT_EQ(why({{"address", "10.1.0.1/24"}, {"gateway", "10.1.0.254"}}), "");
  EXPECT_EQ(why({{"address", "fd00::1/64"}, {"gateway", "fe80::1"}}), "");
  EXPECT_THAT(why({{"address", "10.1.0.1/24,10.1.0.1/16"}}), HasSubstr("twice"));
  EXPECT_THAT(why({{"mtu", "1000"}}), HasSubstr("1280"));
  EXPECT_EQ(why({{"mtu", "1000"}, {"address", "10.1.0.1/24"}}), "");
  EXPECT_THAT(why({{"log_file", "/tmp/x"}}), HasSubstr("log"));
}

}  // namespace
}  // namespace urnic
