#include "roce/general_services.h"

#include <new>

namespace urnic::roce {

void GeneralServices::take(const ib::ParsedPacket& packet, const ib_cm::AddressPair& addresses,
                           Instant now) {
  const auto mad = ib_cm::open_gsi(packet);
  if (!mad.ok()) {
    ++statistics_.drops[static_cast<std::size_t>(mad.error())];
    return;
  }
  manager_.take(addresses, *mad, now);
}

bool GeneralServices::transmit(Instant now) {
  bool any = retry_ && retry_waiting(now);
  while (held_ || manager_.next_mad(&next_)) {
    const Sent sent = send(next_, now);
    held_ = sent == Sent::Full;
    if (held_) break;
    any |= sent == Sent::Yes;
  }
  return any;
}

void GeneralServices::transmit_now(Instant now) {
  wire_.begin_sending();
  try {
    if (transmit(now)) wire_.tx().flush();
  } catch (const std::bad_alloc&) {
  }
}

// Tries each once; those that have to wait again go to the end.
bool GeneralServices::retry_waiting(Instant now) {
  bool any = false;
  retry_ = false;
  for (std::size_t left = waiting_.size(); left != 0 && !retry_; --left) {
    const Waiting w = waiting_.front();
    waiting_.pop_front();
    const Sent sent = send(w.mad, now);
    any |= sent == Sent::Yes;
    if (sent == Sent::Full) {
      waiting_.push_back(w);
      retry_ = true;
    }
  }
  return any;
}

GeneralServices::Sent GeneralServices::send(const ib_cm::Outgoing& o, Instant now) {
  using Kind = net::Resolution::Kind;
  net::Interface& interface = wire_.interface();
  const net::Resolution r = interface.resolve(o.addresses.remote, now);
  switch (r.kind) {
    case Kind::Mac:
      return put(o, r.mac, false) ? Sent::Yes : Sent::Full;
    case Kind::Loopback:
      return put(o, interface.mac(), true) ? Sent::Yes : Sent::Full;
    case Kind::Pending:
      if (waiting_.size() < kMostWaiting) {
        waiting_.push_back({o, r.next_hop});
        return Sent::Waits;
      }
      break;
    case Kind::Unreachable:
      break;
  }
  ++statistics_.unroutable;
  return Sent::Lost;
}

// False: no room.
bool GeneralServices::put(const ib_cm::Outgoing& o, const MacAddress& to, bool own) {
  net::Interface& interface = wire_.interface();
  ib::AddressVector av;
  av.local = o.addresses.local;
  av.remote = o.addresses.remote;
  const FrameHeaders headers(
      {interface.mac(), to, interface.vlan(), av, 0, wire_.udp_source_port()});
  const auto write = [&](std::uint8_t* at) {
    ib::emit_packet(ib_cm::gsi_header(psn_), o.mad, at + headers.size());
    ++psn_;
    return headers.finish(at, ib_cm::kGsiPacketBytes, 0);
  };
  if (!own) {
    port::Frame* const frame = wire_.tx().next();
    if (frame == nullptr) return false;
    frame->len[0] = static_cast<std::uint32_t>(write(frame->data[0]));
    frame->len[1] = 0;
    wire_.tx().keep();
    return true;
  }
  if (wire_.loop_full()) return false;
  try {
    write(wire_.new_looped(headers.size() + ib_cm::kGsiPacketBytes).data());
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void GeneralServices::reroute(const IpAddress* next_hop, bool failed) {
  if (!failed) {
    retry_ = !waiting_.empty();
    return;
  }
  for (std::size_t left = waiting_.size(); left != 0; --left) {
    const Waiting w = waiting_.front();
    waiting_.pop_front();
    if (next_hop != nullptr && w.next_hop != *next_hop) {
      waiting_.push_back(w);
    } else {
      ++statistics_.unroutable;
    }
  }
}

}  // namespace urnic::roce
