// The sending side of a stream: turns work requests and read responses into FPDUs, remembers which
// FPDU lies where in the stream until it is acknowledged, and rebuilds or copies it for
// retransmission (D5, E-20..E-25). To TCP it is a byte source.
//
//   execute_due()            what is due and takes no octet: local invalidations
//   available()              is there anything to cut, and about how much
//   cut(begin, limit, ...)   how many octets the segment at `begin` shall have: whole FPDUs
//   fill(begin, len, dst)    writes them (copy + CRC + checksum in one pass), returns the sum
//   acked(una, sink)         forget, and complete work requests in posting order
//
// Messages are never interleaved: a started message is finished before another begins (siw kills
// connections otherwise). Read Responses and the send queue take turns by message.
//
// Owned by one engine; every call happens under its ownership.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/stream_offset.h"
#include "ddp_rdma/header.h"
#include "ddp_rdma/kept_bytes.h"
#include "ddp_rdma/ledger.h"
#include "ddp_rdma/read_queue.h"
#include "ddp_rdma/shared_state.h"
#include "ddp_rdma/verbs_words.h"
#include "mpa/framing.h"

namespace urnic::ddp {

struct SenderConfig {
  StreamId stream = 0;
  PdId pd = 0;
  std::uint32_t keep_below = 256;  // messages up to this are kept for retransmission (E-22)
  // Begin a message in the room a segment has left also when it does not fit whole: fewer segments,
  // more FPDUs (RFC 5044, 5.1 allows both).
  bool pack_partial = false;
};

// This transport's part of a send WQE.
struct SendPart {
  std::uint32_t msn;        // Send: its MSN. Read: STag of its sink
  std::uint32_t next_read;  // Read: index of the next outstanding Read
  std::uint32_t unfilled;   // kept: records cut and not yet handed to TCP
  bool kept : 1;            // its FPDUs are copied: it is done when handed to TCP (E-22, E-23)
  bool counted : 1;         // its regions count it in `uses` (E-25)
  bool whole : 1;           // the last FPDU has been cut
  bool broken : 1;          // a region it still had to read was deregistered
};
static_assert(sizeof(SendPart) == 16);

// Messages begun, their payload, and FPDUs.
struct SenderCounters {
  std::uint64_t writes = 0, sends = 0, reads = 0, read_responses = 0;
  std::uint64_t write_bytes = 0, send_bytes = 0, read_response_bytes = 0;
  std::array<std::uint64_t, 8> fpdus{};  // by opcode, when first handed to TCP
};

// One FPDU without CRC as it lies: head and tail in here, the payload in registered memory.
struct FpduView {
  static constexpr std::uint32_t kMaxPieces = kMaxSges;
  std::array<std::uint8_t, 2 + kMaxHeader> head;
  std::array<std::uint8_t, 8> tail;  // pad and the zero of the CRC field
  std::array<ByteView, kMaxPieces> pieces;
  std::uint32_t head_octets = 0, tail_octets = 0, count = 0;
};

// FPDUs of one size out of the middle of one large Write or Send that lies in one piece of
// registered memory: only TO or MO, payload and CRC differ from one to the next
// (Sender::begin_run).
struct SendRun {
  std::array<std::uint8_t, 2 + kUntaggedHeader> head;  // of the next one
  std::uint32_t head_octets = 0;
  Opcode op = Opcode::Write;
  bool tagged = false;
  const std::uint8_t* source = nullptr;  // payload of the next one
  std::uint32_t payload = 0, wire = 0;   // octets of each
  std::uint32_t left = 0;                // how many there are
};

class Sender {
 public:
  // `shared`, `queue` and `inbound_reads` must outlive the sender. `first_msn` is 1 on the wire.
  // Local keys of what is posted to `queue` are checked when the request is processed: an error
  // completes it with LocalProtection and ends the stream.
  Sender(const SenderConfig&, SharedState* shared, SendQueue* queue, ReadQueue* inbound_reads,
         std::uint32_t first_msn = 1);
  ~Sender();
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  // ---- what to send ----

