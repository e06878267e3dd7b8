// A hostile memif server for our client. The port must refuse it with a reason and continue (E-19).
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>

#include "port/memif_raw_client.h"

namespace urnic::port {
namespace {

using namespace raw;  // NOLINT: the test speaks the protocol itself
using ::testing::HasSubstr;

auto listen_at(const std::string& path) {
  return BoundSocket::open(UnixAddress::parse(path, "socket").value(), SOCK_SEQPACKET, "taken");
}
Fd accept_at(const BoundSocket& s) {
  return Fd(accept4(s.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

class RawServer {
 public:
  explicit RawServer(const std::string& path) {
    auto l = listen_at(path);
    listener_.emplace(std::move(l.value()));
  }
  bool accept(Port& client) {
    return turn_until([&] { return static_cast<bool>(socket = accept_at(*listener_)); }, {&client});
  }
  // Acts as the server up to CONNECTED and maps the client's region. Waits `pause_ms` before every
  // answer.
  bool serve(Port& client, std::uint16_t min_version = kVersion, unsigned pause_ms = 0) {
    if (!accept(client)) return false;
    last_turn_ = check::monotonic_ms();
    const auto answer = [&](const Message& m) {
      if (pause_ms != 0) turn_until([&] { return turned(false); }, {&client}, pause_ms);
      send_message(socket.get(), m);
    };
    Message m = message(MessageType::kHello);
    m.set_u16(hello::kMinVersion, min_version);
    m.set_u16(hello::kMaxVersion, min_version);
    m.set_u8(hello::kMaxLog2, 14);
    answer(m);
    for (;;) {
      Message in;
      Fd fd;
      if (!turn_until(
              [&] {
                got_ = receive_message(socket.get(), &in, &fd);
                return turned(got_ != Received::kNothing);
              },
              {&client}) ||
          got_ != Received::kMessage) {
        return false;
      }
      if (in.type() == MessageType::kDisconnect) {
        reason = in.text(disconnect::kReason, kReasonSize);
        return false;
      }
      if (in.type() == MessageType::kAddRegion) {
        size = in.u64(add_region::kSize);
        base = static_cast<std::uint8_t*>(
            mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0));
      }
      if (in.type() == MessageType::kAddRing) {
        const bool s2m = in.u16(add_ring::kFlags) != 0;
        (s2m ? s2m_ring : m2s_ring) = base + in.u32(add_ring::kOffset);
      }
      if (in.type() == MessageType::kConnect) {
        answer(message(MessageType::kConnected));
        return turn_until([&] { return client.info().link_up == 1; }, {&client});
      }
      answer(message(MessageType::kAck));
    }
  }
  // The longest interval between two turns of serve() in which this thread did not run.
  std::uint64_t longest_ms() const { return longest_; }
  ~RawServer() {
    if (base != nullptr) munmap(base, size);
    listener_->remove_file();
  }

  Fd socket;
  std::uint8_t *base = nullptr, *s2m_ring = nullptr, *m2s_ring = nullptr;
  std::size_t size = 0;
  std::string reason;

 private:
  bool turned(bool result) {
    const std::uint64_t now = check::monotonic_ms();
    longest_ = std::max(longest_, now - last_turn_);
    last_turn_ = now;
    return result;
  }
  std::uint64_t last_turn_ = 0, longest_ = 0;
  Received got_ = Received::kNothing;
  std::optional<BoundSocket> listener_;
};

TEST(MemifHostile, AClientRefusesAServerOfAnotherVersion) {
  Folder f;
  RawServer server(f.file("s"));
  Port client = must_open("memif:role=client,socket=" + f.file("s"));
  EXPECT_FALSE(server.serve(client, 0x0300));
  EXPECT_THAT(server.reason, HasSubstr("Incompatible"));
}

TEST(MemifHostile, AClientChecksTheServersDescriptors) {
  struct Case {
    const char* what;
    std::function<void(RawServer&)> lie;
    bool ends;
  };
  const std::vector<Case> cases = {
      {"length beyond the buffer",
       [](RawServer& s) {
         Descriptor{0, 0, 0xffffff, 0}.store(s.m2s_ring, 0);
         ring::u16(s.m2s_ring, ring::kTail).store(1);
       },
       true},
      {"index beyond the buffers given",
       [](RawServer& s) { ring::u16(s.m2s_ring, ring::kTail).store(300); }, true},
      {"chain without end",
       [](RawServer& s) {
         for (unsigned i = 0; i < 256; ++i) Descriptor{1, 0, 10, 0}.store(s.m2s_ring, i);
         ring::u16(s.m2s_ring, ring::kTail).store(256);
       },
       true},
      // The client knows region and offset: the values written by the server are ignored.
      {"region and offset changed",
       [](RawServer& s) {
         Descriptor{0, 0xffff, 64, 0xffffffff}.store(s.m2s_ring, 0);
         ring::u16(s.m2s_ring, ring::kTail).store(1);
       },
       false},
  };
  for (const Case& one : cases) {
    Folder f;
    RawServer server(f.file("s"));
    Port client = must_open("memif:role=client,socket=" + f.file("s"));
    ASSERT_TRUE(server.serve(client)) << one.what;
    check::idle_turn(client);
    one.lie(server);
    Frame frames[8];
    const unsigned n = client.rx_burst(0, frames, 8);
    client.rx_release(0, frames, n);
    EXPECT_EQ(n, one.ends ? 0u : 1u) << one.what;
    EXPECT_EQ(client.stats().rx_bad, one.ends ? 1u : 0u) << one.what;
    check::idle_turn(client);
    EXPECT_EQ(client.info().link_up, one.ends ? 0 : 1) << one.what;
  }
}

TEST(MemifHostile, AClientRefusesABogusTailWhenSending) {
  Folder f;
  RawServer server(f.file("s"));
  Port client = must_open("memif:role=client,socket=" + f.file("s"));
  ASSERT_TRUE(server.serve(client));
  check::idle_turn(client);
  ring::u16(server.s2m_ring, ring::kTail).store(5);  // more received than was sent
  Frame frame;
  EXPECT_EQ(client.tx_reserve(0, 64, &frame, 1), 0u);
  check::idle_turn(client);
  EXPECT_EQ(client.info().link_up, 0);
}

// The limit is two seconds for each answer, not for all of them: on a busy machine they add up. If
// this thread does not run for a second, its answers are later than intended and the result is not
// valid.
TEST(MemifHostile, AClientWaitsForASlowServer) {
  for (int round = 0; round < 10; ++round) {
    Folder f;
    RawServer server(f.file("s"));
    Port client = must_open("memif:role=client,socket=" + f.file("s"));
    const bool served = server.serve(client, kVersion, 450);  // six answers
    if (!served && server.longest_ms() > 1000) continue;
    EXPECT_TRUE(served);
    return;
  }
  GTEST_SKIP() << "the machine stands still";
}

TEST(MemifHostile, AClientDropsAServerThatNeverAnswers) {
  Folder f;
  BoundSocket silent = std::move(listen_at(f.file("s")).value());
  Port client = must_open("memif:role=client,socket=" + f.file("s"));
  Fd first;
  ASSERT_TRUE(turn_until([&] { return static_cast<bool>(first = accept_at(silent)); }, {&client}));
  Message m;
  Fd fd;
  // After two seconds the client disconnects and tries again.
  EXPECT_TRUE(turn_until([&] { return receive_message(first.get(), &m, &fd) == Received::kEnd; },
                         {&client}, 4000));
  Fd second;
  EXPECT_TRUE(
      turn_until([&] { return static_cast<bool>(second = accept_at(silent)); }, {&client}, 2000));
}

}  // namespace
}  // namespace urnic::port
