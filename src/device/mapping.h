// Converts between the enumerators and structs of include/urnic and the internal ones. Each pair is
// asserted, so that a change on one side alone does not compile.
#pragma once

#include <cstddef>
#include <span>

#include "urnic/verbs.h"
#include "verbs/queue_pair.h"
#include "verbs/work.h"

namespace urnic::device {

namespace inner = verbs;

template <class A, class B>
constexpr bool same(A a, B b) {
  return static_cast<std::uint64_t>(a) == static_cast<std::uint64_t>(b);
}

static_assert(same(WcStatus::success, inner::Status::Success) &&
              same(WcStatus::flushed, inner::Status::Flushed) &&
              same(WcStatus::local_length, inner::Status::LocalLength) &&
              same(WcStatus::local_protection, inner::Status::LocalProtection) &&
              same(WcStatus::remote_access, inner::Status::RemoteAccess) &&
              same(WcStatus::remote_operation, inner::Status::RemoteOperation) &&
              same(WcStatus::remote_invalid_request, inner::Status::RemoteInvalidRequest) &&
              same(WcStatus::fatal_transport, inner::Status::FatalTransport) &&
              same(WcStatus::window_bind, inner::Status::WindowBind) &&
              same(WcStatus::retry_exceeded, inner::Status::RetryExceeded) &&
              same(WcStatus::rnr_retry_exceeded, inner::Status::RnrRetryExceeded) &&
              same(WcStatus::bad_response, inner::Status::BadResponse) &&
              same(WcStatus::local_operation, inner::Status::LocalOperation) &&
              same(WcStatus::remote_invalid_rd_request, inner::Status::RemoteInvalidRd) &&
              same(WcStatus::local_access, inner::Status::LocalAccess));
constexpr WcStatus to_public(inner::Status s) {
  return static_cast<WcStatus>(s);
}

static_assert(same(Opcode::send, inner::WrOp::Send) &&
              same(Opcode::send_with_invalidate, inner::WrOp::SendInv) &&
              same(Opcode::write, inner::WrOp::Write) && same(Opcode::read, inner::WrOp::Read) &&
              same(Opcode::local_invalidate, inner::WrOp::LocalInv) &&
              same(Opcode::bind_window, inner::WrOp::Bind) &&
              same(Opcode::send_with_immediate, inner::WrOp::SendImm) &&
              same(Opcode::write_with_immediate, inner::WrOp::WriteImm) &&
              same(Opcode::fetch_add, inner::WrOp::FetchAdd) &&
              same(Opcode::compare_swap, inner::WrOp::CmpSwap) &&
              same(Opcode::swap, inner::WrOp::Swap) &&
              static_cast<int>(Opcode::receive) == static_cast<int>(inner::WrOp::Swap) + 1);
constexpr Opcode to_public(inner::WrOp op) {
  return static_cast<Opcode>(op);
}
// True for send requests: every opcode but `receive`.
constexpr bool is_send(Opcode op) {
  return op < Opcode::receive;
}
constexpr inner::WrOp to_inner(Opcode op) {
  return static_cast<inner::WrOp>(op);
}

static_assert(same(send_signaled, inner::kSignaled) && same(send_solicited, inner::kSolicited) &&
              same(send_inline, inner::kInline) && same(send_fence, inner::kFence));
constexpr std::uint32_t kSendFlags = send_signaled | send_solicited | send_inline | send_fence;

static_assert(same(access_local_write, inner::kLocalWrite) &&
              same(access_remote_write, inner::kRemoteWrite) &&
              same(access_remote_read, inner::kRemoteRead) &&
              same(access_zero_based, inner::kZeroBased) &&
              same(access_remote_atomic, inner::kRemoteAtomic) &&
              same(access_bind_window, inner::kBindWindow));
constexpr std::uint32_t kWindowRights =
    access_remote_write | access_remote_read | access_remote_atomic | access_zero_based;
constexpr std::uint32_t kAccessRights = kWindowRights | access_local_write | access_bind_window;

static_assert(same(WindowType::type1, inner::WindowType::One) &&
              same(WindowType::type2, inner::WindowType::Two));
// An unknown right must not be cut off: it is replaced by another right that windows cannot have.
constexpr inner::WindowBind to_inner(const WindowBind& b) {
  const bool known = (b.access & ~kWindowRights) == 0;
  const std::uint32_t access = known ? b.access : std::uint32_t{inner::kLocalWrite};
  return {b.address, b.length, b.lkey, b.rkey, static_cast<std::uint8_t>(access)};
}

static_assert(same(QpState::reset, verbs::QpState::Reset) &&
              same(QpState::init, verbs::QpState::Init) &&
              same(QpState::rtr, verbs::QpState::Rtr) && same(QpState::rts, verbs::QpState::Rts) &&
              same(QpState::sqd, verbs::QpState::Sqd) && same(QpState::sqe, verbs::QpState::Sqe) &&
              same(QpState::error, verbs::QpState::Error));
constexpr QpState to_public(verbs::QpState s) {
  return static_cast<QpState>(s);
}

static_assert(same(Service::rc, verbs::Service::Rc) && same(Service::uc, verbs::Service::Uc) &&
              same(Service::ud, verbs::Service::Ud) &&
              same(Service::xrc_send, verbs::Service::XrcSend) &&
              same(Service::xrc_receive, verbs::Service::XrcReceive));
constexpr verbs::Service to_inner(Service s) {
  return static_cast<verbs::Service>(s);
}
constexpr Service to_public(verbs::Service s) {
  return static_cast<Service>(s);
}

// The consumer posts them in spans, and the engine reads them in place.
static_assert(sizeof(Sge) == sizeof(inner::Sge) && alignof(Sge) == alignof(inner::Sge));
static_assert(offsetof(Sge, address) == offsetof(inner::Sge, addr) &&
              sizeof(Sge::address) == sizeof(inner::Sge::addr));
static_assert(offsetof(Sge, length) == offsetof(inner::Sge, length) &&
              sizeof(Sge::length) == sizeof(inner::Sge::length));
static_assert(offsetof(Sge, lkey) == offsetof(inner::Sge, lkey) &&
              sizeof(Sge::lkey) == sizeof(inner::Sge::lkey));
inline std::span<const inner::Sge> to_inner(std::span<const Sge> sges) {
  return {reinterpret_cast<const inner::Sge*>(sges.data()), sges.size()};
}

}  // namespace urnic::device
