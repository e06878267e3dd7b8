// Templates of stream.h.
#pragma once

#include <type_traits>

namespace urnic::ddp {

namespace detail {

struct Delivered {
  Completion completion;
  bool stored = false;  // the data lies in the WQE at `position` of the receive queue's store
  std::uint32_t position = 0;
};

// Delivers the Send of the oldest receive: its completion, after its invalidation was done.
Violation deliver_send(Stream& s, Delivered* d, ByteView* offending);
// True if the WQE at `position` belongs to the CQE of `run`.
bool joins(const Stream& s, const StoredSends& run, std::uint32_t position);
// Delivers `n` Read Requests: checks their sources, then rings one doorbell.
Violation deliver_read_requests(Stream& s, std::uint32_t n, ByteView* offending);
void deliver_terminate(Stream& s);
bool flush_receive(Stream& s, Status* first, Completion* c);

// Reports the CQE of a run, if there is one, and clears the run.
template <class Sink>
void report(Stream& s, StoredSends* run, Sink&& on_completion) {
  if (run->count == 0) return;
  ++s.completion_writes.cqe;
  ++s.completion_writes.partial;
  if constexpr (std::is_invocable_v<Sink&, const StoredSends&>) {
    on_completion(static_cast<const StoredSends&>(*run));
  } else {
    Completion c;
    for (std::uint32_t i = 0; i < run->count; ++i) {
      run->store->take(run->first + i, &c);
      on_completion(static_cast<const Completion&>(c));
    }
  }
  *run = {};
}

// Delivers `n` Sends, oldest first. A run of them is reported before anything later.
template <class Sink>
Violation deliver_sends(Stream& s, std::uint32_t n, Sink&& on_completion, ByteView* offending) {
  StoredSends run;
  Violation v = Violation::None;
  for (std::uint32_t i = 0; i < n; ++i) {
    Delivered d;
    v = deliver_send(s, &d, offending);
    if (v != Violation::None) break;
    if (!d.stored) {
      report(s, &run, on_completion);
      ++s.completion_writes.cqe;
      on_completion(static_cast<const Completion&>(d.completion));
      continue;
    }
    if (!joins(s, run, d.position)) {
      report(s, &run, on_completion);
      run.store = s.rq.store();
      run.first = d.position;
    }
    ++run.count;
    run.solicited |= d.completion.solicited;
  }
  report(s, &run, on_completion);
  return v;
}

}  // namespace detail

template <class Sink>
Violation deliver(Stream& s, const MessageCounts& counts, Sink&& on_completion,
                  ByteView* offending) {
  if (!counts.any()) return Violation::None;
  ByteView unwanted;
  if (offending == nullptr) offending = &unwanted;
  *offending = {};
  if (counts.read_responses != 0 && !s.sender.reads_done(counts.read_responses, on_completion)) {
    return Violation::TaggedInvalidStag;  // a response without an outstanding Read
  }
  if (counts.sends != 0) {
    const Violation v = detail::deliver_sends(s, counts.sends, on_completion, offending);
    if (v != Violation::None) return v;
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
  // If a send request failed here, it is at fault, and not the oldest receive.
  if (s.sender.failed() && first == Status::LocalProtection) first = Status::Flushed;
  s.sender.flush(first, on_completion);
  s.held.clear();
  s.shared->fresh_sends.forget(s.config.id);
  Completion c;
  while (detail::flush_receive(s, &first, &c)) on_completion(static_cast<const Completion&>(c));
}

}  // namespace urnic::ddp
