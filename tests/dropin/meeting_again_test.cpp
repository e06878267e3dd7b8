// Queue pairs that were connected, and connect again from RESET: the earlier connection must have
// no effect.
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "dropin/meeting.h"

namespace meeting {
namespace {

// Except for the calling thread, all threads of this process share one processor that another
// thread keeps nearly busy: the library's events arrive late.
class LateLibrary {
 public:
  LateLibrary() {
    if (sched_getaffinity(0, sizeof all_, &all_) != 0) return;
    cpu_set_t last;
    CPU_ZERO(&last);
    for (int i = CPU_SETSIZE - 1; i >= 0; --i) {
      if (!CPU_ISSET(i, &all_)) continue;
      CPU_SET(i, &last);
      break;
    }
    for (const pid_t thread : others()) {
      const sched_param none{};
      (void)sched_setaffinity(thread, sizeof last, &last);
      (void)sched_setscheduler(thread, SCHED_IDLE, &none);
    }
    busy_ = std::thread([this, last] {
      (void)sched_setaffinity(0, sizeof last, &last);
      while (!end_.load()) {
      }
    });
  }
  ~LateLibrary() {
    end_.store(true);
    if (busy_.joinable()) busy_.join();
    for (const pid_t thread : others()) {
      const sched_param none{};
      (void)sched_setscheduler(thread, SCHED_OTHER, &none);
      (void)sched_setaffinity(thread, sizeof all_, &all_);
    }
  }
  LateLibrary(const LateLibrary&) = delete;
  LateLibrary& operator=(const LateLibrary&) = delete;

 private:
  static std::vector<pid_t> others() {
    std::vector<pid_t> all;
    DIR* const threads = opendir("/proc/self/task");
    if (threads == nullptr) return all;
    while (const dirent* t = readdir(threads)) {
      const int id = std::atoi(t->d_name);
      if (id > 0 && id != gettid()) all.push_back(id);
    }
    closedir(threads);
    return all;
  }
  cpu_set_t all_{};
  std::atomic<bool> end_{false};
  std::thread busy_;
};

class MeetingAgainTest : public MeetingTest {
 protected:
  void begin_again() const {
    for (const End* end : {&a_, &b_}) {
      end->reset();
      end->init(IBV_ACCESS_REMOTE_READ);
    }
  }
  // Without a time-out: when the library is late, the peer is late too, and must not be given up.
  void meet() const {
    ASSERT_EQ(to_rtr(a_, b_.qp->qp_num), 0);
    ASSERT_EQ(to_rts(a_, 0), 0);
    ASSERT_EQ(to_rtr(b_, a_.qp->qp_num), 0);
    ASSERT_EQ(to_rts(b_, 0), 0);
  }
};

// proves: DI-12
TEST_F(MeetingAgainTest, LateEventsOfTheLastConnectionDoNotEndThisOne) {
  begin_again();
  for (int round = 0; round < 12; ++round) {
    meet();
    one_way(a_, b_);
    const LateLibrary late;
    be_terminated();
    begin_again();
    meet();
    one_way(b_, a_);
    ASSERT_FALSE(HasFailure()) << "round " << round;
    one_way(a_, b_);
    ASSERT_FALSE(HasFailure()) << "round " << round;
    begin_again();
  }
}

// On RoCE a first packet would be retransmitted until its queue pair is ready.
// proves: DI-12
TEST_F(MeetingAgainTest, ARequestIsKeptUntilThePeerHasLeftItsLastConnection) {
  for (const bool active_first : {true, false}) {
    End& first = active_first ? active() : passive();
    End& second = active_first ? passive() : active();
    ready(first, second);
    ready(second, first);
    one_way(first, second);
    first.reset();
    first.init();
    ready(first, second);
    usleep(20'000);  // its request has arrived
    second.reset();
    second.init();
    ready(second, first);
    one_way(first, second);
    one_way(second, first);
    for (const End* end : {&first, &second}) {
      end->reset();
      end->init();
    }
  }
}

// Three others send requests for one that is not ready yet, one of them again and again.
// proves: DI-12
TEST_F(MeetingAgainTest, ARepeatedRequestDisplacesNoOther) {
  std::array<End, 4> asking;
  for (End& e : asking) e.make(context_, pd_);
  End& asked = c_;
  asked.make(context_, pd_);
  for (const End& e : asking) {
    ASSERT_LT(e.qp->qp_num, asked.qp->qp_num);
    ASSERT_EQ(to_rtr(e, asked.qp->qp_num), 0);
    ASSERT_EQ(to_rts(e, 0), 0);
  }
  End& again = asking.back();
  for (int i = 0; i < 3; ++i) {
    again.reset();
    again.init();
    ASSERT_EQ(to_rtr(again, asked.qp->qp_num), 0);
    ASSERT_EQ(to_rts(again, 0), 0);
    usleep(20'000);
  }
  for (End& e : asking) {
    ASSERT_EQ(e.send(1), 0);
    EXPECT_TRUE(e.is_silent(20));
  }
  ASSERT_EQ(asked.receive(2), 0);
  ready(asked, again);
  EXPECT_EQ(again.next().status, IBV_WC_SUCCESS);
  EXPECT_EQ(asked.next().status, IBV_WC_SUCCESS);
  for (End& e : asking) e.destroy();
}

// A queue pair of another host, simulated: it sends MPA's Request (RFC 5044 7.1.1, RFC 6581) on the
// kernel's TCP from 127.0.0.2, with its own number and that of the peer.
class OtherHost {
 public:
  OtherHost(std::uint32_t from, std::uint32_t to) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in own{}, at{};
    own.sin_family = at.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(static_cast<std::uint16_t>(to & 0xffff));
    std::string request = "MPA ID Req Frame";
    request += {0x50, 2, 0, 16, 0, 1, 0, 1, 'u', 'Q', 'P', 1};
    for (const std::uint32_t number : {from, to}) {
      for (int shift = 24; shift >= 0; shift -= 8) request += static_cast<char>(number >> shift);
    }
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&own), sizeof own), 0);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(write(fd_, request.data(), request.size()), static_cast<ssize_t>(request.size()));
  }
  ~OtherHost() { close(fd_); }
  OtherHost(const OtherHost&) = delete;
  OtherHost& operator=(const OtherHost&) = delete;
  // Bytes of an answer within `ms`; 0: refused; -1: no answer yet.
  ssize_t answer(int ms) const {
    pollfd p{fd_, POLLIN, 0};
    char reply[64];
    return poll(&p, 1, ms) == 1 ? std::max<ssize_t>(0, read(fd_, reply, sizeof reply)) : -1;
  }

 private:
  int fd_;
};

// proves: DI-12
TEST_F(MeetingAgainTest, TheSameNumberFromAnotherHostIsADifferentPeer) {
  ASSERT_EQ(to_rtr(active(), passive().qp->qp_num), 0);
  ASSERT_EQ(to_rts(active(), 0), 0);
  usleep(20'000);  // its request has arrived
  const OtherHost other(active().qp->qp_num, passive().qp->qp_num);
  EXPECT_EQ(other.answer(50), -1) << "it waits too";
  ready(passive(), active());
  one_way(active(), passive());
  EXPECT_GE(other.answer(10'000), 0) << "it is refused";
}

}  // namespace
}  // namespace meeting
