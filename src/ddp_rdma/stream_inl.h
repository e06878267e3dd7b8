// Templates of stream.h.
#pragma once

namespace urnic::ddp {

namespace detail {

// One Send, the oldest receive's: its completion, with the invalidation done before it is seen.
Violation deliver_send(Stream& s, Completion* c, ByteView* offending);
// `n` Read Requests: sources checked, then one doorbell.
Violation deliver_read_requests(Stream& s, std::uint32_t n, ByteView* offending);
void deliver_terminate(Stream& s);
bool flush_receive(Stream& s, Status* first, Completion* c);

}  // namespace detail

template <class Sink>
Violation deliver(Stream& s, const MessageCounts& counts, Sink&& on_completion,
                  ByteView* offending) {
  if (!counts.any()) return Violation::None;
  ByteView unwanted;
  if (offending == nullptr) offending = &unwanted;
  *offending = {};
  if (counts.read_responses != 0 && !s.sender.reads_done(counts.read_responses, on_completion)) {
    return Violation::TaggedInvalidStag;  // a response without an open read
  }
  for (std::uint32_t i = 0; i < counts.sends; ++i) {
    Completion c;
    const Violation v = detail::deliver_send(s, &c, offending);
    if (v != Violation::None) return v;
    on_completion(static_cast<const Completion&>(c));
  }
  if (counts.read_requests != 0) {
    const Violation v = detail::deliver_read_requests(s, counts.read_requests, offending);
    if (v != Violation::None) return v;
  }
  if (counts.terminates != 0) detail::deliver_terminate(s);
  return Violation::None;
}

template <class Sink>
void flush(Stream& s, Status first, Sink&& on_completion) {
  // A send request that failed here is the one at fault; the receives are then bystanders.
  if (s.sender.failed() && first == Status::LocalProtection) first = Status::Flushed;
  s.sender.flush(first, on_completion);
  Completion c;
  while (detail::flush_receive(s, &first, &c)) on_completion(static_cast<const Completion&>(c));
}

}  // namespace urnic::ddp
