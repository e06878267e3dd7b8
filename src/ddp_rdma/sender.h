// The sending side of a stream: turns work requests and read responses into FPDUs, remembers which
// FPDU lies where in the stream until it is acknowledged, and rebuilds or copies it for
// retransmission (D5, E-20..E-25). To TCP it is a byte source.
//
//   execute_due()            what is due and takes no byte: local invalidations
//   available()              is there anything to cut, and about how much
//   cut(begin, limit, ...)   how many bytes the segment at `begin` shall have: whole FPDUs
//   fill(begin, len, dst)    writes them (copy + CRC + checksum in one pass), returns the sum
//   acked(una, sink)         forget, and complete work requests in posting order
//
// Messages are never interleaved: a started message is finished before another begins (siw kills
// connections otherwise). Read Responses and the send queue take turns by message.
//
// Owned by one engine; every call happens under its ownership.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ddp_rdma/sender_cut.h"
#include "ddp_rdma/sender_fill.h"
#include "ddp_rdma/sender_run.h"
#include "ddp_rdma/sender_state.h"

namespace urnic::ddp {

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
  std::uint32_t take_rtr_read_msn() { return s_.reads.begin_rtr(); }

  // Negotiated number of Reads that may be outstanding.
  void set_ord(std::uint16_t ord) { s_.reads.set_ord(ord); }
  std::uint16_t ord() const { return s_.reads.ord(); }
  // How FPDUs shall look; before the first one is cut.
  void set_framing(const mpa::Framing& framing);
  const mpa::Framing& framing() const { return s_.sizes.framing(); }
  // Full operation begins: CRC on or off; FPDUs may now be cut.
  void start(bool crc) {
    s_.started = true;
    s_.crc = crc;
  }
  // No new messages any more (a Terminate was queued, or the stream is closing).
  void stop() { s_.stopped = true; }
  // A start-up that failed is tried again on a new TCP connection: what queue_raw and queue_ulpdu
  // were given is dropped and the stream begins at offset 0. Work requests stay.
  void forget_startup();

  // Carries out what needs no byte and whose turn has come: local invalidations; a Read that ORD 0
  // can never let go fails. failed() may say why nothing more will be cut. Before available().
  void execute_due() { ddp::execute_due(s_); }
  // End of what may be asked for now, as an estimate for TCP (never too small by a whole segment;
  // equal to the next byte when nothing can be sent).
  StreamOffset available() const { return ddp::available(s_); }
  bool idle() const;     // nothing queued, nothing unacknowledged, no read outstanding or owed
  bool drained() const;  // everything queued has been cut and no read is outstanding

  // ---- the byte source ----

  // Bytes of the segment at `begin` (the next new byte, or one sent before): as many whole FPDUs
  // as fit `limit`; a single FPDU is sized by mulpdu(emss). With must_cut, a part of one FPDU when
  // none fits. 0: nothing can be sent now; failed() may then say why.
  SegmentCut cut(StreamOffset begin, std::uint32_t limit, std::uint32_t emss, bool must_cut) {
    return cut_segment(s_, begin, limit, emss, must_cut);
  }
  // Writes bytes [begin, begin+len), which a cut returned (now or earlier). Returns the unfolded
  // Internet sum. False in `*ok` when a source region has vanished: the stream must end. If those
  // bytes were never sent, failed() says why and a Terminate may still be queued and cut.
  std::uint32_t fill(StreamOffset begin, std::uint32_t len, std::uint8_t* dst, bool* ok) {
    return fill_segment(s_, begin, len, dst, ok);
  }

  // Bytes [begin, begin+len), which a cut returned, without copying them: only when they are (the
  // rest of) one FPDU without CRC of at least `worth` bytes of payload that is not kept. They
  // begin `*skip` bytes behind the start of `*out`, whose views hold until the next call of any
  // kind.
  // For a TCP that copies them at once and asks no second time; with a CRC a source that changes
  // under the copy would go unnoticed (E-20). Counts as filled.
  bool view(StreamOffset begin, std::uint32_t len, std::uint32_t worth, FpduView* out,
            std::uint32_t* skip) {
    return view_fpdu(s_, begin, len, worth, out, skip);
  }

  // The bytes at `at`, which view() has lent, cannot be read: as if fill() had found it.
  friend void note_source_gone(Sender& s, StreamOffset at) { note_source_gone(s.s_, at); }
  // An FPDU of which the peer may have a part cannot be finished: nothing may follow it.
  friend bool is_torn(const Sender& s) { return s.s_.failure.torn; }

