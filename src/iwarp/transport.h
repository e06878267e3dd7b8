// The one seam between own TCP and the kernel's: what lies below a connection, whichever it is.
// Nothing above asks. What each does is in transmitter.h, slow_path.h and kernel_sender.h.
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

  // ---- what has come
  // In order and not consumed, as far as a start-up frame may reach.
  ByteView bytes(const Connection& c, std::span<std::uint8_t> scratch) const;
  void consume(Connection& c, std::uint32_t n);
  bool has_undelivered(const Connection& c) const;
  void drop_undelivered(Connection& c);
  // Dropped, with room for what follows, of which only the FIN will count.
  void discard_undelivered(Connection& c, Instant now);
  // FPDUs among them, placed and delivered.
  void drain(Connection& c, Instant now, Found* found);
  // TCP has done its handshake; the window is opened to what there is room for.
  void established(Connection& c, Instant now);
  // Of a Send that waits for a receive, and the FIN behind it.
  void shorten_receive_wait(Connection& c, Instant now) { rx_commit_.shorten_receive_wait(c, now); }
  // More may be there than was taken until now.
  void read_on(Connection& c);
  // There are segments to be seen: without them a connection is SLOW for ever (E-31).
  static bool shows_segments(const Connection& c) { return c.link == nullptr; }

  // ---- sending
  Sent transmit(Connection& c, unsigned budget, Instant now) {
    return c.link != nullptr ? kernel_.transmit(c) : own_.transmit(c, budget, now);
  }
  // The way is given up: FIN and the end of the peer's, as far as they have come. True when TCP is
  // through.
  bool conclude(Connection& c) {
    return c.link != nullptr ? kernel_.finish(c) : c.tcb.state == tcp::State::Closed;
  }
  // One past the last byte given to TCP.
  StreamOffset sent_end(const Connection& c) const;
  // FIN behind the last byte.
  void finish_sending(Connection& c, Instant now);
  void set_keepalive(Connection& c, Duration idle, Instant now);
  // 0..63, of what is sent from now on.
  void set_dscp(Connection& c, std::uint8_t dscp);

  // ---- the end
  void abort(Connection& c, Instant now);
  bool is_closed(const Connection& c) const;
  // TCP waits alone for what may still come.
  bool lingers(const Connection& c) const {
    return c.link == nullptr && c.tcb.state == tcp::State::TimeWait;
  }
  // Without waiting for anything.
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

// How the TCP below stands, own or the kernel's.
void add_path(const Connection& c, ConnectionStats* s);

}  // namespace urnic::iwarp
