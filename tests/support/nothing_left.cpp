// Runs after every test: the process must have the same descriptors and threads as before. Waits
// for those that end by themselves a little later.
#include <dirent.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

namespace urnic {
namespace {

// The entries of a folder in /proc/self, with their targets.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  DIR* const d = opendir(folder.c_str());
  if (d == nullptr) return names;
  const std::string own = std::to_string(dirfd(d));
  while (const dirent* e = readdir(d)) {
    const std::string name = e->d_name;
    if (name[0] != '.' && name != own) names.push_back(name);
  }
  closedir(d);
  std::sort(names.begin(), names.end());
  return names;
}

std::string target_of(const std::string& link) {
  char to[256];
  const ssize_t n = readlink(link.c_str(), to, sizeof to);
  return n < 0 ? "?" : std::string(to, static_cast<std::size_t>(n));
}

class NothingLeft : public ::testing::EmptyTestEventListener {
  static constexpr int kTries = 2000;  // of 10 ms each

  void OnTestStart(const ::testing::TestInfo&) override {
    descriptors_ = names_in("/proc/self/fd").size();
    threads_ = names_in("/proc/self/task").size();
  }
  void OnTestEnd(const ::testing::TestInfo& info) override {
    if (info.result()->Failed() || info.result()->Skipped()) return;
    for (int i = 0; i < kTries && is_more(); ++i) usleep(10000);
    if (!is_more()) return;
    std::string left;
    for (const std::string& name : names_in("/proc/self/fd")) {
      left += "\n  descriptor " + name + ": " + target_of("/proc/self/fd/" + name);
    }
    ADD_FAILURE() << "behind the test there are " << names_in("/proc/self/fd").size()
                  << " descriptors and " << names_in("/proc/self/task").size() << " threads, not "
                  << descriptors_ << " and " << threads_ << left;
  }
  bool is_more() const {
    return names_in("/proc/self/fd").size() > descriptors_ ||
           names_in("/proc/self/task").size() > threads_;
  }

  std::size_t descriptors_ = 0, threads_ = 0;
};

// Before main() of GoogleTest, which permits additional listeners.
const bool listens = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new NothingLeft);
  return true;
}();

}  // namespace
}  // namespace urnic