  // Bytes that are not FPDUs (MPA Request/Reply) or a ready ULPDU (Terminate, RTR): kept copies.
  // They go before every message that has not begun; after stop() also before the rest of a
  // message, which is then abandoned.
  void queue_raw(ByteView bytes);
  void queue_ulpdu(ByteView ulpdu);
  // MSN for a Read Request that is queued as a ULPDU (RTR). Its zero-length response completes no
  // work request.
  std::uint32_t take_rtr_read_msn();

  // Negotiated number of Reads that may be outstanding.
  void set_ord(std::uint16_t ord) { ord_ = ord; }
  // How FPDUs shall look; before the first one is cut.
  void set_framing(const mpa::Framing& framing);
  mpa::Policy policy() const { return framing_.policy; }
  const mpa::Framing& framing() const { return framing_; }
  // Full operation begins: CRC on or off; FPDUs may now be cut.
  void start(bool crc);
  // No new messages any more (a Terminate was queued, or the stream is closing).
  void stop() { stopped_ = true; }
  // A start-up that failed is tried again on a new TCP connection: what queue_raw and queue_ulpdu
  // were given is dropped and the stream begins at offset 0. Work requests stay.
  void forget_startup();

  // Carries out what needs no octet and whose turn has come: local invalidations; a Read that ORD 0
  // can never let go fails. failed() may say why nothing more will be cut. Before available().
  void execute_due() {
    if (current_ == Current::None && !sq_.all_started()) execute_requests();
  }
  // End of what may be asked for now, as an estimate for TCP (never too small by a whole segment;
  // equal to the next octet when nothing can be sent).
  StreamOffset available() const;
  bool idle() const;     // nothing queued, nothing unacknowledged, no read outstanding or owed
  bool drained() const;  // everything queued has been cut and no read is outstanding

  // ---- the byte source ----

  struct Cut {
    std::uint32_t len = 0;
    bool push = false;  // the last message ends here and nothing follows: PSH (E-7)
  };
  // Octets of the segment at `begin` (the next new octet, or one sent before): as many whole FPDUs
  // as fit `limit`; a single FPDU is sized by mulpdu(emss). With must_cut, a part of one FPDU when
  // none fits. 0: nothing can be sent now; failed() may then say why.
  Cut cut(StreamOffset begin, std::uint32_t limit, std::uint32_t emss, bool must_cut);
  // Writes octets [begin, begin+len), which a cut returned (now or earlier). Returns the unfolded
  // Internet sum. False in `*ok` when a source region has vanished: the stream must end. If those
  // octets were never sent, failed() says why and a Terminate may still be queued and cut.
  std::uint32_t fill(StreamOffset begin, std::uint32_t len, std::uint8_t* dst, bool* ok);

  // Octets [begin, begin+len), which a cut returned, without copying them: only when they are (the
  // rest of) one FPDU without CRC of at least `worth` octets of payload that is not kept. They
  // begin
  // `*skip` octets behind the start of `*out`, whose views hold until the next call of any kind.
  // For a TCP that copies them at once and asks no second time; with a CRC a source that changes
  // under the copy would go unnoticed (E-20). Counts as filled.
  bool view(StreamOffset begin, std::uint32_t len, std::uint32_t worth, FpduView* out,
            std::uint32_t* skip);

  // The octets from `begin` on, if they are new, as segments of `emss` octets each of which is one
  // FPDU of full size and not the last of its message: what cut() and fill() would make of them one
  // by one. False when they are anything else. `*run` ends at the next call of any other kind.
  bool begin_run(StreamOffset begin, std::uint32_t emss, SendRun* run);
  // Cuts and writes the next one to `dst`: run->wire octets. run->left > 0. Returns the unfolded
  // sum.
  std::uint32_t next_of_run(SendRun* run, std::uint8_t* dst);

  // All octets below `una` are acknowledged. Also reports what fill() completed (E-23): may be
  // called with an `una` that has not moved.
  template <class Sink>
  void acked(StreamOffset una, Sink&& on_completion) {
    forget_below(una);
    report(on_completion);
  }

