#include "ib/judge_request.h"

#include "ib/placement.h"

namespace urnic::ib {
namespace {

using verbs::AccessVerdict;
using verbs::Status;

// The input of the checks below.
struct Arrival {
  const ResponderState& s;
  const PacketHeader& h;
  const OpcodeRow& row;
  ByteView payload;
  bool middle_of_message() const { return !row.begins(); }
};

bool in_sequence(const Arrival& a) {
  if (!a.s.message.open()) return a.row.begins();
  return a.middle_of_message() && a.row.family == a.s.message.family;
}

// The operation is known, allowed for this queue pair, and within its limits.
bool supported(const Arrival& a) {
  const std::uint8_t access = a.s.qp->access;
  switch (a.row.family) {
    case Family::Send:
      return a.row.ends() || a.h.bth.pad == 0;
    case Family::Write:
      return (access & verbs::kRemoteWrite) != 0 && (a.row.ends() || a.h.bth.pad == 0);
    case Family::Read:
      return (access & verbs::kRemoteRead) != 0 && !a.s.resources.full();
    case Family::Atomic:
      return (access & verbs::kRemoteAtomic) != 0 && !a.s.resources.full();
    default:
      return false;
  }
}

bool needs_receive(const Arrival& a) {
  if (a.row.family == Family::Send) return a.row.begins();
  return a.row.completes_receive();
}

// A key that a SEND invalidates must stay valid until the earlier READs are answered: their
// responses may all leave in a moment.
bool ready(const Arrival& a, std::uint8_t* timer) {
  constexpr std::uint8_t kShortest = 1;
  *timer = a.s.qp->min_rnr_timer;
  if (needs_receive(a) && !a.s.rq->has(a.s.rq->head())) return false;
  *timer = kShortest;
  return !a.row.has(kIeth) || !a.s.resources.reads_by(a.h.inv_rkey);
}

// Checks access rights, range and domain; an access of no bytes needs none (IB-24). Sets the
// target.
bool may_access(const Arrival& a, std::uint8_t** target) {
  const verbs::MemoryTable& memory = *a.s.memory;
  const verbs::Requester peer = a.s.peer();
  const Reth& reth = a.h.reth;
  switch (a.row.family) {
    case Family::Write: {
      if (a.payload.empty()) return true;
      const bool first = a.row.begins();
      const std::uint32_t key = first ? reth.rkey : a.s.message.rkey;
      const std::uint64_t at = first ? reth.address : a.s.message.address;
      if (verbs::check_remote_write(memory, key, at, a.payload.size(), peer) != AccessVerdict::Ok) {
        return false;
      }
      *target = address_in(memory, key, at);
      return true;
    }
    case Family::Read:
      return reth.length == 0 || verbs::check_remote_read(memory, reth.rkey, reth.address,
                                                          reth.length, peer) == AccessVerdict::Ok;
    case Family::Atomic: {
      const AtomicEth& atomic = a.h.atomic;
      if (verbs::check_remote_atomic(memory, atomic.rkey, atomic.address, verbs::kAtomicBytes,
                                     peer) != AccessVerdict::Ok) {
        return false;
      }
      *target = address_in(memory, atomic.rkey, atomic.address);
      return true;
    }
    default:
      return true;
  }
}

// The status of the receive that the packet would have used. A WRITE of a single packet with
// Immediate Data has one. The Last packet of several has no address of its own, and its receive is
// flushed.
Status status_of_refused(const Arrival& a) {
  const bool uses_one = a.row.completes_receive() && a.row.begins();
  return uses_one ? Status::LocalAccess : Status::Success;
}

bool write_length_fits(const Arrival& a) {
  const std::uint32_t length = a.row.begins() ? a.h.reth.length : a.s.message.length;
  const std::uint64_t bytes =
      (a.row.begins() ? 0 : std::uint64_t{a.s.message.bytes}) + a.payload.size();
  if (length > kMaxMessageBytes || bytes > length) return false;
  return !a.row.ends() || bytes == length;
}

// Bytes of the message so far, including this packet.
std::uint64_t send_bytes(const Arrival& a) {
  return (a.row.begins() ? 0 : std::uint64_t{a.s.message.bytes}) + a.payload.size();
}

bool room_in_receive(const Arrival& a) {
  const std::uint64_t bytes = send_bytes(a);
  return bytes <= a.s.rq->wqe(a.s.rq->head()).capacity && bytes <= kMaxMessageBytes;
}

bool length_fits(const Arrival& a, const std::uint8_t* target) {
  const auto n = static_cast<std::uint32_t>(a.payload.size());
  if (!payload_fits(a.row.payload, n, a.s.qp->pmtu())) return false;
  switch (a.row.family) {
    case Family::Write:
      return write_length_fits(a);
    case Family::Read:
      return a.h.reth.length <= kMaxMessageBytes;
    case Family::Atomic:
      return (a.h.atomic.address | reinterpret_cast<std::uintptr_t>(target)) %
                 verbs::kAtomicBytes ==
             0;
    default:
      return true;
  }
}

bool receive_writable(const Arrival& a) {
  const std::uint32_t index = a.s.rq->head();
  return receive_holds(*a.s.memory, a.s.rq->sges(index), a.s.receive_pd(),
                       send_bytes(a) - a.payload.size(), a.payload.size());
}

RequestJudgment judge_new(const Arrival& a) {
  if (!in_sequence(a) || !supported(a)) return {Verdict::InvalidRequest};
  RequestJudgment j;
  if (!ready(a, &j.rnr_timer)) {
    j.verdict = Verdict::NotReady;
    return j;
  }
  if (!may_access(a, &j.target)) return {Verdict::RemoteAccess, status_of_refused(a)};
  if (!length_fits(a, j.target)) return {Verdict::InvalidRequest};
  if (a.row.family == Family::Send) {
    if (!room_in_receive(a)) return {Verdict::InvalidRequest, Status::LocalLength};
    if (!receive_writable(a)) return {Verdict::Operational, Status::LocalProtection};
  }
  return j;
}

}  // namespace

RequestJudgment judge_request(const ResponderState& s, const ParsedPacket& request) {
  if (is_fatal(s.failure)) return {Verdict::Ignored};
  switch (region(request.header.bth.psn, s.expected)) {
    case PsnRegion::Duplicate:
      return {Verdict::Duplicate};
    case PsnRegion::Invalid:
      return {Verdict::OutOfSequence};
    case PsnRegion::Expected:
      break;
  }
  return judge_new({s, request.header, request.header.row(), request.payload});
}

}  // namespace urnic::ib
