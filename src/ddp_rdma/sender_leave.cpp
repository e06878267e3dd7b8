// A sender whose consumer is gone (E-25): what it posted is sent from copies.
#include <cstring>
#include <new>

#include "base/guarded.h"
#include "ddp_rdma/access.h"
#include "ddp_rdma/sender.h"

namespace urnic::ddp {
namespace {

using Kind = CurrentMessage::Kind;

bool sends(const SendWqe& w) {
  return !awaits_response(w.op) && !verbs::is_local(w.op);
}

// Calls f(index) for each request that is not completely cut, until one call returns false.
template <class F>
bool each_unsent(const SenderState& s, F&& f) {
  const SendQueue& sq = s.requests.queue();
  if (s.current.kind == Kind::Request && !f(s.current.id)) return false;
  for (std::uint32_t seq = sq.started(); seq != sq.tail(); ++seq) {
    if (!f(seq)) return false;
  }
  return true;
}

// Counts the bytes to copy. Returns false if some may not be read, or if the peer waits for bytes
// of a Read. A stopped stream needs none: it only sends what was cut, and a Terminate.
bool measure(const SenderState& s, std::uint64_t* bytes) {
  if (s.stopped) return true;
  if (s.failure.violation != Violation::None || s.current.kind == Kind::Response) return false;
  for (std::uint32_t msn = s.inbound->next_response(); msn != s.inbound->next(); ++msn) {
    if (s.inbound->request(msn).size != 0) return false;
  }
  return each_unsent(s, [&](std::uint32_t seq) {
    const SendWqe& w = s.requests.wqe(seq);
    if (!sends(w) || (w.flags & kInline) != 0) return true;
    *bytes += w.length;
    return !s.requests.part(seq).broken && s.requests.may_read(seq);
  });
}

// Copies everything that was cut, so that it no longer needs its source.
bool capture_all(SenderState& s) {
  for (std::uint32_t i = 0; i < s.retained.size(); ++i) {
    std::uint32_t sum;
    if (s.retained[i].kept == nullptr && !capture(s, s.retained[i], &sum)) return false;
  }
  return true;
}

// True for a request whose payload is in consumer memory.
bool reads_consumer_memory(const SendWqe& w) {
  return sends(w) && (w.flags & kInline) == 0;
}

// Copies the payloads of all requests that are not completely cut, one after the other. Returns
// false if memory of one is gone.
bool copy_payloads(const SenderState& s, std::uint8_t* to) {
  return each_unsent(s, [&](std::uint32_t seq) {
    if (!reads_consumer_memory(s.requests.wqe(seq))) return true;
    for (const Sge& sge : s.requests.queue().sges(seq)) {
      const std::uint8_t* const from = sge.length != 0 ? s.requests.memory_of(sge) : nullptr;
      if (sge.length != 0 &&
          !guarded(from, sge.length, [&] { std::memcpy(to, from, sge.length); })) {
        return false;
      }
      to += sge.length;
    }
    return true;
  });
}

// From now on request `seq` reads its payload at `to`.
void move_payload(SenderState& s, std::uint32_t seq, const std::uint8_t* to) {
  SendWqe& w = s.requests.wqe(seq);
  s.requests.uncount(seq);
  if (w.length == 0) {
    w.num_sge = 0;
    return;
  }
  w.num_sge = 1;
  s.requests.queue().sges(seq)[0] = {reinterpret_cast<std::uint64_t>(to), w.length, s.left.key};
}

}  // namespace

bool Sender::leave(std::uint64_t most) {
  std::uint64_t bytes = 0;
  if (!measure(s_, &bytes) || bytes > most || !capture_all(s_)) return false;
  if (bytes != 0) {
    s_.left.bytes.reset(new (std::nothrow) std::uint8_t[bytes]);
    if (s_.left.bytes == nullptr) return false;
    s_.left.key = s_.requests.memory().register_memory(s_.requests.pd(), s_.left.bytes.get(), bytes,
                                                       verbs::kLocalRead);
    if (s_.left.key == 0) return false;
    if (!copy_payloads(s_, s_.left.bytes.get())) return false;
  }
  SendQueue& sq = s_.requests.queue();
  const bool partly = s_.current.kind == Kind::Request;
  for (std::uint32_t seq = sq.head(); seq != sq.started(); ++seq) {
    if (sq.wqe(seq).done || (partly && seq == s_.current.id)) continue;
    if (awaits_response(sq.wqe(seq).op)) {
      s_.shared->sinks.release(s_.requests.part(seq).msn);
      s_.requests.finish(seq);
    } else {
      s_.requests.uncount(seq);
    }
  }
  s_.reads.forget();
  const std::uint8_t* to = s_.left.bytes.get();
  each_unsent(s_, [&](std::uint32_t seq) {
    SendWqe& w = sq.wqe(seq);
    if (!sends(w)) {
      w.done = true;
    } else if (reads_consumer_memory(w)) {
      move_payload(s_, seq, to);
      to += w.length;
    }
    return true;
  });
  execute_due();
  return true;
}

}  // namespace urnic::ddp
