// The protocol-free pipeline of P4: the capacity of a memif wire if one process only copies with
// CRC into frames and the other only checks the CRC and copies out. Prints Gb/s of payload. With a
// third argument, for P6: frames of that many bytes of which only the headers are written; prints
// millions of frames per second.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/fused.h"
#include "bench/e2e/pin.h"
#include "port/port.h"

using namespace urnic;
using namespace urnic::bench;

namespace {

constexpr std::uint32_t kHeaders = 14 + 20 + 20 + 16;  // Ethernet, IPv4, TCP, MPA and DDP
constexpr std::size_t kMemory = 1u << 20;              // each end's buffer, used cyclically

port::Port open_end(const std::string& socket, const char* role, std::uint32_t mtu) {
  auto p =
      port::Port::open("memif:socket=" + socket + ",role=" + role + ",mtu=" + std::to_string(mtu));
  if (!p) {
    std::fprintf(stderr, "pipeline: %s\n", p.error().c_str());
    std::exit(1);
  }
  return std::move(*p);
}

void send_side(port::Port port, std::uint32_t payload, const double until) {
  std::vector<std::uint8_t> memory(kMemory, 0x5a);
  port::Frame frames[port::kBurst];
  std::size_t at = 0;
  while (seconds() < until) {
    if (port.info().link_up == 0) {
      port.rx_burst(0, frames, port::kBurst);
      continue;
    }
    const unsigned n = port.tx_reserve(0, kHeaders + payload + 4, frames, port::kBurst);
    for (unsigned i = 0; i < n; ++i) {
      std::uint8_t* p = frames[i].data[0];
      std::memset(p, 0, kHeaders);
      if (at + payload > kMemory) at = 0;
      const FusedSums s =
          fused_copy_crc_sum(p + kHeaders, {memory.data() + at, payload}, kCrc32cInit);
      store_le32(p + kHeaders + payload, crc32c_finish(s.crc));
      at += payload;
      frames[i].len[0] = kHeaders + payload + 4;
      frames[i].len[1] = 0;
    }
    if (n != 0) port.tx_commit(0, frames, n);
    const unsigned back = port.rx_burst(0, frames, port::kBurst);
    if (back != 0) port.rx_release(0, frames, back);
  }
}

// Sends frames of `bytes` of which only the headers are written.
void send_frames(port::Port port, std::uint32_t bytes, const double until) {
  port::Frame frames[port::kBurst];
  while (seconds() < until) {
    if (port.info().link_up == 0) {
      port.rx_burst(0, frames, port::kBurst);
      continue;
    }
    const unsigned n = port.tx_reserve(0, bytes, frames, port::kBurst);
    for (unsigned i = 0; i < n; ++i) {
      std::memset(frames[i].data[0], 0, std::min(bytes, kHeaders));
      frames[i].len[0] = bytes;
      frames[i].len[1] = 0;
    }
    if (n != 0) port.tx_commit(0, frames, n);
    const unsigned back = port.rx_burst(0, frames, port::kBurst);
    if (back != 0) port.rx_release(0, frames, back);
  }
}

struct Received {
  std::uint64_t frames = 0, bytes = 0, bad = 0;
  double took = 0;
};

// Measures for `length` seconds from the first frame on; checks and copies out `payload` bytes of
// each. Gives up at `until`.
Received receive(port::Port& port, std::uint32_t payload, double length, double until) {
  std::vector<std::uint8_t> memory(kMemory);
  port::Frame frames[port::kBurst];
  Received r;
  std::size_t at = 0;
  double from = 0;
  for (;;) {
    const unsigned n = port.rx_burst(0, frames, port::kBurst);
    for (unsigned i = 0; i < n && payload != 0; ++i) {
      const std::uint8_t* p = frames[i].data[0] + kHeaders;
      const FusedSums s = fused_crc_sum({p, payload}, kCrc32cInit);
      if (crc32c_finish(s.crc) != load_le32(p + payload)) ++r.bad;
      if (at + payload > kMemory) at = 0;
      std::memcpy(memory.data() + at, p, payload);
      at += payload;
    }
    if (n != 0) port.rx_release(0, frames, n);
    const double now = seconds();
    if (from == 0 && n != 0) from = now;
    r.frames += n;
    r.bytes += std::uint64_t{n} * payload;
    r.took = now - from;
    if ((from != 0 && r.took > length) || now > until) return r;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: bench_pipeline MTU SECONDS [FRAME-BYTES]\n");
    return 2;
  }
  const auto mtu = static_cast<std::uint32_t>(std::atoi(argv[1]));
  const double length = std::atof(argv[2]);
  const auto bytes = static_cast<std::uint32_t>(argc == 4 ? std::atoi(argv[3]) : 0);
  if (mtu < 576 || mtu > 65000 || length <= 0) return 2;
  if (argc == 4 && (bytes < 60 || bytes > mtu + 14)) return 2;
  const std::uint32_t payload = bytes != 0 ? 0 : mtu - 20 - 20 - 20;
  char directory[] = "/tmp/urnic-pipeline-XXXXXX";
  if (mkdtemp(directory) == nullptr) return 1;
  const std::string socket = std::string(directory) + "/wire.sock";
  port::Port server = open_end(socket, "server", mtu);
  const double until = seconds() + length + 0.5;
  const pid_t child = fork();
  if (child == 0) {
    pin_to(1);
    port::Port client = open_end(socket, "client", mtu);
    if (bytes != 0) {
      send_frames(std::move(client), bytes, until);
    } else {
      send_side(std::move(client), payload, until);
    }
    _exit(0);
  }
  pin_to(0);
  const Received r = receive(server, payload, length, until + 5);
  int status = 0;
  waitpid(child, &status, 0);
  unlink(socket.c_str());
  rmdir(directory);
  if (r.bad != 0 || r.frames == 0) {
    std::fprintf(stderr, "pipeline: %llu bad frames of %llu\n",
                 static_cast<unsigned long long>(r.bad), static_cast<unsigned long long>(r.frames));
    return 1;
  }
  const double done =
      bytes != 0 ? static_cast<double>(r.frames) * 1e-6 : static_cast<double>(r.bytes) * 8e-9;
  std::printf("%.3f\n", done / r.took);
  return 0;
}
