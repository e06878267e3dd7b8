#include "cli/transfer/transfer_plan.h"

#include <gmock/gmock.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace urnic::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// "name" for a file, "name/" for a folder
std::vector<std::string> names(const TransferPlan& plan) {
  std::vector<std::string> out;
  for (const PlannedFile& f : plan.files) out.push_back(f.to + (f.folder ? "/" : ""));
  return out;
}

class PlanPutTest : public testing::Test {
 protected:
  PlanPutTest() {
    char name[] = "/tmp/urnic-plan-XXXXXX";
    root_ = mkdtemp(name);
    std::filesystem::create_directories(root_ + "/d/e/empty");
    for (const char* f : {"a", "d/b", "d/e/c"}) std::ofstream(root_ + "/" + f) << "x";
  }
  ~PlanPutTest() override { std::filesystem::remove_all(root_); }
  // On failure, the error instead.
  std::vector<std::string> plan(std::vector<std::string> sources, const std::string& name,
                                bool recursive = true) {
    for (std::string& s : sources) s = root_ + "/" + s;
    auto p = plan_put(sources, name, recursive);
    if (!p.ok()) return {p.error()};
    plan_ = *p;
    return names(plan_);
  }
  std::string root_;
  TransferPlan plan_;
};

TEST_F(PlanPutTest, OneFileGetsTheTargetName) {
  EXPECT_THAT(plan({"a"}, "x"), ElementsAre("x"));
  EXPECT_THAT(plan({"a"}, ""), ElementsAre("a"));
  EXPECT_THAT(plan({"a"}, "x/"), ElementsAre("x/a"));
  EXPECT_FALSE(plan_.several);
}

TEST_F(PlanPutTest, SeveralFilesGoIntoANewFolder) {
  EXPECT_THAT(plan({"a", "d/b"}, "x/y"), ElementsAre("x/", "x/y/", "x/y/a", "x/y/b"));
  EXPECT_TRUE(plan_.several);
  EXPECT_THAT(plan({"a", "d/b"}, ""), ElementsAre("a", "b"));
}

TEST_F(PlanPutTest, AFolderWithASlashMeansItsContent) {
  EXPECT_THAT(plan({"d"}, ""), ElementsAre("d/", "d/b", "d/e/", "d/e/c", "d/e/empty/"));
  EXPECT_THAT(plan({"d/"}, ""), ElementsAre("b", "e/", "e/c", "e/empty/"));
  EXPECT_THAT(plan({"d/."}, "x"), ElementsAre("x/", "x/b", "x/e/", "x/e/c", "x/e/empty/"));
}

TEST_F(PlanPutTest, MissingFilesAndFoldersAreReportedBeforeAnyTransfer) {
  EXPECT_THAT(plan({"a", "none"}, ""), ElementsAre(HasSubstr("none: No such file")));
  EXPECT_THAT(plan({"a", "d"}, "", false), ElementsAre(HasSubstr("d: is a folder")));
  EXPECT_THAT(plan({"a", "d"}, "../x"), ElementsAre(HasSubstr("'..'")));
}

TEST_F(PlanPutTest, LinksToFilesAreFollowedAndSpecialFilesAreReported) {
  ASSERT_EQ(symlink("b", (root_ + "/d/link").c_str()), 0);
  ASSERT_EQ(symlink("..", (root_ + "/d/round").c_str()), 0);
  ASSERT_EQ(symlink("none", (root_ + "/d/to-nothing").c_str()), 0);
  ASSERT_EQ(mkfifo((root_ + "/d/pipe").c_str(), 0600), 0);
  std::ofstream(root_ + "/d/two\nlines") << "x";
  std::ofstream(root_ + "/d/.urnic-abc.part") << "ours";
  EXPECT_THAT(plan({"d/"}, ""), ElementsAre("b", "e/", "e/c", "e/empty/", "link"));
  EXPECT_EQ(plan_.left_out.size(), 4u);
}

