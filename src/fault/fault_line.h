// One direction of a faulty wire: frames in, frames out, later or fewer or other ones. A function
// of (plan, frames, now): the same seed does the same to the same frames.
//
// Order of the stages, so that counters can be read exactly: what is eligible; loss; corruption;
// re-segmentation (a cut segment that was corrupted stays corrupted in one piece); duplication;
// reordering; delay, rate and the queue limit.
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
  // `stream` tells lines with the same seed apart (direction and queue). `log` may be null.
  FaultLine(const FaultPlan& plan, Direction direction, std::uint16_t queue, FaultLog* log);

  // A new plan for the frames to come; those inside keep their release times. Restarts the seed
  // and the count of `at=`.
  void set_plan(const FaultPlan& plan);
  const FaultPlan& plan() const { return plan_; }

  // Faults that need neither memory nor time (loss and corruption alone): frames may stay where
  // they are, and inspect() says what becomes of each. Not while frames are inside.
  bool in_place() const { return in_place_ && backlog() == 0; }
  enum class Fate : std::uint8_t {
    Pass,    // as it is
    Lost,    // not at all
    Change,  // `*changed` instead
  };
  Fate inspect(const urnic_frame& f, Instant now, Frame* changed);

  // A frame in two spans (the second may be empty) enters at `now`. `now` never goes backwards.
  void push(ByteView head, ByteView tail, std::uint8_t csum, Instant now);
  // Does what time demands (releases, ends of holding) and says how many frames can leave at `now`.
  std::size_t ready(Instant now);
  // The next frame to leave, after ready() said that there is one.
  const Frame& front() const { return under_way_.front(); }
  Frame pop();
  // A frame of `length` bytes of no particular content, out of memory given back.
  Frame new_blank_frame(std::size_t length);
  // Gives memory back for reuse.
  void recycle(Frame f);

  // When ready() should be asked again; never() when nothing is inside but what is ready.
  Instant next_release() const;
  // Frames inside, ready ones included.
  std::size_t backlog() const;
  // Nothing inside, nothing to do: frames may bypass the line.
  bool transparent() const { return idle_ && backlog() == 0; }
  // A frame that bypassed it.
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

  // The first stages. `payload` is what can be seen of the payload.
  struct Decision {
    bool eligible = false, lost = false, corrupt = false, bad_checksum = false;
  };
  Decision decide(const FrameView& v, ByteView payload, std::size_t length, Instant now);
  bool is_eligible(const FrameView& v, ByteView payload);
  // The plan wants `kind` for the current eligible frame: by its number or by chance.
  bool asked_for(FaultKind kind) const;
  bool chance(double p) { return p > 0 && rng_.chance(p); }
  bool is_wanted(FaultKind kind, double p) { return asked_for(kind) || chance(p); }
  bool decide_loss(std::size_t length, const FrameView& v, Instant now);
  void corrupt(Frame& f, const FrameView& v, Instant now);
  std::uint32_t corrupt_tcp(Frame& f, const TcpView& v);
  void break_checksum(Frame& f, const FrameView& seen, Instant now);
  // Duplication and reordering of what the re-segmentation put into out_.
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
  std::uint64_t ordinal_ = 0;     // eligible frames since the plan took force
  std::uint32_t burst_left_ = 0;  // of a loss burst
  std::uint32_t mtu_seen_ = 0;
  // Decided where a frame enters, wanted behind the re-segmentation.
  bool duplicate_next_ = false, reorder_next_ = false;
  std::deque<Reordered> reordered_;
  DelayLine under_way_;
  std::vector<Frame> spare_;
  std::vector<Frame> out_;  // scratch
};

}  // namespace urnic::fault
