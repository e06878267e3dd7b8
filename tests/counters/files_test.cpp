// The files in which processes publish their counters, their sums, and the tree that tools read.
#include "counters/files.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "counters/publisher.h"

namespace urnic::counters {
namespace {

namespace fs = std::filesystem;

EngineStats sent(std::uint64_t frames) {
  EngineStats s;
  s.port.spec = "udp";
  s.port.tx_frames = frames;
  s.port.tx_bytes = frames * 4096;
  s.ended.roce.rnr_naks_sent = frames * 2;
  return s;
}

struct CounterFolder : testing::Test {
  void SetUp() override {
    char name[] = "/tmp/urnic-counters-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder = name;
  }
  void TearDown() override { fs::remove_all(folder); }

  std::unique_ptr<Publisher> publisher(const std::string& port = "udp",
                                       const std::string& section = "") const {
    return std::make_unique<Publisher>(folder.string(), section, port);
  }
  std::uint64_t value(const std::string& path, const std::string& port = "udp",
                      const std::string& section = "") const {
    DeviceName device;
    EXPECT_TRUE(set_name(&device, section.c_str(), port.c_str()));
    const FolderLock lock(folder.c_str());
    EXPECT_EQ(lock.error(), 0);
    const Sum sum = add_up(lock.folder(), device);
    for (std::size_t i = 0; i < sum.entries; ++i) {
      if (path == sum.entry[i].path) return sum.entry[i].value;
    }
    return 0;
  }
  std::uint64_t frames(const std::string& port = "udp", const std::string& section = "") const {
    return value("counters/port_xmit_packets", port, section);
  }
  void merge() const {
    const FolderLock lock(folder.c_str());
    ASSERT_EQ(lock.error(), 0);
    merge_ended(lock.folder());
  }
  // Those of processes, or of totals.
  std::vector<fs::path> pages(bool totals) const {
    std::vector<fs::path> found;
    for (const auto& e : fs::directory_iterator(folder)) {
      const std::string name = e.path().filename();
      if (name.ends_with(kEnding) && name.starts_with(kTotals) == totals) found.push_back(e.path());
    }
    return found;
  }
  fs::path folder;
};
using CounterPublisher = CounterFolder;
using CounterFiles = CounterFolder;

// proves: DI-28
TEST_F(CounterPublisher, ThoseOfAllProcessesAreAddedUp) {
  const auto a = publisher(), b = publisher();
  ASSERT_EQ(a->publish(sent(3)), 0);
  ASSERT_EQ(b->publish(sent(4)), 0);
  EXPECT_EQ(frames(), 7u);
  EXPECT_EQ(value("counters/port_xmit_data"), 7u * 1024);
  EXPECT_EQ(value("hw_counters/send_rnr_err"), 14u);
  ASSERT_EQ(a->publish(sent(10)), 0);
  EXPECT_EQ(frames(), 14u);
}

// proves: DI-28
TEST_F(CounterPublisher, EachDeviceHasItsOwn) {
  const auto a = publisher("udp"), b = publisher("udp:bind=127.0.0.1"), c = publisher("udp", "lab");
  ASSERT_EQ(a->publish(sent(1)), 0);
  ASSERT_EQ(b->publish(sent(2)), 0);
  ASSERT_EQ(c->publish(sent(4)), 0);
  EXPECT_EQ(frames("udp"), 1u);
  EXPECT_EQ(frames("udp:bind=127.0.0.1"), 2u);
  EXPECT_EQ(frames("udp", "lab"), 4u);
  EXPECT_EQ(frames("udp", "other"), 0u);
}

// A connection that ends between two looks is missing in one of them.
// proves: DI-28
TEST_F(CounterPublisher, AValueNeverFalls) {
  const auto a = publisher();
  ASSERT_EQ(a->publish(sent(5)), 0);
  EngineStats less = sent(5);
  less.ended.roce.rnr_naks_sent = 1;
  less.port.tx_frames = 6;
  ASSERT_EQ(a->publish(less), 0);
  EXPECT_EQ(value("hw_counters/send_rnr_err"), 10u);
  EXPECT_EQ(frames(), 6u);
}

TEST_F(CounterPublisher, AnUnusedDeviceLeavesNothing) {
  {
    const auto a = publisher();
    ASSERT_EQ(a->open(), 0);
    ASSERT_EQ(a->open(), 0);
    EXPECT_EQ(pages(false).size(), 1u);
    ASSERT_EQ(a->publish(EngineStats()), 0);
    EXPECT_EQ(pages(false).size(), 1u);
  }
  EXPECT_TRUE(pages(false).empty());
  EXPECT_TRUE(pages(true).empty());
}

// The values begin where they were, not below.
TEST_F(CounterPublisher, APageThatIsOpenedLateHasAllValues) {
  const auto a = publisher();
  ASSERT_EQ(a->publish(sent(9)), 0);
  EXPECT_EQ(frames(), 9u);
}

TEST_F(CounterPublisher, LeavesItsTotalsAtItsEnd) {
  const auto stays = publisher();
  ASSERT_EQ(stays->publish(sent(1)), 0);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    const auto a = publisher();
    ASSERT_EQ(a->publish(sent(10)), 0);
    EXPECT_EQ(frames(), 1 + 10 * i);
  }
  EXPECT_EQ(frames(), 31u);
  EXPECT_EQ(pages(false).size(), 1u);  // of the one that runs
  EXPECT_EQ(pages(true).size(), 1u);
}

TEST_F(CounterPublisher, ATooLongNameIsRefused) {
  EXPECT_EQ(publisher(std::string(kPortRoom, 'p'))->publish(sent(1)), ENAMETOOLONG);
  EXPECT_EQ(publisher("udp", std::string(kSectionRoom, 's'))->publish(sent(1)), ENAMETOOLONG);
  EXPECT_TRUE(pages(false).empty());
  const std::string port(kPortRoom - 1, 'p'), section(kSectionRoom - 1, 's');
  const auto a = publisher(port, section);
  EXPECT_EQ(a->publish(sent(1)), 0);
  EXPECT_EQ(frames(port, section), 1u);
}

// RLIMIT_FSIZE stands for a full disk.
TEST_F(CounterPublisher, AFullFolderIsAnErrorAndLaterItWorks) {
  const auto before = signal(SIGXFSZ, SIG_IGN);
  rlimit old, small;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  small = old;
  small.rlim_cur = 4096;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto a = publisher();
  const int error = a->publish(sent(1));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  signal(SIGXFSZ, before);
  EXPECT_EQ(error, EFBIG);
  EXPECT_TRUE(pages(false).empty());
  EXPECT_EQ(a->publish(sent(1)), 0);
  EXPECT_EQ(frames(), 1u);
}

TEST_F(CounterPublisher, AMissingFolderIsAnError) {
  const auto a = std::make_unique<Publisher>((folder / "nowhere").string(), "", "udp");
  EXPECT_EQ(a->publish(sent(1)), ENOENT);
}

// A process that merges is killed after it has written the totals.
// proves: DI-28
TEST_F(CounterFiles, APageIsAddedToTheTotalsOnce) {
  {
    const auto a = publisher();
    ASSERT_EQ(a->publish(sent(5)), 0);
    fs::copy(pages(false)[0], folder / "page");
  }
  ASSERT_TRUE(pages(false).empty());
  fs::rename(folder / "page", folder / (std::string("1-1") + kEnding));
  EXPECT_EQ(frames(), 5u);
  merge();
  EXPECT_TRUE(pages(false).empty());
  EXPECT_EQ(frames(), 5u);
}

// proves: DI-28
TEST_F(CounterFiles, ThePageOfALivingProcessStays) {
  const auto a = publisher();
  ASSERT_EQ(a->publish(sent(5)), 0);
  merge();
  EXPECT_EQ(pages(false).size(), 1u);
  EXPECT_TRUE(pages(true).empty());
  EXPECT_EQ(frames(), 5u);
}

// Its process was killed while it created the page.
TEST_F(CounterFiles, AnUnfinishedPageIsDeleted) {
  std::ofstream(folder / (std::string("1-1") + kEnding)) << "urnic";
  std::ofstream(folder / (std::string("1-2") + kEnding)) << std::string(sizeof(Page), 'x');
  EXPECT_EQ(frames(), 0u);
  merge();
  EXPECT_TRUE(pages(false).empty());
  EXPECT_TRUE(pages(true).empty());
}

// As from another version of urnic.
TEST_F(CounterFiles, TotalsHaveRoomForOneFullPage) {
  Page page = {};
  std::memcpy(page.magic, kMagic, sizeof page.magic);
  page.id = 7;
  page.entries = kMostEntries;
  ASSERT_TRUE(set_name(&page.device, "", "udp"));
  for (std::size_t i = 0; i < kMostEntries; ++i) {
    std::snprintf(page.entry[i].path, sizeof page.entry[i].path, "counters/other%zu", i);
    page.entry[i].value = i;
  }
  std::ofstream(folder / (std::string("1-1") + kEnding), std::ios::binary)
      .write(reinterpret_cast<const char*>(&page), sizeof page);
  merge();
  ASSERT_EQ(publisher()->publish(sent(5)), 0);
  EXPECT_EQ(value("counters/other95"), 95u);
  EXPECT_EQ(frames(), 0u);  // no room
}

// A page that begins with other counters, as of another version.
TEST_F(CounterFiles, ValuesAreAddedByName) {
  Page page = {};
  std::memcpy(page.magic, kMagic, sizeof page.magic);
  page.id = 7;
  page.entries = 2;
  ASSERT_TRUE(set_name(&page.device, "", "udp"));
  std::strcpy(page.entry[0].path, "counters/other");
  page.entry[0].value = 1;
  std::strcpy(page.entry[1].path, "counters/port_xmit_packets");
  page.entry[1].value = 100;
  std::ofstream(folder / (std::string("1-1") + kEnding), std::ios::binary)
      .write(reinterpret_cast<const char*>(&page), sizeof page);
  const auto a = publisher();
  ASSERT_EQ(a->publish(sent(5)), 0);
  EXPECT_EQ(frames(), 105u);
  EXPECT_EQ(value("counters/other"), 1u);
}

struct CounterTree : CounterFolder {
  void SetUp() override {
    CounterFolder::SetUp();
    tree = folder / "tree";
    for (const char* shown : {"urnic0", "urnic1"}) {
      const fs::path port = tree / "sys/class/infiniband" / shown / "ports/1";
      fs::create_directories(port / "counters");
      std::ofstream(port / "counters/port_xmit_packets") << "0\n";
      std::ofstream(port / "counters/symbol_error") << "0\n";
    }
    std::ofstream(tree / kDevicesFile) << "urnic0\t\tudp\nurnic1\tlab\tudp\n";
  }
  int refresh() const { return refresh_tree(tree.c_str(), folder.c_str()); }
  std::string text(const std::string& device, const std::string& name) const {
    std::ifstream in(tree / "sys/class/infiniband" / device / "ports/1/counters" / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  fs::path tree;
};

TEST_F(CounterTree, GetsTheSumsOfEachDevice) {
  const auto a = publisher(), b = publisher("udp", "lab");
  ASSERT_EQ(a->publish(sent(99)), 0);
  ASSERT_EQ(b->publish(sent(7)), 0);
  ASSERT_EQ(refresh(), 0);
  EXPECT_EQ(text("urnic0", "port_xmit_packets"), "99\n");
  EXPECT_EQ(text("urnic1", "port_xmit_packets"), "7\n");
  EXPECT_EQ(text("urnic0", "symbol_error"), "0\n");
  ASSERT_EQ(a->publish(sent(100)), 0);
  ASSERT_EQ(refresh(), 0);
  EXPECT_EQ(text("urnic0", "port_xmit_packets"), "100\n");
  // Only what the tree has, and nothing half finished.
  const fs::path counters = tree / "sys/class/infiniband/urnic0/ports/1/counters";
  EXPECT_EQ(std::distance(fs::directory_iterator(counters), fs::directory_iterator()), 2);
  EXPECT_FALSE(fs::exists(tree / "sys/class/infiniband/urnic0/ports/1/hw_counters"));
  EXPECT_FALSE(fs::exists(tree / "counters.new"));
}

// A reader never sees half of a line: an open file keeps its text.
TEST_F(CounterTree, AFileIsReplacedAsAWholeAndOnlyWhenItChanges) {
  const auto a = publisher();
  ASSERT_EQ(a->publish(sent(9)), 0);
  ASSERT_EQ(refresh(), 0);
  std::ifstream open(tree / "sys/class/infiniband/urnic0/ports/1/counters/port_xmit_packets");
  const auto written = fs::last_write_time(tree / "sys/class/infiniband/urnic0/ports/1/counters");
  ASSERT_EQ(refresh(), 0);
  EXPECT_EQ(fs::last_write_time(tree / "sys/class/infiniband/urnic0/ports/1/counters"), written);
  ASSERT_EQ(a->publish(sent(10)), 0);
  ASSERT_EQ(refresh(), 0);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(open), {}), "9\n");
  EXPECT_EQ(text("urnic0", "port_xmit_packets"), "10\n");
}

TEST_F(CounterTree, SaysWhyItCannotBeWritten) {
  EXPECT_EQ(refresh_tree((folder / "nowhere").c_str(), folder.c_str()), ENOENT);
  EXPECT_EQ(refresh_tree(folder.c_str(), folder.c_str()), ENOENT);  // no `devices` in it
  EXPECT_EQ(refresh_tree(tree.c_str(), (folder / "nowhere").c_str()), ENOENT);
  const int other = open((folder / "counters.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  EXPECT_EQ(refresh(), EBUSY);
  close(other);
  EXPECT_EQ(refresh(), 0);
}

TEST_F(CounterTree, LinesThatNameNoDeviceAreSkipped) {
  std::ofstream(tree / kDevicesFile) << "urnic0\nurnic0\t\n\nurnic1\t\tudp\nurnic0\t\tudp";
  const auto a = publisher();
  ASSERT_EQ(a->publish(sent(3)), 0);
  ASSERT_EQ(refresh(), 0);
  EXPECT_EQ(text("urnic1", "port_xmit_packets"), "3\n");
  EXPECT_EQ(text("urnic0", "port_xmit_packets"), "0\n");
  std::ofstream(tree / kDevicesFile, std::ios::trunc).flush();
  EXPECT_EQ(refresh(), 0);
}

}  // namespace
}  // namespace urnic::counters
