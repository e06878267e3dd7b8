// Events of completion queues that are destroyed while a thread takes them from their channel.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "support/soon.h"

namespace {

using urnic::test::is_asleep;
using urnic::test::soon;

// Holds up the thread that takes events: before the `before`-th mutex that it locks from now on.
struct Hold {
  int before = 0;
  long destroyer = 0;  // the thread that meanwhile destroys the queue
  std::atomic<bool> reached{false}, destroys{false}, go{false};

  // Waits until the queue is destroyed, or the destroying thread has waited for this thread for a
  // while.
  void stay() {
    reached = true;
    int looks = 0;
    soon([&] {
      if (go) return true;
      looks = destroys && is_asleep(destroyer) ? looks + 1 : 0;
      return looks == 100;
    });
  }
};
thread_local Hold* hold = nullptr;

}  // namespace

// The sanitizers define this function themselves.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  using Lock = int (*)(pthread_mutex_t*);
  static std::atomic<Lock> real{nullptr};
  if (real == nullptr) real = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  if (Hold* h = hold; h != nullptr && --h->before == 0) {
    h->stay();
  }
  return real.load()(mutex);
}
#endif

namespace {

struct CompletionEvents : testing::Test {
  void SetUp() override {
    ibv_device** devices = ibv_get_device_list(nullptr);
    ASSERT_NE(devices, nullptr);
    context = ibv_open_device(devices[0]);
    ibv_free_device_list(devices);
    ASSERT_NE(context, nullptr);
    pd = ibv_alloc_pd(context);
    channel = ibv_create_comp_channel(context);
    ASSERT_TRUE(pd != nullptr && channel != nullptr);
    ASSERT_EQ(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
  }
  void TearDown() override {
    EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    EXPECT_EQ(ibv_close_device(context), 0);
  }
  // A queue with an event in the channel: a receive was flushed.
  ibv_cq* queue_with_event() const {
    ibv_cq* cq = ibv_create_cq(context, 4, nullptr, channel, 0);
    EXPECT_NE(cq, nullptr);
    ibv_qp_init_attr a{};
    a.qp_type = IBV_QPT_RC;
    a.send_cq = a.recv_cq = cq;
    a.cap.max_send_wr = a.cap.max_recv_wr = 1;
    ibv_qp* qp = ibv_create_qp(pd, &a);
    EXPECT_NE(qp, nullptr);
    ibv_qp_attr q{};
    q.qp_state = IBV_QPS_INIT;
    EXPECT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE), 0);
    ibv_recv_wr receive{}, *bad = nullptr;
    EXPECT_EQ(ibv_post_recv(qp, &receive, &bad), 0);
    EXPECT_EQ(ibv_req_notify_cq(cq, 0), 0);
    q.qp_state = IBV_QPS_ERR;
    EXPECT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE), 0);
    pollfd p{channel->fd, POLLIN, 0};
    EXPECT_EQ(poll(&p, 1, urnic::test::kSoonMs), 1);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    return cq;
  }

  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_comp_channel* channel = nullptr;
};

// proves: DI-3
TEST_F(CompletionEvents, AnEventNeverNamesADestroyedQueue) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the hold-up is another's name";
#endif
  int came = 0, held = 0;
  for (int before = 1; before <= 6; ++before) {
    ibv_cq* const cq = queue_with_event();
    Hold at;
    at.before = before;
    at.destroyer = syscall(SYS_gettid);
    std::atomic<bool> gone{false}, taken{false};
    std::thread takes([&] {
      hold = &at;
      ibv_cq* which = nullptr;
      void* its = nullptr;
      const int result = ibv_get_cq_event(channel, &which, &its);
      hold = nullptr;
      at.reached = true;
      taken = true;
      if (result != 0) return;
      ++came;
      EXPECT_FALSE(gone) << "held up before its lock " << before;
      EXPECT_EQ(which, cq);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      EXPECT_FALSE(gone) << "not acknowledged yet";
      ibv_ack_cq_events(which, 1);
    });
    EXPECT_TRUE(soon([&] { return at.reached.load(); }));
    if (!taken) ++held;
    at.destroys = true;
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    gone = true;
    at.go = true;
    takes.join();
  }
  EXPECT_GE(came, 1);
  EXPECT_GE(held, 1);
}

TEST_F(CompletionEvents, AChannelTakesOneDescriptorHoweverManyQueues) {
  const auto next_descriptor = [] {
    const int fd = dup(0);
    close(fd);
    return fd;
  };
  const int before = next_descriptor();
  std::array<ibv_cq*, 50> cqs;
  for (ibv_cq*& cq : cqs) {
    cq = ibv_create_cq(context, 4, nullptr, channel, 0);
    ASSERT_NE(cq, nullptr);
    EXPECT_EQ(ibv_req_notify_cq(cq, 0), 0);
  }
  EXPECT_EQ(next_descriptor(), before);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), EBUSY);
  for (ibv_cq* cq : cqs) EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(CompletionEvents, QueuesAreCreatedAndDestroyedWhileAThreadTakesEvents) {
  std::atomic<bool> stop{false};
  std::atomic<unsigned> taken{0};
  std::thread takes([&] {
    while (!stop) {
      ibv_cq* which = nullptr;
      void* its = nullptr;
      if (ibv_get_cq_event(channel, &which, &its) != 0) continue;
      EXPECT_EQ(which->channel, channel);
      ++taken;
      ibv_ack_cq_events(which, 1);
    }
  });
  // A minimum number of rounds, and at least one event taken by the thread.
  const auto end = std::chrono::steady_clock::now() + urnic::test::kSoon;
  for (int i = 0; i < 300 || (taken == 0 && std::chrono::steady_clock::now() < end); ++i) {
    ibv_cq* cq = ibv_create_cq(context, 4, nullptr, channel, 0);
    ibv_qp_init_attr a{};
    a.qp_type = IBV_QPT_RC;
    a.send_cq = a.recv_cq = cq;
    a.cap.max_recv_wr = 1;
    ibv_qp* qp = ibv_create_qp(pd, &a);
    ASSERT_NE(qp, nullptr);
    ibv_qp_attr q{};
    q.qp_state = IBV_QPS_INIT;
    EXPECT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE), 0);
    ibv_recv_wr receive{}, *bad = nullptr;
    EXPECT_EQ(ibv_post_recv(qp, &receive, &bad), 0);
    EXPECT_EQ(ibv_req_notify_cq(cq, 0), 0);
    q.qp_state = IBV_QPS_ERR;
    EXPECT_EQ(ibv_modify_qp(qp, &q, IBV_QP_STATE), 0);
    if (i % 2 == 0) std::this_thread::yield();
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
  }
  stop = true;
  takes.join();
  EXPECT_GE(taken, 1u);
}

}  // namespace
