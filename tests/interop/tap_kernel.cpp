// The kernel's sockets as one end of tap_test.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "interop/tap_end.h"
#include "port/fd.h"

namespace urnic::interop {
namespace {

sockaddr_storage socket_address(const SocketAddress& a, socklen_t* length) {
  sockaddr_storage out{};
  if (a.ip.is_v6()) {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&out);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(a.port);
    std::memcpy(&v6->sin6_addr, a.ip.bytes().data(), 16);
    *length = sizeof *v6;
  } else {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&out);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(a.port);
    std::memcpy(&v4->sin_addr, a.ip.bytes().data(), 4);
    *length = sizeof *v4;
  }
  return out;
}

class KernelPeer {
 public:
  explicit KernelPeer(const Options& o) : options_(o) {
    if (o.serve == 0) return;
    listener_ = port::Fd(socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int on = 1;
    setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    set_congestion(listener_.get());
    socklen_t length = 0;
    const sockaddr_storage a = socket_address({IpAddress::any_v6(), o.serve}, &length);
    if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&a), length) != 0 ||
        listen(listener_.get(), 64) != 0) {
      die(std::string("cannot listen: ") + std::strerror(errno));
    }
  }

  int run() {
    std::puts("ready");
    std::fflush(stdout);
    for (;;) {
      for (const Command& c : input_.take()) connect(c);
      if (input_.at_end() && open_.empty()) break;
      std::vector<pollfd> fds;
      fds.push_back({input_.at_end() ? -1 : 0, POLLIN, 0});
      fds.push_back({listener_.get(), POLLIN, 0});
      for (Open& c : open_) {
        const bool out = c.begin < c.end || !c.shut;
        fds.push_back(
            {c.fd.get(), static_cast<short>(POLLIN | (out && c.hungry ? POLLOUT : 0)), 0});
      }
      ::poll(fds.data(), fds.size(), -1);
      for (Open& c : open_) converse(c);
      std::erase_if(open_, [](const Open& c) { return !c.fd; });
      accept_all();
    }
    return any_failed() ? 1 : 0;
  }

 private:
  struct Open {
    port::Fd fd;
    Session session;
    Watch watch;
    std::vector<std::uint8_t> out = std::vector<std::uint8_t>(kChunk);
    std::size_t begin = 0, end = 0;  // of the data in `out`
    bool hungry = true;              // there is something to write
    bool shut = false, over = false;
  };

  void accept_all() {
    if (!listener_) return;
    for (;;) {
      port::Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd) return;
      open_.push_back({std::move(fd), {}, {}});
    }
  }

  // Accepted sockets inherit the listener's.
  void set_congestion(int fd) const {
    const std::string& name = options_.congestion;
    if (!name.empty() && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                                    static_cast<socklen_t>(name.size())) != 0) {
      die(name + ": " + std::strerror(errno));
    }
  }

  void connect(const Command& c) {
    socklen_t length = 0;
    const sockaddr_storage a = socket_address(c.to, &length);
    port::Fd fd(socket(a.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    set_congestion(fd.get());
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&a), length) != 0 &&
        errno != EINPROGRESS) {
      die(std::string("connect: ") + std::strerror(errno));
    }
    open_.push_back({std::move(fd), Session(c.job), {}});
  }

  void converse(Open& c) {
    while (!c.over) {
      const ssize_t n = recv(c.fd.get(), chunk_.data(), chunk_.size(), 0);
      if (n < 0 && (errno == EAGAIN || errno == EINPROGRESS || errno == ENOTCONN)) break;
      if (n < 0) return finish(c, std::strerror(errno));
      if (n == 0) {
        c.over = true;
        c.session.end_of_stream();
      } else if (!c.session.receive(ByteView(chunk_).first(static_cast<std::size_t>(n)))) {
        return finish(c, "");
      }
    }
    for (;;) {
      if (c.begin == c.end) {
        c.begin = 0;
        c.end = c.session.produce(c.out);
        if (c.end == 0) break;
      }
      const ssize_t n = ::send(c.fd.get(), c.out.data() + c.begin, c.end - c.begin, MSG_NOSIGNAL);
      if (n < 0 && (errno == EAGAIN || errno == EINPROGRESS || errno == ENOTCONN)) break;
      if (n < 0) return finish(c, std::strerror(errno));
      c.begin += static_cast<std::size_t>(n);
    }
    c.hungry = c.begin < c.end;
    if (!c.shut && !c.hungry && c.session.finished_sending()) {
      c.shut = true;
      shutdown(c.fd.get(), SHUT_WR);
    }
    c.watch.progress(c.session.content(), now_of_the_clock());
    if (c.session.done() || !c.session.error().empty()) finish(c, "");
  }

  void finish(Open& c, const char* error) {
    tcp_info info{};
    socklen_t length = sizeof info;
    getsockopt(c.fd.get(), IPPROTO_TCP, TCP_INFO, &info, &length);
    report(options_, c.session, c.watch, info.tcpi_total_retrans, error);
    c.fd = port::Fd();
  }

  Options options_;
  Input input_;
  port::Fd listener_;
  std::vector<Open> open_;
  std::vector<std::uint8_t> chunk_ = std::vector<std::uint8_t>(kChunk);
};

}  // namespace

int run_kernel_end(const Options& o) {
  return KernelPeer(o).run();
}

}  // namespace urnic::interop
