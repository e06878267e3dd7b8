#include "tests/tcp/script.h"
#include "tests/support/source_dir.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

namespace urnic::tcp::test {
namespace {

std::vector<std::string> script_names() {
  std::vector<std::string> names;
  const std::filesystem::path folder = source_dir() + "/tests/tcp/scripts";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".pkt") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class SegmentScript : public testing::TestWithParam<std::string> {};

TEST_P(SegmentScript, Runs) {
  const std::string path = source_dir() + "/tests/tcp/scripts/" + GetParam() + ".pkt";
  // The second pair wraps around early on both sides, the third crosses half of the range.
  const std::pair<std::uint32_t, std::uint32_t> pairs[] = {
      {100000, 5000}, {0xfffff830, 0xfffffc18}, {0x7ffffff0, 0x7fffff00}, {0xffffffff, 0xffffffff}};
  for (const auto& [ours, theirs] : pairs) {
    for (const bool predict : {false, true}) {
      SCOPED_TRACE("our ISS " + std::to_string(ours) + ", theirs " + std::to_string(theirs) +
                   (predict ? ", with header prediction" : ""));
      Script script{Seq(ours), Seq(theirs)};
      script.host.predict = predict;
      script.run(path);
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tcp, SegmentScript, testing::ValuesIn(script_names()), [](const auto& p) {
  std::string n = p.param;
  std::replace_if(
      n.begin(), n.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; },
      '_');
  return n;
});

}  // namespace
}  // namespace urnic::tcp::test
