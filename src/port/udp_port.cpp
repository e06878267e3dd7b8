#include "port/udp_port.h"

#include <errno.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "port/kinds.h"
#include "port/zone_name.h"

namespace urnic::port {
namespace {

constexpr std::uint32_t kEthernetHeader = 14;
constexpr std::uint32_t kMostMtu = 9000;  // the largest RoCEv2 packet has 4096 bytes of payload
// A full socket reports new room only to a caller that waits for writing, so it is polled at these
// intervals.
constexpr std::uint32_t kRoomFirstUs = 50, kRoomMostUs = 5000;
constexpr int kBufferHint = 4 << 20;  // the system may limit it

union KernelAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

socklen_t kernel_address(const IpAddress& ip, std::uint16_t port, KernelAddress* a) {
  *a = {};
  if (ip.is_v4()) {
    a->v4.sin_family = AF_INET;
    a->v4.sin_port = htons(port);
    std::memcpy(&a->v4.sin_addr, ip.bytes().data(), 4);
    return sizeof a->v4;
  }
  a->v6.sin6_family = AF_INET6;
  a->v6.sin6_port = htons(port);
  std::memcpy(&a->v6.sin6_addr, ip.bytes().data(), 16);
  a->v6.sin6_scope_id = ip.zone();
  return sizeof a->v6;
}

IpAddress address_of(const in_addr& a) {
  return IpAddress::from_bytes({reinterpret_cast<const std::uint8_t*>(&a), 4});
}
IpAddress address_of(const in6_addr& a) {
  return IpAddress::from_bytes({reinterpret_cast<const std::uint8_t*>(&a), 16});
}

// Space for the control messages of one datagram: our own address and a traffic class.
struct Control {
  alignas(cmsghdr) char bytes[CMSG_SPACE(sizeof(in6_pktinfo)) + CMSG_SPACE(sizeof(int))];
};

bool set(int fd, int level, int name, int value) {
  return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

// The socket stays unconnected and sets "do not fragment": the kernel then sends an identification
// of 0, which the ICRC covers.
bool prepare(int fd, bool v6) {
  set(fd, SOL_SOCKET, SO_SNDBUF, kBufferHint);
  set(fd, SOL_SOCKET, SO_RCVBUF, kBufferHint);
  if (!v6) {
    return set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO) &&
           set(fd, IPPROTO_IP, IP_PKTINFO, 1) && set(fd, IPPROTO_IP, IP_RECVTOS, 1);
  }
  set(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);  // senders omit it, because the ICRC covers more
  return set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1) &&
         set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO) &&
         set(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1) && set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
}

// Returns a closed descriptor if this machine does not support that IP version.
Outcome<Fd, std::string> bound_socket(const IpAddress& at) {
  const bool v6 = at.is_v6();
  Fd fd(::socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd && errno == EAFNOSUPPORT) return fd;
  if (!fd) return fail(std::string("cannot create a UDP socket: ") + std::strerror(errno));
  if (!prepare(fd.get(), v6)) {
    return fail(std::string("cannot set a socket option: ") + std::strerror(errno));
  }
  KernelAddress a;
  const socklen_t size = kernel_address(at, kRocePort, &a);
  if (::bind(fd.get(), &a.any, size) == 0) return fd;
  if (errno == EADDRINUSE) {
    return fail("UDP port 4791 of " + at.to_string() +
                " is in use by another RoCE program: set bind= to another address");
  }
  if (errno == EADDRNOTAVAIL && at.is_any()) return Fd();
  if (errno == EADDRNOTAVAIL)
    return fail("bind=" + at.to_string() + ": not an address of this machine");
  return fail("UDP port 4791 of " + at.to_string() + ": " + std::strerror(errno));
}

