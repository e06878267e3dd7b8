// The responder half of UC: packets are judged, then executed and committed, or dropped.
#include "ib/judge_request.h"
#include "ib/placement.h"
#include "ib/receive_end.h"
#include "ib/uc.h"

namespace urnic::ib {
namespace {

using verbs::AccessVerdict;
using verbs::Completion;
using verbs::Status;

// The input of the checks below.
struct Arrival {
  const UcResponderState& s;
  const PacketHeader& h;
  const OpcodeRow& row;
  ByteView payload;

  // Bytes of the message before this packet: a First or Only begins a new one, whatever is in
  // progress (IB-92, IB-94).
  std::uint64_t before() const { return row.begins() ? 0 : s.message.bytes; }
  std::uint64_t bytes() const { return before() + payload.size(); }
};

bool in_sequence(const Arrival& a) {
  if (a.row.begins()) return true;
  return a.s.message.family == a.row.family && a.h.bth.psn == a.s.expected;
}

// The operation is known and allowed, and has a pad only where one is allowed.
bool supported(const Arrival& a) {
  if (a.row.family == Family::Write && (a.s.qp->access & verbs::kRemoteWrite) == 0) return false;
  return a.row.ends() || a.h.bth.pad == 0;
}

// A SEND needs a receive with enough room from its first packet on; a WRITE with Immediate Data
// only needs it with its last.
bool has_receive(const Arrival& a) {
  const bool send = a.row.family == Family::Send;
  if (!send && !a.row.completes_receive()) return true;
  const verbs::ReceiveQueue& rq = *a.s.rq;
  if (!rq.has(rq.head())) return false;
  return !send || a.bytes() <= rq.wqe(rq.head()).capacity;
}

// An access of no bytes is not checked (IB-96). Sets the target.
bool may_access(const Arrival& a, std::uint8_t** target) {
  if (a.row.family != Family::Write || a.payload.empty()) return true;
  const bool first = a.row.begins();
  const std::uint32_t key = first ? a.h.reth.rkey : a.s.message.rkey;
  const std::uint64_t at = first ? a.h.reth.address : a.s.message.address;
  if (verbs::check_remote_write(*a.s.memory, key, at, a.payload.size(), a.s.qp->peer()) !=
      AccessVerdict::Ok) {
    return false;
  }
  *target = address_in(*a.s.memory, key, at);
  return true;
}

bool length_fits(const Arrival& a) {
  const auto n = static_cast<std::uint32_t>(a.payload.size());
  if (!payload_fits(a.row.payload, n, a.s.qp->pmtu())) return false;
  if (a.row.family == Family::Send) return a.bytes() <= kMaxMessageBytes;
  const std::uint32_t length = a.row.begins() ? a.h.reth.length : a.s.message.length;
  if (length > kMaxMessageBytes || a.bytes() > length) return false;
  return !a.row.ends() || a.bytes() == length;
}

bool receive_writable(const Arrival& a) {
  if (a.row.family != Family::Send) return true;
  return receive_holds(*a.s.memory, a.s.rq->sges(a.s.rq->head()), a.s.receive_pd(), a.before(),
                       a.payload.size());
}

// The checks in their order; the first that fails decides. Changes nothing.
RequestJudgment judge(const Arrival& a) {
  if (a.s.failed) return {Verdict::Ignored};
  if (!a.row.known()) return {Verdict::InvalidRequest};
  if (!in_sequence(a)) return {Verdict::OutOfSequence};
  if (!supported(a)) return {Verdict::InvalidRequest};
  if (!has_receive(a)) return {Verdict::NotReady};
  RequestJudgment j;
  if (!may_access(a, &j.target)) return {Verdict::RemoteAccess};
  if (!length_fits(a)) return {Verdict::InvalidRequest};
  if (!receive_writable(a)) return {Verdict::Operational, Status::LocalProtection};
  return j;
}

// The message in progress is lost. The next message uses its receive, which may be partly written
// (IB-95).
void lose_message(UcResponderState& s) {
  if (s.message.open()) ++s.counters.lost_messages;
  s.message = {};
}

void drop(UcResponderState& s, const OpcodeRow& row, Verdict why) {
  ++(why == Verdict::OutOfSequence ? s.counters.out_of_sequence : s.counters.refused);
  // An unknown operation belongs to no message.
  if (row.known()) lose_message(s);
}

void begin_message(UcResponderState& s, const PacketHeader& h) {
  lose_message(s);
  if (h.row().family == Family::Send) s.rq->claim(s.rq->head());  // before any change: it may throw
  s.message = {h.row().family, 0, h.reth.address, h.reth.rkey, h.reth.length};
}

// False if the memory is gone.
bool place_payload(UcResponderState& s, ByteView payload, std::uint8_t* target) {
  if (payload.empty()) return true;
  const bool placed = s.message.family == Family::Send
                          ? place_in_receive(*s.memory, s.rq->sges(s.rq->head()), s.receive_pd(),
                                             s.message.bytes, payload)
                          : place(target, payload);
  s.message.bytes += static_cast<std::uint32_t>(payload.size());
  s.message.address += payload.size();
  return placed;
}

Received refuse(UcResponderState& s, const OpcodeRow& row, const RequestJudgment& j,
                Completion* c) {
  drop(s, row, j.verdict);
  if (j.receive == Status::Success) return {j.verdict};
  fail_receive(s.rq, j.receive, c);  // only the consumer can be informed
  s.failed = true;
  return {j.verdict, true};
}

// The packet's memory was there when the packet was judged, and is gone since.
RequestJudgment memory_gone(const OpcodeRow& row) {
  if (row.family != Family::Send) return {Verdict::RemoteAccess};
  return {Verdict::Operational, Status::LocalProtection};
}

void count_message(UcResponderState& s, bool completed) {
  TakenMessages& n = s.counters.messages;
  n.receives += completed;
  if (s.message.family == Family::Send) {
    ++n.sends;
    n.send_bytes += s.message.bytes;
  } else {
    n.write_bytes += s.message.bytes;
  }
}

Received accept(UcResponderState& s, const ParsedPacket& p, std::uint8_t* target, Completion* c) {
  const OpcodeRow& row = p.header.row();
  if (row.begins()) begin_message(s, p.header);
  if (!place_payload(s, p.payload, target)) return refuse(s, row, memory_gone(row), c);
  const bool completed = row.completes_receive();
  if (completed) complete_receive(s.rq, p.header, s.message.bytes, c);
  if (row.ends()) count_message(s, completed);
  ++s.counters.requests;
  s.expected = p.header.bth.psn + 1;
  if (row.ends()) s.message = {};
  return {Verdict::Accept, completed};
}

}  // namespace

Received UcResponder::take(const ParsedPacket& request, Completion* completion) {
  const OpcodeRow& row = request.header.row();
  const RequestJudgment j = judge({s_, request.header, row, request.payload});
  if (j.verdict == Verdict::Accept) return accept(s_, request, j.target, completion);
  if (j.verdict == Verdict::Ignored) return {j.verdict};
  return refuse(s_, row, j, completion);
}

}  // namespace urnic::ib
