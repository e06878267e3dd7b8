// The RoCE side of an engine: the InfiniBand transport over UDP, from the frames that are its to
// the queue pairs. The engine drives it by the functions it also has of the iWARP side.
//
//   receive.cpp    a frame through the checks to the half it is for
//   plain_receiver.h   the commonest of them in one piece
//   transmit.cpp   what the halves have to send, turn by turn, and the way it goes (paths.h)
//   side.cpp       queue pairs, their states and ends; time
//
// A function of (state, input, now); every call under the ownership of its engine.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/buffer_pool.h"
#include "base/siphash.h"
#include "base/time.h"
#include "ib/held_pool.h"
#include "net/frame_head.h"
#include "net/wire.h"
#include "port/port.h"
#include "roce/context.h"
#include "roce/context_table.h"
#include "roce/deadlines.h"
#include "roce/fetch_ahead.h"
#include "roce/general_services.h"
#include "roce/modify.h"
#include "roce/paths.h"
#include "roce/plain_receiver.h"
#include "roce/qp_watcher.h"
#include "roce/send_buffers.h"
#include "roce/send_list.h"
#include "roce/statistics.h"
#include "verbs/completions.h"

namespace urnic::roce {

inline constexpr std::uint16_t kUdpPort = ib::kUdpPort;

struct Options {
  ib::SendRules send;
  bool tell_credits = true;                        // of receive queues that are not shared
  bool probe = false;                              // of requesters (S-5)
  bool selective = false;                          // repeat, where the peer does too (S-6, S-7)
  ib::LossRules loss;                              // of queue pairs that have none of their own
  std::size_t held_bytes = std::size_t{64} << 20;  // what all may keep behind gaps
  Duration keepalive = Duration::zero();           // of keep_alive(); zero: nobody asks
  std::uint32_t most_depth = 16;  // READs and atomics of a queue pair at a time, each way
  std::uint32_t most_queue_pairs = ContextTable::kMost;
  SipKey key;                    // what numbers look like from outside (E-49)
  SipKey cm_key;                 // the same of communication ids and ports
  ib::XrcQueues* xrc = nullptr;  // outlives the side; null: there are no ends of XRC
};

// Packets that come in two pieces, joined.
class WholePackets {
 public:
  // Holds until the next.
  ByteView of(const port::Frame&, const Datagram&);

 private:
  std::vector<std::uint8_t> bytes_;
};

class Side {
 public:
  // What is pointed to outlives it.
  Side(const Options&, QpWatcher*, verbs::Completions*, net::Wire*, verbs::MemoryTable*);
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  // ---- driving
  // A frame that is neither TCP nor to be dropped, classified. False: it is not ours. `frame` and
  // `head` stay until process().
  bool stage(const port::Frame& frame, const net::FrameHead& head, Arrived* a);
  void process(net::FrameHead& head, const Arrived& a, Instant now);
  // Frames that may be spared the two above.
  PlainReceiver& plain() { return plain_; }
  void run_timers(Instant now);
  Instant next_deadline() const {
    return general_ == nullptr ? deadlines_.next()
                               : earlier(deadlines_.next(), general_->next_deadline());
  }
  bool wants_to_send() const {
    return !sending_.empty() || (general_ != nullptr && general_->wants_to_send());
  }
  // One turn for each that wants to send. True when anything was.
  bool transmit_round(Instant now);
  // The way over `next_hop`, or any if null, has changed, or nobody answers there.
  void reroute(const IpAddress* next_hop, bool failed);

  // Queue pair 1, which is driven with the side from now on. Outlives it.
  void use(GeneralServices* general) { general_ = general; }

  // ---- queue pairs
  // In Reset. Null when no number is left. The caller keeps it. `loss`: for as long as it lives;
  // null: those of the options. `domain`: of XRC's receiving end, which has no completion queues;
  // the sending end has none for receives.
  std::unique_ptr<verbs::QueuePair> create(verbs::Service, verbs::PdId,
                                           const verbs::WorkQueueSizes&,
                                           verbs::CompletionQueue* send,
                                           verbs::CompletionQueue* receive,
                                           const ib::LossRules* loss = nullptr,
                                           std::uint32_t domain = 0);
  // What becomes of the number of a queue pair that goes.
  enum class Number : std::uint8_t {
    Free,
    Rests,  // nobody else has it before release()
  };
  // Completions not yet polled stay in their queues; no memory is touched for it any more.
  void destroy(std::unique_ptr<verbs::QueuePair>, Number = Number::Free);
  void release(std::uint32_t number) { table_.close(number); }
  // A refusal changes nothing.
  Modified modify(verbs::QueuePair&, const QpChange&, Instant now);
  // Something was posted. Transmits at once.
  void work_posted(verbs::QueuePair&, Instant now);
  // It cannot go on: Error, and flushed; nobody is told. False: it was there already, or in Reset.
  bool fail(verbs::QueuePair&);
  // In Rts, RC: from now on its peer is asked for when it is silent, and given up when it does not
  // answer (QpEvent::Silent). Other services have nobody who answers, or no answers.
  void keep_alive(verbs::QueuePair&, Instant now);
  // It has a peer, and that is not one of our own addresses.
  bool goes_out(const verbs::QueuePair&) const;

  // Address handles among the rest.
  Paths& ways() { return ways_; }

  // ---- looking
  Statistics statistics() const;
  // The same without queue pairs that are there.
  const Statistics& of_the_gone() const { return statistics_; }
  const ContextTable& contexts() const { return table_; }
  std::size_t queue_pairs() const { return table_.size() - table_.resting(); }
  // Lent to queue pairs for what they keep behind gaps.
  std::size_t held_bytes() const { return held_pool_.in_use(); }

 private:
  struct Turn {
    bool sent = false;   // something was
    bool again = false;  // there may be more
    bool full = false;   // of the port
  };
  // receive.cpp
  void take(Context&, ib::Half, const ib::ParsedPacket&, ByteView ip_udp, Instant now);
  void take_request(Context&, const ib::ParsedPacket&, ByteView ip_udp, Instant now);
  // side.cpp
  void settle(Context&);
  void enter_error(Context&);
  void enter_sqe(Context&);
  void flush(Context&);
  void flush_sends(Context&);
  void discard(Context&);
  void forget_halves(Context&);
  void begin_halves(Context&, const QpChange&);
  // transmit.cpp
  Turn transmit(Context&, Instant now);
  Turn transmit_connected(Context&, Instant now);
  Turn transmit_datagrams(Context&, Instant now);
  std::size_t next_packet(Context&, bool responses_first, std::uint8_t* to, Instant now);

  Options options_;
  QpWatcher* watcher_;
  GeneralServices* general_ = nullptr;
  net::Wire& wire_;
  verbs::MemoryTable& memory_;
  BufferPool pool_;
  Paths ways_;
  SendBuffers buffers_;
  ib::HeldPool held_pool_;  // outlives the queue pairs, as `pool_` does
  ContextTable table_;
  ContextDeadlines deadlines_;
  SendList sending_;
  verbs::Completions& completions_;
  HalfMaker halves_{&options_.send, &memory_, &held_pool_};
  Statistics statistics_;  // halves that are still there not included
  FetchAhead ahead_;
  PlainReceiver plain_{&table_, &ahead_, &sending_, &statistics_};
  WholePackets whole_;
  ib::RequestPacket request_;  // the one that is put together: its pieces are many
};

}  // namespace urnic::roce
