#include "cli/stat_client.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "cli/file_descriptor.h"
#include "cli/runtime.h"

namespace urnic::cli {
namespace {

// bound: bytes of an answer that `urnic stat` reads; beyond: an error names the process; the others
// are read; test: StatSocketTest.AnEndlessAnswerIsAborted
constexpr std::size_t kMostAnswer = 256 << 20;

// "<pid>.sock" or "<pid>-<n>.sock".
std::uint64_t pid_of(std::string_view name) {
  if (!name.ends_with(".sock")) return 0;
  name.remove_suffix(5);
  std::uint64_t pid = 0;
  const auto [end, ec] = std::from_chars(name.data(), name.data() + name.size(), pid);
  if (ec != std::errc()) return 0;
  const char* const stop = name.data() + name.size();
  return end == stop || *end == '-' ? pid : 0;
}

}  // namespace

std::vector<StatSocket> find_stat_sockets(const std::string& folder, std::uint64_t pid) {
  std::vector<StatSocket> out;
  DIR* dir = opendir(folder.c_str());
  if (dir == nullptr) return out;
  while (const dirent* e = readdir(dir)) {
    const std::uint64_t owner = pid_of(e->d_name);
    if (owner == 0 || (pid != 0 && owner != pid)) continue;
    const std::string path = folder + "/" + e->d_name;
    if (kill(static_cast<pid_t>(owner), 0) != 0 && errno == ESRCH) {
      unlink(path.c_str());
      continue;
    }
    out.push_back({path, owner});
  }
  closedir(dir);
  std::sort(out.begin(), out.end(), [](const StatSocket& a, const StatSocket& b) {
    return a.pid != b.pid ? a.pid < b.pid : a.path < b.path;
  });
  return out;
}

Result<std::string> read_stat_socket(const std::string& path, int timeout_ms) {
  const auto failed = [&](const std::string& why) {
    return Error{Errc::unavailable, path + ": " + why};
  };
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return failed("the path is too long for a socket");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const FileDescriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd || ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return failed(std::strerror(errno));
  }
  std::string text;
  double until = now_seconds() + timeout_ms / 1000.0;  // the deadline for the next piece
  char buffer[65536];
  while (true) {
    pollfd p{fd.get(), POLLIN, 0};
    const int left = static_cast<int>((until - now_seconds()) * 1000);
    if (left <= 0 || ::poll(&p, 1, left) <= 0) {
      return Error{Errc::timed_out,
                   path + ": the process does not respond; it may be stopped (SIGSTOP)"};
    }
    const ssize_t n = recv(fd.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n < 0) return failed(std::strerror(errno));
    if (n == 0) break;
    text.append(buffer, static_cast<std::size_t>(n));
    until = now_seconds() + timeout_ms / 1000.0;
    if (text.size() > kMostAnswer) return failed("the response is too long");
  }
  return text;
}

}  // namespace urnic::cli
