// Choosing what goes next, and cutting it into whole FPDUs.
#pragma once

#include <cstdint>

#include "ddp_rdma/sender_state.h"

namespace urnic::ddp {

struct SegmentCut {
  std::uint32_t len = 0;
  bool push = false;  // the last message ends here and nothing follows: PSH (E-7)
};

// Local invalidations whose turn has come: all that was posted before them has been cut.
void execute_requests(SenderState& s);
inline void execute_due(SenderState& s) {
  if (s.current.kind == CurrentMessage::Kind::None && !s.requests.queue().all_started()) {
    execute_requests(s);
  }
}

// One past what could be cut now, as Sender::available.
StreamOffset available(const SenderState& s);
// As Sender::cut.
SegmentCut cut_segment(SenderState& s, StreamOffset begin, std::uint32_t limit, std::uint32_t emss,
                       bool must_cut);

inline void set_emss(SenderState& s, std::uint32_t emss) {
  if (emss == s.sizes.emss()) return;
  s.sizes.set_emss(emss);
  s.backlog.recount();
}

}  // namespace urnic::ddp
