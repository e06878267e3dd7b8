// Two devices in one process and a connection between them: iWARP over memif and over the kernel's
// TCP, RoCE over memif and over the kernel's UDP.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/loopback_network.h"
#include "tests/support/soon.h"
#include "urnic/urnic.h"

namespace urnic::test {

// The parameter: "memif" and "tcp" are iWARP over that port, "roce" is RoCE over memif, "udp" RoCE
// over the kernel's UDP.
class WiredEnds : public ::testing::TestWithParam<const char*> {
 protected:
  // `keeps_core`: keep polling even if other threads need the core. `progress`: the setting; with
  // "poll" the test drives both devices.
  explicit WiredEnds(bool keeps_core = false, const char* progress = "auto")
      : keeps_core_(keeps_core), progress_(progress) {}
  struct End {
    Device device;
    ProtectionDomain pd;
    CompletionQueue cq;
    QueuePair qp;
    std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(8192);  // destroyed last

    QueuePair another() {
      QpOptions o;
      o.send_cq = o.receive_cq = cq;
      auto made = device.create_qp(pd, o);
      EXPECT_TRUE(made.ok());
      return made.ok() ? std::move(*made) : QueuePair();
    }
    MemoryRegion add(std::uint32_t access, std::optional<std::uint64_t> iova = std::nullopt) {
      auto mr = device.register_memory(pd, memory.data(), memory.size(), access, iova);
      EXPECT_TRUE(mr.ok()) << (mr.ok() ? "" : mr.error().message);
      return mr.ok() ? std::move(*mr) : MemoryRegion();
    }
    void fill(std::uint8_t seed) {
      device.stats();  // after this, the serving thread has finished earlier work
      for (std::size_t i = 0; i < memory.size(); ++i) {
        memory[i] = static_cast<std::uint8_t>(i * 7 + i / 251 + seed);
      }
      // This makes the memory visible to the thread that serves the peer's request. Only the wire
      // orders the request after it, and that is no order between threads.
      device.stats();
    }
    // Posts the request and waits for its completion.
    WcStatus done(QueuePair& by, const SendRequest& request) {
      const auto posted = by.post_send(request);
      EXPECT_TRUE(posted.ok()) << (posted.ok() ? "" : posted.error().message);
      return posted.ok() ? wait().status : WcStatus::fatal_transport;
    }
    WcStatus done(Opcode op, const Sge& sge, std::uint64_t to = 0, std::uint32_t rkey = 0) {
      SendRequest r;
      r.opcode = op;
      r.sges = {&sge, 1};
      r.remote_address = to;
      r.rkey = rkey;
      return done(qp, r);
    }
    Completion wait() {
      Completion c[1];
      const auto end = std::chrono::steady_clock::now() + kSoon;
      do {
        if (cq.poll(c) == 1) return c[0];
        cq.wait(100);
      } while (std::chrono::steady_clock::now() < end);
      if (cq.poll(c) == 1) return c[0];
      ADD_FAILURE() << "no completion";
      return {};
    }
  };

  void SetUp() override {
    char name[] = "/tmp/urnic-wired-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory_ = name;
    open(server, wire("server"));
    open(client, wire("client"));
    ASSERT_TRUE(soon([&] {
      const bool there = server.device.wait_link(1);
      return client.device.wait_link(1) && there;
    }));
    join(server.qp, client.qp);
  }
  void TearDown() override {
    client.qp = QueuePair();
    server.qp = QueuePair();
    // Waits until the serving thread has finished the last placement.
    for (End* end : {&client, &server}) {
      if (end->device) end->device.stats();
    }
    client = End();
    server = End();
    std::filesystem::remove_all(directory_);
  }
  // Connects the client's queue pair and accepts with the server's.
  void join(QueuePair& at, QueuePair& from) {
    auto listener = server.device.listen(0);
    ASSERT_TRUE(listener.ok());
    std::thread accepting([&] {
      auto request = listener->next(60000);
      ASSERT_TRUE(request.ok()) << request.error().message;
      EXPECT_TRUE(request->accept(at).ok());
    });
    const auto connected = from.connect(host() + std::to_string(listener->port()));
    EXPECT_TRUE(connected.ok()) << (connected.ok() ? "" : connected.error().message);
    accepting.join();
  }

  bool is(const char* kind) const { return std::string(GetParam()) == kind; }

  End server, client;

 private:
  std::string wire(const std::string& role) const {
    if (is("tcp")) return "tcp";
    if (is("udp")) return "udp:bind=" + loopback_network() + (role == "server" ? "1" : "2");
    return "memif:socket=" + directory_ + "/wire.sock,role=" + role;
  }
  std::string host() const {
    if (is("tcp")) return "127.0.0.1:";
    return is("udp") ? loopback_network() + "1:" : "10.77.0.1:";
  }
  void open(End& end, const std::string& port) const {
    Config c;
    ASSERT_TRUE(c.set("port", port).ok());
    if (is("roce") || is("udp")) {
      ASSERT_TRUE(c.set("transport", "roce").ok());
    }
    if (keeps_core_) {
      ASSERT_TRUE(c.set("doze_us", "0").ok());
    }
    ASSERT_TRUE(c.set("stat", "off").ok());
    ASSERT_TRUE(c.set("progress", progress_).ok());
    auto device = Device::open(c);
    ASSERT_TRUE(device.ok()) << device.error().message;
    end.device = *device;
    end.pd = *end.device.alloc_pd();
    end.cq = *end.device.create_cq(256);
    end.qp = end.another();
  }
  const bool keeps_core_;
  const char* const progress_;
  std::string directory_;
};

inline constexpr std::uint32_t kAllRights =
    access_local_write | access_remote_write | access_remote_read;

}  // namespace urnic::test
