// The datagram port: one unix datagram carries one Ethernet frame, as in QEMU's "-netdev dgram".
// Keys: docs/ports.md.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "port/adapter.h"
#include "port/counters.h"
#include "port/peer_user.h"
#include "port/port.h"
#include "port/transmit_ring.h"
#include "port/unix_address.h"

namespace urnic::port {

class DgramPort : public ReusesRxBuffers {
 public:
  static Outcome<std::unique_ptr<DgramPort>, std::string> make(Args& args);
  ~DgramPort();

  void info(urnic_port_info* i) const;
  void stats(urnic_port_stats* s) const;
  std::string why() const { return why_; }
  unsigned rx_burst(unsigned q, urnic_frame* frames, unsigned n);
  unsigned tx_reserve(unsigned q, std::uint32_t len, urnic_frame* frames, unsigned n);
  void tx_commit(unsigned q, urnic_frame* frames, unsigned n);
  unsigned wait_fds(unsigned q, int* fds, unsigned max);
  int arm(unsigned q);
  void disarm(unsigned q);

 private:
  using Transmit = TransmitRing<std::uint32_t>;         // keeps the length beside each frame
  static constexpr unsigned kSlots = Transmit::kSlots;  // frames per burst, each direction

  DgramPort(BoundSocket socket, Fd timer, UnixAddress peer, PeerUser user, std::uint32_t max_frame);
  void flush();
  void drop_waiting();
  void set_peer_present(bool there);
  void look_for_peer();
  void ask_for_peer();
  bool is_owner_allowed();
  bool sender_allowed(const msghdr& m) const;
  void set_timer(std::uint64_t us);

  // Presence of the peer, and the time of the next check.
  struct Peer {
    UnixAddress address;
    bool there = false;
    std::uint32_t epoch = 0;
    std::uint64_t next_look_ms = 0, look_delay_ms = 0;
  };

  BoundSocket socket_;
  Fd timer_;
  PeerUser user_;
  std::string why_;
  std::uint32_t max_frame_;
  std::size_t stride_;
  pid_t owner_;
  std::unique_ptr<std::uint8_t[]> rx_memory_;
  Transmit tx_;  // frames that the peer's queue had no room for
  Peer peer_;
  std::uint32_t room_wait_us_ = 0;
  std::uint32_t calls_ = 0;
  bool timer_set_ = false, slept_ = false;
  bool look_timer_ = false;  // the timer runs to check for the peer
  QueueCounters counters_;
};

}  // namespace urnic::port
