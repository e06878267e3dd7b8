#include "ddp_rdma/access.h"

namespace urnic::ddp {
namespace {

using verbs::AccessVerdict;

// The violations that each kind of access reports for a verdict.
struct Words {
  Violation bad_key, not_associated, rights, wraps, bounds;
};
constexpr Words kWrite{Violation::TaggedInvalidStag, Violation::TaggedStagNotAssociated,
                       Violation::WriteAccess, Violation::TaggedToWrap, Violation::TaggedBounds};
constexpr Words kRead{Violation::ReadInvalidStag, Violation::ReadStagNotAssociated,
                      Violation::ReadAccess, Violation::ReadToWrap, Violation::ReadBounds};

Violation violation_of(const Words& w, AccessVerdict v, const SharedState& shared,
                       std::uint32_t stag, StreamId stream) {
  switch (v) {
    case AccessVerdict::Ok:
      return Violation::None;
    case AccessVerdict::BadKey:
      return w.bad_key;
    case AccessVerdict::Reserved:  // E-16: a sink takes Read Responses only
      return (shared.sinks.find(stag)->stream & ~ReadSink::kOfAtomic) == stream ? w.rights
                                                                                : w.not_associated;
    case AccessVerdict::WrongDomain:
      return w.not_associated;
    case AccessVerdict::Rights:
      return w.rights;
    case AccessVerdict::Wraps:
      return w.wraps;
    case AccessVerdict::Bounds:
      return w.bounds;
  }
  return w.bad_key;
}

}  // namespace

Violation check_write(const SharedState& shared, std::uint32_t stag, std::uint64_t to,
                      std::uint64_t len, verbs::PdId pd, StreamId stream) {
  const AccessVerdict v = verbs::check_remote_write(*shared.memory, stag, to, len, {pd, stream});
  return violation_of(kWrite, v, shared, stag, stream);
}

Violation check_read_response(const SharedState& shared, std::uint32_t stag, std::uint64_t to,
                              std::uint64_t len, StreamId stream) {
  const ReadSink* s = shared.sinks.find(stag);
  if (s == nullptr) return Violation::TaggedInvalidStag;
  if (s->stream != stream) return Violation::TaggedStagNotAssociated;
  if (to + len < to) return Violation::TaggedToWrap;
  return to <= s->length && len <= s->length - to ? Violation::None : Violation::TaggedBounds;
}

Violation check_read_source(const SharedState& shared, std::uint32_t stag, std::uint64_t to,
                            std::uint64_t len, verbs::PdId pd, StreamId stream) {
  const AccessVerdict v = verbs::check_remote_read(*shared.memory, stag, to, len, {pd, stream});
  if (v == AccessVerdict::Ok) [[likely]]
    return Violation::None;
  return violation_of(kRead, v, shared, stag, stream);
}

Violation check_atomic_target(const SharedState& shared, std::uint32_t stag, std::uint64_t to,
                              verbs::PdId pd, StreamId stream) {
  const AccessVerdict v =
      verbs::check_remote_atomic(*shared.memory, stag, to, sizeof(std::uint64_t), {pd, stream});
  if (v != AccessVerdict::Ok) return violation_of(kRead, v, shared, stag, stream);
  // Checks the alignment of the address as the peer gives it (RFC 7306, 5), and of the address in
  // our memory.
  const verbs::Region* r = shared.memory->find(stag);
  const auto address = reinterpret_cast<std::uintptr_t>(r->base) + (to - r->address);
  return ((to | address) & 7) == 0 ? Violation::None : Violation::AtomicMisaligned;
}

ReadSink* atomic_sink(SharedState& shared, std::uint32_t id, StreamId stream) {
  ReadSink* s = shared.sinks.find(id);
  return s != nullptr && s->stream == (stream | ReadSink::kOfAtomic) ? s : nullptr;
}

}  // namespace urnic::ddp
