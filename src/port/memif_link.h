// One connection to one peer: the shared memory, the places of the rings in it, and the eventfds.
// The handshake creates it; then it never changes. It lives until the last queue releases it, so
// that borrowed frames outlive the peer.
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

// The place of a ring, as agreed in the handshake.
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
  // Client only: its own buffers. Buffer i of a ring is at first + i * stride, regardless of the
  // current descriptors in shared memory.
  std::uint32_t buffer_size = 0, buffer_stride = 0, first_buffer = 0;
  std::string peer_name;
  bool peer_is_urnic = false;

  // The first protocol violation of the peer, set by any queue; the control side then disconnects
  // it.
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

// Creates the client's side of a connection: region, rings with all buffers attached, eventfds.
Outcome<std::shared_ptr<Link>, std::string> make_client_link(const ClientLayout& layout);
// The size of the shared memory for this layout in bytes; offsets must fit into 32 bits.
std::uint64_t layout_bytes(const ClientLayout& layout);

// Checks every place that the client specified (E-19) and sets the addresses. Returns nothing if
// they are valid, else a reason for a DISCONNECT message.
std::string check_rings(Link* link);

// Checks that `fd` is an eventfd: writing to another kind of file could block, or do damage.
bool is_eventfd(int fd);

}  // namespace urnic::port::memif
