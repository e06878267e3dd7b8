// The time-out of a queue pair that waits for its peer without rdma_cm, when the library's thread
// that checks it gets no processor time.
#include <dlfcn.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>

#include <array>
#include <atomic>
#include <cstring>
#include <string>

#include "dropin/meeting.h"

namespace {

std::atomic<bool> hold{false}, is_held{false};

// Only the thread that handles events and checks the time-outs.
bool is_events_thread() {
  char name[16] = {};
  return pthread_getname_np(pthread_self(), name, sizeof name) == 0 &&
         std::strcmp(name, "urnic-events") == 0;
}

}  // namespace

// The test holds up the library's thread where it reads the clock.
extern "C" int clock_gettime(clockid_t clock, timespec* out) noexcept {
  using Call = int (*)(clockid_t, timespec*);
  static std::atomic<Call> next{nullptr};
  Call call = next.load(std::memory_order_relaxed);
  if (call == nullptr) {
    call = reinterpret_cast<Call>(dlsym(RTLD_NEXT, "clock_gettime"));
    next.store(call, std::memory_order_relaxed);
  }
  if (hold.load(std::memory_order_relaxed) && is_events_thread()) {
    is_held.store(true);
    while (hold.load()) usleep(1000);
  }
  return call(clock, out);
}

namespace meeting {
namespace {

// A peer on the kernel's TCP that sends MPA's Reply (RFC 5044 7.1.1, RFC 6581) when the test calls
// reply().
class LatePeer {
 public:
  LatePeer() : listening_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof at;
    EXPECT_EQ(bind(listening_, reinterpret_cast<sockaddr*>(&at), length), 0);
    EXPECT_EQ(listen(listening_, 1), 0);
    EXPECT_EQ(getsockname(listening_, reinterpret_cast<sockaddr*>(&at), &length), 0);
    port_ = ntohs(at.sin_port);
  }
  ~LatePeer() {
    close(listening_);
    if (fd_ >= 0) close(fd_);
  }
  LatePeer(const LatePeer&) = delete;
  LatePeer& operator=(const LatePeer&) = delete;

  // The lower number connects, and no number of this process is as high.
  std::uint32_t number() const { return 0xff0000u | port_; }
  // Reads the whole Request: 20 bytes, IRD and ORD, and the private data.
  void take_request() {
    fd_ = ::accept(listening_, nullptr, nullptr);
    ASSERT_GE(fd_, 0);
    std::array<char, 36> request{};
    ASSERT_EQ(recv(fd_, request.data(), request.size(), MSG_WAITALL), ssize_t{36});
    ASSERT_EQ(std::memcmp(request.data(), "MPA ID Req Frame", 16), 0);
  }
  void reply() const {
    std::string reply = "MPA ID Rep Frame";
    reply += {0x50, 2, 0, 4, '\x80', 1, '\x80', 1};  // peer to peer: a Write is the RTR
    ASSERT_EQ(write(fd_, reply.data(), reply.size()), static_cast<ssize_t>(reply.size()));
  }
  // Bytes that arrive within `ms`: 0 for the end, -1 for nothing.
  ssize_t read_within(int ms) const {
    pollfd p{fd_, POLLIN, 0};
    std::array<char, 256> bytes{};
    if (poll(&p, 1, ms) != 1) return -1;
    const ssize_t n = read(fd_, bytes.data(), bytes.size());
    return n < 0 ? 0 : n;
  }

 private:
  int listening_;
  int fd_ = -1;
  std::uint16_t port_ = 0;
};

// proves: DI-12
TEST_F(MeetingTest, APeerThatAnsweredInTimeIsKeptEvenIfItsEventIsHandledLate) {
  LatePeer peer;
  ASSERT_EQ(to_rtr(a_, peer.number()), 0);
  ASSERT_EQ(to_rts(a_), 0);
  peer.take_request();
  usleep(20'000);  // the library's thread sleeps
  hold = true;
  EXPECT_EQ(a_.send(1), 0);  // starts the time-out, which the thread then checks
  EXPECT_TRUE(urnic::test::soon([] { return is_held.load(); }));
  peer.reply();
  EXPECT_EQ(a_.next().status, IBV_WC_SUCCESS);
  EXPECT_GT(peer.read_within(10'000), 0);
  while (peer.read_within(1100) > 0) {
  }  // until the time-out has expired
  hold = false;
  EXPECT_EQ(peer.read_within(100), -1) << "it has ended the connection";
  EXPECT_EQ(a_.state(), IBV_QPS_RTS);
}

}  // namespace
}  // namespace meeting
