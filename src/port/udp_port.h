// The UDP port: RoCEv2 over the kernel's sockets, for users without another way to send frames.
// Outgoing frames lose their headers and are sent as datagrams; received datagrams get headers
// built from the socket's information. Keys: docs/ports.md.
#pragma once

#include <sys/socket.h>

#include <memory>
#include <string>

#include "base/ip_address.h"
#include "port/adapter.h"
#include "port/counters.h"
#include "port/fd.h"
#include "port/own_links.h"
#include "port/port.h"
#include "port/transmit_ring.h"
#include "port/udp_headers.h"

namespace urnic::port {

class UdpPort : public ReusesRxBuffers {
 public:
  static Outcome<std::unique_ptr<UdpPort>, std::string> make(Args& args);

  void info(urnic_port_info* i) const;
  void stats(urnic_port_stats* s) const;
  unsigned rx_burst(unsigned q, urnic_frame* frames, unsigned n);
  unsigned tx_reserve(unsigned q, std::uint32_t len, urnic_frame* frames, unsigned n);
  void tx_commit(unsigned q, urnic_frame* frames, unsigned n);
  unsigned wait_fds(unsigned q, int* fds, unsigned max);
  int arm(unsigned q);
  void disarm(unsigned q);

 private:
  using Transmit = TransmitRing<UdpDatagram>;
  static constexpr unsigned kSlots = Transmit::kSlots;  // frames per burst, each direction

  UdpPort(Fd v4, Fd v6, Fd timer, std::uint32_t mtu);
  unsigned receive(const Fd& socket, bool v6, urnic_frame* frames, unsigned n);
  bool take(msghdr& message, std::uint32_t bytes, bool v6, urnic_frame* frame);
  void flush();
  bool send_run();
  void set_timer(std::uint32_t us);

  Fd v4_, v6_, timer_;
  std::uint32_t max_frame_;
  std::size_t stride_;
  std::uint8_t mac_[6] = {};
  std::unique_ptr<std::uint8_t[]> rx_memory_;  // kSlots buffers for each IP version
  OwnLinks links_;
  Transmit tx_;  // frames that the socket had no room for
  std::uint32_t room_wait_us_ = 0;
  bool timer_set_ = false, slept_ = false;
  QueueCounters counters_;
};

}  // namespace urnic::port