  // ---- reads ----

  // `n` oldest outstanding Reads are complete. False when they are not: fewer outstanding,
  // or a response whose end was never placed; the first ones may then have been completed.
  template <class Sink>
  bool reads_done(std::uint32_t n, Sink&& on_completion) {
    const bool ok = finish_reads(n);
    report(on_completion);
    return ok;
  }
  // Walks the outstanding Reads, oldest first, for admission.
  struct ReadCursor {
    std::uint32_t left = 0, rtr = 0, seq = 0;
  };
  ReadCursor outstanding_reads() const { return {outstanding_, rtr_reads_, first_read_}; }
  // False at the end. `*sink` is 0 for an RTR read.
  bool next_read(ReadCursor* cursor, std::uint32_t* sink, std::uint32_t* size) const;

  // ---- the end ----

  // A work request or read response could not be sent for a local reason (or one the peer's request
  // has): nothing new is cut any more, and the stream must end with this violation.
  bool failed() const { return failure_ != Violation::None; }
  Violation failure() const { return failure_; }
  // Header of the Read Request at fault for the Terminate, advanced to the point reached (RFC 5040,
  // 4.8); empty when the failure is not about one. Valid until the next call that yields one.
  ByteView failure_header() const;

  // E-25: nothing will read or write `stag`'s memory afterwards. Copies what is unacknowledged;
  // open reads into it and messages not wholly cut will fail. Unnecessary while the region's `uses`
  // is 0.
  void detach_region(std::uint32_t stag);

  // Ends everything: outstanding work requests complete in posting order with Flushed, the one at
  // fault (this sender's own failure, or the oldest if `first` is a remote or transport error) with
  // its own status. After stop() unacknowledged FPDUs are copied and may still be retransmitted;
  // otherwise they are forgotten. No consumer memory is read afterwards. May be called again for
  // requests posted later.
  template <class Sink>
  void flush(Status first, Sink&& on_completion) {
    report(on_completion);
    begin_flush(first);
    Completion c;
    while (flush_one(&c)) on_completion(static_cast<const Completion&>(c));
  }
  // As constructed; work requests vanish without completion.
  void reset(std::uint32_t first_msn = 1);

  const SenderCounters& counters() const { return counters_; }
  bool has_sent_fpdus() const {
    return std::any_of(counters_.fpdus.begin(), counters_.fpdus.end(),
                       [](std::uint64_t n) { return n != 0; });
  }
  // Octets of FPDUs that are held as copies, chunk by chunk (tests, statistics).
  std::uint32_t kept_chunks() const { return kept_.chunks(); }
  std::uint32_t ledger_size() const { return ledger_.size(); }

 private:
  static constexpr std::uint32_t kSmallestFpdu = 20;      // zero-length tagged
  static constexpr std::uint32_t kMaxRecords = 1u << 20;  // of the ledger: 2^20 FPDUs in flight

  enum class Current : std::uint8_t { None, Request, Response };
  struct Control {
    std::uint8_t* block;
    std::uint32_t len;
    bool raw;
  };

  template <class Sink>
  void report(Sink&& on_completion) {
    Completion c;
    while (next_completion(&c)) on_completion(static_cast<const Completion&>(c));
  }

