// A fast path for the commonest datagrams: a Write in order, of the same flow as the last datagram
// that passed all checks (ib/plain_write.h). It accepts nothing that receive.cpp would not accept
// in the same way; all other datagrams and states go through receive.cpp.
//
// Called under the ownership of the engine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/ip_address.h"
#include "ib/packet.h"
#include "ib/plain_write.h"
#include "net/flow_match.h"
#include "net/frame_head.h"
#include "port/port.h"
#include "roce/context_table.h"
#include "roce/fetch_ahead.h"
#include "roce/send_list.h"
#include "roce/statistics.h"

namespace urnic::roce {

// A received frame between parsing and work.
struct Arrived {
  const port::Frame* frame = nullptr;  // null: not ours
  bool like_last = false;              // not classified; `flow` has what is known
  std::uint32_t headers = 0;  // equals LastStaged::serial() if the headers are those; 0: its own
  const Context* context = nullptr;  // the queue pair it seems to be for
  net::FlowMatch::Match flow;
};

// The last staged frame. A frame of the same length that begins with the same bytes, up to AckReq
// and PSN in the BTH, has the same flow and queue pair.
class LastStaged {
 public:
  // Tagged Ethernet, IPv6, UDP and the compared bytes of the BTH.
  static constexpr std::size_t kSpan = 80;
  static_assert(kSpan <= net::FrameHead::kShort);

  void forget() { bytes_ = 0; }
  bool is_like(const net::FrameHead& head) const {
    Word differs{};
#pragma GCC unroll 5
    for (std::size_t i = 0; i < begin_.size(); ++i) {
      Word h;
      std::memcpy(&h, head.bytes + i * sizeof h, sizeof h);
      differs |= (h ^ begin_[i]) & mask_[i];
    }
    const bool same = (differs[0] | differs[1]) == 0;
    return same && head.frame_bytes == bytes_ && head.size >= masked_;
  }
  void remember(const net::FrameHead&, const net::FlowMatch::Match&);
  const net::FlowMatch::Match& flow() const {
    return flow_;
  }
  // Changes with each frame that is remembered; 0: none is.
  std::uint32_t serial() const {
    return bytes_ != 0 ? serial_ : 0;
  }

 private:
  using Word = std::uint64_t __attribute__((vector_size(16)));

  std::array<Word, kSpan / sizeof(Word)> begin_{}, mask_{};
  std::uint32_t bytes_ = 0;   // of the whole frame; 0: nothing is remembered
  std::uint32_t masked_ = 0;  // bytes that the mask compares
  std::uint32_t serial_ = 0;
  net::FlowMatch::Match flow_{};
};

class PlainReceiver {
 public:
  // All that is passed by pointer must outlive it.
  PlainReceiver(ContextTable* table, FetchAhead* ahead, SendList* sending, Statistics* statistics)
      : table_(*table), ahead_(*ahead), sending_(*sending), statistics_(*statistics) {}

  // Tries to match a frame not yet classified with the last flow. False: it has to be classified.
  [[gnu::always_inline]] bool stage(const port::Frame& frame, const net::FrameHead& head,
                                    Arrived* a) {
    interrupt();  // anything may have happened between two bursts
    if (head.looped) return false;
    if (last_.is_like(head)) [[likely]] {
      a->flow = last_.flow();
    } else if (!stage_another(head, &a->flow)) {
      return false;
    }
    a->frame = &frame;
    a->like_last = true;
    a->headers = last_.serial();
    a->context = staged_;
    return true;
  }
  // True if the staged burst is for more than one queue pair: then each frame is to be fetch()ed.
  bool several() { return ahead_.take_several(); }
  void fetch(const Arrived& a) { ahead_.halves(a.context); }
  // Takes the frame, or drops it because its ICRC is bad. False: not a plain Write; nothing has
  // changed.
  [[gnu::always_inline]] bool take(const net::FrameHead& head, const Arrived& a) {
    return take_next(head, a) || take_alone(head, a);
  }
  // Something else has happened: what is known about the next packet may be wrong.
  void interrupt() { next_.payload = 0; }

  // Returns whether the ACKs of the packets taken are delayed (SendList).
  bool acks_wait(bool consumer_first) { return sending_.let_acks_wait(consumer_first); }

  // A datagram for this queue pair has passed all checks.
  void learn(const net::FrameHead&, const Context&, const ib::PacketHeader&);
  // A queue pair is modified or destroyed.
  void forget_queue_pair() {
    context_ = staged_ = nullptr;
    last_.forget();
  }
  // Local addresses may have changed.
  void forget() {
    flow_.forget();
    forget_queue_pair();
  }

 private:
  // The datagram's position in a frame that matches `next_`, and the frames it applies to.
  struct Fitting {
    std::uint32_t headers = 0;  // frames with these (Arrived::headers); 0: none checked yet
    std::uint32_t ip = 0, bth = 0, end = 0;
  };

  bool stage_another(const net::FrameHead&, net::FlowMatch::Match*);
  bool take_next(const net::FrameHead&, const Arrived&);
  bool fits(const net::FrameHead&, const Arrived&);
  bool take_alone(const net::FrameHead&, const Arrived&);

  ContextTable& table_;
  FetchAhead& ahead_;
  SendList& sending_;
  Statistics& statistics_;
  net::FlowMatch flow_;
  LastStaged last_;
  const Context* staged_ = nullptr;   // the queue pair the last staged frame seemed to be for
  IpAddress source_;                  // of the flow
  const Context* context_ = nullptr;  // a queue pair that receives from that source
  Context* taker_ = nullptr;          // of the last Write
  ib::NextMiddle next_;
  Fitting fitting_;
};

}  // namespace urnic::roce
