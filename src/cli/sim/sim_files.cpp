#include "cli/sim/sim_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "port/fd.h"

namespace urnic::cli {
namespace {

// bound: bytes of a scenario; beyond: an error; test: ScenarioFile.IsReadOnlyUpToTheSizeLimit
constexpr std::size_t kMostScenario = 1u << 20;
constexpr const char* kEnding = ".toml";

bool write_all(int fd, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t n = write(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += static_cast<std::size_t>(n);
  }
  return true;
}

// The last line of a child's standard error.
std::string last_line(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    text.append(buffer, static_cast<std::size_t>(n));
    if (text.size() > 65536) text.erase(0, text.size() - 65536);
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const auto line = text.rfind('\n');
  return line == std::string::npos ? text : text.substr(line + 1);
}

}  // namespace

std::string share_folder() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path().parent_path() / "share" / "urnic").string();
}

std::vector<std::string> installed_scenarios() {
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(share_folder() + "/scenarios", error)) {
    const auto& path = entry.path();
    if (path.extension() == kEnding) out.push_back(path.stem().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string scenario_path(const std::string& name) {
  if (name.find('/') != std::string::npos || name.ends_with(kEnding)) return name;
  return share_folder() + "/scenarios/" + name + kEnding;
}

Outcome<std::string, std::string> read_scenario(const std::string& path) {
  const port::Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return fail(path + ": " + std::strerror(errno));
  struct stat st {};
  if (fstat(fd.get(), &st) != 0) return fail(path + ": " + std::strerror(errno));
  if (!S_ISREG(st.st_mode)) return fail(path + ": not a regular file");
  std::string text;
  char buffer[16384];
  for (ssize_t n; (n = read(fd.get(), buffer, sizeof buffer)) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(path + ": " + std::strerror(errno));
    text.append(buffer, static_cast<std::size_t>(n));
    if (text.size() > kMostScenario) return fail(path + ": too large for a scenario (limit 1 MiB)");
  }
  return text;
}

std::string draw_plot(const std::string& json, const std::string& picture) {
  const std::string program = share_folder() + "/plot-sim";
  int in[2], err[2];
  if (pipe2(in, O_CLOEXEC) != 0) return std::strerror(errno);
  const port::Fd in_read(in[0]);
  port::Fd in_write(in[1]);
  if (pipe2(err, O_CLOEXEC) != 0) return std::strerror(errno);
  const port::Fd err_read(err[0]);
  port::Fd err_write(err[1]);
  const pid_t child = fork();
  if (child < 0) return std::strerror(errno);
  if (child == 0) {
    dup2(in[0], STDIN_FILENO);
    dup2(err[1], STDERR_FILENO);
    // Try the system's Python first: another one in PATH may lack the system's matplotlib.
    execl("/usr/bin/python3", "python3", program.c_str(), "-", picture.c_str(), nullptr);
    execlp("python3", "python3", program.c_str(), "-", picture.c_str(), nullptr);
    _exit(127);
  }
  err_write = port::Fd();
  const bool written = write_all(in_write.get(), json);
  in_write = port::Fd();
  const std::string said = last_line(err_read.get());
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && written) return {};
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
    return "python3 not found; install Python 3 with matplotlib";
  return said.empty() ? "the plot failed" : said;
}

}  // namespace urnic::cli
