// The messages of the memif handshake, for server and client.
#include <fcntl.h>

#include <algorithm>

#include "port/memif_control.h"

namespace urnic::port::memif {
namespace {

std::string padded(std::string secret) {
  secret.resize(kSecretSize, '\0');
  return secret;
}

Message with_type(MessageType t) {
  Message m;
  m.set_type(t);
  return m;
}

}  // namespace

// ---- server ----

Control::PeerStep Control::take_as_server(Peer& peer, const Message& m, Fd fd) {
  if (&peer == peer_.get()) {
    // A connected client may only send DISCONNECT (or ACK).
    return m.type() == MessageType::kAck ? PeerStep::kGoOn : refuse(peer, "Unexpected message");
  }
  std::string wrong;
  switch (m.type()) {
    case MessageType::kAck:
      return PeerStep::kGoOn;
    case MessageType::kInit:
      wrong = take_init(peer, m);
      break;
    case MessageType::kAddRegion:
      wrong = peer.introduced ? take_region(peer, m, std::move(fd)) : "Unexpected message";
      break;
    case MessageType::kAddRing:
      wrong = peer.introduced ? take_ring(peer, m, std::move(fd)) : "Unexpected message";
      break;
    case MessageType::kConnect: {
      wrong = peer.introduced ? check_rings(peer.link.get()) : "Unexpected message";
      // Two handshakes may run concurrently; the first to finish gets the port.
      if (wrong.empty() && peer_ != nullptr) wrong = "Already connected";
      if (!wrong.empty()) return refuse(peer, wrong);
      Message reply = with_type(MessageType::kConnected);
      reply.set_text(connect::kName, kNameSize, "urnic");
      ++calls_;
      return send_message(peer.socket.get(), reply) ? PeerStep::kUp : PeerStep::kDrop;
    }
    default:
      wrong = "Unknown message type";
  }
  if (!wrong.empty()) return refuse(peer, wrong);
  ++calls_;
  return send_message(peer.socket.get(), with_type(MessageType::kAck)) ? PeerStep::kGoOn
                                                                       : PeerStep::kDrop;
}

std::string Control::take_init(Peer& peer, const Message& m) {
  if (peer.introduced) return "Unexpected message";
  if (m.u16(init::kVersionAt) != kVersion) return "Incompatible memif version";
  if (m.u32(init::kId) != config_.id) return "ID not found";
  if (m.u8(init::kMode) != init::kModeEthernet) return "Only ethernet mode supported";
  if (!config_.secret.empty()) {
    const auto* given = reinterpret_cast<const char*>(&m.bytes[init::kSecret]);
    if (*given == '\0') return "Secret required";
    if (std::string(given, kSecretSize) != padded(config_.secret)) return "Incorrect secret";
  }
  if (peer_ != nullptr) return "Already connected";
  peer.introduced = true;
  peer.link = std::make_shared<Link>();
  peer.link->side = Side::kServer;
  peer.link->set_peer_name(m.text(init::kName, kNameSize));
  return "";
}

std::string Control::take_region(Peer& peer, const Message& m, Fd fd) {
  auto& regions = peer.link->regions;
  if (m.u16(add_region::kIndex) != regions.size() || regions.size() >= kMaxRegions) {
    return "Invalid region index";
  }
  auto region = Region::adopt(std::move(fd), m.u64(add_region::kSize));
  if (!region.ok()) return region.error();
  regions.push_back(std::move(region.value()));
  return "";
}

std::string Control::take_ring(Peer& peer, const Message& m, Fd fd) {
  if (!fd) return "Missing interrupt fd";
  if (!is_eventfd(fd.get())) return "Interrupt fd is not an eventfd";
  const bool s2m = (m.u16(add_ring::kFlags) & add_ring::kFlagS2m) != 0;
  auto& rings = s2m ? peer.link->s2m : peer.link->m2s;
  // Rings of one direction are added in order; a gap would leave an undefined ring.
  if (m.u16(add_ring::kIndex) != rings.size() || rings.size() >= config_.queues) {
    return "Invalid ring index";
  }
  // The flag belongs to the open file description, which the client shares; see MemifTx::wake.
  fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  RingPlace r;
  r.region = m.u16(add_ring::kRegion);
  r.offset = m.u32(add_ring::kOffset);
  r.log2_size = m.u8(add_ring::kLog2);
  r.event = std::move(fd);
  rings.push_back(std::move(r));
  return "";
}

// ---- client ----

Control::PeerStep Control::take_as_client(Peer& peer, const Message& m) {
  if (&peer == peer_.get()) {
    return m.type() == MessageType::kAck ? PeerStep::kGoOn : refuse(peer, "Unexpected message");
  }
  switch (m.type()) {
    case MessageType::kHello: {
      if (peer.link != nullptr) return refuse(peer, "Unexpected message");
      if (std::string wrong = take_hello(peer, m); !wrong.empty()) return refuse(peer, wrong);
      queue_client_messages(peer);
      return send_next(peer);
    }
    case MessageType::kAck:
      return send_next(peer);
    case MessageType::kConnected:
      // Valid only as the answer to our CONNECT, which is the last message.
      if (peer.link == nullptr || peer.sent != peer.to_send.size()) {
        return refuse(peer, "Unexpected message");
      }
      return PeerStep::kUp;
    default:
      return refuse(peer, "Unexpected message");
  }
}

std::string Control::take_hello(Peer& peer, const Message& m) {
  if (m.u16(hello::kMinVersion) > kVersion || m.u16(hello::kMaxVersion) < kVersion) {
    return "Incompatible memif version";
  }
  ClientLayout layout;
  const unsigned server_rings = 1u + std::min(m.u16(hello::kMaxM2s), m.u16(hello::kMaxS2m));
  layout.queues = std::min(config_.queues, server_rings);
  layout.log2_ring = std::min<unsigned>(config_.log2_ring, m.u8(hello::kMaxLog2));
  layout.buffer_size = config_.buffer_size;
  auto link = make_client_link(layout);
  if (!link.ok()) return link.error();
  peer.link = std::move(link.value());
  peer.link->set_peer_name(m.text(hello::kName, kNameSize));
  return "";
}

void Control::queue_client_messages(Peer& peer) {
  Message m = with_type(MessageType::kInit);
  m.set_u16(init::kVersionAt, kVersion);
  m.set_u32(init::kId, config_.id);
  m.set_u8(init::kMode, init::kModeEthernet);
  std::copy(config_.secret.begin(), config_.secret.end(), &m.bytes[init::kSecret]);
  m.set_text(init::kName, kNameSize, "urnic");
  peer.to_send.push_back(m);

  m = with_type(MessageType::kAddRegion);
  m.set_u16(add_region::kIndex, 0);
  m.set_u64(add_region::kSize, peer.link->regions[0].size());
  m.fd = peer.link->regions[0].fd();
  peer.to_send.push_back(m);

  for (const bool s2m : {true, false}) {
    const auto& rings = s2m ? peer.link->s2m : peer.link->m2s;
    for (std::size_t i = 0; i < rings.size(); ++i) {
      m = with_type(MessageType::kAddRing);
      m.set_u16(add_ring::kFlags, s2m ? add_ring::kFlagS2m : 0);
      m.set_u16(add_ring::kIndex, static_cast<std::uint16_t>(i));
      m.set_u16(add_ring::kRegion, rings[i].region);
      m.set_u32(add_ring::kOffset, rings[i].offset);
      m.set_u8(add_ring::kLog2, rings[i].log2_size);
      m.fd = rings[i].event.get();
      peer.to_send.push_back(m);
    }
  }
  m = with_type(MessageType::kConnect);
  m.set_text(connect::kName, kNameSize, "urnic");
  peer.to_send.push_back(m);
}

// Sends one message per ACK, like the other implementations.
Control::PeerStep Control::send_next(Peer& peer) {
  if (peer.link == nullptr) return refuse(peer, "Unexpected message");
  if (peer.sent == peer.to_send.size()) return PeerStep::kGoOn;
  ++calls_;
  return send_message(peer.socket.get(), peer.to_send[peer.sent++]) ? PeerStep::kGoOn
                                                                    : PeerStep::kDrop;
}

}  // namespace urnic::port::memif
