// Guarantees for a program that uses liburnic.so: its settings do not change (D11), and a fork does
// no harm to parent or child (D11).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "library/host_ends.h"

namespace urnic {
namespace {

// Two connected devices of this process.
struct Wire {
  explicit Wire(const std::string& port)
      : server(open_device(port + ",role=server")), client(open_device(port + ",role=client")) {
    if (!server.device.wait_link(20000) || !client.device.wait_link(20000)) return;
    auto listener = server.device.listen(0);
    std::thread accepting([&] {
      auto request = listener->next(20000);
      if (request.ok()) (void)request->accept(server.qp);
    });
    up = client.qp.connect("10.77.0.1:" + std::to_string(listener->port())).ok();
    accepting.join();
  }
  bool carries(std::uint8_t value) {
    std::fill(client.memory.begin(), client.memory.end(), value);
    if (!client.write(server.mr.remote_address(), server.mr.rkey(), 4096)) return false;
    server.qp.stats();  // waits for the engine thread that placed the data
    return std::memcmp(server.memory.data(), client.memory.data(), 4096) == 0;
  }
  Side server, client;
  bool up = false;
};

// Redirects standard output and error to a file during its lifetime.
class Captured {
 public:
  explicit Captured(const std::string& path) : path_(path) {
    std::fflush(nullptr);
    const int to = open(path.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
    for (int fd : {1, 2}) {
      kept_[fd] = dup(fd);
      dup2(to, fd);
    }
    close(to);
  }
  std::string end() {
    std::fflush(nullptr);
    for (int fd : {1, 2}) {
      dup2(kept_[fd], fd);
      close(kept_[fd]);
    }
    std::string text(static_cast<std::size_t>(std::filesystem::file_size(path_)), '\0');
    FILE* f = std::fopen(path_.c_str(), "rb");
    const std::size_t n = std::fread(text.data(), 1, text.size(), f);
    std::fclose(f);
    return text.substr(0, n);
  }

 private:
  std::string path_;
  int kept_[3] = {};
};

struct ProcessSettings {
  cpu_set_t cpus;
  sigset_t blocked;
  struct sigaction actions[65];
  mode_t mask;
  std::string folder;

  static ProcessSettings now() {
    ProcessSettings s;
    std::memset(static_cast<void*>(&s.cpus), 0,
                sizeof s.cpus + sizeof s.blocked + sizeof s.actions);
    sched_getaffinity(0, sizeof s.cpus, &s.cpus);
    pthread_sigmask(SIG_BLOCK, nullptr, &s.blocked);
    for (int i = 1; i <= 64; ++i) sigaction(i, nullptr, &s.actions[i]);
    s.mask = umask(0);
    umask(s.mask);
    s.folder = std::filesystem::current_path();
    return s;
  }
};

// libc sets this flag with every action that it installs, including the default one.
constexpr int kRestorer = 0x04000000;

TEST_F(HostTest, LeavesTheSettingsOfItsProcessAlone_D11) {
  openlog("the-host", LOG_PERROR, LOG_USER);
  Captured output(directory + "/output");
  const ProcessSettings before = ProcessSettings::now();
  {
    Wire w(wire("m"));
    EXPECT_TRUE(w.up && w.carries(7));
  }
  const ProcessSettings after = ProcessSettings::now();
  syslog(LOG_INFO, "hello");
  EXPECT_EQ(output.end(), "the-host: hello\n");
  closelog();
  EXPECT_TRUE(CPU_EQUAL(&before.cpus, &after.cpus));
  for (int i = 1; i <= 64; ++i) {
    EXPECT_EQ(sigismember(&before.blocked, i), sigismember(&after.blocked, i)) << i;
    EXPECT_EQ(before.actions[i].sa_handler, after.actions[i].sa_handler) << i;
    EXPECT_EQ(before.actions[i].sa_flags | kRestorer, after.actions[i].sa_flags | kRestorer) << i;
  }
  EXPECT_EQ(before.mask, after.mask);
  EXPECT_EQ(before.folder, after.folder);
}

// The background thread must not take the program's signals, whose handlers would then run there.
TEST_F(HostTest, ItsThreadsTakeNoSignals_D11) {
  static thread_local int handled;
  handled = 0;
  struct sigaction old {};
  struct sigaction count {};
  count.sa_handler = [](int) { ++handled; };
  sigaction(SIGUSR2, &count, &old);
  Wire w(wire("m"));
  ASSERT_TRUE(w.up);
  for (int i = 0; i < 50; ++i) {
    kill(getpid(), SIGUSR2);  // goes to any thread that does not block it: only this one
    EXPECT_EQ(handled, i + 1);
  }
  sigaction(SIGUSR2, &old, nullptr);
}

TEST_F(HostTest, AChildOpensItsOwnDevice_D11) {
  Wire mine(wire("m"));
  ASSERT_TRUE(mine.up && mine.carries(1));
  EXPECT_EQ(in_child([&] {
              Wire its(wire("n"));
              return its.up && its.carries(2);
            }),
            0);
  EXPECT_TRUE(mine.carries(3));
}

TEST_F(HostTest, InheritedObjectsFailWithoutHarmInAChild_D11) {
  auto mine = std::make_unique<Wire>(wire("m"));
  ASSERT_TRUE(mine->up && mine->carries(1));
  EXPECT_EQ(in_child([&] {
              Side& c = mine->client;
              Completion out;
              bool good = !c.qp.connect("10.77.0.1:9").ok();
              good &= !c.write(1, 1, 1);
              good &= !c.device.alloc_pd().ok() && !c.device.create_cq(1).ok();
              good &= !c.device.register_memory(c.pd, &out, sizeof out, 0).ok();
              good &= !c.device.listen(0).ok();
              QpOptions o;
              o.send_cq = o.receive_cq = c.cq;
              good &= !c.device.create_qp(c.pd, o).ok();
              good &= c.cq.poll({&out, 1}) <= 0;
              good &= !c.cq.wait(-1);  // returns at once
              good &= !c.device.progress();
              (void)c.device.stats();
              (void)c.qp.stats();
              c.qp.disconnect();
              c.qp.abort();
              mine.reset();  // runs all destructors
              return good;
            }),
            0);
  EXPECT_TRUE(mine->carries(2)) << "the parent's connection has suffered";
}

// At any point of the parent's engine thread.
TEST_F(HostTest, ForksUnderLoadDoNoHarm_D11) {
  Wire mine(wire("m"));
  ASSERT_TRUE(mine.up);
  for (int i = 0; i < 30; ++i) {
    const Sge from{reinterpret_cast<std::uint64_t>(mine.client.memory.data()), 4096,
                   mine.client.mr.lkey()};
    SendRequest r;
    r.opcode = Opcode::write;
    r.flags = 0;
    r.sges = {&from, 1};
    r.remote_address = mine.server.mr.remote_address();
    r.rkey = mine.server.mr.rkey();
    for (int k = 0; k < 20; ++k) (void)mine.client.qp.post_send(r);
    ASSERT_EQ(in_child([&] {
                (void)mine.client.mr.deregister();
                return open_device(wire("n")).info().mtu != 0;
              }),
              0);
    ASSERT_TRUE(mine.carries(static_cast<std::uint8_t>(i)));
  }
}

}  // namespace
}  // namespace urnic
