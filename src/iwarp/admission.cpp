#include "iwarp/admission.h"

#include <new>

namespace urnic::iwarp {
namespace {

bool passes(SideState& s, const FlowKey& key, GateVerdict verdict) {
  if (verdict == GateVerdict::Admitted) return true;
  ++(verdict == GateVerdict::Denied ? s.counters.denied : s.counters.over_limit);
  s.hooks->on_note(Note::TurnedAway, key.local_end(), key.remote_end(), name(verdict));
  return false;
}

}  // namespace

bool may_ask(SideState& s, const Listener& l, const FlowKey& key, Instant now) {
  return l.gate == nullptr || passes(s, key, l.gate->judge(key.remote, now));
}

std::optional<Admission> admit(SideState& s, const Listener& l, const FlowKey& key, Instant now) {
  if (l.gate == nullptr) return Admission();
  try {
    if (!passes(s, key, l.gate->enter(key.remote, now))) return std::nullopt;
  } catch (const std::bad_alloc&) {  // without memory for a place there is none
    ++s.counters.over_limit;
    s.hooks->on_note(Note::TurnedAway, key.local_end(), key.remote_end(), "out of memory");
    return std::nullopt;
  }
  return Admission(l.gate, key.remote);
}

}  // namespace urnic::iwarp
