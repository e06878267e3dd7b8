// The one seam between our own TCP and the kernel's: the transport below a connection. Code above
// it does not distinguish them. transmitter.h, slow_path.h and kernel_sender.h describe what each
// does.
#pragma once

#include <cstdint>
#include <span>

#include "iwarp/kernel_sender.h"
#include "iwarp/rx_commit.h"
#include "iwarp/side_state.h"
#include "iwarp/slow_path.h"
#include "iwarp/transmitter.h"
#include "urnic/stats.h"

namespace urnic::iwarp {

class Transport {
 public:
  Transport(SideState* s, Transmitter* own, KernelSender* kernel, SlowPath* slow,
            RxCommit* rx_commit)
      : s_(*s), own_(*own), kernel_(*kernel), slow_(*slow), rx_commit_(*rx_commit) {}

  // ---- received data
  // In-order bytes not consumed yet, up to the size of a start-up frame.
  ByteView bytes(const Connection& c, std::span<std::uint8_t> scratch) const;
  void consume(Connection& c, std::uint32_t n);
  bool has_undelivered(const Connection& c) const;
  void drop_undelivered(Connection& c);
  // Drops them and makes room for later data, of which only the FIN will count.
  void discard_undelivered(Connection& c, Instant now);
  // Places and delivers the FPDUs in them.
  void drain(Connection& c, Instant now, Found* found);
  // TCP's handshake is done: opens the window as far as there is room.
  void established(Connection& c, Instant now);
  // For a Send that waits for a receive, if the FIN comes after it.
  void shorten_receive_wait(Connection& c, Instant now) { rx_commit_.shorten_receive_wait(c, now); }
  // There may be more data than was read until now.
  void read_on(Connection& c);
  // True if segments are visible. Without them a connection is always SLOW (E-31).
  static bool shows_segments(const Connection& c) { return c.link == nullptr; }

  // ---- sending
  Sent transmit(Connection& c, unsigned budget, Instant now) {
    return c.link != nullptr ? kernel_.transmit(c, now) : own_.transmit(c, budget, now);
  }
  // The sending side is given up: handles FIN and the end of the peer's side, as far as they have
  // come. Returns true if TCP has finished.
  bool conclude(Connection& c, Instant now) {
    return c.link != nullptr ? kernel_.finish(c, now) : c.tcb.state == tcp::State::Closed;
  }
  // One past the last byte passed to TCP.
  StreamOffset sent_end(const Connection& c) const;
  // Sends a FIN after the last byte.
  void finish_sending(Connection& c, Instant now);
  void set_keepalive(Connection& c, Duration idle, Instant now);
  // 0..63, for packets sent from now on.
  void set_dscp(Connection& c, std::uint8_t dscp);

  // ---- the end
  void abort(Connection& c, Instant now);
  bool is_closed(const Connection& c) const;
  // True if TCP alone waits for late segments.
  bool lingers(const Connection& c) const {
    return c.link == nullptr && c.tcb.state == tcp::State::TimeWait;
  }
  // Does not wait for anything.
  void send_reset_now(Connection& c, Instant now) {
    if (c.link == nullptr) own_.send_reset_now(c, now);
  }

 private:
  void drain_inbox(Connection& c, Found* found);

  SideState& s_;
  Transmitter& own_;
  KernelSender& kernel_;
  SlowPath& slow_;
  RxCommit& rx_commit_;
};

// Adds the state of the TCP below, our own or the kernel's.
void add_path(const Connection& c, ConnectionStats* s);

}  // namespace urnic::iwarp
