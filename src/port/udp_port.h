// The UDP port: RoCEv2 through the kernel's sockets, for processes that may not send frames. A
// frame leaves without its headers as a datagram; a received datagram gets headers made of what the
// socket reports. With offload, one system call carries up to 64 datagrams of one peer
// (UDP_SEGMENT, UDP_GRO). Keys: docs/ports.md.
#pragma once

#include <sys/socket.h>

#include <memory>
#include <string>

#include "base/ip_address.h"
#include "port/adapter.h"
#include "port/counters.h"
#include "port/fd.h"
#include "port/identification_patch.h"
#include "port/kinds.h"
#include "port/own_links.h"
#include "port/port.h"
#include "port/transmit_ring.h"
#include "port/udp_headers.h"
#include "port/udp_receiver.h"

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

  UdpPort(Fd v4, Fd v6, Fd timer, const UdpArgs& args);
  void flush();
  unsigned segments(unsigned first) const;
  void number(unsigned datagram, unsigned segment);
  bool send_run();
  bool take_send_error(unsigned count, int error);
  void drop(unsigned n);
  void set_timer(std::uint32_t us);

  Fd v4_, v6_, timer_;
  std::uint32_t max_frame_;
  bool offload_;  // the kernel cuts sent messages and joins received datagrams
  std::uint8_t mac_[6] = {};
  std::unique_ptr<UdpReceiver> from_v4_, from_v6_;
  OwnLinks links_;
  Transmit tx_;  // frames that the socket had no room for
  IdentificationPatch patch_;
  unsigned alone_ = 0;  // so many of the waiting datagrams are sent one by one
  std::uint32_t room_wait_us_ = 0;
  bool timer_set_ = false, slept_ = false;
  QueueCounters counters_;
};

}  // namespace urnic::port
