// The commonest datagrams in one piece: a Write in order, of the flow of the last datagram that has
// been through all checks (ib/plain_write.h). Nothing is found of it here that receive.cpp would
// not find; what is not such a datagram, or not in such a state, goes that way.
//
// Under the ownership of the engine.
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
  bool like_last = false;              // it was not classified; `flow` says what can be said
  std::uint32_t headers = 0;           // those of LastStaged with this serial(); 0: its own
  const Context* context = nullptr;    // whose it seems to be
  net::FlowMatch::Match flow;
};

// The last frame that was staged: one that begins with the same bytes, through those of the BTH
// before AckReq and PSN, and is as long, is all that was said of it.
class LastStaged {
 public:
  // Tagged Ethernet, IPv6, UDP and what is compared of the BTH.
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
  // Another one for each frame that is remembered; 0: none is.
  std::uint32_t serial() const {
    return bytes_ != 0 ? serial_ : 0;
  }

 private:
  using Word = std::uint64_t __attribute__((vector_size(16)));

  std::array<Word, kSpan / sizeof(Word)> begin_{}, mask_{};
  std::uint32_t bytes_ = 0;   // of the whole frame; 0: nothing is known
  std::uint32_t masked_ = 0;  // bytes that the mask lets through
  std::uint32_t serial_ = 0;
  net::FlowMatch::Match flow_{};
};

class PlainReceiver {
 public:
  // What is pointed to outlives it.
  PlainReceiver(ContextTable* table, FetchAhead* ahead, SendList* sending, Statistics* statistics)
      : table_(*table), ahead_(*ahead), sending_(*sending), statistics_(*statistics) {}

  // A frame not yet classified is of the last flow. False: it has to be.
  [[gnu::always_inline]] bool stage(const port::Frame& frame, const net::FrameHead& head,
                                    Arrived* a) {
    interrupt();  // between two bursts anything may have
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
  // All of a burst are staged: more than one queue pair's, and each is to be fetch()ed.
  bool several() { return ahead_.take_several(); }
  void fetch(const Arrived& a) { ahead_.halves(a.context); }
  // It is, and has been taken, or dropped as damaged. False: nothing has happened.
  [[gnu::always_inline]] bool take(const net::FrameHead& head, const Arrived& a) {
    return take_next(head, a) || take_alone(head, a);
  }
  // Something else than that has happened: what was known of the next one may hold no more.
  void interrupt() { next_.payload = 0; }

  // Whether the ACKs of what has been taken wait (SendList).
  bool acks_wait(bool consumer_first) { return sending_.let_acks_wait(consumer_first); }

  // A datagram for this queue pair has been through all checks.
  void learn(const net::FrameHead&, const Context&, const ib::PacketHeader&);
  // A queue pair is modified, or goes.
  void forget_queue_pair() {
    context_ = staged_ = nullptr;
    last_.forget();
  }
  // Whose addresses are whose may have changed.
  void forget() {
    flow_.forget();
    forget_queue_pair();
  }

 private:
  // Where the datagram lies in a frame that `next_` fits, and what frames those are.
  struct Fitting {
    std::uint32_t headers = 0;  // those with these (Arrived::headers); 0: none was looked at
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
  const Context* staged_ = nullptr;   // whose that one seemed to be
  IpAddress source_;                  // of the flow
  const Context* context_ = nullptr;  // one that takes what comes from there
  Context* taker_ = nullptr;          // of the last Write, and what comes behind it
  ib::NextMiddle next_;
  Fitting fitting_;
};

}  // namespace urnic::roce
