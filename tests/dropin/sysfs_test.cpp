// The files in sysfs and devfs that programs read directly, and the paths that are redirected to
// them.
#include <dlfcn.h>
#include <errno.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "dropin/sysfs/path.h"
#include "dropin/verbs_fixture.h"

namespace verbs_api {
namespace {

namespace fs = std::filesystem;

// Calls the function of the library that this program has loaded.
int urnic_write_sysfs(const char* folder) {
  void* dropin = dlopen(URNIC_DROPIN "/liburnic-dropin.so", RTLD_NOW | RTLD_NOLOAD);
  if (dropin == nullptr) return ELIBACC;
  auto* f = reinterpret_cast<int (*)(const char*)>(dlsym(dropin, "urnic_write_sysfs"));
  dlclose(dropin);
  return f != nullptr ? f(folder) : ELIBBAD;
}

struct SysfsTree : VerbsTest {
  void SetUp() override {
    VerbsTest::SetUp();
    char name[] = "/tmp/urnic-sysfs-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    top = name;
  }
  void TearDown() override {
    fs::remove_all(top);
    VerbsTest::TearDown();
  }
  std::string line(const std::string& path) const {
    std::ifstream in(top / path);
    std::string text;
    EXPECT_TRUE(std::getline(in, text)) << path;
    return text;
  }
  fs::path top;
  const std::string device = "sys/class/infiniband/urnic0/", port = device + "ports/1/";
};

TEST_F(SysfsTree, DeviceFilesMatchTheLibrary) {
  ASSERT_EQ(urnic_write_sysfs(top.c_str()), 0);
  EXPECT_EQ(line(device + "node_type"), "4: RNIC");
  EXPECT_EQ(line(device + "fw_ver"), attr_.fw_ver);
  std::uint8_t b[8];
  std::memcpy(b, &attr_.node_guid, sizeof b);
  char guid[32];
  std::snprintf(guid, sizeof guid, "%02x%02x:%02x%02x:%02x%02x:%02x%02x", b[0], b[1], b[2], b[3],
                b[4], b[5], b[6], b[7]);
  EXPECT_EQ(line(device + "node_guid"), guid);
  EXPECT_EQ(line("sys/class/infiniband_verbs/uverbs0/ibdev"), "urnic0");
  EXPECT_EQ(line("sys/class/infiniband_verbs/abi_version"), "6");
  // Files that the packaged ibstat and ibstatus read.
  for (const char* name : {"hca_type", "hw_rev", "board_id", "sys_image_guid", "node_desc",
                           "device/numa_node", "device/local_cpulist"}) {
    EXPECT_FALSE(line(device + name).empty()) << name;
  }
}

TEST_F(SysfsTree, PortFilesMatchTheLibrary) {
  ASSERT_EQ(urnic_write_sysfs(top.c_str()), 0);
  EXPECT_EQ(line(port + "state"), "4: ACTIVE");
  EXPECT_EQ(line(port + "phys_state"), "5: LinkUp");
  EXPECT_EQ(line(port + "link_layer"), "Ethernet");
  EXPECT_EQ(line(port + "pkeys/0"), "0xffff");
  ibv_port_attr a;
  ASSERT_EQ(ibv_query_port(context_, 1, &a), 0);
  for (int i = 0; i < a.gid_tbl_len; ++i) {
    ibv_gid gid;
    ASSERT_EQ(ibv_query_gid(context_, 1, i, &gid), 0);
    char text[48];
    for (int k = 0; k < 8; ++k) {
      std::snprintf(text + k * 5, 6, "%02x%02x:", gid.raw[k * 2], gid.raw[k * 2 + 1]);
    }
    text[39] = 0;
    EXPECT_EQ(line(port + "gids/" + std::to_string(i)), text);
    EXPECT_EQ(line(port + "gid_attrs/types/" + std::to_string(i)), "IB/RoCE v1");
  }
  EXPECT_FALSE(fs::exists(top / (port + "gids/" + std::to_string(a.gid_tbl_len))));
}

// Their values come later, from whoever reads them.
TEST_F(SysfsTree, HasTheCountersOfItsTransport) {
  ASSERT_EQ(urnic_write_sysfs(top.c_str()), 0);
  for (const char* name : {"counters/port_xmit_data", "counters/symbol_error",
                           "counters/VL15_dropped", "hw_counters/iwOutRdmaWrites"}) {
    EXPECT_EQ(line(port + name), "0") << name;
  }
  EXPECT_EQ(line(port + "hw_counters/lifespan"), "100");
  EXPECT_FALSE(fs::exists(top / (port + "hw_counters/sent_pkts")));   // RoCE only
  EXPECT_FALSE(fs::exists(top / (port + "hw_counters/tcpOutSegs")));  // the kernel counts them
  EXPECT_EQ(line("devices"), "urnic0\t\ttcp");
}

// The first GID is a MAC address, which belongs to no interface; those of IP name their interface.
TEST_F(SysfsTree, NamesTheInterfacesOfTheAddresses) {
  ASSERT_EQ(urnic_write_sysfs(top.c_str()), 0);
  ibv_port_attr a;
  ASSERT_EQ(ibv_query_port(context_, 1, &a), 0);
  bool loopback = false;
  for (int i = 0; i < a.gid_tbl_len; ++i) {
    const std::string interface = line(port + "gid_attrs/ndevs/" + std::to_string(i));
    EXPECT_TRUE(fs::is_directory(top / (device + "device/net/" + interface)));
    loopback |= interface == "lo";
  }
  EXPECT_TRUE(loopback);
}

// UCX ignores a device whose node is not a character device that it may read and write.
TEST_F(SysfsTree, HasACharacterDevice) {
  ASSERT_EQ(urnic_write_sysfs(top.c_str()), 0);
  const std::string node = top / "dev/infiniband/uverbs0";
  struct stat s;
  ASSERT_EQ(stat(node.c_str(), &s), 0);
  EXPECT_TRUE(S_ISCHR(s.st_mode));
  EXPECT_EQ(access(node.c_str(), R_OK | W_OK), 0);
}

TEST_F(SysfsTree, ReportsWhyItCannotBeWritten) {
  EXPECT_EQ(urnic_write_sysfs((top / "nowhere").c_str()), ENOENT);
  std::ofstream(top / "file") << "no folder";
  EXPECT_EQ(urnic_write_sysfs((top / "file").c_str()), ENOTDIR);
  EXPECT_EQ(ibv_query_device(context_, &attr_), 0);  // the test's device is still open
}

struct SysfsPath : testing::Test {
  std::string led(const char* path, const char* root = "/r", const char* base = nullptr) {
    return urnic::dropin::led(path, base, root, room, sizeof room);
  }
  char room[64];
};

TEST_F(SysfsPath, ShownPathsLeadIntoTheTree) {
  EXPECT_EQ(led("/sys/class/infiniband"), "/r/sys/class/infiniband");
  EXPECT_EQ(led("/sys/class/infiniband/"), "/r/sys/class/infiniband");
  EXPECT_EQ(led("/sys/class/infiniband/urnic0/fw_ver"), "/r/sys/class/infiniband/urnic0/fw_ver");
  EXPECT_EQ(led("/sys/class/infiniband_verbs"), "/r/sys/class/infiniband_verbs");
  EXPECT_EQ(led("/dev/infiniband/uverbs0"), "/r/dev/infiniband/uverbs0");
  EXPECT_EQ(led("//sys//class/infiniband//urnic0"), "/r/sys/class/infiniband/urnic0");
  EXPECT_EQ(led("/sys/./class/net/../infiniband/."), "/r/sys/class/infiniband");
  EXPECT_EQ(led("/../sys/class/infiniband"), "/r/sys/class/infiniband");
}

TEST_F(SysfsPath, ARelativePathStartsAtItsBase) {
  EXPECT_EQ(led("sys/class/infiniband", "/r", "/"), "/r/sys/class/infiniband");
  EXPECT_EQ(led("infiniband/urnic0", "/r", "/sys/class"), "/r/sys/class/infiniband/urnic0");
  EXPECT_EQ(led("../infiniband", "/r", "/sys/class/net"), "/r/sys/class/infiniband");
  EXPECT_EQ(led("infiniband", "/r", "/home"), "infiniband");
}

TEST_F(SysfsPath, FoundPathsAreShownWhereTheProgramLooked) {
  using urnic::dropin::shown_as;
  EXPECT_STREQ(shown_as("/r/sys/class/infiniband/urnic0", "/r"), "/sys/class/infiniband/urnic0");
  for (const char* path : {"/rest/x", "/r", "/home/r/x"}) EXPECT_STREQ(shown_as(path, "/r"), path);
  EXPECT_STREQ(shown_as("/r/x", nullptr), "/r/x");
}

TEST_F(SysfsPath, OtherPathsAreUnchanged) {
  for (const char* path : {"/sys/class/infiniband_mad", "/sys/class/net/lo", "/dev/infinibandx",
                           "sys/class/infiniband", "/dev", "", "/"}) {
    EXPECT_EQ(led(path), path);
  }
  EXPECT_EQ(led("/dev/infiniband", ""), "/dev/infiniband");
  EXPECT_EQ(urnic::dropin::led("/dev/infiniband", nullptr, nullptr, room, sizeof room),
            std::string("/dev/infiniband"));
  EXPECT_EQ(urnic::dropin::led(nullptr, nullptr, "/r", room, sizeof room), nullptr);
}

TEST_F(SysfsPath, APathThatDoesNotFitIsUnchanged) {
  const std::string longer = "/sys/class/infiniband/" + std::string(64, 'x');
  EXPECT_EQ(led(longer.c_str()), longer);
  EXPECT_EQ(led("/dev/infiniband", std::string(63, 'r').c_str()), "/dev/infiniband");
  const std::string just = "/dev/infiniband/" + std::string(64 - 1 - 2 - 16, 'x');
  EXPECT_EQ(led(just.c_str()), "/r" + just);
  EXPECT_EQ(led((just + "x").c_str()), just + "x");
}

}  // namespace
}  // namespace verbs_api