// Sets what a program may choose: its own address and a traffic class.
std::size_t write_control(const UdpDatagram& d, std::uint32_t zone, Control* c) {
  msghdr m{};
  std::memset(c->bytes, 0, sizeof c->bytes);
  m.msg_control = c->bytes;
  m.msg_controllen = sizeof c->bytes;
  cmsghdr* h = CMSG_FIRSTHDR(&m);
  const bool v6 = d.source.is_v6();
  std::size_t used = 0;
  const auto put = [&](int level, int type, const void* what, std::size_t bytes) {
    h->cmsg_level = level;
    h->cmsg_type = type;
    h->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(h), what, bytes);
    used += CMSG_SPACE(bytes);
    h = CMSG_NXTHDR(&m, h);
  };
  if (v6) {
    in6_pktinfo info{};
    std::memcpy(&info.ipi6_addr, d.source.bytes().data(), 16);
    info.ipi6_ifindex = zone;
    put(IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof info);
  } else {
    in_pktinfo info{};
    std::memcpy(&info.ipi_spec_dst, d.source.bytes().data(), 4);
    put(IPPROTO_IP, IP_PKTINFO, &info, sizeof info);
  }
  if (d.traffic_class != 0) {
    const int traffic_class = d.traffic_class;
    put(v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_TCLASS : IP_TOS, &traffic_class,
        sizeof traffic_class);
  }
  return used;
}

// Reads the destination address and the traffic class.
void read_control(msghdr& m, UdpDatagram* d) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c)) {
    if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
      in_pktinfo info;
      std::memcpy(&info, CMSG_DATA(c), sizeof info);
      d->destination = address_of(info.ipi_addr);
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
      in6_pktinfo info;
      std::memcpy(&info, CMSG_DATA(c), sizeof info);
      d->destination = address_of(info.ipi6_addr);
    } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
      d->traffic_class = *CMSG_DATA(c);
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
      int value = 0;
      std::memcpy(&value, CMSG_DATA(c), sizeof value);
      d->traffic_class = static_cast<std::uint8_t>(value);
    }
  }
}

}  // namespace

Outcome<UdpArgs, std::string> read_udp_args(Args& args) {
  UdpArgs a;
  const std::string bind = args.str("bind");
  a.mtu = static_cast<std::uint32_t>(args.num("mtu", 1500, 576, kMostMtu));
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
  Fd sockets[2];
  for (const bool v6 : {false, true}) {
    if (read->bind && read->bind->is_v6() != v6) continue;
    const IpAddress any = v6 ? IpAddress::any_v6() : IpAddress::any_v4();
    auto socket = bound_socket(read->bind.value_or(any));
    if (!socket.ok()) return fail(socket.error());
    sockets[v6 ? 1 : 0] = std::move(*socket);
  }
  if (!sockets[0] && !sockets[1]) {
    return fail(std::string("this machine does not support this IP version"));
  }
  Fd timer(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!timer) return fail(std::string("cannot create a timer: ") + std::strerror(errno));
  std::unique_ptr<UdpPort> port(
      new UdpPort(std::move(sockets[0]), std::move(sockets[1]), std::move(timer), read->mtu));
  if (getrandom(port->mac_, sizeof port->mac_, 0) != sizeof port->mac_) {
    return fail(std::string("cannot get random numbers from the kernel: ") + std::strerror(errno));
  }
  port->links_ = OwnLinks(read->bind);
  port->mac_[0] = static_cast<std::uint8_t>((port->mac_[0] & 0xfc) | 2);
  return port;
}

UdpPort::UdpPort(Fd v4, Fd v6, Fd timer, std::uint32_t mtu)
    : v4_(std::move(v4)),
      v6_(std::move(v6)),
      timer_(std::move(timer)),
      max_frame_(mtu + kEthernetHeader),
      stride_((kMostUdpHeaders + mtu + 63) / 64 * std::size_t{64}),
      rx_memory_(new std::uint8_t[2 * kSlots * stride_]),
      tx_(stride_) {}

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
  n = std::min(n, kSlots);
  unsigned got = 0;
  if (v4_) got = receive(v4_, false, frames, n);
  if (v6_ && got < n) got += receive(v6_, true, frames + got, n - got);
  if (got != 0 && slept_) counters_.wakeups.add();
  slept_ = slept_ && got == 0;
  counters_.rx_frames.add(got);
  return got;
}