  // The bytes from `begin` on, if they are new, as segments of `emss` bytes each of which is one
  // FPDU of full size and not the last of its message: what cut() and fill() would make of them one
  // by one. False when they are anything else. `*run` ends at the next call of any other kind.
  bool begin_run(StreamOffset begin, std::uint32_t emss, SendRun* run) {
    return ddp::begin_run(s_, begin, emss, run);
  }
  // Cuts and writes the next one to `dst`: run->wire bytes. run->left > 0. `*sum`: unfolded. False
  // when the source has gone, and nothing was cut: cut() and fill() find out as well.
  bool next_of_run(SendRun* run, std::uint8_t* dst, std::uint32_t* sum) {
    return ddp::next_of_run(s_, run, dst, sum);
  }

  // All bytes below `una` are acknowledged. Also reports what fill() completed (E-23): may be
  // called with an `una` that has not moved.
  template <class Sink>
  void acked(StreamOffset una, Sink&& on_completion) {
    forget_below(una);
    s_.requests.report(on_completion);
  }

  // ---- reads ----

  // `n` oldest outstanding Reads are complete. False when they are not: fewer outstanding,
  // or a response whose end was never placed; the first ones may then have been completed.
  template <class Sink>
  bool reads_done(std::uint32_t n, Sink&& on_completion) {
    const bool ok = s_.reads.finish(n, &s_.requests, &s_.shared->sinks);
    s_.requests.report(on_completion);
    return ok;
  }
  // The memory has gone that the outstanding Read or atomic with that sink fills: it fails.
  friend void fail_request_of_sink(Sender& s, std::uint32_t sink);
  // Walks the outstanding Reads, oldest first, for admission.
  using ReadCursor = OutstandingReads::Cursor;
  ReadCursor outstanding_reads() const { return s_.reads.oldest(); }
  std::uint32_t next_atomic_msn() const { return s_.reads.next_atomic_msn(); }
  // False at the end. `*sink` is 0 for an RTR read.
  bool next_read(ReadCursor* cursor, std::uint32_t* sink, std::uint32_t* size) const {
    return OutstandingReads::next(s_.requests, cursor, sink, size);
  }

  // ---- the end ----

  // A work request or read response could not be sent for a local reason (or one the peer's request
  // has): nothing new is cut any more, and the stream must end with this violation.
  bool failed() const { return failure() != Violation::None; }
  Violation failure() const { return s_.failure.violation; }
  // Header of the Read Request at fault for the Terminate, advanced to the point reached (RFC 5040,
  // 4.8); empty when the failure is not about one. Valid until the next call that yields one.
  ByteView failure_header() const;

  // E-25: nothing will read or write `stag`'s memory afterwards. Copies what is unacknowledged;
  // open reads into it and messages not wholly cut will fail. Unnecessary while the region's `uses`
  // is 0.
  void detach_region(std::uint32_t stag);

  // The consumer has let go of its queue pair, and what it posted is still to go out: from now on
  // no consumer memory is read or filled, and nothing is posted. What has not been cut is copied,
  // up to `most` bytes; Reads and local invalidations have no more meaning and do not happen, and
  // requests complete for nobody. False, and nothing has changed but copies made: not all of it can
  // be sent (no right to its memory, too much of it, a Read of the peer that waits for its data).
  bool leave(std::uint64_t most);

  // Ends everything: outstanding work requests complete in posting order with Flushed, the one at
  // fault (this sender's own failure, or the oldest if `first` is a remote or transport error) with
  // its own status. After stop() unacknowledged FPDUs are copied and may still be retransmitted;
  // otherwise they are forgotten. No consumer memory is read afterwards. May be called again for
  // requests posted later.
  template <class Sink>
  void flush(Status first, Sink&& on_completion) {
    s_.requests.report(on_completion);
    const Culprit culprit = begin_flush(first);
    Completion c;
    while (flush_one(culprit, &c)) on_completion(static_cast<const Completion&>(c));
  }
  // As constructed; work requests vanish without completion.
  void reset(std::uint32_t first_msn = 1);

  const SenderCounters& counters() const { return s_.counters; }
  bool has_sent_fpdus() const {
    return std::any_of(counters().fpdus.begin(), counters().fpdus.end(),
                       [](std::uint64_t n) { return n != 0; });
  }
  // Bytes of FPDUs that are held as copies, chunk by chunk (tests, statistics).
  std::uint32_t kept_chunks() const { return s_.retained.kept().chunks(); }
  std::uint32_t ledger_size() const { return s_.retained.size(); }

 private:
  // The request that is at fault for the end of the stream, if one is, and what it completes with.
  struct Culprit {
    bool exists = false;
    std::uint32_t seq = 0;
    Status status = Status::Flushed;
  };

  void forget_below(StreamOffset una);
  Culprit begin_flush(Status first);
  bool flush_one(const Culprit& culprit, Completion* c);

  SenderState s_;
};
void fail_request_of_sink(Sender& s, std::uint32_t sink);

}  // namespace urnic::ddp