  // sender.cpp: choosing and cutting
  void execute_requests();
  bool ready() const;
  bool can_begin_request() const;
  Current choose() const;
  bool may_read(std::uint32_t seq) const;
  bool begin_request(std::uint32_t seq);
  void begin_response();
  bool fit(std::uint32_t header, std::uint32_t remaining, std::uint32_t room, bool first,
           bool fresh, bool must_cut, std::uint32_t* payload) const;
  std::uint32_t append(std::uint32_t room, bool first, bool must_cut);
  std::uint32_t append_control(std::uint32_t room, bool first, bool must_cut);
  std::uint32_t append_read(std::uint32_t seq, std::uint32_t room, bool first, bool must_cut);
  std::uint32_t append_payload(std::uint32_t payload);
  void append_ulpdu(ByteView ulpdu);
  Cut recut(StreamOffset begin, std::uint32_t limit, bool must_cut);
  bool holds(StreamOffset begin) const;
  void fail_request(std::uint32_t seq, Status status);
  void set_emss(std::uint32_t emss);
  void recount();
  // Octets of an FPDU cut at end_.
  std::uint32_t fpdu_here(std::uint32_t ulpdu) const {
    return framing_.marked() ? mpa::marked_size(framing_.pos(end_.value()), ulpdu)
                             : mpa::fpdu_size(ulpdu);
  }
  std::uint64_t estimate(std::uint32_t ulpdu) const;
  std::uint64_t wire_size(std::uint64_t payload, bool tagged) const;
  std::uint64_t wire_of(const SendWqe& w) const;
  void count_new() const;
  void uncount_request(std::uint32_t seq);

  // sender_run.cpp: many at once
  bool describe_run(SendRun* run);
  static Opcode opcode_of(const SendWqe& w);

  // sender_fill.cpp: bytes
  bool describe(const Record& r, SegmentHeader* h, ByteView* pieces, std::uint32_t* count);
  bool build(const Record& r, std::uint8_t* dst, std::uint32_t* sum);
  bool gather(const Record& r, ByteView* pieces, std::uint32_t* count);
  bool capture(Record& r, std::uint32_t* sum);
  void note_filled(Record& r);
  void take_back(std::uint32_t i);

  // sender_end.cpp: acknowledgement, completion, the end
  void forget_below(StreamOffset una);
  void count_uses(std::uint32_t seq);
  void uncount_uses(std::uint32_t seq);
  void finish(std::uint32_t seq);
  bool finish_reads(std::uint32_t n);
  bool next_completion(Completion* c);
  void begin_flush(Status first);
  bool flush_one(Completion* c);
  void settle_ledger();
  void drop_ledger();
  void drop_control();
  void release_request(std::uint32_t seq);

  SendPart& part(std::uint32_t seq) const { return sq_.part<SendPart>(seq); }

  SharedState* shared_;
  MemoryTable* memory_;
  ReadQueue* inbound_;
  SendQueue& sq_;
  Ledger ledger_;
  KeptBytes kept_;
  std::vector<Control> control_;
  StreamOffset end_;   // one past the last record
  StreamOffset sent_;  // one past the highest octet ever filled
  PdId pd_;
  StreamId stream_;
  std::uint32_t keep_below_;
  mpa::Framing framing_;
  std::uint32_t emss_ = 0;
  std::uint32_t tagged_max_ = 0, untagged_max_ = 0;  // payload of one FPDU by emss_
  std::uint32_t send_msn_, read_msn_;
  // Reads in flight: RTR reads first, then a list through SendPart::next_read.
  std::uint32_t outstanding_ = 0, rtr_reads_ = 0;
  std::uint32_t first_read_ = 0, last_read_ = 0;
  std::uint16_t ord_ = 0;
  // The message being cut: sequence number or MSN, and how far.
  Current current_ = Current::None;
  bool pack_partial_;
  bool started_ = false, crc_ = true, stopped_ = false;
  bool ended_ = false;            // no message begins or goes on
  bool prefer_response_ = false;  // turns between the send queue and responses
  Violation failure_ = Violation::None;
  Status failed_status_ = Status::Success;
  bool has_culprit_ = false;
  Status culprit_status_ = Status::Flushed;
  std::uint32_t current_id_ = 0, current_offset_ = 0;
  std::uint32_t failed_seq_ = 0, culprit_seq_ = 0;
  // Estimates of octets in the stream for what has not begun: requests up to seen_, responses up to
  // response_seen_. Brought up to date when somebody asks.
  mutable std::uint32_t seen_ = 0, response_seen_;
  mutable std::uint64_t queued_wire_ = 0, response_wire_ = 0;
  SenderCounters counters_;
};

}  // namespace urnic::ddp
