#include "device/tcp_host.h"

#include <time.h>

#include <algorithm>
#include <cstring>

#include "base/inet_checksum.h"
#include "device/driver.h"

namespace urnic::device {
namespace {

constexpr unsigned kMaxFds = 16;

net::InterfaceConfig fitted(net::InterfaceConfig c, const port::Info& info) {
  const std::uint32_t header = net::kEthernetHeader + (c.vlan != 0 ? net::kVlanTag : 0);
  c.mtu = std::min(c.mtu, info.max_frame > header ? info.max_frame - header : 0);
  if (c.mac.is_zero()) c.mac = MacAddress::from_bytes(info.mac);
  return c;
}

tcp::StackConfig fitted(tcp::StackConfig c, const net::Interface& interface) {
  c.addresses.clear();
  c.options.mtu = interface.mtu();
  // Checked in this file, which knows the checksums that the kernel has left unfinished.
  c.verify_checksums = false;
  return c;
}

}  // namespace

TcpHost::TcpHost(TcpHostConfig config, port::Port port, unsigned queue)
    : config_(std::move(config)),
      port_(std::move(port)),
      queue_(queue),
      interface_(fitted(config_.interface, port_.info())),
      stack_(fitted(config_.stack, interface_)),
      tx_(&port_, queue,
          static_cast<std::uint32_t>(interface_.mtu() + net::kEthernetHeader +
                                     (interface_.vlan() != 0 ? net::kVlanTag : 0))) {
  add_usable_addresses();
}

TcpHost::~TcpHost() {
  tx_.flush();
}

tcp::Status TcpHost::connect(tcp::Endpoint e, const SocketAddress& remote, Instant now) {
  const auto local = stack_.local_address(e);
  if (!local || local->ip.is_any()) {
    const auto source = interface_.choose_source(remote.ip);
    if (!source) return tcp::Status::NoAddress;
    const std::uint16_t port = local ? local->port : std::uint16_t{0};
    if (const tcp::Status s = stack_.bind(e, {*source, port}); s != tcp::Status::Ok) return s;
  }
  return stack_.connect(e, remote, now);
}

bool TcpHost::poll(Instant now) {
  look_at_link(now);
  stack_.begin_burst();
  bool any = receive_burst(now);
  for (std::size_t n = loop_.size(); n > 0; --n) {
    const Held held = std::move(loop_.front());
    loop_.pop_front();
    stack_.input(held.datagram, now);
    any = true;
  }
  stack_.end_burst(now);
  stack_.run(now);
  interface_.run_timers(now);
  take_events(now);
  return send_all(now) || any;
}

Instant TcpHost::next_deadline() const {
  if (!loop_.empty() || interface_.has_events()) return Instant();
  return earlier(stack_.next_deadline(), interface_.next_deadline());
}

// ---- receive
// ----------------------------------------------------------------------------------------

bool TcpHost::receive_burst(Instant now) {
  port::Frame frames[port::kBurst];
  const unsigned n = port_.rx_burst(queue_, frames, port::kBurst);
  if (n == 0) return false;
  for (unsigned i = 0; i < n; ++i) take_frame(frames[i], now);
  port_.rx_release(queue_, frames, n);
  counters_.frames_in += n;
  return true;
}

void TcpHost::take_frame(const port::Frame& f, Instant now) {
  // A copy: the stack needs it in one piece, and a peer may still write to shared memory (E-19).
  frame_.resize(port::frame_len(f));
  if (f.len[0] != 0) std::memcpy(frame_.data(), f.data[0], f.len[0]);
  if (f.len[1] != 0) std::memcpy(frame_.data() + f.len[0], f.data[1], f.len[1]);
  const net::Classified c = net::classify(frame_, static_cast<std::uint32_t>(frame_.size()));
  if (c.kind == net::FrameKind::Drop) {
    interface_.counters().drop(c.reason);
    return;
  }
  if (c.kind != net::FrameKind::Tcp) {
    interface_.input(c, frame_, now);
    return;
  }
  if (!interface_.accepts(c)) {
    ++counters_.not_for_us;
    return;
  }
  const ByteView whole(frame_);
  if (f.csum == URNIC_CSUM_UNKNOWN &&
      inet_checksum(std::uint64_t{c.pseudo_sum} + inet_sum(whole.subspan(c.l4_offset, c.l4_len))) !=
          0) {
    ++counters_.bad_checksum;
    return;
  }
  // Without the padding of a short frame.
  stack_.input(whole.subspan(c.l3_offset, c.l4_offset - c.l3_offset + c.l4_len), now);
}

// ---- link and neighbours
// ----------------------------------------------------------------------------

void TcpHost::look_at_link(Instant now) {
  const port::Info info = port_.info();
  if (info.link_up != 0 && info.link_epoch != link_epoch_) {
    link_epoch_ = info.link_epoch;
    interface_.link_up(now);
  } else if (info.link_up == 0 && interface_.is_up()) {
    interface_.link_down();
  }
}

void TcpHost::add_usable_addresses() {
  for (const net::OwnAddress& own : interface_.addresses()) {
    const IpAddress& a = own.prefix.address;
    if (own.state != net::AddressState::Usable ||
        std::find(known_.begin(), known_.end(), a) != known_.end()) {
      continue;
    }
    known_.push_back(a);
    stack_.add_address(a);
  }
}

void TcpHost::take_events(Instant now) {
  using Kind = net::Event::Kind;
  while (interface_.has_events()) {
    interface_.take_events(events_);
    for (const net::Event& e : events_) {
      switch (e.kind) {
        case Kind::NeighbourUsable:
        case Kind::NeighbourFailed:
          release_waiting(&e.address, now);
          break;
        case Kind::Recheck:
          release_waiting(nullptr, now);
          break;
        case Kind::Icmp:
          stack_.icmp_error(e.icmp, now);
          break;
        case Kind::AddressUsable:
          add_usable_addresses();
          break;
        case Kind::NeighbourForgotten:  // every datagram is resolved anew
        case Kind::AddressDuplicate:    // accepts() and choose_source() take care of it
        case Kind::AddressConflict:
          break;
      }
    }
  }
}

// ---- send
// -------------------------------------------------------------------------------------------

bool TcpHost::send_all(Instant now) {
  const std::uint64_t before = counters_.frames_out;
  bool room = send_control();
  while (room && !unsent_.empty()) {
    const net::Resolution r = interface_.resolve(unsent_.front().next_hop, now);
    // It was held for room, so the address was resolved a moment ago; if that has changed, TCP
    // retransmits.
    if (r.kind == net::Resolution::Kind::Mac) {
      room = send_frame(unsent_.front().datagram, r.mac);
      if (!room) break;
    }
    unsent_.pop_front();
  }
  tcp::Datagram d;
  while (stack_.next_output(&d)) send(d.bytes, now);
  send_control();  // requests that resolving has caused
  tx_.flush();
  return counters_.frames_out != before;
}

void TcpHost::send(ByteView datagram, Instant now) {
  const net::Classified c =
      net::classify_datagram(datagram, static_cast<std::uint32_t>(datagram.size()));
  const net::Resolution r = interface_.resolve(c.dst, now);
  switch (r.kind) {
    case net::Resolution::Kind::Mac:
      if (!unsent_.empty() || !send_frame(datagram, r.mac)) hold(unsent_, r.next_hop, datagram);
      return;
    case net::Resolution::Kind::Pending:
      hold(unresolved_, r.next_hop, datagram);
      return;
    case net::Resolution::Kind::Loopback:
      hold(loop_, c.dst, datagram);
      return;
    case net::Resolution::Kind::Unreachable:
      ++counters_.unreachable;
      return;
  }
}

void TcpHost::hold(Ring<Held>& queue, const IpAddress& next_hop, ByteView datagram) {
  if (queue.size() >= config_.waiting_limit) {
    ++counters_.overflow;
    return;
  }
  queue.push_back({next_hop, {datagram.begin(), datagram.end()}});
}

// False when the port is full.
bool TcpHost::send_frame(ByteView datagram, const MacAddress& to) {
  port::Frame* f = tx_.next();
  if (f == nullptr) return false;
  const bool v6 = datagram[0] >> 4 == 6;
  const std::size_t header = net::emit_ethernet(
      {to, interface_.mac(), interface_.vlan(), v6 ? net::kEtherTypeIpv6 : net::kEtherTypeIpv4},
      f->data[0]);
  if (header + datagram.size() > tx_.frame_size()) {  // larger than the link: cannot be sent
    ++counters_.unreachable;
    return true;
  }
  std::memcpy(f->data[0] + header, datagram.data(), datagram.size());
  f->len[0] = static_cast<std::uint32_t>(header + datagram.size());
  f->len[1] = 0;
  tx_.keep();
  ++counters_.frames_out;
  return true;
}

// Sends those for `next_hop` (null: all) again, in order; others keep waiting.
void TcpHost::release_waiting(const IpAddress* next_hop, Instant now) {
  for (std::size_t n = unresolved_.size(); n > 0; --n) {
    Held held = std::move(unresolved_.front());
    unresolved_.pop_front();
    if (next_hop == nullptr || held.next_hop == *next_hop) {
      send(held.datagram, now);
    } else {
      unresolved_.push_back(std::move(held));
    }
  }
}

// Sends ARP, ND and ICMP. False when the port is full.
bool TcpHost::send_control() {
  while (interface_.output_size() != 0) {
    port::Frame* f = tx_.next();
    if (f == nullptr) return false;
    const std::size_t n = interface_.next_output({f->data[0], tx_.frame_size()});
    if (n == 0) return true;
    f->len[0] = static_cast<std::uint32_t>(n);
    f->len[1] = 0;
    tx_.keep();
    ++counters_.frames_out;
  }
  return true;
}

// ---- real time
// --------------------------------------------------------------------------------------

void TcpHost::wait(Instant until, std::span<pollfd> more) {
  send_all(monotonic_now());  // data that the caller has written since poll()
  if (port_.arm(queue_)) {
    port_.disarm(queue_);
    return;
  }
  int port_fds[kMaxFds];
  const unsigned n = port_.wait_fds(queue_, port_fds, kMaxFds);
  std::vector<pollfd> fds(more.begin(), more.end());
  for (unsigned i = 0; i < n; ++i) fds.push_back({port_fds[i], POLLIN, 0});
  timespec left{};
  until = earlier(until, next_deadline());
  if (!until.is_never()) {
    const std::int64_t ns = std::max<std::int64_t>(0, until.ns() - monotonic_now().ns());
    left = {static_cast<time_t>(ns / 1000000000), static_cast<long>(ns % 1000000000)};
  }
  ::ppoll(fds.data(), fds.size(), until.is_never() ? nullptr : &left, nullptr);
  port_.disarm(queue_);
  for (std::size_t i = 0; i < more.size(); ++i) more[i].revents = fds[i].revents;
}

}  // namespace urnic::device
