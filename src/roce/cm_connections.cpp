#include "roce/cm_connections.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "ib_cm/judge_req.h"

namespace urnic::roce {
namespace {

using ib_cm::EventKind;
using ib_cm::Reason;

// After this time an event is reported again that failed for lack of memory.
constexpr Duration kTellAgain = Duration::ms(10);

std::optional<Error> wrong_with(const QpName& number, const ConnectParams& p, std::size_t room) {
  if (number.number > ib::kMask24 || ib_cm::is_reserved(number.number)) {
    return Error{Errc::invalid_argument,
                 "no queue pair with number " + std::to_string(number.number)};
  }
  if (p.private_data.size() > room) {
    return Error{Errc::invalid_argument,
                 "private_data: must be at most " + std::to_string(room) + " bytes"};
  }
  return std::nullopt;
}

Error wrong_state(const char* why) {
  return {Errc::wrong_state, why};
}

}  // namespace

std::uint8_t CmConnections::depth_of(std::uint32_t wanted) const {
  return static_cast<std::uint8_t>(std::min({wanted, most_depth_, 255u}));
}

std::uint32_t CmConnections::next_psn() {
  return static_cast<std::uint32_t>(siphash24(cm_options_.key, {~0ull, ++psns_, 0})) & ib::kMask24;
}

// ---- the table

CmConnections::Entry* CmConnections::find(Id id) {
  auto* const found = all_.find(id);
  return found == nullptr ? nullptr : found->get();
}

CmConnections::Entry& CmConnections::open(void* owner, const QpName& number,
                                          const ConnectParams& p) {
  deadlines_.reserve(all_.size() + 1);
  auto made = std::make_unique<Entry>();
  Entry& a = *made;
  a.owner = owner;
  a.number = number;
  a.chosen = p;
  a.chosen.private_data = {};
  a.terms.psn = p.psn ? *p.psn : next_psn();
  a.terms.rtr.responder_depth = depth_of(p.ird);
  do {
    a.id = ++last_;
  } while (a.id == 0 || all_.contains(a.id));
  all_.insert(std::uint32_t{a.id}, std::move(made));
  return a;
}

void CmConnections::name(Entry& a, ib_cm::Handle handle) {
  if (handle != 0) handles_.insert(ib_cm::Handle{handle}, &a);  // all or nothing
  if (a.handle != 0) handles_.erase(a.handle);
  a.handle = handle;
}

void CmConnections::close(Entry& a) {
  name(a, 0);
  deadlines_.set(a, Instant::never());
  all_.erase(std::uint32_t{a.id});
}

ib_cm::QpValues CmConnections::values_of(const Entry& a, std::uint32_t ird,
                                         std::uint32_t ord) const {
  ib_cm::QpValues v;
  v.qpn = a.number.number;
  v.psn = ib::Psn(a.terms.psn);
  v.responder_resources = depth_of(ird);
  v.initiator_depth = depth_of(ord);
  v.rnr_retry = a.chosen.rnr_retry;
  v.srq = a.number.srq;
  v.credits = a.chosen.flow_control.value_or(false);
  return v;
}

// ---- calls of the owner

Result<CmConnections::Id> CmConnections::connect(void* owner, const SocketAddress& to,
                                                 const QpName& number, const ConnectParams& p,
                                                 Instant now) {
  if (auto wrong = wrong_with(number, p, ib_cm::kReqConsumer)) return *wrong;
  auto made = to_ask(interface_, listeners_, cm_options_, to, p, now);
  if (!made) return made.error();
  auto asked = std::make_unique<CmRequest>(std::move(*made));
  Entry& a = open(owner, number, p);
  asked->what.qp = values_of(a, p.ird, p.ord);
  a.asked = std::move(asked);
  deadlines_.set(a, a.asked->give_up);
  if (send(a, now)) return a.id;
  close(a);
  return Error{Errc::no_memory,
               "the limit of connections is reached (pending or in time-wait): try again later"};
}

// Sends the REQ, as often as necessary. False: there is no room.
bool CmConnections::send(Entry& a, Instant now) {
  const auto handle = cm().connect(a.asked->what, a.asked->data.view(), now);
  if (!handle.ok()) return false;
  try {
    name(a, *handle);
  } catch (const std::bad_alloc&) {
    cm().abandon(*handle, now);
    return false;
  }
  return true;
}

Result<CmConnections::Id> CmConnections::accept(void* owner, ib_cm::Handle handle,
                                                const QpName& number, const ConnectParams& p,
                                                Instant now) {
  if (auto wrong = wrong_with(number, p, ib_cm::kRepPrivate)) return *wrong;
  const ib_cm::Connection* const c = manager().find(handle);
  if (c == nullptr || c->state != ib_cm::State::ReqReceived) {
    return Error{
        Errc::closed,
        "the connection request is no longer pending: the peer gave up or it was answered"};
  }
  Entry& a = open(owner, number, p);
  a.stage = State::Accepting;
  try {
    name(a, handle);
  } catch (const std::bad_alloc&) {
    close(a);
    throw;
  }
  const auto ord = std::min<std::uint32_t>(p.ord, c->offered.responder_resources);
  ib_cm::QpValues peer = c->offered;
  peer.initiator_depth = depth_of(std::min<std::uint32_t>(p.ird, c->offered.initiator_depth));
  a.terms.rtr = to_rtr(c->addresses, peer, c->path, number.number, a.terms.psn, p);
  a.terms.rts = to_rts(c->offered, c->path, depth_of(ord), p);
  // The program's own queue pair does not know our extensions.
  (void)cm().accept(handle, values_of(a, peer.initiator_depth, ord), p.private_data, now, 0);
  a.answered = true;
  general_->transmit_now(now);
  return a.id;
}

Result<void> CmConnections::confirm(Id id, Instant now) {
  Entry* const a = find(id);
  if (a == nullptr || a->stage != State::Answered ||
      cm().confirm(a->handle, {}) != ib_cm::Refusal::None) {
    return wrong_state("nothing to confirm: the peer has not accepted the connection");
  }
  a->stage = State::Up;
  a->answered = true;
  ++counters_.opened;
  general_->transmit_now(now);
  return {};
}

Result<void> CmConnections::established(Id id, Instant now) {
  Entry* const a = find(id);
  if (a == nullptr || a->stage != State::Accepting ||
      cm().established(a->handle) != ib_cm::Refusal::None) {
    return wrong_state("the connection is not waiting to be established");
  }
  general_->transmit_now(now);
  return {};
}

Result<void> CmConnections::reject(Id id, ByteView data, Instant now) {
  Entry* const a = find(id);
  if (a == nullptr || a->stage != State::Answered) {
    return wrong_state("nothing to reject: the peer has not accepted the connection");
  }
  (void)cm().reject(a->handle, Reason::Consumer,
                    data.first(std::min(data.size(), ib_cm::kRejPrivate)), now);
  a->stage = State::Over;
  ++counters_.failed;
  general_->transmit_now(now);
  return {};
}

void CmConnections::disconnect(Id id, Instant now) {
  Entry* const a = find(id);
  if (a == nullptr || a->stage != State::Up) return;
  a->stage = State::Ending;
  (void)cm().disconnect(a->handle, {}, now);
  general_->transmit_now(now);
}

void CmConnections::forget(Id id, Instant now) {
  Entry* const a = find(id);
  if (a == nullptr) return;
  a->owner = nullptr;
  a->untold.reset();
  a->asked.reset();
  deadlines_.set(*a, Instant::never());
  if (a->handle == 0) return close(*a);
  if (a->stage == State::Over) return;
  a->stage = State::Over;
  (void)cm().abandon(a->handle, now);
  general_->transmit_now(now);
}

void CmConnections::end_all(Instant now) {
  all_.for_each([&](Id, const std::unique_ptr<Entry>& a) {
    if (a->stage == State::Up) {
      a->stage = State::Ending;
      (void)cm().disconnect(a->handle, {}, now);
    } else if (a->stage < State::Up && a->handle != 0) {
      (void)cm().abandon(a->handle, now);
    }
  });
  if (general_ != nullptr) general_->transmit_now(now);
}

// ---- changes for queue pairs

std::optional<ConnectionTerms> CmConnections::terms(Id id, bool* known) const {
  const auto* const found = all_.find(id);
  if (found == nullptr || (*found)->stage >= State::Ending) return std::nullopt;
  *known = (*found)->stage != State::Asking;
  return (*found)->terms;
}

ConnectionTerms CmConnections::offered(const ib_cm::Event& e) {
  ConnectionTerms t;
  t.psn = next_psn();
  ib_cm::QpValues peer = e.qp;
  peer.initiator_depth = depth_of(e.qp.initiator_depth);
  t.rtr = to_rtr(e.addresses, peer, e.path, 0, t.psn);
  t.rts = to_rts(e.qp, e.path, depth_of(e.qp.responder_resources));
  return t;
}

// ---- connection management

bool CmConnections::take(const ib_cm::Event& e, Instant now) {
  Entry* const* const found = handles_.find(e.handle);
  if (found == nullptr) return false;
  Entry& a = **found;
  if (e.kind == EventKind::Released) {  // the handle may be reused now
    name(a, 0);
    if (a.stage != State::Over || a.untold) return true;
    if (a.answered && !tell(a, CmEvent::Kind::TimeWaitOver)) {
      deadlines_.set(a, now + kTellAgain);
    } else {
      close(a);
    }
    return true;
  }
  if (a.stage == State::Over) return true;
  switch (e.kind) {
    case EventKind::Accepted:
      answered(a, e, now);
      break;
    case EventKind::Established:
      a.stage = State::Up;
      ++counters_.opened;
      if (tell(a, CmEvent::Kind::Established, {e.data.view(), {}})) break;
      (void)cm().abandon(a.handle, now);
      end(a, CmEvent::Kind::ConnectFailed, Errc::no_memory, "out of memory", now);
      break;
    case EventKind::Rejected:
    case EventKind::Unreachable:
      refused(a, e, now);
      break;
    case EventKind::Disconnected:
      if (a.stage < State::Up) {
        end(a, CmEvent::Kind::ConnectFailed, Errc::reset,
            "the peer closed the connection before it was established", now);
      } else {
        end(a, CmEvent::Kind::Disconnected, Errc::closed, "", now, {e.data.view(), {}});
      }
      break;
    default:
      break;
  }
  return true;
}

void CmConnections::answered(Entry& a, const ib_cm::Event& e, Instant now) {
  a.stage = State::Answered;
  a.asked.reset();
  deadlines_.set(a, Instant::never());
  const ConnectParams& own = a.chosen;
  a.terms.rtr = to_rtr(e.addresses, e.qp, e.path, a.number.number, a.terms.psn, own);
  a.terms.rts = to_rts(e.qp, e.path, e.qp.responder_resources, own);
  Said said{e.data.view(), roce_peer_of(e.qp)};
  said.peer.ird = e.qp.initiator_depth;
  said.peer.ord = e.qp.responder_resources;
  if (tell(a, CmEvent::Kind::Answered, said)) return;
  (void)cm().reject(a.handle, Reason::NoResources, {}, now);
  end(a, CmEvent::Kind::ConnectFailed, Errc::no_memory, "out of memory", now);
}

void CmConnections::refused(Entry& a, const ib_cm::Event& e, Instant now) {
  if (e.kind == EventKind::Unreachable) {
    return end(a, CmEvent::Kind::ConnectFailed, Errc::timed_out,
               "no response: nobody answers at this address, or the peer does not support RoCE",
               now);
  }
  if (Instant at; a.stage == State::Asking && a.asked->again(e.reason, now, &at)) {
    name(a, 0);
    return deadlines_.set(a, at);
  }
  Said said{e.data.view(), {}};
  said.peer.reject_reason = static_cast<std::uint16_t>(e.reason);
  end(a, CmEvent::Kind::ConnectFailed, code_of(e.reason), text_of(e.reason), now, said);
}

// Reports the end to its owner, as soon as there is memory for it.
void CmConnections::end(Entry& a, CmEvent::Kind kind, Errc code, const char* why, Instant now,
                        const Said& said) {
  ++(kind == CmEvent::Kind::Disconnected ? counters_.closed : counters_.failed);
  a.stage = State::Over;
  a.code = code;
  a.why = why;
  a.asked.reset();
  deadlines_.set(a, Instant::never());
  if (!tell(a, kind, said)) {
    deadlines_.set(a, now + kTellAgain);
  } else if (a.handle == 0) {
    close(a);
  }
}

// False: out of memory.
bool CmConnections::tell(Entry& a, CmEvent::Kind kind, const Said& said) {
  a.untold.reset();
  if (a.owner == nullptr) return true;
  try {
    CmEvent event;
    event.kind = kind;
    event.code = a.code;
    event.message = a.why;
    event.private_data = {reinterpret_cast<const char*>(said.data.data()), said.data.size()};
    event.roce_peer = said.peer;
    hooks_.on_cm_connection(a.owner, event);
    return true;
  } catch (const std::bad_alloc&) {
    a.untold = kind;
    return false;
  }
}

void CmConnections::on_time(Instant now) {
  while (deadlines_.next() <= now) {
    Entry& a = *deadlines_.take();
    if (a.untold) {
      if (!tell(a, *a.untold)) {
        deadlines_.set(a, now + kTellAgain);
      } else if (a.handle == 0) {
        close(a);
      }
    } else if (now >= a.asked->give_up) {
      if (a.handle != 0) (void)cm().abandon(a.handle, now);
      end(a, CmEvent::Kind::ConnectFailed, Errc::timed_out,
          "no response from the peer: connecting timed out", now);
    } else if (send(a, now)) {
      deadlines_.set(a, a.asked->give_up);
    } else {
      end(a, CmEvent::Kind::ConnectFailed, Errc::no_memory, "out of memory", now);
    }
  }
}

std::size_t CmConnections::leaving(bool also_living) {
  std::size_t n = 0;
  all_.for_each([&](Id, const std::unique_ptr<Entry>& a) {
    if (a->handle == 0 || (a->owner != nullptr && !also_living)) return;
    const ib_cm::Connection* const c = manager().find(a->handle);
    n += c != nullptr && c->state == ib_cm::State::DreqSent;
  });
  return n;
}

}  // namespace urnic::roce
