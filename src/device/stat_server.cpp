#include "device/stat_server.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "device/stats_json.h"

namespace urnic::device {
namespace {

// A process may open several devices: <pid>.sock, <pid>-1.sock, ...
std::atomic<unsigned> next_device{0};
std::atomic<pid_t> swept_by{0};  // a forked child sweeps again

// Clients that have not read all of their answer.
// bound: readers of statistics with an unfinished answer; beyond: the oldest is disconnected; test:
// StatServerTest.AReaderThatDoesNotReadBlocksNoOther, StatServerTest.OneCallNeverWaits
constexpr std::size_t kMostClients = 8;

// Files to remove when the process ends without closing its devices, as programs of the drop-in do.
// No lock: exit() may be called from a signal handler.
// bound: devices whose socket file is removed at exit; limit: 64; beyond: the file stays until
// another process removes it; test: StatServerTest.SocketsOfDeadProcessesAreRemoved
std::array<std::atomic<char*>, 64> left_at_exit;
std::atomic<pid_t> exits{0};  // the process that they belong to

void remove_at_exit() {
  if (exits != getpid()) return;
  for (auto& path : left_at_exit) {
    // not freed: that could wait for a lock
    if (const char* const p = path; p != nullptr) unlink(p);
  }
}

// Also handles a forked child: the files of its parent are not its own.
void note_for_exit(const std::string& path) {
  [[maybe_unused]] static const int once = std::atexit(remove_at_exit);
  if (exits.exchange(getpid()) != getpid()) {
    for (auto& other : left_at_exit) other = nullptr;
  }
  char* const copy = strdup(path.c_str());
  if (copy == nullptr) return;
  for (auto& place : left_at_exit) {
    char* nothing = nullptr;
    if (place.compare_exchange_strong(nothing, copy)) return;
  }
  std::free(copy);
}

void forget_for_exit(const std::string& path) {
  for (auto& place : left_at_exit) {
    char* p = place;
    if (p == nullptr || path != p) continue;
    if (place.compare_exchange_strong(p, nullptr)) std::free(p);
  }
}

bool fits(const std::string& path, sockaddr_un* addr) {
  *addr = {};
  addr->sun_family = AF_UNIX;
  if (path.size() >= sizeof addr->sun_path) return false;
  std::memcpy(addr->sun_path, path.c_str(), path.size() + 1);
  return true;
}

// True if the file belongs to a process that no longer exists. A process that cannot be seen from
// here may run in another container: then a connection succeeds.
bool is_left_over(const std::string& folder, const std::string& name) {
  if (!name.ends_with(".sock")) return false;
  char* end = nullptr;
  const long pid = std::strtol(name.c_str(), &end, 10);
  if (pid <= 0 || (*end != '.' && *end != '-')) return false;
  if (kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH) return false;
  sockaddr_un addr;
  if (!fits(folder + "/" + name, &addr)) return false;
  const port::Fd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  return probe && connect(probe.get(), reinterpret_cast<sockaddr*>(&addr), sizeof addr) != 0 &&
         errno == ECONNREFUSED;
}

void sweep(const std::string& folder) {
  constexpr int kAtOnce = 1000;  // the next process removes the rest
  DIR* const d = opendir(folder.c_str());
  if (d == nullptr) return;
  int swept = 0;
  for (const dirent* e = readdir(d); e != nullptr && swept < kAtOnce; e = readdir(d)) {
    if (!is_left_over(folder, e->d_name)) continue;
    unlink((folder + "/" + e->d_name).c_str());
    ++swept;
  }
  closedir(d);
}

}  // namespace

std::string stat_directory() {
  if (const char* run = std::getenv("XDG_RUNTIME_DIR"); run != nullptr && run[0] == '/') {
    return std::string(run) + "/urnic";
  }
  return "/tmp/urnic-" + std::to_string(geteuid());
}

bool has_stat_directory() {
  const std::string path = stat_directory();
  if (mkdir(path.c_str(), 0700) == 0) return true;
  struct stat st;
  return lstat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
         (st.st_mode & 077) == 0;
}

StatServer::StatServer(StatSource source) : source_(std::move(source)), owner_(getpid()) {
  if (!has_stat_directory()) return;
  const std::string dir = stat_directory();
  const unsigned n = next_device++;
  path_ = dir + "/" + std::to_string(getpid()) + (n == 0 ? "" : "-" + std::to_string(n)) + ".sock";
  if (swept_by.exchange(getpid()) != getpid()) sweep(dir);
  sockaddr_un addr;
  if (!fits(path_, &addr)) return;
  socket_.reset(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  port::Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!socket_ || !epoll) return;
  unlink(path_.c_str());  // left by a dead process with the same id
  if (bind(socket_.get(), reinterpret_cast<sockaddr*>(&addr), sizeof addr) != 0 ||
      ::listen(socket_.get(), 8) != 0) {
    return;
  }
  note_for_exit(path_);
  epoll_ = std::move(epoll);
  watch(socket_.get(), EPOLLIN);
}

StatServer::~StatServer() {
  if (!epoll_ || getpid() != owner_) return;
  forget_for_exit(path_);
  unlink(path_.c_str());
}

void StatServer::watch(int fd, std::uint32_t events) const {
  epoll_event e{};
  e.events = events;
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &e);
}

// Builds the next part of the text; false when there is none.
bool StatServer::next_piece(Client& c) {
  if (c.whole) return false;
  std::vector<ConnectionStats> some;
  c.whole = !source_.connections(&c.place, kPiece, &some);
  c.text.clear();
  c.done = 0;
  for (const ConnectionStats& s : some) {
    c.text += stats_connection_to_json(s, !c.any);
    c.any = true;
  }
  if (c.whole) c.text += stats_tail_to_json(c.ended, c.any);
  return true;
}

// Sends at most one piece.
bool StatServer::finished(Client& c) {
  if (c.done == c.text.size() && !next_piece(c)) return true;
  while (c.done < c.text.size()) {
    const ssize_t n = send(c.socket.get(), c.text.data() + c.done, c.text.size() - c.done,
                           MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n <= 0) return n == 0 || (errno != EAGAIN && errno != EINTR);
    c.done += static_cast<std::size_t>(n);
  }
  return c.whole;
}

void StatServer::take_client() {
  port::Fd socket(accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket) return;
  const int room = 1 << 20;  // a hint: send everything at once, if the system allows it
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  Client c;
  c.socket = std::move(socket);
  EngineStats totals = source_.totals();
  c.text = stats_head_to_json(totals);
  c.ended = std::move(totals.ended);
  if (clients_.size() == kMostClients) clients_.pop_front();
  watch(c.socket.get(), EPOLLOUT);
  clients_.push_back(std::move(c));
}

void StatServer::serve() {
  if (!epoll_) return;
  // Clients are served one after the other; a new one is accepted when each has had its turn.
  if (turn_ >= clients_.size()) {
    turn_ = 0;
    take_client();
    return;
  }
  const auto at = clients_.begin() + static_cast<std::ptrdiff_t>(turn_);
  finished(*at) ? void(clients_.erase(at)) : void(++turn_);
}

}  // namespace urnic::device
