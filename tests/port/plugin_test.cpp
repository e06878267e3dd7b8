#include "port/plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "port/memif_check.h"
#include "port/port.h"

namespace urnic::port {
namespace {

using ::testing::HasSubstr;

class Plugin : public ::testing::Test {
 protected:
  void SetUp() override { setenv("URNIC_PLUGIN_DIR", URNIC_TEST_PLUGINS, 1); }
  void TearDown() override { unsetenv("URNIC_PLUGIN_DIR"); }
  static std::string error_of(const std::string& spec) {
    auto p = Port::open(spec);
    if (p.ok()) return "(opened)";
    EXPECT_EQ(p.error().find('\n'), std::string::npos) << p.error();
    return p.error();
  }
};

TEST_F(Plugin, IsLoadedByItsKind) {
  auto p = Port::open("test-good:x=1");
  ASSERT_TRUE(p.ok()) << p.error();
  EXPECT_EQ(p->info().max_frame, 4242u);
}

TEST_F(Plugin, ItsOwnErrorsAreReported) {
  EXPECT_EQ(error_of("test-good:x=2"), "test-good: this test wants x=1, got x=2");
}

TEST_F(Plugin, OfAnotherVersionIsRefused) {
  EXPECT_THAT(error_of("test-old_version:x=1"), HasSubstr("another version of urnic"));
  EXPECT_THAT(error_of("test-short_table:x=1"), HasSubstr("another version of urnic"));
}

TEST_F(Plugin, WithoutEntryOrTableIsRefused) {
  EXPECT_THAT(error_of("test-no_entry:x=1"), HasSubstr("is not a port plugin of urnic"));
  EXPECT_THAT(error_of("test-no_table:x=1"), HasSubstr("is not usable"));
}

TEST_F(Plugin, AFileThatDoesNotLoadIsReportedAndNotSkipped) {
  check::Folder f;
  std::ofstream(f.file("liburnic-port-broken.so")) << "not an ELF file";
  setenv("URNIC_PLUGIN_DIR", std::filesystem::path(f.file("x")).parent_path().c_str(), 1);
  EXPECT_THAT(error_of("broken:"), HasSubstr("liburnic-port-broken.so"));
  EXPECT_THAT(error_of("broken:"), ::testing::Not(HasSubstr("not found")));
}

TEST_F(Plugin, WithoutTheVariableItIsNotFoundHere) {
  unsetenv("URNIC_PLUGIN_DIR");
  EXPECT_THAT(error_of("test-elsewhere:x=1"), HasSubstr("URNIC_PLUGIN_DIR"));
}

TEST_F(Plugin, NothingIsLoadedUntilNamed) {
  std::ifstream maps("/proc/self/maps");
  std::string all((std::istreambuf_iterator<char>(maps)), std::istreambuf_iterator<char>());
  EXPECT_EQ(all.find("liburnic-port-dpdk"), std::string::npos);
  EXPECT_EQ(all.find("librte_"), std::string::npos);
}

}  // namespace
}  // namespace urnic::port
