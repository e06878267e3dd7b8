// pthread_cancel of threads that wait inside our calls, as libiscsi's iSER does.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "support/soon.h"

// A sanitizer does not notice that a cancelled thread has left its stack frames.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SKIP_UNDER_SANITIZERS() GTEST_SKIP() << "a cancelled thread's stack"
#else
#define SKIP_UNDER_SANITIZERS() \
  do {                          \
  } while (false)
#endif

namespace {

// Cancels a thread that runs `f` and waits in the kernel. The arguments of `f` can be used
// afterwards.
template <class F>
bool ends_when_cancelled(F f) {
  struct Thread {
    F f;
    std::atomic<long> id{0};
  } its{std::move(f)};
  const auto run = [](void* what) -> void* {
    auto* own = static_cast<Thread*>(what);
    own->id = syscall(SYS_gettid);
    own->f();
    return nullptr;
  };
  pthread_t thread;
  if (pthread_create(&thread, nullptr, run, &its) != 0) return false;
  const bool waits =
      urnic::test::soon([&] { return its.id != 0; }) && urnic::test::falls_asleep(its.id);
  pthread_cancel(thread);
  void* result = nullptr;
  pthread_join(thread, &result);
  return waits && result == PTHREAD_CANCELED;
}

TEST(Cancel, EndsAThreadWhereItWaits) {
  SKIP_UNDER_SANITIZERS();
  ibv_device** devices = ibv_get_device_list(nullptr);
  ASSERT_NE(devices, nullptr);
  ibv_context* context = ibv_open_device(devices[0]);
  ibv_free_device_list(devices);
  ASSERT_NE(context, nullptr);
  ibv_comp_channel* completions = ibv_create_comp_channel(context);
  ibv_cq* cq = ibv_create_cq(context, 16, nullptr, completions, 0);
  ASSERT_NE(cq, nullptr);
  EXPECT_TRUE(ends_when_cancelled([&] {
    ibv_cq* of;
    void* its;
    ibv_get_cq_event(completions, &of, &its);
  }));
  EXPECT_TRUE(ends_when_cancelled([&] {
    ibv_async_event event;
    while (ibv_get_async_event(context, &event) == 0) ibv_ack_async_event(&event);
  }));
  rdma_event_channel* channel = rdma_create_event_channel();
  ASSERT_NE(channel, nullptr);
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), 0);
  EXPECT_TRUE(ends_when_cancelled([&] {
    rdma_cm_event* event;
    rdma_get_cm_event(channel, &event);
  }));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), 2000), 0);
  rdma_cm_event* event = nullptr;
  ASSERT_EQ(rdma_get_cm_event(channel, &event), 0);
  EXPECT_EQ(event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
  rdma_ack_cm_event(event);
  EXPECT_EQ(rdma_destroy_id(id), 0);
  rdma_destroy_event_channel(channel);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_destroy_comp_channel(completions), 0);
  EXPECT_EQ(ibv_close_device(context), 0);
}

// A program that cancels a thread without waiting for it destroys the channel while the thread uses
// it.
TEST(Cancel, CancellationComesBeforeAnyAccessToTheChannel) {
  SKIP_UNDER_SANITIZERS();
  static std::atomic<bool> disabled, cancelled;
  disabled = cancelled = false;
  const auto run = [](void*) -> void* {
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    disabled = true;
    while (!cancelled) usleep(1000);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
    rdma_cm_event* event;
    rdma_get_cm_event(reinterpret_cast<rdma_event_channel*>(16), &event);
    return nullptr;
  };
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, nullptr, run, nullptr), 0);
  EXPECT_TRUE(urnic::test::soon([] { return disabled.load(); }));
  EXPECT_EQ(pthread_cancel(thread), 0);
  cancelled = true;
  void* result = nullptr;
  ASSERT_EQ(pthread_join(thread, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
}

// libiscsi's thread does this: the memory of its channel's address has been reused.
TEST(CancelledCalls, AnUnknownChannelIsRefused) {
  rdma_cm_event* event;
  errno = 0;
  EXPECT_EQ(rdma_get_cm_event(reinterpret_cast<rdma_event_channel*>(0x313632333a31), &event), -1);
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