unsigned UdpPort::receive(const Fd& socket, bool v6, urnic_frame* frames, unsigned n) {
  std::uint8_t* const buffers = rx_memory_.get() + (v6 ? kSlots * stride_ : 0);
  std::array<mmsghdr, kSlots> messages;
  std::array<iovec, kSlots> parts;
  std::array<KernelAddress, kSlots> senders;
  std::array<Control, kSlots> control;
  for (unsigned i = 0; i < n; ++i) {
    parts[i] = {buffers + i * stride_ + kMostUdpHeaders, stride_ - kMostUdpHeaders};
    messages[i].msg_hdr = {};
    messages[i].msg_hdr.msg_iov = &parts[i];
    messages[i].msg_hdr.msg_iovlen = 1;
    messages[i].msg_hdr.msg_name = &senders[i];
    messages[i].msg_hdr.msg_namelen = sizeof senders[i];
    messages[i].msg_hdr.msg_control = control[i].bytes;
    messages[i].msg_hdr.msg_controllen = sizeof control[i].bytes;
  }
  counters_.syscalls.add();
  const int came = recvmmsg(socket.get(), messages.data(), n, MSG_DONTWAIT, nullptr);
  unsigned got = 0;
  for (int i = 0; i < came; ++i) {
    if (take(messages[static_cast<unsigned>(i)].msg_hdr, messages[static_cast<unsigned>(i)].msg_len,
             v6, &frames[got])) {
      ++got;
    } else {
      counters_.rx_bad.add();
    }
  }
  return got;
}

bool UdpPort::take(msghdr& message, std::uint32_t bytes, bool v6, urnic_frame* frame) {
  UdpDatagram d;
  read_control(message, &d);
  const auto* const from = static_cast<const KernelAddress*>(message.msg_name);
  d.source = v6 ? address_of(from->v6.sin6_addr) : address_of(from->v4.sin_addr);
  d.source_port = ntohs(v6 ? from->v6.sin6_port : from->v4.sin_port);
  d.length = bytes;
  auto* const payload = static_cast<std::uint8_t*>(message.msg_iov->iov_base);
  const bool whole = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  if (!whole || d.destination.is_v6() != v6) return false;
  const std::size_t headers = write_udp_headers(d, mac_, payload);
  if (headers + bytes > max_frame_) return false;
  *frame = {};
  frame->data[0] = payload - headers;
  frame->len[0] = static_cast<std::uint32_t>(headers + bytes);
  frame->csum = URNIC_CSUM_SOCKET;
  counters_.rx_bytes.add(frame->len[0]);
  return true;
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

// Sends the next frames of one IP version. False: there is no room now.
bool UdpPort::send_run() {
  std::array<mmsghdr, kSlots> messages;
  std::array<iovec, kSlots> parts;
  std::array<KernelAddress, kSlots> to;
  std::array<Control, kSlots> control;
  const bool v6 = tx_.note(0).source.is_v6();
  unsigned n = 0;
  for (; n != tx_.waiting(); ++n) {
    const UdpDatagram& d = tx_.note(n);
    if (d.source.is_v6() != v6) break;
    parts[n] = {tx_.frame(n) + d.payload, d.length};
    msghdr& m = messages[n].msg_hdr;
    m = {};
    m.msg_iov = &parts[n];
    m.msg_iovlen = 1;
    m.msg_name = &to[n];
    const std::uint32_t zone = links_.of(d);
    m.msg_namelen = kernel_address(d.destination.with_zone(zone), kRocePort, &to[n]);
    m.msg_control = control[n].bytes;
    m.msg_controllen = write_control(d, zone, &control[n]);
  }
  counters_.syscalls.add();
  const int done = sendmmsg((v6 ? v6_ : v4_).get(), messages.data(), n, MSG_DONTWAIT);
  if (done <= 0) {
    if (errno == EAGAIN || errno == ENOBUFS || errno == EINTR) return false;
    // No route, too large (EMSGSIZE), not permitted: this frame is lost, as on any wire.
    counters_.tx_dropped.add();
    tx_.drop(1);
    return true;
  }
  for (unsigned i = 0; i < static_cast<unsigned>(done); ++i) {
    const UdpDatagram& d = tx_.note(i);
    counters_.tx_bytes.add(d.payload + d.length);
  }
  counters_.tx_frames.add(static_cast<unsigned>(done));
  tx_.drop(static_cast<unsigned>(done));
  room_wait_us_ = 0;
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
  return 0;
}

void UdpPort::disarm(unsigned) {
  if (timer_set_) set_timer(0);  // also clears a timer that has fired
}

constinit const urnic_port_ops kUdpPortOps = Adapter<UdpPort>::table("udp");

}  // namespace urnic::port
