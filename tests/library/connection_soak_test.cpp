// Opens and ends connections over and over between two processes on a memif: in order by either
// side or both at once, by RST of either side, by Terminate, rejected, and with a client that is
// killed with open connections and restarted. The server's resources, sampled, must not grow.
//
// URNIC_TEST_SOAK=1: 100 000 connections and 100 killed clients (./run-tests --long).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace urnic::test {
namespace {

using Clock = std::chrono::steady_clock;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kInstrumented = true;
#else
constexpr bool kInstrumented = false;
#endif

// A process that takes commands line by line.
class Process {
 public:
  explicit Process(std::vector<std::string> words) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], 0);
      dup2(out[1], 1);
      std::vector<char*> argv;
      argv.reserve(words.size() + 1);
      for (std::string& w : words) argv.push_back(w.data());
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    to_ = in[1];
    from_ = out[0];
  }
  ~Process() { end(SIGKILL); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void tell(std::string line) {
    line += '\n';
    [[maybe_unused]] const auto n = write(to_, line.data(), line.size());
  }
  // Its next line; empty if there is none for half a minute, or the process has ended.
  std::string answer() {
    for (;;) {
      if (const std::size_t at = text_.find('\n'); at != std::string::npos) {
        std::string line = text_.substr(0, at);
        text_.erase(0, at + 1);
        return line;
      }
      pollfd p{from_, POLLIN, 0};
      char more[256];
      const ssize_t n = poll(&p, 1, 30000) > 0 ? read(from_, more, sizeof more) : -1;
      if (n <= 0) return {};
      text_.append(more, static_cast<std::size_t>(n));
    }
  }
  std::string ask(const std::string& line) {
    tell(line);
    return answer();
  }
  void end(int signal) {
    if (pid_ <= 0) return;
    kill(pid_, signal);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
    ::close(to_);
    ::close(from_);
  }

 private:
  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
  std::string text_;
};

// The server's resources when all connections have ended, TIME-WAIT included.
struct Sample {
  std::uint64_t asked = 0, crowd = 0, links = 0, connections = 0, regions = 0, reassembly = 0,
                heap = 0;
  std::uint64_t rss_kib = 0, shared_kib = 0, descriptors = 0, threads = 0;
};

Sample take_sample(Process& server) {
  Sample s;
  std::istringstream said(server.ask("sample"));
  said >> s.asked >> s.crowd >> s.links >> s.connections >> s.regions >> s.reassembly >> s.heap;
  EXPECT_FALSE(said.fail()) << "no response from the server";
  const std::string proc = "/proc/" + std::to_string(server.pid());
  std::ifstream statm(proc + "/statm");
  std::uint64_t pages = 0;
  const auto page_kib = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) / 1024;
  statm >> pages >> s.rss_kib >> s.shared_kib;
  s.rss_kib *= page_kib;
  s.shared_kib *= page_kib;
  const auto entries = [](const std::string& folder) {
    const std::filesystem::directory_iterator all(folder);
    return static_cast<std::uint64_t>(std::distance(begin(all), end(all)));
  };
  s.descriptors = entries(proc + "/fd");
  s.threads = entries(proc + "/task");
  return s;
}

