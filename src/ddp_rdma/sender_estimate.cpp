// How many octets of the stream the work that has not been cut will take.
#include "ddp_rdma/sender.h"
#include "mpa/fpdu.h"

namespace urnic::ddp {

void Sender::set_framing(const mpa::Framing& framing) {
  framing_ = framing;
  recount();
}

// The size of an FPDU has changed: estimates made with another one are made again.
void Sender::recount() {
  const std::uint32_t ulpdu = mpa::framed_mulpdu(framing_.policy, emss_);
  tagged_max_ = ulpdu - kTaggedHeader;
  untagged_max_ = ulpdu - kUntaggedHeader;
  seen_ = sq_.started();
  response_seen_ = inbound_->next_response();
  queued_wire_ = response_wire_ = 0;
}

// Octets of an FPDU wherever it will begin: with markers, as many as it can have.
std::uint64_t Sender::estimate(std::uint32_t ulpdu) const {
  const std::uint32_t base = mpa::fpdu_size(ulpdu);
  return framing_.marked() ? base + mpa::kMarker * (base / mpa::kMarkerData + 1) : base;
}

std::uint64_t Sender::wire_size(std::uint64_t payload, bool tagged) const {
  const std::uint32_t header = tagged ? kTaggedHeader : kUntaggedHeader;
  const std::uint32_t most = tagged ? tagged_max_ : untagged_max_;
  if (payload <= most) return estimate(header + static_cast<std::uint32_t>(payload));
  const std::uint64_t whole = payload / most;
  const auto rest = static_cast<std::uint32_t>(payload % most);
  return whole * estimate(header + most) + (rest != 0 ? estimate(header + rest) : 0);
}

std::uint64_t Sender::wire_of(const SendWqe& w) const {
  switch (w.op) {
    case WrOp::LocalInv:
      return 0;
    case WrOp::Read:
      return estimate(kReadRequestHeader);
    default:
      return wire_size(w.length, w.op == WrOp::Write);
  }
}

void Sender::count_new() const {
  for (; seen_ != sq_.tail(); ++seen_) queued_wire_ += wire_of(sq_.wqe(seen_));
  for (; response_seen_ != inbound_->next(); ++response_seen_) {
    response_wire_ += wire_size(inbound_->request(response_seen_).size, true);
  }
}

// Request `seq` begins: it is counted exactly from now on.
void Sender::uncount_request(std::uint32_t seq) {
  if (seen_ == seq) {
    ++seen_;
  } else {
    queued_wire_ -= wire_of(sq_.wqe(seq));
  }
}

StreamOffset Sender::available() const {
  if (!ready()) return end_;
  count_new();
  std::uint64_t n = 0;
  for (const Control& c : control_) n += c.raw ? c.len : estimate(c.len);
  if (current_ == Current::Request) {
    const SendWqe& w = sq_.wqe(current_id_);
    n += wire_size(w.length - current_offset_, w.op == WrOp::Write);
  } else if (current_ == Current::Response) {
    n += wire_size(inbound_->request(current_id_).size - current_offset_, true);
  }
  if (started_ && !stopped_ && !ended_) {
    n += response_wire_;
    if (can_begin_request()) n += queued_wire_;
  }
  return end_ + n;
}

}  // namespace urnic::ddp
