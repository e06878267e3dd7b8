// The sending side of a stream. Turns work requests and read responses into FPDUs, remembers the
// position of each FPDU in the stream until it is acknowledged, and rebuilds or copies it for
// retransmission (D5, E-20..E-25). TCP sees it as a byte source.
//
//   execute_due()            carries out due work that takes no byte: local invalidations
//   available()              whether there is data to cut, and about how much
//   cut(begin, limit, ...)   sets the size of the segment at `begin`: whole FPDUs
//   fill(begin, len, dst)    writes them (copy + CRC + checksum in one pass), returns the sum
//   acked(una, sink)         forgets them, and completes work requests in posting order
//
// Messages are never interleaved: a message is finished before another begins (siw ends the
// connection otherwise). Read Responses and the send queue alternate by message.
//
// Owned by one engine; every call is made under its ownership.
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
  // Local keys of posted requests are checked when the request is processed: an error completes it
  // with LocalProtection and ends the stream.
  Sender(const SenderConfig&, SharedState* shared, SendQueue* queue, ReadQueue* inbound_reads,
         std::uint32_t first_msn = 1);
  ~Sender();
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  // ---- what to send ----

  // Queue bytes that are not FPDUs (MPA Request/Reply), or a ready ULPDU (Terminate, RTR), as
  // copies. They go before every message that has not begun. After stop() they also go before the
  // rest of a message, which is then abandoned.
  void queue_raw(ByteView bytes);
  void queue_ulpdu(ByteView ulpdu);
  // Returns the MSN for a Read Request that is queued as a ULPDU (RTR). Its zero-length response
  // completes no work request.
  std::uint32_t take_rtr_read_msn() { return s_.reads.begin_rtr(); }

  // The negotiated number of Reads that may be outstanding.
  void set_ord(std::uint16_t ord) { s_.reads.set_ord(ord); }
  std::uint16_t ord() const { return s_.reads.ord(); }
  // Sets the framing; before the first FPDU is cut.
  void set_framing(const mpa::Framing& framing);
  const mpa::Framing& framing() const { return s_.sizes.framing(); }
  // Full operation begins with CRC on or off: from now on FPDUs may be cut.
  void start(bool crc) {
    s_.started = true;
    s_.crc = crc;
  }
  // No new messages from now on (a Terminate was queued, or the stream is closing).
  void stop() { s_.stopped = true; }
  // A failed start-up is tried again on a new TCP connection: drops what queue_raw() and
  // queue_ulpdu() were given, and restarts the stream at offset 0. Work requests stay.
  void forget_startup();

  // Carries out due requests that take no byte: local invalidations. A Read that ORD 0 will never
  // allow fails; failed() may then tell why nothing more will be cut. Call it before available().
  void execute_due() { ddp::execute_due(s_); }
  // End of what can be sent now, as an estimate for TCP (never too small by a whole segment; equal
  // to the next byte if nothing can be sent).
  StreamOffset available() const { return ddp::available(s_); }
  bool idle() const;     // nothing queued, unacknowledged or outstanding, and no pending response
  bool drained() const;  // everything queued has been cut and no read is outstanding

  // ---- the byte source ----

  // Sets the bytes of the segment at `begin` (the next new byte, or one sent before): as many whole
  // FPDUs as fit `limit`. A single FPDU is sized by mulpdu(emss). With must_cut, part of one FPDU
  // if none fits. 0: nothing can be sent now; failed() may then tell why.
  SegmentCut cut(StreamOffset begin, std::uint32_t limit, std::uint32_t emss, bool must_cut) {
    return cut_segment(s_, begin, limit, emss, must_cut);
  }
  // Writes bytes [begin, begin+len), which a cut returned (now or earlier). Returns the unfolded
  // Internet sum. Sets `*ok` to false if a source region is gone: the stream must end. If those
  // bytes were never sent, failed() tells why, and a Terminate may still be queued and cut.
  std::uint32_t fill(StreamOffset begin, std::uint32_t len, std::uint8_t* dst, bool* ok) {
    return fill_segment(s_, begin, len, dst, ok);
  }

  // Returns views of bytes [begin, begin+len), which a cut returned, without copying them. Only
  // possible if they are (the rest of) one FPDU without CRC, with at least `worth` bytes of
  // payload, that is not kept as a copy. They begin `*skip` bytes after the start of `*out`, whose
  // views are valid until the next call of any kind. For a TCP that copies them at once and does
  // not request them again. With a CRC, a source that changes during the copy would not be detected
  // (E-20). Counts as filled.
  bool view(StreamOffset begin, std::uint32_t len, std::uint32_t worth, FpduView* out,
            std::uint32_t* skip) {
    return view_fpdu(s_, begin, len, worth, out, skip);
  }

  // The bytes at `at`, which view() returned, cannot be read: same effect as if fill() had found
  // it.
  friend void note_source_removed(Sender& s, StreamOffset at) { note_source_removed(s.s_, at); }
  // True if an FPDU cannot be finished of which the peer may have a part: nothing may follow it.
  friend bool is_torn(const Sender& s) { return s.s_.failure.torn; }

  // Plans the new bytes from `begin` on as segments of `emss` bytes, each of which is one full-size
  // FPDU and not the last of its message. The result is the same as with cut() and fill() one by
  // one. Returns false if the bytes are of any other kind. `*run` is invalid after the next call of
  // any other kind.
  bool begin_run(StreamOffset begin, std::uint32_t emss, SendRun* run) {
    return ddp::begin_run(s_, begin, emss, run);
  }
  // Cuts and writes the next one to `dst`: run->wire bytes. Requires run->left > 0. `*sum`:
  // unfolded. Returns false if the source is gone, and then nothing was cut: cut() and fill() will
  // detect it as well.
  bool next_of_run(SendRun* run, std::uint8_t* dst, std::uint32_t* sum) {
    return ddp::next_of_run(s_, run, dst, sum);
  }

  // All bytes below `una` are acknowledged. Also reports what fill() completed (E-23), so it may be
  // called with an `una` that has not moved.
  template <class Sink>
  void acked(StreamOffset una, Sink&& on_completion) {
    forget_below(una);
    s_.requests.report(on_completion);
  }

  // ---- reads ----

  // Completes the `n` oldest outstanding Reads. Returns false if that fails: fewer are
  // outstanding, or the end of a response was never placed. The first ones may then have been
  // completed.
  template <class Sink>
  bool reads_done(std::uint32_t n, Sink&& on_completion) {
    const bool ok = s_.reads.finish(n, &s_.requests, &s_.shared->sinks);
    s_.requests.report(on_completion);
    return ok;
  }
  // The memory that the Read or atomic with that sink fills is gone: the request fails.
  friend void fail_request_of_sink(Sender& s, std::uint32_t sink);
  // Iterates over the outstanding Reads, oldest first, for admission.
  using ReadCursor = OutstandingReads::Cursor;
  ReadCursor outstanding_reads() const { return s_.reads.oldest(); }
  std::uint32_t next_atomic_msn() const { return s_.reads.next_atomic_msn(); }
  // False at the end. `*sink` is 0 for an RTR read.
  bool next_read(ReadCursor* cursor, std::uint32_t* sink, std::uint32_t* size) const {
    return OutstandingReads::next(s_.requests, cursor, sink, size);
  }

  // ---- the end ----

  // A work request or read response could not be sent for a local reason (or one in the peer's
  // request). Nothing new is cut any more, and the stream must end with this violation.
  bool failed() const { return failure() != Violation::None; }
  Violation failure() const { return s_.failure.violation; }
  // Header of the failed Read Request for the Terminate, advanced to the point reached (RFC 5040,
  // 4.8). Empty if the failure is not about one. Valid until the next call that returns one.
  ByteView failure_header() const;

  // E-25: after this, nothing reads or writes `stag`'s memory. Copies what is unacknowledged. Open
  // reads into the memory, and messages not completely cut, will fail. Unnecessary while the
  // region's `uses` is 0.
  void detach_region(std::uint32_t stag);

  // The consumer has released its queue pair, but what it posted must still be sent. From now on no
  // consumer memory is read or filled, and nothing is posted. Copies what was not cut, up to `most`
  // bytes. Reads and local invalidations have no purpose any more and are not carried out, and
  // completions are not reported. Returns false if not all can be sent (no right to its memory, too
  // much of it, a Read of the peer that waits for its data); then nothing has changed except that
  // copies were made.
  bool leave(std::uint64_t most);

  // Ends everything: outstanding work requests complete in posting order with Flushed. The request
  // at fault (this sender's own failure, or the oldest if `first` is a remote or transport error)
  // has its own status. After stop(), unacknowledged FPDUs are copied and may still be
  // retransmitted; otherwise they are forgotten. No consumer memory is read afterwards. May be
  // called again for requests posted later.
  template <class Sink>
  void flush(Status first, Sink&& on_completion) {
    s_.requests.report(on_completion);
    const Culprit culprit = begin_flush(first);
    Completion c;
    while (flush_one(culprit, &c)) on_completion(static_cast<const Completion&>(c));
  }
  // Resets to the state after construction. Work requests disappear without completion.
  void reset(std::uint32_t first_msn = 1);

  const SenderCounters& counters() const { return s_.counters; }
  bool has_sent_fpdus() const {
    return std::any_of(counters().fpdus.begin(), counters().fpdus.end(),
                       [](std::uint64_t n) { return n != 0; });
  }
  // Chunks of memory that hold copies of FPDUs (tests, statistics).
  std::uint32_t kept_chunks() const { return s_.retained.kept().chunks(); }
  std::uint32_t ledger_size() const { return s_.retained.size(); }

 private:
  // The request at fault for the end of the stream, if there is one, and its completion status.
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
