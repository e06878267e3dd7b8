// Sending packets of an EE context, and the end of its messages. For responses see
// rd_responses.cpp.
#include "sim/rd/rd_requester.h"

#include "sim/rd/resync.h"

namespace urnic::sim {

using verbs::Status;

RdRequester::RdRequester(const EeAttributes& ee)
    : ee_(&ee),
      psn_(ee.sq_psn),
      timer_(ee.ack_timeout, ee.rules.least_timeout),
      retries_(ee.retry_count, ee.rnr_retry) {}

void RdRequester::begin(RdSender* sender, std::uint32_t rdd) {
  m_ = begin_rd_message(sender, *ee_, psn_);
  phase_ = Phase::Message;
  repeating_ = false;
  retries_.reload();
  if (rdd != ee_->rdd) {
    give_up(Status::RetryExceeded, GiveUp::Resync);
  } else if (!sender->wqes().may_touch(sender->index())) {
    give_up(Status::LocalProtection, GiveUp::Resync);
  }
}

// ---- outgoing packets

bool RdRequester::resync_packet(Instant now, ib::RequestPacket* out) {
  if (!owed_) return false;
  owed_ = false;
  out->header = resync_header(*ee_, resync_psn(m_.first, m_.fresh), m_.dest_qp, m_.deth);
  out->length = out->count = 0;
  ++counters_.packets;
  timer_.restart(now);
  return true;
}

bool RdRequester::next_packet(Instant now, ib::RequestPacket* out) {
  if (phase_ == Phase::Resync) return resync_packet(now, out);
  if (phase_ != Phase::Message || m_.next == m_.packets) return false;
  if (!m_.awaits_data() && m_.next - m_.una >= ee_->rules.window) return false;
  if (!build_rd_packet(m_, *ee_, out)) {
    give_up(Status::LocalProtection, GiveUp::Resync);
    return phase_ == Phase::Resync && resync_packet(now, out);
  }
  ++counters_.packets;
  const bool again = m_.next < m_.fresh;
  counters_.repeated += again ? 1 : 0;
  if (m_.awaits_data()) {  // one request covers all remaining responses
    m_.resumed = m_.next;
    m_.next = m_.packets;
  } else {
    ++m_.next;
  }
  const bool last_again = again && m_.next == m_.fresh;
  const bool ask = out->header.row().ends() || m_.since_ack + 1 >= ee_->rules.ack_every ||
                   m_.next - m_.una >= ee_->rules.window || last_again;
  if (m_.next > m_.fresh) m_.fresh = m_.next;
  m_.since_ack = ask ? 0 : m_.since_ack + 1;
  out->header.bth.ack_request = ask;
  if (ask) {
    if (m_.next > m_.asked) m_.asked = m_.next;
    timer_.start(now);
  }
  return true;
}

// ---- time

void RdRequester::repeat() {
  m_.next = m_.una;
  m_.asked = m_.una;
  m_.since_ack = 0;
  timer_.stop();  // restarted by the packet that requests an ACK again
}

void RdRequester::on_time(Instant now) {
  if (phase_ == Phase::RnrWait && wait_ <= now) {
    wait_ = Instant::never();
    phase_ = Phase::Message;
    repeat();
  }
  if (!timer_.expired(now)) return;
  ++counters_.timeouts;
  if (phase_ == Phase::Resync) {
    timer_.stop();
    if (retries_.take_retry()) {
      owed_ = true;
      ++counters_.resyncs_again;
      return;
    }
    // The peer does not respond any more.
    end_ = {RdEnd::How::EeContextStops, suspended_ ? held_ : nullptr};
    if (suspended_) held_->fail(Status::RetryExceeded);
    end_resync();
    return;
  }
  repeating_ = false;
  if (retries_.take_retry()) return repeat();
  give_up(Status::RetryExceeded, ee_->rules.give_up);
}

// ---- ends

RdEnd RdRequester::take_end() {
  const RdEnd e = end_;
  end_ = {};
  return e;
}

void RdRequester::finish(ib::Msn msn) {
  msn_ = msn;
  psn_ = m_.first + m_.packets;
  m_.sender->done();
  end_ = {RdEnd::How::Done, m_.sender};
  ++counters_.messages;
  m_.sender = nullptr;
  phase_ = Phase::Idle;
  timer_.stop();
  wait_ = Instant::never();
}

void RdRequester::give_up(Status status, GiveUp how) {
  m_.sender->fail(status);
  const bool all = how == GiveUp::Error;
  end_ = {all ? RdEnd::How::BothStop : RdEnd::How::QueuePairStops, m_.sender};
  if (all) {
    m_.sender = nullptr;
    phase_ = Phase::Idle;
    timer_.stop();
    wait_ = Instant::never();
    return;
  }
  resync();
}

// Abandons the message. If it has used no PSN, the peer knows nothing about it and needs no RESYNC.
void RdRequester::resync() {
  RdSender* const sender = m_.sender;
  m_.sender = nullptr;
  timer_.stop();
  wait_ = Instant::never();
  if (m_.fresh == 0) {
    phase_ = Phase::Idle;
    return;
  }
  phase_ = Phase::Resync;
  owed_ = true;
  retries_.reload();
  ++counters_.resyncs;
  held_ = sender;
  held_->hold();
}

void RdRequester::end_resync() {
  held_->release();
  held_ = nullptr;
  suspended_ = false;
  phase_ = Phase::Idle;
  owed_ = false;
  timer_.stop();
}

// The queue pair is not notified yet.
void RdRequester::suspend(Instant until) {
  suspended_ = true;
  suspended_until_ = until;
  resync();
}

// Meanwhile the refused message may have arrived again and found a receive. The peer's MSN shows
// that, and then the message must not be resent. A READ is always repeated: its data so far is
// lost.
void RdRequester::end_suspension(ib::Msn msn) {
  if (msn == msn_ || m_.op == verbs::WrOp::Read) {
    ++counters_.put_back;
    held_->put_back(suspended_until_);
    end_ = {RdEnd::How::PutBack, held_};
  } else if (m_.awaits_data()) {
    held_->fail(Status::RnrRetryExceeded);
    end_ = {RdEnd::How::QueuePairStops, held_};
  } else {
    ++counters_.messages;
    held_->done();
    end_ = {RdEnd::How::Done, held_};
  }
}

void RdRequester::abort(const RdSender* sender) {
  if (m_.sender == sender && m_.open()) resync();
  if (held_ == sender) suspended_ = false;
}

void RdRequester::stop() {
  if (m_.open()) {
    m_.sender->fail(Status::Flushed);
    end_ = {RdEnd::How::QueuePairStops, m_.sender};
    m_.sender = nullptr;
  }
  if (suspended_) {
    held_->fail(Status::Flushed);
    end_ = {RdEnd::How::QueuePairStops, held_};
  }
  if (phase_ == Phase::Resync) end_resync();
  phase_ = Phase::Idle;
  timer_.stop();
  wait_ = Instant::never();
}

}  // namespace urnic::sim
