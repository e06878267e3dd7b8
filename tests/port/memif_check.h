// Helpers for the memif tests: sockets in separate folders, pairs of ports, child processes that
// can be killed.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "port/port.h"
#include "port/port_check.h"

namespace urnic::port::check {

// A folder that is deleted at the end of the test.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/urnic-port-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline Port must_open(const std::string& spec) {
  auto p = Port::open(spec);
  EXPECT_TRUE(p.ok()) << spec << ": " << (p.ok() ? "" : p.error());
  return p.ok() ? std::move(p.value()) : Port();
}

// One turn of an idle engine. Received frames are discarded.
inline void idle_turn(Port& p, unsigned q = 0) {
  Frame f[kBurst];
  const unsigned n = p.rx_burst(q, f, kBurst);
  p.rx_release(q, f, n);
}

// Turns both ports until `done`, for at most `ms`; only a failing test waits that long. Afterwards
// does a few more turns, because the machine may have been suspended until then.
inline bool turn_until(const std::function<bool()>& done, std::initializer_list<Port*> ports,
                       unsigned ms = kSoonMs) {
  const std::uint64_t end = monotonic_ms() + ms;
  for (int behind = 0; !done();) {
    if (monotonic_ms() > end && ++behind > 10) return false;
    for (Port* p : ports) {
      if (*p) idle_turn(*p);
    }
  }
  return true;
}

inline bool link_both(Port& a, Port& b) {
  return turn_until([&] { return a.info().link_up == 1 && b.info().link_up == 1; }, {&a, &b});
}

// Waits for a file with this name to appear.
inline bool appears(const std::string& path) {
  return turn_until(
      [&] {
        usleep(1000);
        return access(path.c_str(), F_OK) == 0;
      },
      {});
}

// A child process; killed and reaped at destruction.
class Child {
 public:
  // Runs `body` in a fork and exits with its result. The child must not use ports opened before.
  explicit Child(const std::function<int()>& body) {
    pid_ = fork();
    if (pid_ == 0) _exit(body());
  }
  ~Child() { kill_now(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void kill_now() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  // The exit status, or -1 if it was killed by a signal.
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
};

// A server and its client.
struct Both {
  explicit Both(const std::string& more = "", const std::string& server_more = "") {
    const std::string at = "memif:socket=" + folder.file("m.sock");
    server = must_open(at + ",role=server" + more + server_more);
    client = must_open(at + ",role=client" + more);
  }
  bool link() { return link_both(server, client); }
  Folder folder;
  Port server, client;
};

}  // namespace urnic::port::check
