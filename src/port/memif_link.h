// One connection to one peer: the shared memory, where the rings are in it, and the eventfds. Made
// by the handshake, then never changed; lives until the last queue that uses it lets go, so that
// borrowed frames outlive the peer.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "port/fd.h"
#include "port/memif_region.h"
#include "port/memif_wire.h"

namespace urnic::port::memif {

enum class Side : std::uint8_t { kServer, kClient };

// Where a ring is, as agreed in the handshake.
struct RingPlace {
  std::uint16_t region = 0;
  std::uint32_t offset = 0;
  std::uint8_t log2_size = 0;
  Fd event;                    // the sender writes it, the receiver sleeps on it
  std::uint8_t* at = nullptr;  // set once checked
};

struct Link {
  Side side = Side::kServer;
  std::vector<Region> regions;
  std::vector<RingPlace> s2m, m2s;
  // Client only: its own buffers. Buffer i of a ring is at first + i * stride, whatever the
  // descriptors in shared memory say by now.
  std::uint32_t buffer_size = 0, buffer_stride = 0, first_buffer = 0;
  std::string peer_name;
  bool peer_is_urnic = false;

  // The first thing the peer did wrong, set by any queue; the control side disconnects it.
  std::atomic<const char*> fault{nullptr};

  void set_peer_name(std::string name) {
    peer_name = std::move(name);
    peer_is_urnic = peer_name.starts_with("urnic");
  }
  RingPlace& receiving(unsigned q) { return side == Side::kServer ? s2m[q] : m2s[q]; }
  RingPlace& sending(unsigned q) { return side == Side::kServer ? m2s[q] : s2m[q]; }
  unsigned queues() const {
    return static_cast<unsigned>(s2m.size() < m2s.size() ? s2m.size() : m2s.size());
  }
  // Offset of buffer `slot` of ring number `ring` (S2M first, then M2S) in region 0; client only.
  std::uint32_t buffer_offset(std::size_t ring, std::size_t slot) const {
    const std::size_t index = (ring << s2m[0].log2_size) + slot;
    return static_cast<std::uint32_t>(first_buffer + index * buffer_stride);
  }
};

struct ClientLayout {
  unsigned queues = 1;
  unsigned log2_ring = 8;
  std::uint32_t buffer_size = 2048;
};

// The client's side of a connection: region, rings with every buffer attached, eventfds.
Outcome<std::shared_ptr<Link>, std::string> make_client_link(const ClientLayout& layout);
// Bytes of shared memory the layout needs; the offsets in it must fit 32 bits.
std::uint64_t layout_bytes(const ClientLayout& layout);

// Checks every place the client named (E-19) and fills in the addresses. Empty when all is well,
// else a reason fit for a DISCONNECT message.
std::string check_rings(Link* link);

// Whether `fd` is an eventfd: writing anything else could block, or worse.
bool is_eventfd(int fd);

}  // namespace urnic::port::memif
