// The two halves of a queue pair, each that of its service. Which one it is, is chosen when its
// state has one; what all services have is asked here, the rest of the half itself. Those of RC and
// XRC are large, and are made when they are first needed: who only receives has no requester, and
// who only sends no responder.
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
  // It has been chosen.
  explicit operator bool() const { return !std::holds_alternative<std::monostate>(half_); }
  // Of the service in `attributes`, in place of what was there. That of RC is not there yet.
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
  // That of RC has been chosen, and is not there.
  bool awaited() const {
    const OfRc* const half = std::get_if<OfRc>(&half_);
    return half != nullptr && *half == nullptr;
  }
  // awaited(): it is there from now on. `pool`, which outlives it, lends what selective repeat
  // needs. Throws std::bad_alloc, and then it is not.
  void make(const ib::QpAttributes& attributes, const ib::SendRules& rules, verbs::QueuePair* qp,
            verbs::MemoryTable* memory, ib::HeldPool* pool) {
    *std::get_if<OfRc>(&half_) =
        std::make_unique<ib::Requester>(attributes, rules, &qp->sq, memory, pool);
  }
  void reset() { half_.emplace<std::monostate>(); }

  // Null: of another service, or not there (yet).
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
  // It has been chosen.
  explicit operator bool() const { return !std::holds_alternative<std::monostate>(half_); }
  // Of the service in `attributes`. That of RC is not there yet.
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
  // That of RC has been chosen; it is there from now on, or null: there is no memory. `pool`, which
  // outlives it, lends what is kept behind gaps.
  ib::Responder* make(const ib::QpAttributes& attributes, verbs::QueuePair* qp,
                      verbs::MemoryTable* memory, ib::HeldPool* pool) {
    OfRc& half = *std::get_if<OfRc>(&half_);
    half.reset(new (std::nothrow) ib::Responder(attributes, &qp->rq, memory, pool));
    return half.get();
  }
  void reset() { half_.emplace<std::monostate>(); }

  // Null: of another service, or not there (yet).
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
  using OfRc = std::unique_ptr<ib::Responder>;

  std::variant<std::monostate, OfRc, ib::UcResponder, ib::UdResponder> half_;
};

}  // namespace urnic::roce
