// Chooses what to send next, and cuts it into whole FPDUs.
#pragma once

#include <cstdint>

#include "ddp_rdma/sender_state.h"

namespace urnic::ddp {

struct SegmentCut {
  std::uint32_t len = 0;
  bool push = false;  // the last message ends here and nothing follows: PSH (E-7)
};

// Executes local invalidations that are due: everything posted before them was cut.
void execute_requests(SenderState& s);
inline void execute_due(SenderState& s) {
  if (s.current.kind == CurrentMessage::Kind::None && !s.requests.queue().all_started()) {
    execute_requests(s);
  }
}

// Same as Sender::available.
StreamOffset available(const SenderState& s);
// Same as Sender::cut.
SegmentCut cut_segment(SenderState& s, StreamOffset begin, std::uint32_t limit, std::uint32_t emss,
                       bool must_cut);

inline void set_emss(SenderState& s, std::uint32_t emss) {
  if (emss == s.sizes.emss()) return;
  s.sizes.set_emss(emss);
  s.backlog.recount();
}

}  // namespace urnic::ddp
