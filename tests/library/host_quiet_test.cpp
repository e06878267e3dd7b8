// The cost of an idle connection for its program (E-39).
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "library/host_ends.h"

namespace urnic {
namespace {

// Two connected processes that do nothing.
// proves: E-39
TEST_F(HostTest, AnIdleConnectedPairUsesNoCpu) {
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const auto measured = [&](bool server) {
    Side s(open_device(wire("m") + (server ? ",role=server" : ",role=client")));
    if (!s.device.wait_link(20000)) return false;
    if (server) {
      auto listener = s.device.listen(18515);
      const char go = 1;
      if (!listener.ok() || write(told[1], &go, 1) != 1) return false;
      auto request = listener->next(20000);
      if (!request.ok() || !request->accept(s.qp).ok()) return false;
    } else {
      char go;
      if (read(told[0], &go, 1) != 1) return false;
      if (!s.qp.connect("10.77.0.1:18515").ok()) return false;
    }
    // Lets the RTO, delayed ACK and neighbour confirmation of connecting finish.
    usleep(1'500'000);
    if (s.qp.state() != QpState::rts) return false;
    rusage before{}, after{};
    getrusage(RUSAGE_SELF, &before);
    usleep(5'000'000);
    getrusage(RUSAGE_SELF, &after);
    const auto us = [](const rusage& r) {
      return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1'000'000 + r.ru_utime.tv_usec +
             r.ru_stime.tv_usec;
    };
    const long switches = after.ru_nvcsw - before.ru_nvcsw;
    const long spent = us(after) - us(before);
    const bool good = switches < 10 && spent < 10'000;  // 0.2 % of a CPU
    if (!good) std::fprintf(stderr, "%ld switches, %ld us in 5 s\n", switches, spent);
    const bool still = s.qp.state() == QpState::rts;
    usleep(2'000'000);  // the other process measures too
    return good && still;
  };
  std::fflush(nullptr);
  const pid_t server = fork();
  if (server == 0) {
    alarm(60);
    _exit(measured(true) ? 0 : 1);
  }
  EXPECT_EQ(in_child([&] { return measured(false); }), 0);
  int status = -1;
  waitpid(server, &status, 0);
  EXPECT_EQ(status, 0);
  close(told[0]);
  close(told[1]);
}

}  // namespace
}  // namespace urnic
