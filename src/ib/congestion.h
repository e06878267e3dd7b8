// Congestion control of one RC send queue (S-10): how many packets may be in flight, from what the
// requester sees of its own. Rounds are told here, and one cut for all that was in flight together;
// how the window moves is window.h's or dcqcn.h's.
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
  Off,     // nothing closes the window
  Window,  // AimdWindow
  Dcqcn,   // DcqcnWindow
};

struct CongestionCounters {
  std::uint64_t cnps = 0;          // that have come
  std::uint64_t cnps_ignored = 0;  // of these: nothing was in flight, or it had been acted upon
  std::uint64_t cuts = 0;          // times that the window was closed, for whatever reason
};

class Congestion {
 public:
  // `most`: packets, 1 or more, that may be in flight when nothing is wrong.
  Congestion(CongestionRule rule, std::uint32_t most)
      : rule_(rule), most_(most), packets_(most), window_(most), dcqcn_(most) {
    if (rule == CongestionRule::Window) packets_ = window_.packets();
  }

  bool on() const { return rule_ != CongestionRule::Off; }
  // Packets that may be in flight: its floor to `most`.
  std::uint32_t packets() const { return packets_; }
  bool closed() const { return packets_ != most_; }

  // A packet leaves; `asks`: an ACK must come for it. `again`: it has left before. `full`: no other
  // may follow it.
  void left(Psn psn, bool asks, bool again, bool full, Instant now) {
    if (!on()) return;
    limited_ = limited_ || full;
    if (++sent_ >= packets_) sent_ = lost_ = 0;
    if (rule_ == CongestionRule::Dcqcn) dcqcn_.sent();
    if (asks && !round_) begin_round(psn, again, now);
  }
  // So many packets leave, 1 or more, of which the last is `last` and alone may ask, or be followed
  // by no other.
  void run_left(std::uint32_t packets, Psn last, bool asks, bool full, Instant now) {
    if (!on()) return;
    for (; packets != 1; --packets) left(last, false, false, false, now);
    left(last, asks, false, full, now);
  }
  // Everything before `una` is answered; `end` lies behind the newest that has left.
  void acknowledged(Psn una, Psn end, Instant now) {
    if (round_ || cut_) take_answer(una, end, now);
  }

  // So many packets are lost.
  void lost(std::uint32_t packets, Psn end, Instant now);
  void timed_out(Instant now);
  // A CNP has come; `outstanding`: something is in flight. What says nothing new is only counted.
  void notified(Psn end, bool outstanding, Instant now);
  // What answers us has come with a mark: something is in flight.
  void marked(Psn end, Instant now) { act(end, now); }
  // One leaves again, alone: answers are no measure for a while.
  void repeated() { spoiled_ = true; }
  // All from una on leaves again: what is known of what was in flight counts no more.
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
  bool round_ = false;    // one is under way: the packet at measured_ is not answered
  bool spoiled_ = false;  // and will not tell how long it took
  bool settled_ = false, quiet_ = false, limited_ = false;  // AimdWindow::Round
  bool cut_ = false;  // and what was in flight then is not answered: it can say nothing new
  std::uint32_t most_, packets_;
  Psn measured_;  // the round is over when this is answered, with all before it
  Psn cut_end_;   // and `cut_` when all before this is
  Instant left_;
  std::uint32_t sent_ = 0, lost_ = 0;  // of the window of packets that is leaving
  CongestionCounters counters_;
  AimdWindow window_;
  DcqcnWindow dcqcn_;
};

}  // namespace urnic::ib
