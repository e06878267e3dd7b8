#include "cli/sim/sim_files.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace urnic::cli {
namespace {

using testing::HasSubstr;

class ScenarioFile : public testing::Test {
 protected:
  ScenarioFile() {
    char name[] = "/tmp/urnic-scenario-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~ScenarioFile() override { std::filesystem::remove_all(folder_); }
  std::string write(std::size_t bytes) const {
    const std::string path = folder_ + "/s.toml";
    std::ofstream(path, std::ios::trunc) << std::string(bytes, '#');
    return path;
  }
  std::string folder_;
};

TEST_F(ScenarioFile, IsReadOnlyUpToTheSizeLimit) {
  constexpr std::size_t kMost = 1u << 20;
  const auto over = read_scenario(write(kMost + 1));
  ASSERT_FALSE(over.ok());
  EXPECT_THAT(over.error(), HasSubstr("limit 1 MiB"));
  const auto most = read_scenario(write(kMost));
  ASSERT_TRUE(most.ok());
  EXPECT_EQ(most->size(), kMost);
  EXPECT_THAT(read_scenario("/dev/zero").error(), HasSubstr("not a regular file"));
  EXPECT_THAT(read_scenario(folder_ + "/none").error(), HasSubstr("No such file"));
}

}  // namespace
}  // namespace urnic::cli
