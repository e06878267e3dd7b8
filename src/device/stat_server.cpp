#include "device/stat_server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "device/stats_json.h"

namespace urnic::engine {
namespace {

// A process may open several devices: <pid>.sock, <pid>-1.sock, ...
std::atomic<unsigned> next_device{0};

// Ours alone: a directory somebody else made under a public /tmp is not used.
bool private_directory(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0) return true;
  struct stat st;
  return lstat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
         (st.st_mode & 077) == 0;
}

}  // namespace

std::string stat_directory() {
  if (const char* run = std::getenv("XDG_RUNTIME_DIR"); run != nullptr && run[0] == '/') {
    return std::string(run) + "/urnic";
  }
  return "/tmp/urnic-" + std::to_string(geteuid());
}

StatServer::StatServer(std::function<EngineStats()> source)
    : source_(std::move(source)), owner_(getpid()) {
  const std::string dir = stat_directory();
  if (!private_directory(dir)) return;
  const unsigned n = next_device++;
  path_ = dir + "/" + std::to_string(getpid()) + (n == 0 ? "" : "-" + std::to_string(n)) + ".sock";
  sockaddr_un addr{};
  addr.sun_family = AF_UNIX;
  if (path_.size() >= sizeof addr.sun_path) return;
  std::memcpy(addr.sun_path, path_.c_str(), path_.size() + 1);
  fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return;
  unlink(path_.c_str());  // left by a process of the same id that is gone
  if (bind(fd_, reinterpret_cast<sockaddr*>(&addr), sizeof addr) != 0 || ::listen(fd_, 8) != 0) {
    close(fd_);
    fd_ = -1;
  }
}

StatServer::~StatServer() {
  if (fd_ < 0) return;
  close(fd_);
  if (getpid() == owner_) unlink(path_.c_str());
}

void StatServer::serve() {
  const int client = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  const timeval patience{0, 200000};
  setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const std::string text = stats_to_json(source_());
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = send(client, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  close(client);
}

}  // namespace urnic::engine
