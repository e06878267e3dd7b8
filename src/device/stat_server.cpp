#include "device/stat_server.h"

#include <errno.h>
#include <sys/epoll.h>
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

// Clients that have not read all of their answer.
// bound: readers of statistics that have not got all of their answer; beyond: the oldest is cut
// off; test: StatServerTest.AReaderThatDoesNotReadHoldsUpNobody, StatServerTest.OneCallNeverWaits
constexpr std::size_t kMostClients = 8;

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

StatServer::StatServer(StatSource source) : source_(std::move(source)), owner_(getpid()) {
  const std::string dir = stat_directory();
  if (!private_directory(dir)) return;
  const unsigned n = next_device++;
  path_ = dir + "/" + std::to_string(getpid()) + (n == 0 ? "" : "-" + std::to_string(n)) + ".sock";
  sockaddr_un addr{};
  addr.sun_family = AF_UNIX;
  if (path_.size() >= sizeof addr.sun_path) return;
  std::memcpy(addr.sun_path, path_.c_str(), path_.size() + 1);
  socket_.reset(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  port::Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!socket_ || !epoll) return;
  unlink(path_.c_str());  // left by a process of the same id that is gone
  if (bind(socket_.get(), reinterpret_cast<sockaddr*>(&addr), sizeof addr) != 0 ||
      ::listen(socket_.get(), 8) != 0) {
    return;
  }
  epoll_ = std::move(epoll);
  watch(socket_.get(), EPOLLIN);
}

StatServer::~StatServer() {
  if (epoll_ && getpid() == owner_) unlink(path_.c_str());
}

void StatServer::watch(int fd, std::uint32_t events) const {
  epoll_event e{};
  e.events = events;
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &e);
}

// What follows in the text; false when that was all.
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

// One piece at most.
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
  const int room = 1 << 20;  // a hint: all at once, if the system lets us
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
  // One after the other, and whoever wants in when each has had its turn.
  if (turn_ >= clients_.size()) {
    turn_ = 0;
    take_client();
    return;
  }
  const auto at = clients_.begin() + static_cast<std::ptrdiff_t>(turn_);
  finished(*at) ? void(clients_.erase(at)) : void(++turn_);
}

}  // namespace urnic::engine
