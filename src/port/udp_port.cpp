#include "port/udp_port.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "port/own_mtu.h"
#include "port/zone_name.h"

namespace urnic::port {
namespace {

constexpr std::uint32_t kEthernetHeader = 14;
constexpr std::uint32_t kLeastMtu = 576, kUsualMtu = 1500;
constexpr std::uint32_t kMostMtu = 9000;  // the largest packet of RoCEv2 has 4096 bytes of payload
// A full UDP socket reports room only to a thread that waits for it, so the port asks again.
constexpr std::uint32_t kRoomFirstUs = 50, kRoomMostUs = 5000;
// Limits of one segmented send: UDP_MAX_SEGMENTS of the oldest kernels, and a whole IPv4 packet.
constexpr unsigned kMostSegments = 64;
constexpr std::uint32_t kMostSegmented = 65000;

}  // namespace

Outcome<UdpArgs, std::string> read_udp_args(Args& args) {
  UdpArgs a;
  const std::string bind = args.str("bind");
  a.mtu = static_cast<std::uint32_t>(args.num("mtu", 0, kLeastMtu, kMostMtu));
  a.offload = args.on_off("offload", true);
  if (std::string wrong = args.finish(); !wrong.empty()) return fail(wrong);
  if (bind.empty()) return a;
  a.bind = parse_with_zone(bind);
  if (!a.bind || a.bind->is_multicast() || a.bind->is_any()) {
    return fail("bind=" + bind + ": must be a unicast IP address");
  }
  if (lacks_zone(*a.bind)) return fail("bind=" + bind + kLacksZone);
  return a;
}

std::string check_udp_args(Args& args) {
  auto read = read_udp_args(args);
  return read.ok() ? std::string() : read.error();
}

Outcome<std::unique_ptr<UdpPort>, std::string> UdpPort::make(Args& args) {
  auto read = read_udp_args(args);
  if (!read.ok()) return fail(read.error());
  if (read->mtu == 0) {
    read->mtu = std::clamp(own_mtu(read->bind).value_or(kUsualMtu), kLeastMtu, kMostMtu);
  }
  Fd sockets[2];
  for (const bool v6 : {false, true}) {
    if (read->bind && read->bind->is_v6() != v6) continue;
    const IpAddress any = v6 ? IpAddress::any_v6() : IpAddress::any_v4();
    auto socket = open_udp_socket(read->bind.value_or(any));
    if (!socket.ok()) return fail(socket.error());
    sockets[v6 ? 1 : 0] = std::move(*socket);
  }
  if (!sockets[0] && !sockets[1]) {
    return fail(std::string("this machine does not support this IP version"));
  }
  Fd timer(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!timer) return fail(std::string("cannot create a timer: ") + std::strerror(errno));
  std::unique_ptr<UdpPort> port(
      new UdpPort(std::move(sockets[0]), std::move(sockets[1]), std::move(timer), *read));
  if (getrandom(port->mac_, sizeof port->mac_, 0) != sizeof port->mac_) {
    return fail(std::string("cannot get random numbers from the kernel: ") + std::strerror(errno));
  }
  port->links_ = OwnLinks(read->bind);
  port->mac_[0] = static_cast<std::uint8_t>((port->mac_[0] & 0xfc) | 2);
  return port;
}

UdpPort::UdpPort(Fd v4, Fd v6, Fd timer, const UdpArgs& args)
    : v4_(std::move(v4)),
      v6_(std::move(v6)),
      timer_(std::move(timer)),
      max_frame_(args.mtu + kEthernetHeader),
      offload_(args.offload && (!v4_ || enable_udp_offload(v4_)) &&
               (!v6_ || enable_udp_offload(v6_))),
      tx_((kMostUdpHeaders + args.mtu + 63) / 64 * std::size_t{64}) {
  if (v4_) from_v4_ = std::make_unique<UdpReceiver>(&v4_, false, &mac_, max_frame_);
  if (v6_) from_v6_ = std::make_unique<UdpReceiver>(&v6_, true, &mac_, max_frame_);
}

void UdpPort::info(urnic_port_info* i) const {
  *i = {};
  std::memcpy(i->mac, mac_, sizeof mac_);
  i->link_up = 1;
  i->max_frame = max_frame_;
  i->queues = 1;
  i->link_epoch = 1;
}

void UdpPort::stats(urnic_port_stats* s) const {
  *s = {};
  counters_.add_to(s);
}

// ---- receive ----

unsigned UdpPort::rx_burst(unsigned, urnic_frame* frames, unsigned n) {
  if (tx_.waiting() != 0) flush();
  unsigned got = 0;
  if (from_v4_) got = from_v4_->burst(frames, n, counters_);
  if (from_v6_ && got < n) got += from_v6_->burst(frames + got, n - got, counters_);
  if (got != 0 && slept_) counters_.wakeups.add();
  slept_ = slept_ && got == 0;
  counters_.rx_frames.add(got);
  return got;
}

// ---- transmit ----

unsigned UdpPort::tx_reserve(unsigned, std::uint32_t len, urnic_frame* frames, unsigned n) {
  if (tx_.waiting() != 0) flush();
  return tx_.lend(len, max_frame_, frames, n, counters_);
}

void UdpPort::tx_commit(unsigned, urnic_frame* frames, unsigned n) {
  tx_.take_back(frames, n, max_frame_, counters_, [this](ByteView frame) {
    auto d = parse_udp_frame(frame);
    if (d && !(d->source.is_v6() ? v6_ : v4_)) d.reset();  // our sockets cannot carry it
    return d;
  });
  flush();
}

void UdpPort::flush() {
  while (tx_.waiting() != 0 && send_run()) {
  }
}

// Returns how many waiting datagrams, from the `first` on, one segmented send can carry. They have
// one peer and one size; only the last may be shorter.
unsigned UdpPort::segments(unsigned first) const {
  const UdpDatagram& d = tx_.note(first);
  std::uint32_t bytes = d.length;
  unsigned n = 1;
  if (!offload_ || first < alone_ || d.length == 0) return n;
  for (; first + n != tx_.waiting() && n != kMostSegments; ++n) {
    const UdpDatagram& next = tx_.note(first + n);
    bytes += next.length;
    if (next.length == 0 || next.length > d.length || bytes > kMostSegmented) break;
    if (next.destination != d.destination || next.source != d.source) break;
    if (next.traffic_class != d.traffic_class) break;
    if (next.length < d.length) return n + 1;
  }
  return n;
}

// Makes the ICRC right for the identification that the kernel gives this segment of a send.
void UdpPort::number(unsigned datagram, unsigned segment) {
  UdpDatagram& d = tx_.note(datagram);
  if (d.source.is_v6() || d.identification == segment || d.length < 4) return;
  const auto to = static_cast<std::uint8_t>(segment);
  patch_.apply(tx_.frame(datagram) + d.payload, d.length, d.identification, to);
  d.identification = to;
}

// Sends the next datagrams of one IP version. Returns false if the socket has no room now.
bool UdpPort::send_run() {
  std::array<mmsghdr, kSlots> messages;
  std::array<iovec, kSlots> parts;
  std::array<KernelAddress, kSlots> to;
  std::array<UdpControl, kSlots> control;
  std::array<std::uint8_t, kSlots> carries;
  const bool v6 = tx_.note(0).source.is_v6();
  unsigned n = 0, part = 0;
  while (part != tx_.waiting() && tx_.note(part).source.is_v6() == v6) {
    const UdpDatagram& d = tx_.note(part);
    const unsigned count = segments(part);
    msghdr& m = messages[n].msg_hdr;
    m = {};
    m.msg_iov = &parts[part];
    m.msg_iovlen = count;
    m.msg_name = &to[n];
    const std::uint32_t zone = links_.of(d);
    m.msg_namelen = write_kernel_address(d.destination.with_zone(zone), kRocePort, &to[n]);
    m.msg_control = control[n].bytes;
    const auto segment = static_cast<std::uint16_t>(count > 1 ? d.length : 0);
    m.msg_controllen = write_udp_control(d, zone, segment, &control[n]);
    for (unsigned k = 0; k < count; ++k, ++part) {
      number(part, k);
      parts[part] = {tx_.frame(part) + tx_.note(part).payload, tx_.note(part).length};
    }
    carries[n++] = static_cast<std::uint8_t>(count);
  }
  counters_.syscalls.add();
  const int done = sendmmsg((v6 ? v6_ : v4_).get(), messages.data(), n, MSG_DONTWAIT);
  if (done <= 0) return take_send_error(carries[0], errno);
  unsigned sent = 0;
  for (unsigned i = 0; i < static_cast<unsigned>(done); ++i) sent += carries[i];
  for (unsigned i = 0; i < sent; ++i) {
    const UdpDatagram& d = tx_.note(i);
    counters_.tx_bytes.add(d.payload + d.length);
  }
  counters_.tx_frames.add(sent);
  drop(sent);
  room_wait_us_ = 0;
  return true;
}

void UdpPort::drop(unsigned n) {
  tx_.drop(n);
  alone_ -= std::min(alone_, n);
}

// Handles the error of a send of the first `count` datagrams. Returns true if sending may continue.
bool UdpPort::take_send_error(unsigned count, int error) {
  if (error == EAGAIN || error == ENOBUFS || error == EINTR) return false;
  if (count > 1) {
    // EIO: an older kernel cannot cut for an interface without checksum offload. Any other error
    // may be caused by one of the datagrams, so each is sent alone.
    if (error == EIO) offload_ = false;
    alone_ = count;
    return true;
  }
  // No route, larger than the route carries (EMSGSIZE), not allowed: lost, as on any wire.
  counters_.tx_dropped.add();
  drop(1);
  return true;
}

// ---- sleeping ----

void UdpPort::set_timer(std::uint32_t us) {
  itimerspec t{};
  t.it_value.tv_nsec = static_cast<long>(us) * 1000;
  counters_.syscalls.add();
  timerfd_settime(timer_.get(), 0, &t, nullptr);
  timer_set_ = us != 0;
}

unsigned UdpPort::wait_fds(unsigned, int* fds, unsigned max) {
  unsigned n = 0;
  for (const Fd* fd : {&v4_, &v6_, &timer_}) {
    if (*fd && n < max) fds[n++] = fd->get();
  }
  return n;
}

int UdpPort::arm(unsigned) {
  if (tx_.waiting() != 0) {
    room_wait_us_ = std::clamp(room_wait_us_ * 2, kRoomFirstUs, kRoomMostUs);
    set_timer(room_wait_us_);
  }
  slept_ = true;
  const auto more = [](const auto& r) { return r != nullptr && r->has_more(); };
  return more(from_v4_) || more(from_v6_) ? 1 : 0;
}

void UdpPort::disarm(unsigned) {
  if (timer_set_) set_timer(0);  // also clears a timer that has fired
}

constinit const urnic_port_ops kUdpPortOps = Adapter<UdpPort>::table("udp");

}  // namespace urnic::port
