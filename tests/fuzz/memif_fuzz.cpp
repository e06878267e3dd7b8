// The control socket of a memif server, with a peer that may connect and then sends arbitrary
// messages, with any kind of descriptor, and writes arbitrary data to the shared rings.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "port/memif_link.h"
#include "port/memif_socket.h"
#include "port/port.h"
#include "port/unix_address.h"
#include "tests/fuzz/input.h"

namespace urnic::fuzz {
namespace {

using namespace port::memif;  // NOLINT: speaks the protocol
using port::Fd;

// A folder that no other user may write to.
struct Folder {
  Folder() { require(mkdtemp(name) != nullptr, "no folder"); }
  ~Folder() {
    unlink((std::string(name) + "/s").c_str());
    rmdir(name);
  }
  char name[32] = "/tmp/urnic-fuzz-XXXXXX";
};

constexpr std::size_t kRegion = 128 * 1024;

class Session {
 public:
  explicit Session(Input& in) : in_(in) {
    auto opened =
        port::Port::open(std::string("memif:role=server,mtu=1500,socket=") + folder_.name + "/s");
    require(opened.ok(), "no server");
    server_ = std::move(opened.value());
  }
  ~Session() {
    if (base_ != nullptr) munmap(base_, kRegion);
  }

  void run() {
    connect();
    for (int n = 0; !in_.empty() && n < 200; ++n) {
      move();
      turn();
    }
  }

 private:
  void connect() {
    auto at = port::UnixAddress::parse(std::string(folder_.name) + "/s", "socket");
    socket_ = port::connect_to(at.value(), SOCK_SEQPACKET).fd;
  }
  void turn() {
    for (int i = 0; i < 3; ++i) {
      port::Frame f[8];
      const unsigned n = server_.rx_burst(0, f, 8);
      for (unsigned k = 0; k < n; ++k) {
        // All bytes must be readable.
        unsigned sum = 0;
        for (int s = 0; s < 2; ++s) {
          for (std::uint32_t o = 0; o < f[k].len[s]; ++o) sum += f[k].data[s][o];
        }
        sink_ = sum;
      }
      server_.rx_release(0, f, n);
      port::Frame out[2];
      const unsigned m = server_.tx_reserve(0, 60, out, 2);
      for (unsigned k = 0; k < m; ++k) std::memset(out[k].data[0], 1, 60);
      server_.tx_commit(0, out, m);
    }
    Message heard;
    Fd fd;
    while (socket_ && receive_message(socket_.get(), &heard, &fd) == Received::kMessage) {
    }
  }

  void move() {
    switch (in_.below(8)) {
      case 0:  // a correct handshake
        shake(false);
        return;
      case 1:  // a nearly correct one
        shake(true);
        return;
      case 2:
        connect();
        return;
      case 3:
      case 4: {
        Message m;
        for (auto& b : m.bytes) b = in_.often(100) ? in_.u8() : std::uint8_t{0};
        m.set_type(static_cast<MessageType>(in_.below(10)));
        say(m, in_.below(5));
        return;
      }
      default:
        write_ring();
        return;
    }
  }

  void say(Message m, unsigned with) {
    if (!socket_) return;
    Fd fd;
    if (with == 1) fd.reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (with == 2) fd.reset(memory(kRegion, true));
    if (with == 3) fd.reset(open("/dev/null", O_RDWR | O_CLOEXEC));
    if (with == 4) fd.reset(memory(in_.below(8192), false));
    m.fd = fd ? fd.get() : -1;
    send_message(socket_.get(), m);
  }
  static int memory(std::size_t size, bool sealed) {
    const int fd = memfd_create("fuzz", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, static_cast<off_t>(size)) == 0 && sealed)
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
    return fd;
  }

  void shake(bool wrong) {
    const auto now_and_then = [&](std::uint32_t v) {
      return wrong && in_.often(40) ? in_.u32() : v;
    };
    Message m;
    m.set_type(MessageType::kInit);
    m.set_u16(init::kVersionAt, static_cast<std::uint16_t>(now_and_then(kVersion)));
    say(m, 0);
    turn();
    m = {};
    m.set_type(MessageType::kAddRegion);
    m.set_u16(add_region::kIndex, static_cast<std::uint16_t>(now_and_then(0)));
    m.set_u64(add_region::kSize, now_and_then(kRegion));
    const Fd shared(memory(kRegion, true));
    m.fd = shared.get();
    if (base_ != nullptr) munmap(base_, kRegion);
    void* at = mmap(nullptr, kRegion, PROT_READ | PROT_WRITE, MAP_SHARED, shared.get(), 0);
    base_ = at == MAP_FAILED ? nullptr : static_cast<std::uint8_t*>(at);
    require(base_ != nullptr, "no shared memory");
    for (unsigned r = 0; r < 2; ++r) store_le32(base_ + r * 1024, now_and_then(kCookie));
    if (socket_) send_message(socket_.get(), m);
    turn();
    for (unsigned r = 0; r < 2; ++r) {
      m = {};
      m.set_type(MessageType::kAddRing);
      m.set_u16(add_ring::kFlags, r == 0 ? add_ring::kFlagS2m : std::uint16_t{0});
      m.set_u16(add_ring::kRegion, static_cast<std::uint16_t>(now_and_then(0)));
      m.set_u32(add_ring::kOffset, now_and_then(r * 1024));
      m.set_u8(add_ring::kLog2, static_cast<std::uint8_t>(now_and_then(4)));
      say(m, 1);
      turn();
    }
    m = {};
    m.set_type(MessageType::kConnect);
    say(m, 0);
  }

  // Writes indexes and descriptors at any time.
  void write_ring() {
    if (base_ == nullptr) return;
    std::uint8_t* r = base_ + in_.below(2) * 1024;
    switch (in_.below(3)) {
      case 0:
        ring::u16(r, in_.often(128) ? ring::kHead : ring::kTail)
            .store(in_.often(200) ? in_.u8() : in_.u16());
        return;
      case 1:
        ring::u16(r, ring::kFlags).store(in_.u8());
        return;
      default: {
        Descriptor d;
        d.flags = in_.below(3) == 0 ? 1 : 0;
        d.region = in_.often(20) ? in_.u16() : std::uint16_t{0};
        d.length = in_.often(200) ? in_.below(2048) : in_.u32();
        d.offset = in_.often(200) ? 4096 + in_.u16() : in_.u32();
        d.store(r, in_.below(16));
        return;
      }
    }
  }

  Input& in_;
  Folder folder_;
  port::Port server_;
  Fd socket_;
  std::uint8_t* base_ = nullptr;
  volatile unsigned sink_ = 0;
};

}  // namespace
}  // namespace urnic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  urnic::fuzz::Input in(data, size);
  urnic::fuzz::Session(in).run();
  return 0;
}
