#include "iwarp/startup.h"

namespace urnic::iwarp {
namespace {

ddp::Violation violation_of(mpa::Refusal r) {
  switch (r) {
    case mpa::Refusal::NoMatchingRtr:
      return ddp::Violation::MpaNoRtr;
    case mpa::Refusal::InsufficientIrd:
      return ddp::Violation::MpaInsufficientIrd;
    default:
      return ddp::Violation::MpaStartup;
  }
}

}  // namespace

Startup Startup::active(const mpa::StartupOptions& options, ByteView private_data) {
  Startup s;
  s.active_ = true;
  s.phase_ = Phase::SendRequest;
  s.options_ = options;
  s.request_ = mpa::make_request(options, private_data);
  return s;
}

Startup Startup::passive(const mpa::StartupOptions& options) {
  Startup s;
  s.phase_ = Phase::WaitRequest;
  s.options_ = options;
  return s;
}

std::vector<std::uint8_t> Startup::emit(mpa::StartupFrame& frame) {
  mpa::set_filler(frame, own_first_sn_);
  std::vector<std::uint8_t> out(mpa::kFrameHeader + mpa::kMaxPrivateData);
  out.resize(mpa::emit_frame(frame, out.data()));
  sent_bytes_ = static_cast<std::uint32_t>(out.size());
  return out;
}

// E2: if a frame ended between two words, FPDUs would split markers.
bool Startup::ends_at_a_word(const mpa::StartupFrame& frame, std::uint32_t length) const {
  using Kind = mpa::PolicyToken::Kind;
  const bool counts = frame.token.policy == mpa::Policy::AbsoluteMarkers &&
                      (frame.token.kind == Kind::Offer || frame.token.kind == Kind::Accept);
  return !counts || mpa::correcting_factor(peer_first_sn_ + length) == 0;
}

std::vector<std::uint8_t> Startup::request_bytes() {
  phase_ = Phase::WaitReply;
  return emit(request_);
}

Startup::Step Startup::feed(ByteView bytes) {
  Step step;
  if (phase_ != Phase::WaitReply && phase_ != Phase::WaitRequest) return step;
  const auto fail = [&](ddp::Violation v) {
    phase_ = Phase::Failed;
    step.what = What::Fail;
    step.violation = v;
    return step;
  };
  const auto length = mpa::frame_length(bytes, active_);
  if (!length) return fail(ddp::Violation::MpaStartup);
  if (!length->has_value() || bytes.size() < **length) return step;
  const auto frame = mpa::parse_frame(bytes.first(**length), active_);
  if (!frame) return fail(ddp::Violation::MpaStartup);
  if (!ends_at_a_word(*frame, **length)) return fail(ddp::Violation::MpaStartup);
  step.consumed = **length;
  if (!active_) {
    request_ = *frame;
    phase_ = Phase::WaitConsumer;
    step.what = What::Request;
    return step;
  }
  reply_ = *frame;
  if (reply_.reject) {
    phase_ = Phase::Failed;
    step.what = What::Rejected;
    step.refusal = mpa::read_reply(request_, reply_, options_).error();
    return step;
  }
  const auto agreed = mpa::read_reply(request_, reply_, options_);
  if (!agreed) {
    step.refusal = agreed.error();
    if (agreed.error() == mpa::Refusal::NotEnhanced) {
      phase_ = Phase::Failed;
      step.what = What::RetryRevision1;
      return step;
    }
    return fail(violation_of(agreed.error()));
  }
  agreement_ = *agreed;
  phase_ = Phase::Done;
  step.what = What::Established;
  return step;
}

std::vector<std::uint8_t> Startup::accept(const mpa::StartupOptions& options, ByteView private_data,
                                          mpa::Refusal* refusal) {
  const mpa::Answer answer = mpa::answer_request(request_, options, private_data);
  *refusal = answer.refusal;
  reply_ = answer.reply;
  agreement_ = answer.agreement;
  options_ = options;
  phase_ = answer.refusal == mpa::Refusal::None ? Phase::Done : Phase::Failed;
  if (!answer.send_reply) return {};  // a revision the consumer does not allow: just close
  return emit(reply_);
}

std::vector<std::uint8_t> Startup::reject(ByteView private_data) {
  reply_ = mpa::make_reject(request_, private_data);
  phase_ = Phase::Failed;
  return emit(reply_);
}

mpa::Agreement Startup::preview(const mpa::StartupOptions& options) const {
  return mpa::answer_request(request_, options, {}).agreement;
}

}  // namespace urnic::iwarp
