// Two TCP stacks and the path between them, in virtual time: ten megabytes over a path of 20 ms
// that loses one datagram in a hundred. It takes a fraction of a second and gives the same result
// every time. Usage: virtual_time [SEED] [LOSS_PER_MILLE]
#include <urnic/tcp.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <random>
#include <vector>

namespace {

using namespace std::chrono_literals;
using urnic::TcpTime;

constexpr TcpTime kDelay = 10ms;            // one way
constexpr std::size_t kTotal = 10'000'000;  // bytes

// One direction: the datagrams in flight.
struct Way {
  struct Flying {
    TcpTime arrives;
    std::vector<std::uint8_t> bytes;
  };
  std::deque<Flying> flying;

  void carry(urnic::TcpStack& from, std::minstd_rand& dice, unsigned loss) {
    urnic::TcpDatagram d;
    while (from.next_output(&d)) {
      if (dice() % 1000 < loss) continue;
      flying.push_back({d.time + kDelay, {d.bytes.begin(), d.bytes.end()}});
    }
  }
  TcpTime next() const { return flying.empty() ? urnic::kTcpNever : flying.front().arrives; }
  void deliver(urnic::TcpStack& to, TcpTime now) {
    while (next() <= now) {
      to.input(flying.front().bytes, now);
      flying.pop_front();
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  const unsigned loss = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 10;

  urnic::TcpSettings a, b;
  a.addresses = {"10.0.0.1"};
  b.addresses = {"10.0.0.2"};
  a.seed = seed;
  b.seed = seed + 1;
  urnic::TcpStack sender(a), receiver(b);
  sender.set_default("congestion-control", 2);  // CUBIC
  std::minstd_rand dice(static_cast<unsigned>(seed));
  Way there, back;

  TcpTime now = 0s;
  const auto listener = receiver.open();
  receiver.bind(listener, "0.0.0.0:80");
  receiver.listen(listener, 1);
  const auto out = sender.open();
  sender.connect(out, "10.0.0.2:80", now);
  auto in = urnic::TcpEndpoint::None;

  std::vector<std::uint8_t> block(65536, 'x');
  std::size_t written = 0, read = 0;
  bool ended = false;
  while (!ended) {
    // Do everything that the endpoints can do now.
    if (in == urnic::TcpEndpoint::None) in = receiver.accept(listener, now);
    while (written < kTotal) {
      const auto io =
          sender.write(out, std::span(block).first(std::min(block.size(), kTotal - written)), now);
      if (io.status != urnic::TcpStatus::Ok) break;
      written += io.bytes;
      if (written == kTotal) sender.shutdown_write(out, now);
    }
    for (;;) {
      const auto io = receiver.read(in, block, now);
      ended = io.status == urnic::TcpStatus::EndOfStream;
      if (io.status != urnic::TcpStatus::Ok) break;
      read += io.bytes;
    }
    there.carry(sender, dice, loss);
    back.carry(receiver, dice, loss);
    // Advance the time to the next event.
    const TcpTime next = std::min(std::min(there.next(), back.next()),
                                  std::min(sender.next_deadline(), receiver.next_deadline()));
    if (next == urnic::kTcpNever) break;
    now = std::max(now, next);
    there.deliver(receiver, now);
    back.deliver(sender, now);
    sender.run(now);
    receiver.run(now);
  }

  const auto info = sender.info(out, now);
  const double seconds = std::chrono::duration<double>(now).count();
  std::printf(
      "%zu bytes in %.3f s of virtual time, %.1f Mbit/s, %llu segments sent again, srtt %.1f ms\n",
      read, seconds, 8e-6 * static_cast<double>(read) / seconds,
      static_cast<unsigned long long>(info ? info->retransmissions : 0),
      info ? std::chrono::duration<double, std::milli>(info->srtt).count() : 0.0);
  return read == kTotal ? 0 : 1;
}
