// Congestion control of one RC send queue (S-10): how many packets may be in flight, from what the
// requester observes itself. This class finds the rounds, and allows one cut for all packets that
// were in flight together; window.h or dcqcn.h decides how the window changes.
//
//   left()          each packet that leaves
//   acknowledged()  una has moved
//   lost(), timed_out(), notified(), went_back()
//
// A function of (state, input, now). Owned by the requester of one queue pair.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "ib/dcqcn.h"
#include "ib/psn.h"
#include "ib/window.h"

namespace urnic::ib {

enum class CongestionRule : std::uint8_t {
  Off,     // the window stays open
  Window,  // AimdWindow
  Dcqcn,   // DcqcnWindow
};

struct CongestionCounters {
  std::uint64_t cnps = 0;          // received
  std::uint64_t cnps_ignored = 0;  // of these: nothing was in flight, or the congestion was known
  std::uint64_t cuts = 0;          // number of times the window was reduced, for any reason
};

class Congestion {
 public:
  // `most`: packets, 1 or more, that may be in flight without congestion.
  Congestion(CongestionRule rule, std::uint32_t most)
      : rule_(rule), most_(most), packets_(most), window_(most), dcqcn_(most) {
    if (rule == CongestionRule::Window) packets_ = window_.packets();
  }

  bool on() const { return rule_ != CongestionRule::Off; }
  // Packets that may be in flight: from the floor to `most`.
  std::uint32_t packets() const { return packets_; }
  bool closed() const { return packets_ != most_; }

  // A packet is sent. `asks`: it requests an ACK. `again`: it was sent before. `full`: no other
  // packet may follow it now.
  void left(Psn psn, bool asks, bool again, bool full, Instant now) {
    if (!on()) return;
    limited_ = limited_ || full;
    if (++sent_ >= packets_) sent_ = lost_ = 0;
    if (rule_ == CongestionRule::Dcqcn) dcqcn_.sent();
    if (asks && !round_) begin_round(psn, again, now);
  }
  // 1 or more packets are sent, the last of which is `last`. Only that one may request an ACK or
  // fill the window.
  void run_left(std::uint32_t packets, Psn last, bool asks, bool full, Instant now) {
    if (!on()) return;
    for (; packets != 1; --packets) left(last, false, false, false, now);
    left(last, asks, false, full, now);
  }
  // Everything before `una` is answered; `end` follows the newest packet sent.
  void acknowledged(Psn una, Psn end, Instant now) {
    if (round_ || cut_) take_answer(una, end, now);
  }

  // `packets` packets are lost.
  void lost(std::uint32_t packets, Psn end, Instant now);
  void timed_out(Instant now);
  // A CNP has arrived; `outstanding`: something is in flight. If it says nothing new it is only
  // counted.
  void notified(Psn end, bool outstanding, Instant now);
  // Responses to us arrive with a mark; something is in flight.
  void marked(Psn end, Instant now) { act(end, now); }
  // A packet is sent again, alone: the running round is no measure of the round trip.
  void repeated() { spoiled_ = true; }
  // Everything from una on is sent again: ends the running round and cut.
  void went_back(Psn una) {
    spoiled_ = true;
    measured_ = una;
    cut_end_ = una + 1;
  }

  const CongestionCounters& counters() const { return counters_; }
  const AimdWindow& aimd() const { return window_; }
  const DcqcnWindow& dcqcn() const { return dcqcn_; }

 private:
  void begin_round(Psn psn, bool again, Instant now) {
    round_ = true;
    spoiled_ = again;
    settled_ = quiet_ = !cut_;
    measured_ = psn;
    left_ = now;
    limited_ = false;
  }
  void take_answer(Psn una, Psn end, Instant now);
  bool act(Psn end, Instant now);
  void after_cut(Psn end);
  void settle() {
    packets_ = rule_ == CongestionRule::Window ? window_.packets() : dcqcn_.packets();
  }

  CongestionRule rule_;
  bool round_ = false;    // a round is running: the packet at measured_ is not answered
  bool spoiled_ = false;  // it will not yield a round trip time
  bool settled_ = false, quiet_ = false, limited_ = false;  // AimdWindow::Round
  // packets that were in flight at the cut are not answered: they cannot show anything new
  bool cut_ = false;
  std::uint32_t most_, packets_;
  Psn measured_;  // the round ends when this and everything before it is answered
  Psn cut_end_;   // `cut_` ends when everything before this is answered
  Instant left_;
  std::uint32_t sent_ = 0, lost_ = 0;  // in the window of packets that is being sent
  CongestionCounters counters_;
  AimdWindow window_;
  DcqcnWindow dcqcn_;
};

}  // namespace urnic::ib
