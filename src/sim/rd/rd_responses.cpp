// How an EE context handles responses.
#include <array>
#include <cstring>

#include "sim/rd/rd_requester.h"
#include "sim/rd/resync.h"

namespace urnic::sim {
namespace {

using verbs::Status;

// True for a request, a response with forbidden content, or one with an undefined value.
bool malformed(const ib::ParsedPacket& p) {
  const ib::OpcodeRow& row = p.header.row();
  if (!row.response()) return true;
  const bool carries = row.family == ib::Family::ReadResponse;
  if (!carries && (!p.payload.empty() || p.header.bth.pad != 0)) return true;
  if (!row.has(ib::kAeth)) return false;
  const ib::Syndrome s = p.header.aeth.syndrome;
  return s.reserved() || (row.family != ib::Family::Acknowledge && s.kind() != ib::AckKind::Ack);
}

Status status_of(ib::NakCode code) {
  switch (code) {
    case ib::NakCode::RemoteAccess:
      return Status::RemoteAccess;
    case ib::NakCode::InvalidRequest:
      return Status::RemoteInvalidRequest;
    case ib::NakCode::InvalidRdRequest:
      return Status::RemoteInvalidRd;
    default:
      return Status::RemoteOperation;
  }
}

}  // namespace

// Handles the acknowledgment of all packets of the message before `up_to`.
void RdRequester::acknowledge(std::uint32_t up_to, ib::Msn msn, Instant now) {
  if (up_to <= m_.una) return;
  m_.una = up_to;
  if (m_.next < m_.una) m_.next = m_.una;
  repeating_ = false;
  retries_.reload();
  if (phase_ == Phase::Message && m_.expecting()) {
    timer_.restart(now);
  } else {
    timer_.stop();
  }
  if (m_.una == m_.packets) finish(msn);
}

RdHeard RdRequester::refused(Status status) {
  give_up(status, ee_->rules.give_up);
  return RdHeard::Refused;
}

// Handles a lost packet, once for all reports of the same loss.
RdHeard RdRequester::nak() {
  if (repeating_ || phase_ == Phase::RnrWait) return RdHeard::Nothing;
  ++counters_.naks;
  if (!retries_.take_retry()) return refused(Status::RetryExceeded);
  repeat();
  repeating_ = true;
  return RdHeard::Nak;
}

RdHeard RdRequester::rnr_nak(std::uint8_t timer, Instant now) {
  if (phase_ == Phase::RnrWait) return RdHeard::Nothing;
  ++counters_.rnr_naks;
  const Instant until = now + ib::rnr_wait(timer);
  switch (ee_->rules.on_rnr) {
    case OnRnr::Retry:
      if (!retries_.take_rnr_retry()) return refused(Status::RnrRetryExceeded);
      timer_.stop();
      wait_ = until;
      phase_ = Phase::RnrWait;
      break;
    case OnRnr::Suspend:
      if (ee_->rnr_retry != ib::RetryCounters::kRnrForEver &&
          m_.sender->put_backs() >= ee_->rnr_retry) {
        return refused(Status::RnrRetryExceeded);
      }
      suspend(until);
      break;
    case OnRnr::Abandon:
      give_up(Status::RnrRetryExceeded, GiveUp::Resync);
      break;
    case OnRnr::Error:
      give_up(Status::RnrRetryExceeded, GiveUp::Error);
      break;
  }
  return RdHeard::Nak;
}

RdHeard RdRequester::acknowledged(const ib::PacketHeader& h, std::uint32_t k, Instant now) {
  const ib::Syndrome s = h.aeth.syndrome;
  if (s.kind() == ib::AckKind::Ack) {
    if (m_.awaits_data()) return nak();  // the response was lost
    acknowledge(k + 1, h.aeth.msn, now);
    return RdHeard::Progress;
  }
  if (!m_.awaits_data()) acknowledge(k, h.aeth.msn, now);
  if (s.kind() == ib::AckKind::RnrNak) return rnr_nak(s.value(), now);
  if (s.code() == ib::NakCode::SequenceError) return nak();
  if (s.code() != ib::NakCode::OperationInProgress) return refused(status_of(s.code()));
  if (m_.expecting()) timer_.restart(now);
  return RdHeard::Nothing;
}

bool RdRequester::place_fits(ib::Place place, std::uint32_t k) const {
  const bool last = k + 1 == m_.packets;
  const bool begins = k == 0 || k == m_.resumed;
  return ib::place_fits(place, k, begins, last, last);
}

bool RdRequester::store(const ib::ParsedPacket& p, std::uint32_t k) const {
  const ib::SendWqes& wqes = m_.sender->wqes();
  const std::uint32_t index = m_.sender->index();
  if (m_.op == verbs::WrOp::Read) return wqes.scatter(index, k * wqes.pmtu(), p.payload);
  std::array<std::uint8_t, verbs::kAtomicBytes> bytes;
  std::memcpy(bytes.data(), &p.header.original, bytes.size());
  return wqes.scatter(index, 0, bytes);
}

RdHeard RdRequester::data(const ib::ParsedPacket& p, std::uint32_t k, Instant now) {
  const bool read = p.header.row().family == ib::Family::ReadResponse;
  const ib::SendWqes& wqes = m_.sender->wqes();
  if (!m_.awaits_data() || read != (m_.op == verbs::WrOp::Read)) {
    return refused(Status::BadResponse);
  }
  if (k != m_.una) return nak();  // an earlier response was lost
  const bool fits = !read || (place_fits(p.header.row().place, k) &&
                              p.payload.size() == wqes.bytes(wqes.wqe(m_.sender->index()), k));
  if (!fits) return refused(Status::BadResponse);
  if (!store(p, k)) {
    give_up(Status::LocalProtection, GiveUp::Resync);
    return RdHeard::Refused;
  }
  acknowledge(k + 1, p.header.aeth.msn, now);
  return RdHeard::Progress;
}

RdHeard RdRequester::take(const ib::ParsedPacket& p, Instant now) {
  const ib::PacketHeader& h = p.header;
  if (malformed(p)) {
    ++counters_.malformed;
    return RdHeard::Malformed;
  }
  const std::uint32_t k = h.bth.psn - m_.first;
  const bool mine = phase_ != Phase::Idle && h.bth.dest_qp == m_.deth.source_qp;
  if (mine && phase_ == Phase::Resync) {
    const bool yes =
        h.row().family == ib::Family::Acknowledge && h.aeth.syndrome.kind() == ib::AckKind::Ack;
    if (yes && h.bth.psn == resync_psn(m_.first, m_.fresh)) {
      psn_ = expected_behind(h.bth.psn);
      if (suspended_) end_suspension(h.aeth.msn);
      msn_ = h.aeth.msn;
      end_resync();
      return RdHeard::Resynced;
    }
  }
  if (!mine || phase_ == Phase::Resync || k < m_.una || k >= m_.fresh) {
    ++counters_.strangers;
    return RdHeard::Stranger;
  }
  return h.row().family == ib::Family::Acknowledge ? acknowledged(h, k, now) : data(p, k, now);
}

}  // namespace urnic::sim
