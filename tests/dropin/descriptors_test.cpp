// A process that may open only a few files.
#include <arpa/inet.h>
#include <errno.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <sys/resource.h>

#include <filesystem>
#include <iterator>

#include "dropin/own_process.h"

namespace {

using FewDescriptorsTest = own_process::Test;

rlim_t lowest_limit() {
  // Without the descriptor of this iteration.
  namespace fs = std::filesystem;
  return static_cast<rlim_t>(std::distance(fs::directory_iterator("/proc/self/fd"), {})) - 1;
}

// The name of the call that fails, null if all succeed. Everything is released again.
const char* failing_call() {
  rdma_event_channel* channel = rdma_create_event_channel();
  if (channel == nullptr) return "rdma_create_event_channel";
  const char* failed = nullptr;
  rdma_cm_id* id = nullptr;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(7);
  if (rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) != 0) {
    failed = "rdma_create_id";
  } else if (rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), 1000) != 0) {
    failed = "rdma_resolve_addr";
  } else {
    ibv_comp_channel* completions = ibv_create_comp_channel(id->verbs);
    if (completions == nullptr) {
      failed = "ibv_create_comp_channel";
    } else {
      ibv_destroy_comp_channel(completions);
    }
  }
  const int error = errno;
  if (id != nullptr) rdma_destroy_id(id);
  rdma_destroy_event_channel(channel);
  errno = error;
  return failed;
}

TEST_F(FewDescriptorsTest, EachCallReportsThatNoDescriptorIsLeft) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer opens files of its own";
#endif
  if (!within()) return;
  int failures = 0;
  for (rlim_t most = lowest_limit();; ++most) {
    ASSERT_LT(most, 64u);
    const rlimit limit{most, 1024};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    const char* call = failing_call();
    if (call == nullptr) break;
    EXPECT_EQ(errno, EMFILE) << call << " with " << most;
    ++failures;
  }
  EXPECT_GT(failures, 4);
}

}  // namespace