TEST_F(PlanPutTest, TwoFilesWithOneNameAreAClash) {
  std::filesystem::create_directory(root_ + "/f");
  std::ofstream(root_ + "/f/b") << "x";
  plan({"d/b", "f/b"}, "");
  EXPECT_THAT(clash_in(plan_), HasSubstr("would both be written to b"));
  plan({"d/e", "d/e"}, "");
  EXPECT_THAT(clash_in(plan_), HasSubstr("would both be written to e/c"))
      << "folders alone are none";
  plan({"a", "d/b"}, "");
  EXPECT_EQ(clash_in(plan_), "");
}

// ---- get

std::vector<ListEntry> listed(std::initializer_list<const char*> all) {
  std::vector<ListEntry> out;
  for (std::string name : all) {
    const bool folder = name.back() == '/';
    if (folder) name.pop_back();
    out.push_back({name, 1, 0, folder, 0755});
  }
  return out;
}

std::vector<std::string> got(const std::string& name, const std::vector<ListEntry>& entries,
                             bool recursive = true) {
  TransferPlan plan;
  auto ok = plan_get(name, entries, recursive, &plan);
  if (!ok.ok()) return {"error: " + ok.error()};
  EXPECT_EQ(*ok, !plan.files.empty());
  return names(plan);
}

TEST(PlanGet, AFolderKeepsItsNameUnlessItEndsInASlash) {
  // In the target's sort order, names that begin with the folder's name may come between.
  const auto all = listed({"d/", "d/e/", "d/e/c", "d/b"});
  EXPECT_THAT(got("d", all), ElementsAre("d/", "d/e/", "d/e/c", "d/b"));
  EXPECT_THAT(got("d/", all), ElementsAre("e/", "e/c", "b"));
  EXPECT_THAT(got("d/e", listed({"d/e/", "d/e/c"})), ElementsAre("e/", "e/c"));
  EXPECT_THAT(got("", listed({"a", "d/", "d/b"})), ElementsAre("a", "d/", "d/b"));
}

TEST(PlanGet, PatternsMatchNamesAndNotSlashes) {
  const auto all = listed({"a", "a-x", "a.c", "b.c", "d/", "d/a.c", ".a.c"});
  EXPECT_THAT(got("*.c", all), ElementsAre("a.c", "b.c"));
  EXPECT_THAT(got("[b-z].?", all), ElementsAre("b.c"));
  EXPECT_THAT(got("*/*.c", all), ElementsAre("a.c")) << "the last component is kept";
  EXPECT_THAT(got("*", all, false), ElementsAre("a", "a-x", "a.c", "b.c"));
  EXPECT_THAT(got("d*", all), ElementsAre("d/", "d/a.c"));
  EXPECT_THAT(got("*.d", all), IsEmpty());
  EXPECT_THAT(got("[x]", listed({"[x]"})), ElementsAre("[x]")) << "a name that looks like one";
}

TEST(PlanGet, FoldersWithACommonNamePrefixAreDistinguished) {
  EXPECT_THAT(got("a*", listed({"a/", "a-b", "a-c/", "a/x", "a-c/y"})),
              ElementsAre("a/", "a-b", "a-c/", "a/x", "a-c/y"));
}

// proves: E-38
TEST(PlanGet, ATargetCannotChooseLocalNames) {
  for (const char* evil :
       {"../x", "/etc/x", "d/../../x", "d//x", "e/x", "d2/x", "d/.urnic-x.part"}) {
    EXPECT_THAT(got("d", listed({"d/", evil})), ElementsAre(HasSubstr("was not requested")))
        << evil;
  }
  EXPECT_THAT(got("d/*", listed({"e/x"})), ElementsAre(HasSubstr("was not requested")));
}

TEST(PlanGet, TheFolderOfAPatternIsListed) {
  EXPECT_EQ(listed_for("a/b/*.c"), "a/b");
  EXPECT_EQ(listed_for("a/b*/c"), "a");
  EXPECT_EQ(listed_for("*"), "");
  EXPECT_EQ(listed_for("a/b/"), "a/b");
  EXPECT_FALSE(is_pattern("a/b.c"));
  EXPECT_TRUE(is_pattern("a/?"));
}

}  // namespace
}  // namespace urnic::cli
