// How `urnic stat` finds processes and reads their responses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "cli/stat_client.h"

namespace urnic::cli {
namespace {

using testing::HasSubstr;

class StatSocketTest : public testing::Test {
 protected:
  StatSocketTest() {
    char name[] = "/tmp/urnic-stat-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~StatSocketTest() override { std::filesystem::remove_all(folder_); }

  int listen_at(const std::string& path) {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    std::memcpy(a.sun_path, path.c_str(), path.size() + 1);
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&a), sizeof a), 0);
    EXPECT_EQ(listen(fd, 4), 0);
    return fd;
  }
  std::string folder_;
};

TEST_F(StatSocketTest, FindsSocketsOfLivingProcessesAndRemovesTheOthers) {
  const std::string me = std::to_string(getpid());
  for (const std::string& name : {me + ".sock", me + "-1.sock", std::string("4194305.sock"),
                                  std::string("x.sock"), std::string("7"), me + "x.sock"}) {
    std::ofstream(folder_ + "/" + name) << "";
  }
  auto found = find_stat_sockets(folder_);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].pid, static_cast<std::uint64_t>(getpid()));
  EXPECT_NE(access((folder_ + "/4194305.sock").c_str(), F_OK), 0) << "left by a dead process";
  EXPECT_EQ(access((folder_ + "/x.sock").c_str(), F_OK), 0) << "not ours to remove";
  EXPECT_TRUE(find_stat_sockets(folder_, 1).empty());
  EXPECT_TRUE(find_stat_sockets(folder_ + "/none").empty());
}

// A folder lists its names in no particular order.
TEST_F(StatSocketTest, SocketsAreSortedByProcessAndName) {
  for (const char number : std::string("3917526480")) {
    for (const std::string& pid : {std::to_string(getpid()), std::string("1")}) {
      std::ofstream(folder_ + "/" + pid + "-" + number + ".sock") << "";
    }
  }
  std::vector<std::string> expected, found;
  for (const std::string& pid : {std::string("1"), std::to_string(getpid())}) {
    for (char number = '0'; number <= '9'; ++number) {
      expected.push_back(folder_ + "/" + pid + "-" + number + ".sock");
    }
  }
  for (const StatSocket& s : find_stat_sockets(folder_)) found.push_back(s.path);
  EXPECT_EQ(found, expected);
}

TEST_F(StatSocketTest, ReadsUntilTheEnd) {
  const std::string path = folder_ + "/1.sock";
  const int fd = listen_at(path);
  const std::string document(300'000, 'x');
  std::thread server([&] {
    const int c = accept(fd, nullptr, nullptr);
    for (std::size_t at = 0; at < document.size();) {
      const ssize_t n = write(c, document.data() + at, document.size() - at);
      if (n <= 0) break;
      at += static_cast<std::size_t>(n);
    }
    close(c);
  });
  auto text = read_stat_socket(path, 60'000);
  server.join();
  close(fd);
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(*text, document);
}

TEST_F(StatSocketTest, AProcessThatDoesNotAnswerTimesOut) {
  const std::string path = folder_ + "/1.sock";
  const int fd = listen_at(path);
  const auto text = read_stat_socket(path, 100);
  ASSERT_FALSE(text.ok());
  EXPECT_THAT(text.error().message, HasSubstr("does not respond"));
  close(fd);
  EXPECT_FALSE(read_stat_socket(path, 100).ok());
  EXPECT_FALSE(read_stat_socket(std::string(200, 'x'), 100).ok());
}

// It writes as long as it is read; the next process ends its answer, which is read completely.
TEST_F(StatSocketTest, AnEndlessAnswerIsAborted) {
  const std::string path = folder_ + "/3.sock";
  const int fd = listen_at(path);
  std::uint64_t written = 0;
  std::thread process([&] {
    const std::vector<char> much(1 << 20, 'x');
    for (const bool endless : {true, false}) {
      const int one = accept(fd, nullptr, nullptr);
      for (ssize_t n = 0; endless; written += static_cast<std::uint64_t>(n)) {
        n = send(one, much.data(), much.size(), MSG_NOSIGNAL);
        if (n <= 0) break;
      }
      if (!endless) {
        EXPECT_EQ(send(one, "{}", 2, MSG_NOSIGNAL), 2);
      }
      close(one);
    }
  });
  auto endless = read_stat_socket(path, 60'000);
  auto next = read_stat_socket(path, 60'000);
  process.join();
  close(fd);
  ASSERT_FALSE(endless.ok());
  EXPECT_THAT(endless.error().message, HasSubstr("too long"));
  EXPECT_GE(written, std::uint64_t{256} << 20);
  EXPECT_LT(written, std::uint64_t{258} << 20);
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(*next, "{}");
}

}  // namespace
}  // namespace urnic::cli
