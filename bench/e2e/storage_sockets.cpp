// P20 over the kernel's TCP alone: an epoll server and client with a thread each, which poll. The
// data follows the answer or the request.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "bench/e2e/storage.h"

namespace urnic::bench {
namespace {

constexpr std::size_t kStaged = 16384;  // bytes received at once besides the rest of the data
constexpr std::size_t kTogether = 32;   // messages sent with one call

// One connection: messages out and in, each with or without the data of its tag. Non-blocking.
template <class Out, class In>
class Stream {
 public:
  Stream(int fd, Slots& slots, bool data_out, bool data_in)
      : fd_(fd), slots_(slots), data_out_(data_out), data_in_(data_in), staged_(kStaged) {}

  void queue(const Out& message) { queue_.push_back(message); }

  // Returns false if the kernel takes no more at present.
  bool flush() {
    while (first_ < queue_.size()) {
      std::array<iovec, 2 * kTogether> parts;
      const std::size_t n = parts_of_queue(parts), length = sum_of({parts.data(), n});
      msghdr m{};
      m.msg_iov = parts.data();
      m.msg_iovlen = n;
      const ssize_t sent = sendmsg(fd_, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno == EAGAIN) return false;
      if (sent < 0) fail_storage(std::string("send: ") + std::strerror(errno));
      remove_sent(static_cast<std::size_t>(sent));
      if (static_cast<std::size_t>(sent) < length) return false;
    }
    return true;
  }

  // Calls arrived(message) for each message, when its data is in its slot, until the kernel has no
  // more.
  template <class Arrived>
  void receive(Arrived arrived) {
    for (;;) {
      // The rest of the data goes to its slot without a copy.
      std::array<iovec, 2> parts{{{data_.data(), data_.size()}, {staged_.data(), kStaged}}};
      const std::size_t room = data_.size() + kStaged;
      const ssize_t n = data_.empty() ? readv(fd_, &parts[1], 1) : readv(fd_, parts.data(), 2);
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) fail_storage("the other end is gone");
      const auto length = static_cast<std::size_t>(n), direct = std::min(length, data_.size());
      if (direct > 0) take_data(direct, arrived);
      parse(std::span(staged_).first(length - direct), arrived);
      if (length < room) return;
    }
  }

 private:
  std::size_t data_bytes(std::uint32_t tag) { return data_out_ ? slots_.slot(tag).size() : 0; }

  std::size_t parts_of_queue(std::span<iovec> parts) {
    std::size_t n = 0, skip = sent_;
    const auto add = [&](void* bytes, std::size_t length) {
      const std::size_t without = std::min(skip, length);
      skip -= without;
      if (length > without) parts[n++] = {static_cast<char*>(bytes) + without, length - without};
    };
    const std::size_t end = std::min(queue_.size(), first_ + kTogether);
    for (std::size_t i = first_; i < end; ++i) {
      add(&queue_[i], sizeof(Out));
      add(slots_.slot(queue_[i].tag).data(), data_bytes(queue_[i].tag));
    }
    return n;
  }
  static std::size_t sum_of(std::span<const iovec> parts) {
    std::size_t sum = 0;
    for (const iovec& part : parts) sum += part.iov_len;
    return sum;
  }
  void remove_sent(std::size_t bytes) {
    sent_ += bytes;
    while (first_ < queue_.size()) {
      const std::size_t length = sizeof(Out) + data_bytes(queue_[first_].tag);
      if (sent_ < length) return;
      sent_ -= length;
      ++first_;
    }
    queue_.clear();
    first_ = 0;
  }

  template <class Arrived>
  void take_data(std::size_t bytes, Arrived& arrived) {
    data_ = data_.subspan(bytes);
    if (data_.empty()) arrived(message_);
  }
  template <class Arrived>
  void parse(std::span<const std::uint8_t> in, Arrived& arrived) {
    while (!in.empty()) {
      std::size_t n;
      if (!data_.empty()) {
        n = std::min(in.size(), data_.size());
        std::memcpy(data_.data(), in.data(), n);
        take_data(n, arrived);
      } else {
        n = std::min(in.size(), sizeof message_ - have_);
        std::memcpy(reinterpret_cast<std::uint8_t*>(&message_) + have_, in.data(), n);
        have_ += n;
        if (have_ == sizeof message_) begin_data(arrived);
      }
      in = in.subspan(n);
    }
  }
  template <class Arrived>
  void begin_data(Arrived& arrived) {
    have_ = 0;
    if (data_in_) {
      data_ = slots_.slot(message_.tag);
    } else {
      arrived(message_);
    }
  }

