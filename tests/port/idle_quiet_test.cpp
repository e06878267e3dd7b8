// E-39: how often an idle port wakes its thread. Other processes, and page faults from disk, add to
// the count.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "port/memif_check.h"

namespace urnic::port {
namespace {

using check::Folder;
using check::must_open;

// Voluntary context switches of this thread, which serves `p` for `ms` and sleeps for at most
// `sleep_ms`.
long count_switches(Port& p, unsigned ms, int sleep_ms) {
  rusage before{}, after{};
  getrusage(RUSAGE_THREAD, &before);
  for (const std::uint64_t end = check::monotonic_ms() + ms; check::monotonic_ms() < end;) {
    check::idle_turn(p);
    check::sleep_on(p, 0, sleep_ms);
  }
  getrusage(RUSAGE_THREAD, &after);
  return after.ru_nvcsw - before.ru_nvcsw;
}

TEST(MemifPort, AnIdlePortIsNotWoken) {
  check::Both b;
  ASSERT_TRUE(b.link());
  // E-39 allows 20 in 10 s; a connected pair needs none except at the end of the wait.
  EXPECT_LE(count_switches(b.server, 1500, 1500), 3);
}

TEST(MemifPort, AClientWithoutAServerWakesRarely) {
  Folder f;
  Port client = must_open("memif:socket=" + f.file("none") + ",role=client");
  // At 0.1, 0.3, 0.7, 1.5 s, and our own interval of 500 ms.
  EXPECT_LE(count_switches(client, 2000, 500), 10);
}

// proves: E-32
TEST(DgramPort, AnEndWithoutAPeerWakesRarely) {
  Folder f;
  Port alone = must_open("dgram:path=" + f.file("x") + ",peer=" + f.file("none"));
  EXPECT_LE(count_switches(alone, 2000, 2000), 7);
}

}  // namespace
}  // namespace urnic::port
