// The requester and the responder of a queue pair, each for its service. The service's half is
// chosen when the queue pair enters the state that needs it. Operations that all services have are
// here; the rest is in the half itself. The halves of RC and XRC are large and are made when they
// are first needed: a queue pair that only receives never makes its requester, and one that only
// sends never makes its responder.
//
// Owned by the queue pair's Context.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
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
  // True if a half has been chosen.
  explicit operator bool() const { return !std::holds_alternative<std::monostate>(half_); }
  // Replaces the half by one for the service in `attributes`. For RC, make() has to follow.
  void choose(const ib::QpAttributes& attributes, verbs::QueuePair* qp,
              verbs::MemoryTable* memory) {
    switch (attributes.service) {
      case ib::ServiceType::Uc:
        half_.emplace<ib::UcRequester>(attributes, &qp->sq, memory);
        return;
      case ib::ServiceType::Ud:
        half_.emplace<ib::UdRequester>(attributes, &qp->sq, memory);
        return;
      default:
        half_.emplace<OfRc>();
        return;
    }
  }
  // True if RC has been chosen but make() has not been called.
  bool awaited() const {
    const OfRc* const half = std::get_if<OfRc>(&half_);
    return half != nullptr && *half == nullptr;
  }
  // Makes the half of RC; only if awaited(). `pool` must outlive it and lends the memory that
  // selective repeat needs. Throws std::bad_alloc and then changes nothing.
  void make(const ib::QpAttributes& attributes, const ib::SendRules& rules, verbs::QueuePair* qp,
            verbs::MemoryTable* memory, ib::HeldPool* pool) {
    *std::get_if<OfRc>(&half_) =
        std::make_unique<ib::Requester>(attributes, rules, &qp->sq, memory, pool);
  }
  void reset() { half_.emplace<std::monostate>(); }

  // Null for another service, or if not made yet.
  ib::Requester* rc() {
    OfRc* const half = std::get_if<OfRc>(&half_);
    return half == nullptr ? nullptr : half->get();
  }
  const ib::Requester* rc() const {
    const OfRc* const half = std::get_if<OfRc>(&half_);
    return half == nullptr ? nullptr : half->get();
  }
  ib::UcRequester* uc() { return std::get_if<ib::UcRequester>(&half_); }
  const ib::UcRequester* uc() const { return std::get_if<ib::UcRequester>(&half_); }
  ib::UdRequester* ud() { return std::get_if<ib::UdRequester>(&half_); }
  const ib::UdRequester* ud() const { return std::get_if<ib::UdRequester>(&half_); }

  // ---- for the half that exists
  template <class Sink>
  void report(Sink&& sink) {
    with([&](auto& half) { half.report(sink); });
  }
  // Completes everything posted. A half that has not failed is stopped first.
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
  // Counts whole messages only: in Sqd a message that has begun is sent to its end.
  bool drained() const {
    if (const ib::Requester* const half = rc()) {
      return half->drained() && half->state().fresh.packet == 0;
    }
    bool is = true;
    with([&](const auto& half) { is = half.drained(); });
    return is;
  }
  // From Sqe back to Rts (IB-114), after everything has been flushed.
  void resume() {
    if (auto* const half = uc()) half->resume();
    if (auto* const half = ud()) half->resume();
  }
  // Only RC has timers: the other services expect no response.
  Instant due() const { return rc() != nullptr ? rc()->due() : Instant::never(); }

 private:
  using OfRc = std::unique_ptr<ib::Requester>;

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

  std::variant<std::monostate, OfRc, ib::UcRequester, ib::UdRequester> half_;
};

class ResponderHalf {
 public:
  // True if a half has been chosen.
  explicit operator bool() const { return !std::holds_alternative<std::monostate>(half_); }
  // Chooses the half for the service in `attributes`. For RC, make() has to follow.
  void choose(const ib::QpAttributes& attributes, verbs::QueuePair* qp,
              verbs::MemoryTable* memory) {
    switch (attributes.service) {
      case ib::ServiceType::Uc:
        half_.emplace<ib::UcResponder>(attributes, &qp->rq, memory);
        return;
      case ib::ServiceType::Ud:
        half_.emplace<ib::UdResponder>(attributes, &qp->rq, memory);
        return;
      default:
        half_.emplace<OfRc>();
        return;
    }
  }
  // Makes the half of RC, which must have been chosen. Returns null if out of memory. `pool` must
  // outlive it and lends the memory for packets received past a gap.
  ib::Responder* make(const ib::QpAttributes& attributes, verbs::QueuePair* qp,
                      verbs::MemoryTable* memory, ib::HeldPool* pool) {
    OfRc& half = *std::get_if<OfRc>(&half_);
    half.reset(new (std::nothrow) ib::Responder(attributes, &qp->rq, memory, pool));
    return half.get();
  }
  void reset() { half_.emplace<std::monostate>(); }

  // Null for another service, or if not made yet.
  ib::Responder* rc() {
    OfRc* const half = std::get_if<OfRc>(&half_);
    return half == nullptr ? nullptr : half->get();
  }
  const ib::Responder* rc() const {
    const OfRc* const half = std::get_if<OfRc>(&half_);
    return half == nullptr ? nullptr : half->get();
  }
  ib::UcResponder* uc() { return std::get_if<ib::UcResponder>(&half_); }
  const ib::UcResponder* uc() const { return std::get_if<ib::UcResponder>(&half_); }
  ib::UdResponder* ud() { return std::get_if<ib::UdResponder>(&half_); }
  const ib::UdResponder* ud() const { return std::get_if<ib::UdResponder>(&half_); }

  // True if it accepts nothing any more and the queue pair has to go to Error.
  bool failed() const {
    if (rc() != nullptr) return rc()->failed();
    return uc() != nullptr ? uc()->failed() : ud() != nullptr && ud()->failed();
  }
  // Why it failed. With the unreliable services only a local fault ends the queue pair.
  ib::Verdict failure() const {
    return rc() != nullptr ? rc()->failure() : ib::Verdict::Operational;
  }

 private:
  using OfRc = std::unique_ptr<ib::Responder>;

  std::variant<std::monostate, OfRc, ib::UcResponder, ib::UdResponder> half_;
};

}  // namespace urnic::roce
