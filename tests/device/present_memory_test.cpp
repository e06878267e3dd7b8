// Memory that cannot be registered: not mapped, not accessible, past the end of its file.
#include "device/present_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "device/forked.h"
#include "port/fd.h"

namespace urnic::device {
namespace {

constexpr std::size_t kPage = 4096, kLarge = std::size_t{64} << 20;
constexpr int kBoth = PROT_READ | PROT_WRITE;

enum class Look : std::uint8_t { Nowhere, Query, Maps };

// A mapping of two pages, or of a large range; with each way to check.
class PresentMemory : public testing::TestWithParam<std::tuple<std::size_t, bool, Look>> {
 protected:
  void TearDown() override {
    for (char* const p : mapped_) munmap(p, size());
  }
  static std::size_t size() { return std::get<0>(GetParam()); }
  static bool present(const char* at, std::size_t n, bool write) {
    const Look look = std::get<2>(GetParam());
    MappingQueries queries;
    return is_present(
        at, n, write,
        {std::get<1>(GetParam()), look != Look::Nowhere, look == Look::Query ? &queries : nullptr});
  }
  char* map(int protection, int flags = MAP_PRIVATE | MAP_ANONYMOUS, int fd = -1) {
    void* const p = mmap(nullptr, size(), protection, flags | MAP_NORESERVE, fd, 0);
    EXPECT_NE(p, MAP_FAILED);
    return mapped_.emplace_back(static_cast<char*>(p));
  }
  // Its name is removed at once.
  static port::Fd file(std::size_t bytes) {
    port::Fd fd(memfd_create("present", MFD_CLOEXEC));
    EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
    return fd;
  }

 private:
  std::vector<char*> mapped_;
};

TEST_P(PresentMemory, IsPresentAsFarAsItsMappingAllows) {
  const char* const both = map(kBoth);
  EXPECT_TRUE(present(both, size(), true));
  EXPECT_TRUE(present(both + 1, size() - 1, true));
  EXPECT_TRUE(present(both + 100, 1, true));
  const char* const readable = map(PROT_READ);
  EXPECT_TRUE(present(readable, size(), false));
  EXPECT_FALSE(present(readable, size(), true));
  EXPECT_FALSE(present(map(PROT_NONE), size(), false));
}

TEST_P(PresentMemory, IsAbsentWithASinglePageUnmapped) {
  for (const std::size_t hole : {std::size_t{0}, size() / 2, size() - kPage}) {
    char* const p = map(kBoth);
    ASSERT_EQ(munmap(p + hole, kPage), 0);
    EXPECT_FALSE(present(p, size(), true)) << hole;
    EXPECT_FALSE(present(p, size(), false)) << hole;
  }
}

TEST_P(PresentMemory, IsAbsentWithASinglePageProtected) {
  char* const p = map(kBoth);
  ASSERT_EQ(mprotect(p + size() / 2, kPage, PROT_READ), 0);
  EXPECT_TRUE(present(p, size(), false)) << "two mappings side by side are as good as one";
  EXPECT_FALSE(present(p, size(), true));
}

TEST_P(PresentMemory, IsAbsentAtAddressesThatCannotBeMapped) {
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{4096},
                                 std::uint64_t{0xffff800000000000}, ~std::uint64_t{0}}) {
    const auto* const p = reinterpret_cast<const char*>(at);  // NOLINT
    EXPECT_FALSE(present(p, 1, false)) << at;
  }
  static const char here = 1;
  EXPECT_FALSE(present(&here, std::size_t{1} << 62, false));
}

TEST_P(PresentMemory, OfNoLengthIsPresentAnywhere) {
  EXPECT_TRUE(present(nullptr, 0, true));
}

TEST_P(PresentMemory, KeepsItsContents) {
  char* const p = map(kBoth);
  p[0] = 1, p[size() - 1] = 2;
  EXPECT_TRUE(present(p, size(), true));
  EXPECT_EQ(p[0], 1);
  EXPECT_EQ(p[size() - 1], 2);
}

TEST_P(PresentMemory, IsAbsentPastTheEndOfItsFile) {
  if (!std::get<1>(GetParam())) return;  // the mappings do not show where a file ends
  for (const int flags : {MAP_SHARED, MAP_PRIVATE}) {
    const port::Fd fd = file(size());
    const char* const p = map(kBoth, flags, fd.get());
    EXPECT_TRUE(present(p, size(), true));
    ASSERT_EQ(ftruncate(fd.get(), static_cast<off_t>(size() - kPage)), 0);
    EXPECT_FALSE(present(p, size(), true));
    EXPECT_FALSE(present(p, size(), false));
    EXPECT_TRUE(present(p, size() - kPage, true));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Means, PresentMemory,
    testing::Values(std::tuple{2 * kPage, true, Look::Maps},
                    std::tuple{2 * kPage, true, Look::Nowhere},
                    std::tuple{2 * kPage, false, Look::Query},
                    std::tuple{2 * kPage, false, Look::Maps}, std::tuple{kLarge, true, Look::Query},
                    std::tuple{kLarge, true, Look::Maps}, std::tuple{kLarge, true, Look::Nowhere},
                    std::tuple{kLarge, false, Look::Query}, std::tuple{kLarge, false, Look::Maps}),
    [](const auto& how) {
      const Look look = std::get<2>(how.param);
      return std::string(std::get<0>(how.param) == kLarge ? "Large" : "Small") +
             (std::get<1>(how.param) ? "Populate" : "") +
             (look == Look::Query  ? "Query"
              : look == Look::Maps ? "Maps"
                                   : "");
    });

// A child has its own mappings, and must not ask for those of its parent.
TEST(PresentMemory, AForkedChildIsAskedForItsOwnMappings) {
  void* const p = mmap(nullptr, kLarge, kBoth, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(p, MAP_FAILED);
  MappingQueries queries;
  const PresenceMeans means{.queries = &queries};
  EXPECT_TRUE(is_present(p, kLarge, true, means));
  const pid_t child = fork();
  if (child == 0) {
    let_private_descriptors_go();  // as the handler of a process with a device does
    munmap(p, kLarge);
    _exit(is_present(p, kLarge, true, means) ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  munmap(p, kLarge);
}

// Checking a large region allocates no memory that the program does not use.
TEST(PresentMemory, ALargeRangeIsCheckedWithoutAllocatingIt) {
  constexpr std::size_t kSize = std::size_t{1} << 30;
  void* const p = mmap(nullptr, kSize, kBoth, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(p, MAP_FAILED);
  MappingQueries queries;
  EXPECT_TRUE(is_present(p, kSize, true, {.queries = &queries}));
  std::vector<unsigned char> resident(kSize / kPage);
  ASSERT_EQ(mincore(p, kSize, resident.data()), 0);
  std::size_t pages = 0;
  for (const unsigned char r : resident) pages += r & 1u;
  EXPECT_EQ(pages, 0u);
  munmap(p, kSize);
}

}  // namespace
}  // namespace urnic::device
