// Several devices in one configuration file: the settings of each, and refused configurations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "urnic/config.h"

namespace urnic {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ConfigDevicesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/urnic-devices-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    setenv("XDG_CONFIG_HOME", name, 1);
  }
  void TearDown() override {
    for (const char* name : {"XDG_CONFIG_HOME", "URNIC_HOLE_LIMIT", "URNIC_DEVICE", "URNIC_PORT"}) {
      unsetenv(name);
    }
    std::filesystem::remove_all(folder_);
  }
  Result<Config> load(const std::string& text) const {
    std::ofstream(folder_ + "/urnic.toml") << text;
    return Config::load(folder_ + "/urnic.toml");
  }
  static std::string error_of(const Result<void>& r) { return r ? "" : r.error().message; }
  static std::string error_of(const Result<Config>& r) { return r ? "" : r.error().message; }
  // Loads the text and checks its consistency; returns the error.
  std::string wrong_with(const std::string& text) const {
    auto c = load(text);
    return c ? error_of(c->check()) : c.error().message;
  }
  static std::string origin_of(const Config& c, const std::string& name) {
    for (const Setting& s : c.settings()) {
      if (s.name == name) return s.origin_detail;
    }
    return {};
  }
  std::string folder_;
};

constexpr const char* kTwo =
    "hole_limit = 3\nupgrade_after = 9\n[device.zebra]\nport = \"tcp\"\nhole_limit = 4\n"
    "[device.ape]\nport = \"mem:name=x\"\naddress = [\"10.1.0.1/16\"]\n";

TEST_F(ConfigDevicesTest, NamesAreInTheOrderOfTheFile) {
  auto c = load(kTwo);
  ASSERT_TRUE(c.ok()) << error_of(c);
  EXPECT_THAT(c->devices(), ElementsAre("zebra", "ape"));
  EXPECT_TRUE(c->check().ok()) << error_of(c->check());
  EXPECT_THAT(Config().devices(), ElementsAre());
}

TEST_F(ConfigDevicesTest, ASectionOverridesTheTopLevelButNotTheEnvironment) {
  auto c = load(kTwo);
  ASSERT_TRUE(c.ok()) << error_of(c);
  auto zebra = c->device("zebra"), ape = c->device("ape");
  ASSERT_TRUE(zebra.ok() && ape.ok());
  EXPECT_EQ(zebra->get("port"), "tcp");
  EXPECT_EQ(zebra->get("device"), "zebra");
  EXPECT_EQ(zebra->get_int("hole_limit"), 4);
  EXPECT_EQ(ape->get_int("hole_limit"), 3);
  EXPECT_EQ(ape->get("address"), "10.1.0.1/16");
  EXPECT_EQ(zebra->get("address"), "auto");
  EXPECT_EQ(zebra->get_int("upgrade_after"), 9);
  EXPECT_EQ(origin_of(*zebra, "hole_limit"), folder_ + "/urnic.toml:5");
  EXPECT_TRUE(zebra->devices().empty());
  EXPECT_TRUE(zebra->check().ok() && ape->check().ok());
  // Each gets its own name, unless a name is configured.
  EXPECT_EQ(zebra->get("name"), Config().get("name") + "/zebra");
  setenv("URNIC_HOLE_LIMIT", "5", 1);
  c = load(kTwo);
  EXPECT_EQ(c->device("zebra")->get_int("hole_limit"), 5);
  ASSERT_TRUE(c->set("hole_limit", "6").ok());
  ASSERT_TRUE(c->set("name", "mine").ok());
  EXPECT_EQ(c->device("zebra")->get_int("hole_limit"), 6);
  EXPECT_EQ(c->device("zebra")->get("name"), "mine");
}

TEST_F(ConfigDevicesTest, OneReturnsTheChosenOrTheOnlyDevice) {
  auto c = load(kTwo);
  EXPECT_THAT(error_of(c->one()), AllOf(HasSubstr("zebra, ape"), HasSubstr("device")));
  ASSERT_TRUE(c->set("device", "ape").ok());
  ASSERT_TRUE(c->one().ok());
  EXPECT_EQ(c->one()->get("port"), "mem:name=x");
  EXPECT_EQ(c->one()->one()->get("port"), "mem:name=x");
  EXPECT_TRUE(c->check().ok());
  ASSERT_TRUE(c->set("device", "apes").ok());
  EXPECT_THAT(error_of(c->one()), AllOf(HasSubstr("'apes'"), HasSubstr("nearest is 'ape'")));
  EXPECT_EQ(error_of(c->check()), error_of(c->one()));
  c = load("[device.only]\nport = \"tcp\"\n");
  EXPECT_EQ(c->one()->get("device"), "only");
  c = load("hole_limit = 3\n");
  EXPECT_EQ(c->one()->get_int("hole_limit"), 3);
  setenv("URNIC_DEVICE", "ape", 1);
  EXPECT_THAT(wrong_with("hole_limit = 3\n"), HasSubstr("no section [device.NAME]"));
}

