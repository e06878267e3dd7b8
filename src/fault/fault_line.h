// One direction of a faulty wire: frames enter and leave, possibly delayed, lost or changed. A
// function of (plan, frames, now): the same seed has the same effect on the same frames.
//
// The order of the stages gives the counters an exact meaning: eligibility; loss; corruption;
// re-segmentation (a corrupted segment is still corrupted when cut); duplication; reordering;
// delay, rate and the queue limit.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/bytes.h"
#include "base/rng.h"
#include "base/time.h"
#include "fault/delay_line.h"
#include "fault/fault_log.h"
#include "fault/flow_guard.h"
#include "fault/frame_view.h"
#include "fault/plan.h"
#include "fault/resegmenter.h"
#include "fault/tcp_frame.h"
#include "port/port.h"

namespace urnic::fault {

class FaultLine {
 public:
  // `stream` (direction and queue) distinguishes lines with the same seed. `log` may be null.
  FaultLine(const FaultPlan& plan, Direction direction, std::uint16_t queue, FaultLog* log);

  // Sets a new plan for later frames; frames inside keep their release times. Restarts the seed and
  // the count for `at=`.
  void set_plan(const FaultPlan& plan);
  const FaultPlan& plan() const { return plan_; }

  // True for faults that need neither memory nor time (only loss and corruption): frames may stay
  // in place, and inspect() determines the fate of each. False while there are frames inside.
  bool in_place() const { return in_place_ && backlog() == 0; }
  enum class Fate : std::uint8_t {
    Pass,    // unchanged
    Lost,    // dropped
    Change,  // replaced by `*changed`
  };
  Fate inspect(const urnic_frame& f, Instant now, Frame* changed);

  // Adds a frame in two spans (the second may be empty) at the time `now`. `now` must never
  // decrease.
  void push(ByteView head, ByteView tail, std::uint8_t csum, Instant now);
  // Does everything that is due and returns the number of frames that may leave at `now`.
  std::size_t ready(Instant now);
  // The next frame to leave; requires that ready() has returned at least 1.
  const Frame& front() const { return under_way_.front(); }
  Frame pop();
  // Returns a frame of `length` bytes with undefined content, from recycled memory if possible.
  Frame new_blank_frame(std::size_t length);
  // Returns the frame's memory for reuse.
  void recycle(Frame f);

  // When to call ready() again; never() if all frames inside are ready.
  Instant next_release() const;
  // The number of frames inside, including ready ones.
  std::size_t backlog() const;
  // True if there are no frames inside and the plan does nothing: frames may bypass the line.
  bool transparent() const { return idle_ && backlog() == 0; }
  // Counts frames that bypassed the line.
  void count_bypassed(std::uint64_t frames) {
    counters_.frames += frames;
    counters_.delivered += frames;
  }
  const FaultCounters& counters() const { return counters_; }

 private:
  struct Reordered {
    Frame frame;
    std::uint32_t others_left = 0;
    Instant until;
  };

  // The result of the first stages. `payload` is the visible part of the payload.
  struct Decision {
    bool eligible = false, lost = false, corrupt = false, bad_checksum = false;
  };
  Decision decide(const FrameView& v, ByteView payload, std::size_t length, Instant now);
  bool is_eligible(const FrameView& v, ByteView payload);
  // True if the plan requests `kind` for the current eligible frame, by its number or at random.
  bool asked_for(FaultKind kind) const;
  bool chance(double p) { return p > 0 && rng_.chance(p); }
  bool is_wanted(FaultKind kind, double p) { return asked_for(kind) || chance(p); }
  bool decide_loss(std::size_t length, const FrameView& v, Instant now);
  void corrupt(Frame& f, const FrameView& v, Instant now);
  std::uint32_t corrupt_tcp(Frame& f, const TcpView& v);
  void break_checksum(Frame& f, const FrameView& seen, Instant now);
  // Duplicates and reorders the frames that the re-segmentation put into out_.
  void pass_on(bool eligible, Instant now);
  void enqueue(Frame f, Instant now, Duration extra, bool in_order);
  void overtaken(Instant now);
  void mark(Frame* f, Instant now);
  Frame new_frame(ByteView head, ByteView tail, std::uint8_t csum);
  void note(FaultKind kind, std::size_t length, const FrameView& v, Instant now,
            std::uint32_t at = 0);

  FaultPlan plan_;
  Direction direction_;
  std::uint16_t queue_;
  FaultLog* log_;
  bool idle_ = true, in_place_ = false;
  Rng rng_;
  FlowGuard guard_;
  Resegmenter resegmenter_;
  FaultCounters counters_;
  std::uint64_t ordinal_ = 0;     // eligible frames since the plan took effect
  std::uint32_t burst_left_ = 0;  // remaining frames of a loss burst
  std::uint32_t mtu_seen_ = 0;
  // Decided when a frame enters, applied after the re-segmentation.
  bool duplicate_next_ = false, reorder_next_ = false;
  std::deque<Reordered> reordered_;
  DelayLine under_way_;
  std::vector<Frame> spare_;
  std::vector<Frame> out_;  // scratch
};

}  // namespace urnic::fault