  int fd_;
  Slots& slots_;
  bool data_out_, data_in_;
  std::vector<Out> queue_;
  std::size_t first_ = 0, sent_ = 0;  // the first message not sent wholly, and bytes sent of it
  std::vector<std::uint8_t> staged_;
  In message_;
  std::size_t have_ = 0;          // bytes of message_
  std::span<std::uint8_t> data_;  // what is missing of its data
};

// All connections of an end, with one epoll.
template <class Out, class In>
class Streams {
 public:
  Streams(const std::vector<int>& sockets, Slots& slots, bool data_out, bool data_in)
      : epoll_(epoll_create1(EPOLL_CLOEXEC)), waits_(sockets.size()), events_(sockets.size()) {
    for (const int fd : sockets) {
      streams_.emplace_back(fd, slots, data_out, data_in);
      fds_.push_back(fd);
      control(EPOLL_CTL_ADD, fds_.size() - 1, EPOLLIN);
    }
  }
  std::size_t size() const { return streams_.size(); }
  void queue(std::size_t i, const Out& message) { streams_[i].queue(message); }

  // Calls arrived(index, message).
  template <class Arrived>
  void poll(Arrived arrived) {
    const int n = epoll_wait(epoll_, events_.data(), static_cast<int>(events_.size()), 0);
    if (n < 0) fail_storage(std::string("epoll: ") + std::strerror(errno));
    for (const epoll_event& e : std::span(events_).first(static_cast<std::size_t>(n))) {
      const std::size_t i = e.data.u64;
      if ((e.events & EPOLLOUT) != 0) {
        waits_[i] = false;
        control(EPOLL_CTL_MOD, i, EPOLLIN);
      }
      if ((e.events & ~std::uint32_t{EPOLLOUT}) == 0) continue;
      streams_[i].receive([&](const In& message) { arrived(i, message); });
    }
  }
  void flush() {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      if (waits_[i] || streams_[i].flush()) continue;
      waits_[i] = true;
      control(EPOLL_CTL_MOD, i, EPOLLIN | EPOLLOUT);
    }
  }

 private:
  void control(int what, std::size_t i, std::uint32_t events) {
    epoll_event e{};
    e.events = events;
    e.data.u64 = i;
    if (epoll_ctl(epoll_, what, fds_[i], &e) != 0) fail_storage("epoll_ctl");
  }

  int epoll_;
  std::vector<Stream<Out, In>> streams_;
  std::vector<int> fds_;
  std::vector<bool> waits_;  // for room to send
  std::vector<epoll_event> events_;
};

sockaddr_in loopback() {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return a;
}

int without_delay(int fd) {
  const int one = 1;
  if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0) {
    fail_storage(std::string("connect: ") + std::strerror(errno));
  }
  return fd;
}

std::vector<int> connect_all(const StorageOptions& o, int listener) {
  sockaddr_in a = loopback();
  socklen_t length = sizeof a;
  getsockname(listener, reinterpret_cast<sockaddr*>(&a), &length);
  std::vector<int> sockets;
  while (sockets.size() < o.queue_pairs) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, reinterpret_cast<sockaddr*>(&a), sizeof a) != 0) fail_storage("connect");
    sockets.push_back(without_delay(fd));
  }
  return sockets;
}

std::vector<int> accept_all(const StorageOptions& o, int listener) {
  std::vector<int> sockets;
  while (sockets.size() < o.queue_pairs) {
    sockets.push_back(without_delay(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)));
  }
  return sockets;
}

class SocketsInitiator : public Initiator {
 public:
  SocketsInitiator(const StorageOptions& o, int listener)
      : Initiator(o), streams_(connect_all(o, listener), slots, !o.is_read, o.is_read) {}

  void request(std::uint32_t tag, bool check) override {
    StorageRequest request;
    request.tag = tag;
    request.check = check ? 1 : 0;
    streams_.queue(turn_, request);
    if (++turn_ == streams_.size()) turn_ = 0;
  }
  std::span<const StorageReply> poll() override {
    replies_.clear();
    streams_.flush();
    streams_.poll([&](std::size_t, const StorageReply& reply) { replies_.push_back(reply); });
    return replies_;
  }

 private:
  std::size_t turn_ = 0;
  Streams<StorageRequest, StorageReply> streams_;
  std::vector<StorageReply> replies_;
};

}  // namespace

int listen_on_loopback() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in a = loopback();
  if (bind(listener, reinterpret_cast<const sockaddr*>(&a), sizeof a) != 0 ||
      listen(listener, 64) != 0) {
    fail_storage(std::string("listen: ") + std::strerror(errno));
  }
  return listener;
}

std::unique_ptr<Initiator> open_sockets_initiator(const StorageOptions& o, int listener) {
  return std::make_unique<SocketsInitiator>(o, listener);
}

void serve_sockets(const StorageOptions& o, int listener) {
  Slots slots(o, 0);
  for (std::uint32_t tag = 0; o.is_read && tag < o.outstanding; ++tag) slots.fill(tag);
  Streams<StorageReply, StorageRequest> streams(accept_all(o, listener), slots, o.is_read,
                                                !o.is_read);
  for (;;) {
    streams.poll([&](std::size_t i, const StorageRequest& request) {
      StorageReply reply;
      reply.tag = request.tag;
      reply.wrong = !o.is_read && request.check != 0 && !slots.is_right(request.tag) ? 1 : 0;
      streams.queue(i, reply);
    });
    streams.flush();
  }
}

}  // namespace urnic::bench
