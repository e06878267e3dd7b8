// The two halves of a queue pair, each that of its service. Which one it is, is chosen when it is
// made; what all services have is asked here, the rest of the half itself.
//
// Owned by the queue pair's Context.
#pragma once

#include <cstdint>
#include <variant>

#include "base/time.h"
#include "ib/context.h"
#include "ib/requester.h"
#include "ib/responder.h"
#include "ib/uc.h"
#include "ib/ud.h"
#include "verbs/queue_pair.h"

namespace urnic::roce {

class RequesterHalf {
 public:
  explicit operator bool() const {
    bool is = false;
    with([&](const auto&) { is = true; });
    return is;
  }
  // Of the service in `attributes`, in place of what was there. `pool`, which outlives it, lends
  // what selective repeat needs.
  void make(const ib::QpAttributes& attributes, const ib::SendRules& rules, verbs::QueuePair* qp,
            verbs::MemoryTable* memory, ib::HeldPool* pool) {
    switch (attributes.service) {
      case ib::ServiceType::Uc:
        half_.emplace<ib::UcRequester>(attributes, &qp->sq, memory);
        return;
      case ib::ServiceType::Ud:
        half_.emplace<ib::UdRequester>(attributes, &qp->sq, memory);
        return;
      default:
        half_.emplace<ib::Requester>(attributes, rules, &qp->sq, memory, pool);
        return;
    }
  }
  void reset() { half_.emplace<std::monostate>(); }

  // Null: of another service, or none.
  ib::Requester* rc() { return std::get_if<ib::Requester>(&half_); }
  const ib::Requester* rc() const { return std::get_if<ib::Requester>(&half_); }
  ib::UcRequester* uc() { return std::get_if<ib::UcRequester>(&half_); }
  ib::UdRequester* ud() { return std::get_if<ib::UdRequester>(&half_); }
  const ib::UdRequester* ud() const { return std::get_if<ib::UdRequester>(&half_); }

  // ---- of each that is there
  template <class Sink>
  void report(Sink&& sink) {
    with([&](auto& half) { half.report(sink); });
  }
  // Whatever is posted completes; what has not failed is stopped first.
  template <class Sink>
  void flush(Sink&& sink) {
    with([&](auto& half) {
      if (!half.failed()) half.stop();
      half.flush(sink);
    });
  }
  bool failed() const {
    bool is = false;
    with([&](const auto& half) { is = half.failed(); });
    return is;
  }
  // Whole messages alone: in Sqd what has begun goes on to its end.
  bool drained() const {
    if (const ib::Requester* const half = rc()) {
      return half->drained() && half->state().fresh.packet == 0;
    }
    bool is = true;
    with([&](const auto& half) { is = half.drained(); });
    return is;
  }
  // From Sqe back to Rts (IB-114), with everything flushed.
  void resume() {
    if (auto* const half = uc()) half->resume();
    if (auto* const half = ud()) half->resume();
  }
  // Only what is answered waits for time to pass.
  Instant due() const { return rc() != nullptr ? rc()->due() : Instant::never(); }

 private:
  template <class F>
  void with(F&& f) {
    if (auto* const a = rc()) f(*a);
    if (auto* const a = uc()) f(*a);
    if (auto* const a = ud()) f(*a);
  }
  template <class F>
  void with(F&& f) const {
    if (const auto* const a = rc()) f(*a);
    if (const auto* const a = std::get_if<ib::UcRequester>(&half_)) f(*a);
    if (const auto* const a = ud()) f(*a);
  }

  std::variant<std::monostate, ib::Requester, ib::UcRequester, ib::UdRequester> half_;
};

class ResponderHalf {
 public:
  explicit operator bool() const { return rc() != nullptr || uc() != nullptr || ud() != nullptr; }
  // Throws std::bad_alloc, and then there is none.
  // `pool`, which outlives it, lends what is kept behind gaps.
  void make(const ib::QpAttributes& attributes, verbs::QueuePair* qp, verbs::MemoryTable* memory,
            ib::HeldPool* pool) {
    switch (attributes.service) {
      case ib::ServiceType::Uc:
        half_.emplace<ib::UcResponder>(attributes, &qp->rq, memory);
        return;
      case ib::ServiceType::Ud:
        half_.emplace<ib::UdResponder>(attributes, &qp->rq, memory);
        return;
      default:
        half_.emplace<ib::Responder>(attributes, &qp->rq, memory, pool);
        return;
    }
  }
  void reset() { half_.emplace<std::monostate>(); }

  ib::Responder* rc() { return std::get_if<ib::Responder>(&half_); }
  const ib::Responder* rc() const { return std::get_if<ib::Responder>(&half_); }
  ib::UcResponder* uc() { return std::get_if<ib::UcResponder>(&half_); }
  const ib::UcResponder* uc() const { return std::get_if<ib::UcResponder>(&half_); }
  ib::UdResponder* ud() { return std::get_if<ib::UdResponder>(&half_); }
  const ib::UdResponder* ud() const { return std::get_if<ib::UdResponder>(&half_); }

  // It takes nothing any more, and the queue pair goes to Error.
  bool failed() const {
    if (rc() != nullptr) return rc()->failed();
    return uc() != nullptr ? uc()->failed() : ud() != nullptr && ud()->failed();
  }
  // Why: of what is not answered, a fault of our own alone ends the queue pair.
  ib::Verdict failure() const {
    return rc() != nullptr ? rc()->failure() : ib::Verdict::Operational;
  }

 private:
  std::variant<std::monostate, ib::Responder, ib::UcResponder, ib::UdResponder> half_;
};

}  // namespace urnic::roce
