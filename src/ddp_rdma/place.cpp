// Placement (9.1): copies payload to its destination, and Read Requests to their entries. All of it
// may be repeated with the same result, since a downgrade forgets what was placed out of order.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/guarded.h"
#include "ddp_rdma/access.h"
#include "ddp_rdma/plain_write.h"
#include "ddp_rdma/serial.h"
#include "ddp_rdma/stream.h"
#include "verbs/sge_walk.h"

namespace urnic::ddp {
namespace {

constexpr std::size_t kTail = 64;

// Programs poll the last byte of a message. Therefore the last 64 bytes are stored after the rest,
// and the very last ones (up to eight) in one store after those (E-13). On a machine with ordered
// stores a compiler barrier is enough; on others the fence is a real one.
void store_barrier() {
  std::atomic_thread_fence(std::memory_order_release);
}

void copy_small(std::uint8_t* dst, const std::uint8_t* src, std::size_t n) {
  if (n > 8) {
    std::memcpy(dst, src, n - 8);
    store_barrier();
    std::memcpy(dst + n - 8, src + n - 8, 8);
  } else if (n == 8) {
    std::memcpy(dst, src, 8);
  } else if (n >= 4) {
    std::memcpy(dst, src, 4);
    store_barrier();
    std::memcpy(dst + n - 4, src + n - 4, 4);
  } else {
    for (std::size_t i = 0; i < n; ++i) {
      dst[i] = src[i];
      store_barrier();
    }
  }
}

void copy_payload(std::uint8_t* dst, const std::uint8_t* src, std::size_t n) {
  if (n > kTail) {
    std::memcpy(dst, src, n - kTail);
    store_barrier();
    dst += n - kTail;
    src += n - kTail;
    std::memcpy(dst, src, kTail - 8);
    store_barrier();
    std::memcpy(dst + kTail - 8, src + kTail - 8, 8);
    return;
  }
  copy_small(dst, src, n);
}

// Returns false if the memory is gone.
[[nodiscard]] bool place_payload(std::uint8_t* to, ByteView payload) {
  return guarded(to, payload.size(), [=] { copy_payload(to, payload.data(), payload.size()); });
}

// A long Write most likely continues where this part ends. Without a prefetch, the stores of the
// next part would wait for their cache lines, and delay the protocol's stores that follow. So the
// lines are fetched a few segments ahead. `end` is one past this part, `n` its length, `behind` the
// bytes left in the region. Always inline: the compiler would drop calls to a function that only
// prefetches.
[[gnu::always_inline]] inline void prefetch_destination(const std::uint8_t* end, std::size_t n,
                                                        std::uint64_t behind) {
  constexpr std::size_t kLine = 64, kAhead = 4096, kSmall = 512;
  if (n < kSmall || behind < kAhead) return;
  n = std::min<std::size_t>(n, behind - kAhead);
  // Four lines at a time: a few extra lines cost less than a longer loop.
  for (std::size_t i = 0; i < n; i += 4 * kLine) {
    const std::uint8_t* const p = end + kAhead + i;
    __builtin_prefetch(p, 1);
    __builtin_prefetch(p + kLine, 1);
    __builtin_prefetch(p + 2 * kLine, 1);
    __builtin_prefetch(p + 3 * kLine, 1);
  }
}

Violation place_write(const Admission& a) {
  const bool done =
      a.direct == nullptr || place_plain_write({a.segment.payload, a.direct, a.behind});
  return done ? Violation::None : Violation::TaggedInvalidStag;
}

// Writes `payload` into `pieces`, starting `offset` bytes into them. Gets a piece's memory only
// when a byte is written to it. Returns false if the memory is gone.
template <class Pieces, class Memory>
[[nodiscard]] bool scatter(ByteView payload, std::uint64_t offset, const Pieces& pieces,
                           Memory&& memory) {
  const auto put = [&](const auto& piece, std::uint64_t at, std::uint64_t n) {
    const std::span<std::uint8_t> to = memory(piece);
    if (to.empty()) return true;  // cannot happen, since the segment was admitted
    const ByteView part = payload.first(n);
    payload = payload.subspan(n);
    return place_payload(to.data() + at, part);
  };
  return verbs::for_each_piece(pieces, offset, payload.size(), put);
}

// Records the completion of Send `msn` (9.4). Method 1 writes it into the WQE 516R. Method 2 does
// so only for out-of-order Sends, when M of them are already pending.
void note_end(Stream& s, std::uint32_t msn, bool in_order, const SendEnd& end) {
  if (s.config.completion_method == CompletionMethod::Shared) {
    if (in_order) {
      s.shared->fresh_sends.put(s.config.id, msn, end);
      return;
    }
    if (s.held.put(msn, end)) return;
  }
  ReceiveWqe& w = s.rq.wqe(msn);
  w.end = end.verbs;
  w.ended = true;
  s.rq.part<ReceivePart>(msn).last_mo = end.last_mo;
  ++s.completion_writes.wqe;
}

bool place_in_receive(Stream& s, const Admission& a) {
  const SegmentHeader& h = a.segment.header;
  const ByteView payload = a.segment.payload;
  if (a.direct != nullptr) return place_payload(a.direct, payload);
  return scatter(payload, h.mo, s.rq.sges(h.msn),
                 [&](const Sge& sge) { return resolve_sge(*s.memory, sge, s.receive_pd(), true); });
}

Violation place_send(Stream& s, const Admission& a, MessageCounts* counts) {
  const SegmentHeader& h = a.segment.header;
  const ByteView payload = a.segment.payload;
  s.rq.claim(h.msn);
  if (!place_in_receive(s, a)) {
    s.receive_gone = true;
    return Violation::LocalCatastrophic;
  }
  const auto len = static_cast<std::uint32_t>(payload.size());
  if (a.in_order) {
    s.mo_msn = h.msn;
    s.send_mo = h.last ? 0 : h.mo + len;
  } else if (msn_distance(h.msn, s.mo_unchecked) > 0) {
    s.mo_unchecked = h.msn;
  }
  if (h.last) {
    SendEnd end;
    end.verbs.byte_len = h.mo + len;
    end.verbs.inv_key = h.inv_stag;
    end.verbs.with_invalidate = h.op == Opcode::SendInv || h.op == Opcode::SendSeInv;
    end.verbs.solicited =
        h.op == Opcode::SendSe || h.op == Opcode::SendSeInv || h.op == Opcode::ImmediateSe;
    end.verbs.with_immediate = carries_immediate(h.op);
    end.last_mo = h.mo;
    note_end(s, h.msn, a.in_order, end);
    counts->sends = 1;
  }
  return Violation::None;
}

// Like place_send(), with Immediate Data for the completion. The data waits in the WQE, since the
// segment it arrived with may not be the last.
Violation place_immediate(Stream& s, const Admission& a, MessageCounts* counts) {
  const SegmentHeader& h = a.segment.header;
  if (h.with_immediate) s.rq.wqe(h.msn).immediate = h.immediate;
  return place_send(s, a, counts);
}

// The memory for the response of a Read or atomic is gone: that request fails.
Violation fail_gone_sink(Stream& s, std::uint32_t sink) {
  fail_request_of_sink(s.sender, sink);
  return Violation::LocalCatastrophic;
}

// Copies the bytes of a response to the memory of `sink`.
bool place_answer(const ReadSink& sink, std::uint8_t* direct, std::uint64_t at, ByteView bytes) {
  if (direct != nullptr) return place_payload(direct, bytes);
  if (!sink.pieces) return true;
  return scatter(bytes, at, *sink.pieces, [](const auto& piece) { return piece; });
}

Violation place_read_response(Stream& s, const Admission& a, MessageCounts* counts) {
  const SegmentHeader& h = a.segment.header;
  const ByteView payload = a.segment.payload;
  counts->read_responses = h.last ? 1 : 0;
  ReadSink* r = s.shared->sinks.find(h.stag);
  const bool own = r != nullptr && r->stream == s.config.id;
  if (!own) return Violation::None;  // zero-length: its STag has no meaning
  if (!place_answer(*r, a.direct, h.to, payload)) return fail_gone_sink(s, h.stag);
  if (!a.in_order) {
    r->out_of_order = true;
  } else if (!payload.empty()) {
    r->progress = static_cast<std::uint32_t>(h.to + payload.size());
  }
  if (h.last) r->ended = true;
  return Violation::None;
}

// Writes the old value to the memory of the request, in this machine's byte order.
Violation place_atomic_response(Stream& s, const Admission& a, MessageCounts* counts) {
  const AtomicResponse& reply = a.segment.header.atomic_reply;
  counts->read_responses = 1;
  ReadSink* r = atomic_sink(*s.shared, reply.id, s.config.id);
  if (r == nullptr) return Violation::None;
  std::uint8_t bytes[sizeof reply.original];
  std::memcpy(bytes, &reply.original, sizeof bytes);
  if (!place_answer(*r, r->base, 0, bytes)) return fail_gone_sink(s, reply.id);
  r->ended = true;
  return Violation::None;
}

// All opcodes except Write.
Violation place_other(Stream& s, const Admission& a, MessageCounts* counts) {
  const SegmentHeader& h = a.segment.header;
  switch (h.op) {
    case Opcode::ReadResponse:
      return place_read_response(s, a, counts);
    case Opcode::ReadRequest:
      s.inbound_reads.place(h.msn, h.read);
      counts->read_requests = 1;
      return Violation::None;
    case Opcode::AtomicRequest:
      s.inbound_reads.place(h.msn, parse_atomic_request(a.segment.payload));
      counts->read_requests = 1;
      return Violation::None;
    case Opcode::AtomicResponse:
      return place_atomic_response(s, a, counts);
    case Opcode::Terminate:  // recorded now, processed when delivered
      s.terminate.info =
          parse_terminate(a.segment.payload, s.sender.has_sent_fpdus() ? TerminateWhen::Later
                                                                       : TerminateWhen::AtSetup);
      counts->terminates = 1;
      return Violation::None;
    case Opcode::Immediate:
    case Opcode::ImmediateSe:
      return place_immediate(s, a, counts);
    default:
      return place_send(s, a, counts);
  }
}

}  // namespace

bool place_plain_write(const PlainWrite& w) {
  const std::size_t n = w.payload.size();
  if (!place_payload(w.to, w.payload)) return false;
  prefetch_destination(w.to + n, n, w.behind);
  return true;
}

MessageCounts place(Stream& s, const Admission& a) {
  MessageCounts counts;
  (void)place(s, a, &counts);
  return counts;
}

Violation place(Stream& s, const Admission& a, MessageCounts* counts) {
  if (a.segment.header.op == Opcode::Write) [[likely]]  // a Write does not end a message that is
                                                        // delivered
    return place_write(a);
  MessageCounts own;
  const Violation v = place_other(s, a, &own);
  if (v == Violation::None) *counts += own;
  return v;
}

}  // namespace urnic::ddp