TEST_F(ConfigDevicesTest, SettingsThatDevicesCannotShareAreRefused) {
  EXPECT_EQ(wrong_with("[device.a]\nport = \"tcp\"\n[device.b]\nport = \"tcp\"\n"),
            "device b: has the same port as device a: tcp");
  EXPECT_EQ(wrong_with("[device.a]\nport = \"tcp\"\n[device.b]\nhole_limit = 3\n"),
            "device b: device b has no port; set port in its section");
  EXPECT_EQ(wrong_with("[device.a]\nport = \"mem:name=x\"\n[device.b]\nport = \"mem:name=x\"\n"),
            "");
  EXPECT_THAT(wrong_with(std::string("capture = \"x\"\n") + kTwo),
              AllOf(HasSubstr("capture"), HasSubstr("urnic.toml:1"), HasSubstr("zebra, ape")));
  setenv("URNIC_PORT", "tcp", 1);
  EXPECT_THAT(wrong_with(kTwo), AllOf(HasSubstr("port (URNIC_PORT)"), HasSubstr("one device")));
  setenv("URNIC_DEVICE", "ape", 1);  // applies to that device
  EXPECT_EQ(wrong_with(kTwo), "");
  EXPECT_EQ(load(kTwo)->one()->get("port"), "tcp");
}

TEST_F(ConfigDevicesTest, AnInconsistentDeviceIsNamed) {
  EXPECT_THAT(wrong_with("[device.a]\nport = \"tcp\"\ntransport = \"roce\"\n"),
              HasSubstr("only iWARP"));
  EXPECT_THAT(wrong_with("[device.a]\nport = \"tcp\"\n[device.b]\nport = \"udp\"\n"),
              AllOf(HasSubstr("device b: "), HasSubstr("only RoCE")));
}

TEST_F(ConfigDevicesTest, MalformedSectionsGiveOneLineWithTheirPosition) {
  EXPECT_THAT(wrong_with("[device]\nport = \"tcp\"\n"),
              AllOf(HasSubstr("urnic.toml:2"), HasSubstr("[device.NAME]")));
  EXPECT_THAT(wrong_with("[[device]]\nport = \"tcp\"\n"), HasSubstr("urnic.toml:1"));
  EXPECT_THAT(wrong_with("[device.a]\nport = \"tcp\"\n[device.a]\nmtu = 1500\n"),
              HasSubstr("urnic.toml:3"));
  EXPECT_THAT(wrong_with("[device.\"a:b\"]\nport = \"tcp\"\n"), HasSubstr("letters"));
  EXPECT_THAT(wrong_with("[device.\"\"]\nport = \"tcp\"\n"), HasSubstr("letters"));
  EXPECT_THAT(wrong_with("[device." + std::string(33, 'a') + "]\nport = \"tcp\"\n"),
              HasSubstr("1 to 32"));
  EXPECT_EQ(wrong_with("[device." + std::string(32, 'a') + "]\nport = \"tcp\"\n"), "");
  EXPECT_THAT(wrong_with("[device.a]\nportt = \"tcp\"\n"),
              AllOf(HasSubstr("urnic.toml:2"), HasSubstr("'portt'"), HasSubstr("'port'")));
  EXPECT_THAT(wrong_with("[device.a]\nmtu = 1\n"), HasSubstr("576 to 65521"));
  EXPECT_THAT(wrong_with("[device.a]\ndevice = \"b\"\n"), HasSubstr("urnic.toml:2"));
  EXPECT_THAT(wrong_with("[device.a.b]\nport = \"tcp\"\n"), HasSubstr("urnic.toml:1"));
  std::string many;
  for (int i = 0; i < 33; ++i) many += "[device.d" + std::to_string(i) + "]\nport = \"tcp\"\n";
  EXPECT_THAT(wrong_with(many), HasSubstr("too many devices (limit 32)"));
}

}  // namespace
}  // namespace urnic
