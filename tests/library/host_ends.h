// Ends of connections of a program that uses liburnic.so, over wires in a folder of the test.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "urnic/urnic.h"

namespace urnic {

inline constexpr std::uint32_t kRights =
    access_local_write | access_remote_write | access_remote_read;

struct HostTest : ::testing::Test {
  void SetUp() override {
    char name[] = "/tmp/urnic-host-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory); }
  std::string wire(const std::string& name) const {
    return "memif:socket=" + directory + "/" + name + ".sock";
  }
  std::string directory;
};

inline Device open_device(const std::string& port) {
  Config c;
  if (!c.set("port", port).ok() || !c.set("stat", "off").ok()) return {};
  auto d = Device::open(c);
  return d.ok() ? *d : Device();
}

struct Side {
  explicit Side(Device d) : device(std::move(d)) {
    pd = *device.alloc_pd();
    cq = *device.create_cq(64);
    memory.resize(4096);
    mr = *device.register_memory(pd, memory.data(), memory.size(), kRights);
    QpOptions o;
    o.send_cq = o.receive_cq = cq;
    qp = *device.create_qp(pd, o);
  }
  // Writes our bytes [0, n) to the peer's bytes [0, n).
  bool write(std::uint64_t to, std::uint32_t rkey, std::uint32_t n) {
    const Sge from{reinterpret_cast<std::uint64_t>(memory.data()), n, mr.lkey()};
    SendRequest r;
    r.opcode = Opcode::write;
    r.sges = {&from, 1};
    r.remote_address = to;
    r.rkey = rkey;
    if (!qp.post_send(r).ok()) return false;
    Completion c;
    // Limited by the clock: on a busy machine it may take seconds, and only a failing test waits
    // this long.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    do {
      if (cq.poll({&c, 1}) == 1) return c.status == WcStatus::success;
      cq.wait(100);
    } while (std::chrono::steady_clock::now() < end);
    return false;
  }
  Device device;
  ProtectionDomain pd;
  CompletionQueue cq;
  std::vector<std::uint8_t> memory;
  MemoryRegion mr;
  QueuePair qp;
};

// Returns 0 if `in_child` returned true in the child in time.
template <class F>
int in_child(F&& f) {
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(60);
    _exit(f() ? 0 : 1);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  return status;
}

}  // namespace urnic