struct Soak : ::testing::Test {
  void SetUp() override {
    char name[] = "/tmp/urnic-soak-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder = name;
    signal(SIGPIPE, SIG_IGN);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::unique_ptr<Process> start(const std::string& role) {
    std::vector<std::string> words = {URNIC_SOAK_END, role, folder + "/m.sock"};
    if (role == "client") {
      words.push_back(std::to_string(++seed));
      words.emplace_back("16");
    }
    auto p = std::make_unique<Process>(std::move(words));
    EXPECT_EQ(p->answer(), "ready") << role;
    return p;
  }
  // The server's count of connections so far and now, once there have been `least` of them.
  std::pair<std::uint64_t, std::uint64_t> reached(Process& server, std::uint64_t least) {
    std::uint64_t last = 0;
    auto moved = Clock::now();
    for (;;) {
      std::istringstream said(server.ask("count"));
      std::uint64_t opened = 0, open = 0;
      said >> opened >> open;
      if (opened >= least) return {opened, open};
      if (opened != last) moved = Clock::now();
      last = opened;
      if (said.fail() || Clock::now() - moved > std::chrono::seconds(20)) {
        ADD_FAILURE() << "nothing moves after " << last << " connections";
        return {last, open};
      }
      usleep(5000);
    }
  }

  std::string folder;
  unsigned seed = 0;
};

TEST_F(Soak, ConnectionsOverMemifLeakNothing) {
  const bool all = std::getenv("URNIC_TEST_SOAK") != nullptr;
  const unsigned samples = all ? 10 : 4, kills = all ? 10 : 1;  // kills: before each sample
  const std::uint64_t step = all ? 10000 : 750;
  // Tables grow to the largest number of connections at a time between two samples (mainly in
  // TIME-WAIT); with this many connections the first sample has reached it in the short form too.
  const std::uint64_t before = all ? 0 : 10000;
  auto server = start("server");
  Sample first;
  std::uint64_t left_open = 0, good = 0, crowd = 0, slowest_us = 0;
  std::printf("%11s %7s %7s %10s | kept: %8s %8s %12s %5s %8s %11s %8s\n", "connections", "per s",
              "killed", "crowd", "RSS KiB", "shared", "heap bytes", "fds", "threads", "connections",
              "regions");
  for (unsigned n = 0; n < samples; ++n) {
    const auto began = Clock::now();
    auto client = start("client");
    for (unsigned k = 1; k <= kills + 1; ++k) {
      client->tell("go");
      const auto [opened, open] = reached(*server, before + n * step + k * step / (kills + 1));
      if (HasFailure()) return;
      if (k > kills) break;
      client->end(SIGKILL);
      left_open += open;
      client = start("client");
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    std::istringstream stopped(client->ask("stop"));
    std::string word, why;
    std::uint64_t well = 0, wrong = 0, slowest = 0;
    stopped >> word >> well >> wrong >> slowest;
    std::getline(stopped, why);
    EXPECT_EQ(word, "stopped");
    EXPECT_EQ(wrong, 0u) << "ended otherwise than asked for, the last one" << why;
    good += well;
    slowest_us = std::max(slowest_us, slowest);
    const Sample s = take_sample(*server);
    std::printf("%11" PRIu64 " %7.0f %7u %10" PRIu64 " | %14" PRIu64 " %8" PRIu64 " %12" PRIu64
                " %5" PRIu64 " %8" PRIu64 " %11" PRIu64 " %8" PRIu64 "\n",
                s.asked, static_cast<double>(step) / seconds, (n + 1) * kills, s.crowd, s.rss_kib,
                s.shared_kib, s.heap, s.descriptors, s.threads, s.connections, s.regions);
    if (n == 0) first = s;
    if (n != 0) crowd = std::max(crowd, s.crowd);
    EXPECT_EQ(s.links, 0u);
    EXPECT_EQ(s.connections, 0u);
    EXPECT_EQ(s.regions, 0u);
    EXPECT_EQ(s.reassembly, 0u);
    EXPECT_EQ(s.descriptors, first.descriptors);
    EXPECT_EQ(s.threads, first.threads);
    // Tables have the size of the largest number of connections at a time; the first sample has
    // those of its own. That number depends on the machine, and is sampled ten times a second.
    const bool larger = crowd > first.crowd * 3 / 4;
    const std::uint64_t tables = 64 * 1024 + (larger ? 256 * crowd : 0);
    EXPECT_LE(s.heap, first.heap + tables);
    // Sanitizers keep resident memory for every byte, thread and lock ever used.
    if (!kInstrumented) {
      EXPECT_LE(s.rss_kib, first.rss_kib + 512 + tables / 1024);
    }
    if (HasFailure()) return;
  }
  std::printf("killed clients left %" PRIu64 " connections open; from SYN to end %" PRIu64
              " us at most\n",
              left_open, slowest_us);
  EXPECT_GT(left_open, 0u);
  EXPECT_GT(good, 0u);
}

}  // namespace
}  // namespace urnic::test
