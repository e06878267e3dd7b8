// A hand-written memif client, every field of which can be wrong, and a server to test it on.
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <thread>

#include "base/rng.h"
#include "port/memif_check.h"
#include "port/memif_link.h"
#include "port/memif_port.h"
#include "port/memif_socket.h"

namespace urnic::port::raw {

using namespace memif;  // NOLINT: the test speaks the protocol itself
using check::Folder;
using check::must_open;
using check::turn_until;

inline Message message(MessageType t) {
  Message m;
  m.set_type(t);
  return m;
}

// A hand-written client, every field of which can be wrong.
class RawClient {
 public:
  struct Lies {
    std::uint16_t version = kVersion;
    std::uint8_t mode = 0;
    int seals = F_SEAL_SHRINK;
    std::uint64_t real_size = 0, stated_size = 0;  // 0: the required size
    std::uint16_t region_index = 0;
    std::uint16_t further_regions = 0;  // after the one that is used
    bool send_region_fd = true;
    std::uint16_t ring_region = 0;
    std::uint32_t ring_offset = 0;  // added to the correct offset
    std::uint8_t log2 = 4;
    std::uint16_t ring_index = 0;
    std::uint32_t cookie = kCookie;
    std::function<int()> event = [] { return eventfd(0, EFD_NONBLOCK); };
    bool skip_init = false;
    bool skip_m2s = false;
  };
  static constexpr std::size_t kBuffers = 4096;  // offset of the first buffer
  static constexpr std::uint32_t kBufferSize = 2048;

  RawClient(const std::string& path, Port& server) : server_(server) {
    auto a = UnixAddress::parse(path, "socket");
    socket_ = connect_to(a.value(), SOCK_SEQPACKET).fd;
  }
  ~RawClient() {
    if (base != nullptr) munmap(base, mapped_);
  }

  // The reason of the DISCONNECT, or empty if the handshake succeeded.
  std::string shake(const Lies& lies) {
    Message m;
    if (std::string wrong = expect(MessageType::kHello, &m); !wrong.empty()) return wrong;
    if (!lies.skip_init) {
      m = message(MessageType::kInit);
      m.set_u16(init::kVersionAt, lies.version);
      m.set_u8(init::kMode, lies.mode);
      m.set_text(init::kName, kNameSize, "raw");
      if (std::string wrong = ask(m, MessageType::kAck); !wrong.empty()) return wrong;
    }
    if (std::string wrong = offer_region(lies); !wrong.empty()) return wrong;
    for (std::uint16_t i = 1; i <= lies.further_regions; ++i) {
      m = message(MessageType::kAddRegion);
      m.set_u16(add_region::kIndex, i);
      m.set_u64(add_region::kSize, mapped_);
      m.fd = memory.get();
      if (std::string wrong = ask(m, MessageType::kAck); !wrong.empty()) return wrong;
    }
    for (int direction = 0; direction < (lies.skip_m2s ? 1 : 2); ++direction) {
      m = message(MessageType::kAddRing);
      m.set_u16(add_ring::kFlags, direction == 0 ? add_ring::kFlagS2m : 0);
      m.set_u16(add_ring::kIndex, lies.ring_index);
      m.set_u16(add_ring::kRegion, lies.ring_region);
      m.set_u32(add_ring::kOffset, static_cast<std::uint32_t>(direction) * 1024 + lies.ring_offset);
      m.set_u8(add_ring::kLog2, lies.log2);
      m.fd = lies.event();
      events_[direction].reset(m.fd);
      if (std::string wrong = ask(m, MessageType::kAck); !wrong.empty()) return wrong;
    }
    return ask(message(MessageType::kConnect), MessageType::kConnected);
  }

  // The next message of that type; otherwise a description of what arrived instead.
  std::string expect(MessageType type, Message* m) {
    Fd fd;
    for (int i = 0; i < 20000; ++i) {
      check::idle_turn(server_);
      switch (receive_message(socket_.get(), m, &fd)) {
        case Received::kNothing:
          continue;
        case Received::kMessage:
          if (m->type() == type) return "";
          if (m->type() == MessageType::kDisconnect) {
            return m->text(disconnect::kReason, kReasonSize);
          }
          return "another message";
        default:
          return "closed";
      }
    }
    return "no answer";
  }
  std::string ask(const Message& m, MessageType answer) {
    if (!send_message(socket_.get(), m)) return "cannot send";
    Message reply;
    return expect(answer, &reply);
  }
  std::string reason() {
    Message m;
    return expect(MessageType::kNone, &m);
  }
  std::uint8_t* ring(bool s2m) const { return base + (s2m ? 0 : 1024); }
  void set_index(bool s2m, std::size_t at, std::uint16_t v) const {
    ring::u16(ring(s2m), at).store(v, std::memory_order_release);
  }
  int socket() const { return socket_.get(); }

  std::uint8_t* base = nullptr;
  Fd memory;

 private:
  std::string offer_region(const Lies& lies) {
    const std::uint64_t need = kBuffers + 32 * kBufferSize;
    const std::uint64_t real = lies.real_size != 0 ? lies.real_size : need;
    memory.reset(memfd_create("raw", MFD_ALLOW_SEALING));
    EXPECT_EQ(ftruncate(memory.get(), static_cast<off_t>(real)), 0);
    mapped_ = real;
    base = static_cast<std::uint8_t*>(
        mmap(nullptr, real, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0));
    if (lies.seals != 0) {
      EXPECT_EQ(fcntl(memory.get(), F_ADD_SEALS, lies.seals), 0);
    }
    for (bool s2m : {true, false}) {
      if (real < need) break;
      store_le32(ring(s2m) + ring::kCookieAt, lies.cookie);
      for (std::uint32_t i = 0; i < 16; ++i) {
        const auto index = i + (s2m ? 0 : 16);
        Descriptor{0, 0, kBufferSize, static_cast<std::uint32_t>(kBuffers) + index * kBufferSize}
            .store(ring(s2m), i);
      }
    }
    Message m = message(MessageType::kAddRegion);
    m.set_u16(add_region::kIndex, lies.region_index);
    m.set_u64(add_region::kSize, lies.stated_size != 0 ? lies.stated_size : real);
    m.fd = lies.send_region_fd ? memory.get() : -1;
    return ask(m, MessageType::kAck);
  }

  Port& server_;
  Fd socket_, events_[2];
  std::size_t mapped_ = 0;
};

struct Lab {
  Lab() { server = must_open("memif:role=server,socket=" + folder.file("s")); }
  std::unique_ptr<RawClient> client() {
    return std::make_unique<RawClient>(folder.file("s"), server);
  }
  // A client that has completed the handshake and is connected.
  std::unique_ptr<RawClient> linked() {
    auto c = client();
    EXPECT_EQ(c->shake({}), "");
    EXPECT_TRUE(turn_until([&] { return server.info().link_up == 1; }, {&server}));
    check::idle_turn(server);
    return c;
  }
  // The port must still serve a correct client.
  void expect_alive() {
    EXPECT_TRUE(turn_until([&] { return server.info().link_up == 0; }, {&server}));
    Port honest = must_open("memif:role=client,socket=" + folder.file("s"));
    ASSERT_TRUE(check::link_both(server, honest));
    ASSERT_TRUE(check::send_one(honest, 0, check::pattern(777, 1)));
    EXPECT_EQ(check::receive_one(server, 0), check::pattern(777, 1));
  }
  Folder folder;
  Port server;
};

}  // namespace urnic::port::raw
