#include "roce/sidr_resolver.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "roce/cm_addresses.h"

namespace urnic::roce {
namespace {

using ib_cm::EventKind;
using ib_cm::SidrStatus;
using verbs::QpState;

// As for connections (connection_events.cpp).
constexpr Duration kAskAgain = Duration::ms(5), kTellAgain = Duration::ms(10);

Errc code_of(SidrStatus status) {
  switch (status) {
    case SidrStatus::NoSuchService:
      return Errc::refused;
    case SidrStatus::Rejected:
    case SidrStatus::NoQueuePair:
      return Errc::rejected;
    default:
      return Errc::protocol;
  }
}

const char* text_of(SidrStatus status) {
  switch (status) {
    case SidrStatus::NoSuchService:
      return "no UD service on that port: nobody listens there, or only for connections";
    case SidrStatus::Rejected:
      return "the peer rejected the request for its UD service";
    case SidrStatus::NoQueuePair:
      return "the peer has no queue pair for its UD service";
    case SidrStatus::Redirect:
      return "the peer redirects to another host for its UD service: not supported";
    default:
      return "the peer refused the request for its UD service";
  }
}

}  // namespace

Result<SidrResolver::Asked> SidrResolver::ask(void* owner, const SocketAddress& to,
                                              const SidrQuery& p, Instant now) {
  if (p.private_data.size() > ib_cm::kSidrReqConsumer) {
    return Error{Errc::invalid_argument, "private_data: must be at most " +
                                             std::to_string(ib_cm::kSidrReqConsumer) + " bytes"};
  }
  auto addresses = choose_addresses(interface_, to, p.source);
  if (!addresses) return addresses.error();
  auto made = std::make_unique<Question>();
  Question& q = *made;
  q.owner = owner;
  q.what.addresses = *addresses;
  q.what.service = ib_cm::service_of(ib_cm::PortSpace::Udp, to.port);
  q.what.source_port = p.source.at.port != 0
                           ? p.source.at.port
                           : listeners_.choose_port(addresses->local, ib_cm::PortSpace::Udp);
  q.what.response_timeout = response_timeout(p.timeout);
  q.what.max_cm_retries = kCmRetries;
  q.data = ib_cm::PrivateData(p.private_data);
  q.give_up = now + p.timeout;
  q.refused_until = now + p.refusal_retry;
  deadlines_.reserve(all_.size() + 1);
  do {
    q.id = ++last_;
  } while (q.id == 0 || all_.contains(q.id));
  all_.insert(std::uint32_t{q.id}, std::move(made));
  deadlines_.set(q, q.give_up);
  if (send(q, now)) return Asked{q.id, {addresses->local, q.what.source_port}};
  forget(q);
  return Error{Errc::no_memory,
               "the limit of pending connections and service requests is reached: try again later"};
}

// Sends the request, as often as necessary. False: there is no room.
bool SidrResolver::send(Question& q, Instant now) {
  const auto handle = manager_->sidr().resolve(q.what, q.data.view(), now);
  if (!handle.ok()) return false;
  try {
    handles_.insert(ib_cm::Handle{*handle}, &q);
  } catch (const std::bad_alloc&) {
    manager_->abandon(*handle, now);
    return false;
  }
  q.handle = *handle;
  return true;
}

void SidrResolver::forget(Question& q) {
  if (q.handle != 0) handles_.erase(q.handle);
  deadlines_.set(q, Instant::never());
  all_.erase(std::uint32_t{q.id});
}

void SidrResolver::give_up(Id id, Instant now) {
  auto* const found = all_.find(id);
  if (found == nullptr) return;
  Question& q = **found;
  if (q.handle != 0) manager_->abandon(q.handle, now);
  forget(q);
}

// ---- answers

Result<void> SidrResolver::serve(ib_cm::Handle handle, const verbs::QueuePair& qp,
                                 std::uint32_t qkey, ByteView data, Instant now) {
  const QpState state = qp.state;
  if (state != QpState::Rtr && state != QpState::Rts && state != QpState::Sqe) {
    return Error{Errc::wrong_state,
                 "the queue pair cannot receive datagrams yet: move it to rtr or rts"};
  }
  return serve(handle, qp.number(), qkey, data, now);
}

Result<void> SidrResolver::serve(ib_cm::Handle handle, std::uint32_t number, std::uint32_t qkey,
                                 ByteView data, Instant now) {
  if (data.size() > ib_cm::kSidrRepPrivate) {
    return Error{Errc::invalid_argument, "private_data: must be at most " +
                                             std::to_string(ib_cm::kSidrRepPrivate) + " bytes"};
  }
  const auto refusal =
      manager_->sidr().answer(handle, {ib_cm::SidrStatus::Valid, number, qkey}, data, now);
  if (refusal == ib_cm::Refusal::None) return {};
  return Error{Errc::closed,
               "the service request is no longer pending: the peer gave up or it was answered"};
}

bool SidrResolver::take(const ib_cm::Event& e, Instant now) {
  Question* const* const found = handles_.find(e.handle);
  if (found == nullptr) return false;
  Question& q = **found;
  if (e.kind == EventKind::Unreachable) {
    fail(q, Errc::timed_out,
         "no response: nobody answers at this address, or the peer does not support RoCE", now);
    return true;
  }
  if (e.kind != EventKind::Resolved) return true;
  if (e.service.status == SidrStatus::NoSuchService && now < q.refused_until) {
    handles_.erase(q.handle);  // only its release follows
    q.handle = 0;
    deadlines_.set(q, std::min({now + kAskAgain, q.refused_until, q.give_up}));
    return true;
  }
  verbs::DatagramAnswer answer;
  answer.found = e.service.status == SidrStatus::Valid;
  if (!answer.found) {
    answer.code = code_of(e.service.status);
    answer.why = text_of(e.service.status);
  }
  answer.local = q.what.addresses.local;
  answer.remote = q.what.addresses.remote;
  answer.qp_number = e.service.qpn;
  answer.qkey = e.service.qkey;
  q.reply = e.data;
  end(q, answer, now);
  return true;
}

void SidrResolver::fail(Question& q, Errc code, const char* why, Instant now) {
  verbs::DatagramAnswer answer;
  answer.code = code;
  answer.why = why;
  answer.local = q.what.addresses.local;
  answer.remote = q.what.addresses.remote;
  end(q, answer, now);
}

// Reports the result to its owner, as soon as there is memory for it, and ends the request.
void SidrResolver::end(Question& q, const verbs::DatagramAnswer& answer, Instant now) {
  if (q.handle != 0) handles_.erase(q.handle);
  q.handle = 0;
  q.answered = true;
  q.answer = answer;
  q.answer.private_data = q.reply.view();
  try {
    hooks_.on_datagram_answer(q.owner, q.answer);
  } catch (const std::bad_alloc&) {
    return deadlines_.set(q, now + kTellAgain);
  }
  forget(q);
}

void SidrResolver::on_time(Instant now) {
  while (deadlines_.next() <= now) {
    Question& q = *deadlines_.take();
    if (q.answered) {
      end(q, verbs::DatagramAnswer(q.answer), now);
    } else if (now >= q.give_up) {
      if (q.handle != 0) manager_->abandon(q.handle, now);
      fail(q, Errc::timed_out, "no response from the peer: connecting timed out", now);
    } else if (send(q, now)) {
      deadlines_.set(q, q.give_up);
    } else {
      fail(q, Errc::no_memory, "out of memory", now);
    }
  }
}

}  // namespace urnic::roce
