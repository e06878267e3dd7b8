// The RoCE side of an engine: the InfiniBand transport over UDP, from RoCE frames to queue pairs.
// The engine drives it through the same functions as the iWARP side.
//
//   receive.cpp    checks a frame and passes it to its half
//   plain_receiver.h   a fast path for the commonest frames
//   transmit.cpp   sends what the halves have, in turns, and resolves paths (paths.h)
//   side.cpp       queue pairs, their states and ends; timers
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
  bool tell_credits = true;  // advertise credits of receive queues that are not shared
  bool probe = false;        // requesters send loss probes (S-5)
  bool selective = false;    // selective repeat, if the peer supports it too (S-6, S-7)
  ib::LossRules loss;        // for queue pairs without rules of their own
  // total for packets held past gaps, all queue pairs
  std::size_t held_bytes = std::size_t{64} << 20;
  Duration keepalive = Duration::zero();  // idle time for keep_alive(); zero: off
  std::uint32_t most_depth = 16;  // READs and atomics of a queue pair at a time, in each direction
  std::uint32_t most_queue_pairs = ContextTable::kMost;
  unsigned turn = 16;            // packets that a queue pair sends before others
  SipKey key;                    // permutes queue pair numbers (E-49)
  SipKey cm_key;                 // permutes communication ids and ports
  ib::XrcQueues* xrc = nullptr;  // outlives the side; null: no receiving ends of XRC
};

// Joins packets that arrive in two pieces.
class WholePackets {
 public:
  // The view holds until the next call.
  ByteView of(const port::Frame&, const Datagram&);

 private:
  std::vector<std::uint8_t> bytes_;
};

class Side {
 public:
  // All that is passed by pointer must outlive the side.
  Side(const Options&, QpWatcher*, verbs::Completions*, net::Wire*, verbs::MemoryTable*);
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  // ---- driving
  // Takes a classified frame that is neither TCP nor to be dropped. False: it is not RoCE. `frame`
  // and `head` must stay valid until process().
  bool stage(const port::Frame& frame, const net::FrameHead& head, Arrived* a);
  void process(net::FrameHead& head, const Arrived& a, Instant now);
  // The fast path, for frames that may skip the two functions above.
  PlainReceiver& plain() { return plain_; }
  void run_timers(Instant now);
  Instant next_deadline() const {
    return general_ == nullptr ? deadlines_.next()
                               : earlier(deadlines_.next(), general_->next_deadline());
  }
  bool wants_to_send() const {
    return !sending_.empty() || (general_ != nullptr && general_->wants_to_send());
  }
  // Gives each queue pair that wants to send one turn. Returns true if anything was sent.
  bool transmit_round(Instant now);
  // The path over `next_hop`, or every path if null, has changed or (`failed`) is unreachable.
  void reroute(const IpAddress* next_hop, bool failed);

  // Queue pair 1, which the side drives from now on. Must outlive the side.
  void use(GeneralServices* general) { general_ = general; }

  // ---- queue pairs
  // Creates a queue pair in Reset, which the caller owns. Null if no number is left. `loss` holds
  // for its lifetime; null: that of the options. `domain` is for a receiving end of XRC, which has
  // no completion queues; a sending end has none for receives.
  std::unique_ptr<verbs::QueuePair> create(verbs::Service, verbs::PdId,
                                           const verbs::WorkQueueSizes&,
                                           verbs::CompletionQueue* send,
                                           verbs::CompletionQueue* receive,
                                           const ib::LossRules* loss = nullptr,
                                           std::uint32_t domain = 0);
  // The fate of a destroyed queue pair's number.
  enum class Number : std::uint8_t {
    Free,
    Rests,  // not reused before release()
  };
  // Completions not yet polled stay in their queues; the queue pair's memory is not touched any
  // more.
  void destroy(std::unique_ptr<verbs::QueuePair>, Number = Number::Free);
  void release(std::uint32_t number) { table_.close(number); }
  // A change that is refused has no effect.
  Modified modify(verbs::QueuePair&, const QpChange&, Instant now);
  // Transmits at once.
  void sends_posted(verbs::QueuePair&, Instant now);
  // Places a message that waited for a receive, and sends its ACK.
  void receives_posted(verbs::QueuePair&, Instant now);
  // The queue pair cannot go on: moves it to Error and flushes it, without a report to the watcher.
  // False: it was already in Error, or is in Reset.
  bool fail(verbs::QueuePair&);
  // RC in Rts: from now on probes the peer whenever it is silent, and gives it up if it does not
  // respond (QpEvent::Silent). Does nothing for other services, which have no peer or no responses.
  void keep_alive(verbs::QueuePair&, Instant now);
  // True if it has a peer whose address is not one of our own.
  bool goes_out(const verbs::QueuePair&) const;

  // Address handles included.
  Paths& paths() { return paths_; }

  // ---- looking
  Statistics statistics() const;
  // The same without the existing queue pairs.
  const Statistics& of_destroyed() const { return statistics_; }
  const ContextTable& contexts() const { return table_; }
  std::size_t queue_pairs() const { return table_.size() - table_.resting(); }
  // Memory lent to queue pairs for packets held past gaps.
  std::size_t held_bytes() const { return held_pool_.in_use(); }

 private:
  struct Turn {
    bool sent = false;   // anything was sent
    bool again = false;  // there may be more to send
    bool full = false;   // the port is full
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
  struct Choice {
    bool responses_first, acks_wait;
  };
  std::size_t next_packet(Context&, Choice, std::uint8_t* to, Instant now);

  Options options_;
  QpWatcher* watcher_;
  GeneralServices* general_ = nullptr;
  net::Wire& wire_;
  verbs::MemoryTable& memory_;
  BufferPool pool_;
  Paths paths_;
  SendBuffers buffers_;
  ib::HeldPool held_pool_;  // outlives the queue pairs, as `pool_` does
  ContextTable table_;
  ContextDeadlines deadlines_;
  SendList sending_;
  verbs::Completions& completions_;
  HalfMaker halves_{&options_.send, &memory_, &held_pool_};
  Statistics statistics_;  // existing halves not included
  FetchAhead ahead_;
  PlainReceiver plain_{&table_, &ahead_, &sending_, &statistics_};
  WholePackets whole_;
  ib::RequestPacket request_;  // reused: it is large because of its many pieces
};

}  // namespace urnic::roce
