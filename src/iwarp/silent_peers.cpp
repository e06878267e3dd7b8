#include "iwarp/silent_peers.h"

namespace urnic::iwarp {
namespace {

// How long a peer may say nothing on an established connection before it may have to give way: more
// than the round trip that its MPA Request takes behind the handshake.
constexpr Duration kSilence = Duration::ms(200);

// Those that have spoken, or are gone, leave the list.
Connection* first_silent(const SideState& s, Listener& l) {
  for (; !l.silent.empty(); l.silent.pop_front()) {
    Connection* c = s.connections.find(l.silent.front().connection);
    if (c == nullptr || c->listener != &l || c->startup == nullptr) continue;
    if (c->startup->phase() == Startup::Phase::WaitRequest) return c;
  }
  return nullptr;
}

}  // namespace

// A listener that is never full keeps no list either.
void note_silent(const SideState& s, const Connection& c, Instant now) {
  first_silent(s, *c.listener);
  c.listener->silent.push_back({c.id, now});
}

Connection* oldest_silent(const SideState& s, Listener& l, Instant now, Instant* soon) {
  Connection* c = first_silent(s, l);
  *soon = c != nullptr ? l.silent.front().since + kSilence : Instant::never();
  return *soon <= now ? c : nullptr;
}

bool make_room(const SideState& s, Ending& ending, Listener& l, Instant now) {
  Instant soon;
  Connection* oldest = oldest_silent(s, l, now, &soon);
  if (oldest == nullptr) return false;
  l.silent.pop_front();
  s.hooks->on_note(Note::TurnedAway, oldest->key, "silent, and the backlog is full");
  ending.fail_connection(*oldest, Errc::timed_out, "", now);
  return true;
}

}  // namespace urnic::iwarp
