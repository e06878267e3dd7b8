#include "iwarp/silent_peers.h"

namespace urnic::iwarp {
namespace {

// How long a peer may send nothing on an established connection before it may have to make room.
// Longer than the round trip of its MPA Request after the handshake.
constexpr Duration kSilence = Duration::ms(200);

// With fewer entries the list is not searched.
// bound: peers of a listener that have sent nothing yet; limit: 32 and twice its places; beyond:
// entries of peers that have sent something are removed; test:
// SilentPeers.NoRecordIsKeptOfThemAfterASilentPeerEither,
// SilentPeers.NoRecordIsKeptOfPeersThatHaveSentData
constexpr std::size_t kSpare = 32;

// The connection of that entry; null if its peer has sent data, or it is gone.
Connection* still_silent(const SideState& s, const Listener& l, const Listener::Silent& entry) {
  Connection* c = s.connections.find(entry.connection);
  if (c == nullptr || c->backlog.listener() != &l || c->startup == nullptr) return nullptr;
  return c->startup->phase() == Startup::Phase::WaitRequest ? c : nullptr;
}

// Removes entries from the front of the list whose peers have sent data, or that are gone.
Connection* first_silent(const SideState& s, Listener& l) {
  for (; !l.silent.empty(); l.silent.pop_front()) {
    if (Connection* c = still_silent(s, l, l.silent.front()); c != nullptr) return c;
  }
  return nullptr;
}

// Also removes such entries after a silent one, when they have become many: there are never more
// silent connections than the backlog has places.
void forget_the_others(const SideState& s, Listener& l) {
  if (l.silent.size() < kSpare + 2 * std::size_t{l.backlog.most_waiting}) return;
  for (std::size_t n = l.silent.size(); n > 0; --n) {
    const Listener::Silent entry = l.silent.front();
    l.silent.pop_front();
    if (still_silent(s, l, entry) != nullptr) l.silent.push_back(entry);
  }
}

}  // namespace

// A listener that is never full does not keep a list either.
void note_silent(const SideState& s, const Connection& c, Instant now) {
  first_silent(s, *c.backlog.listener());
  forget_the_others(s, *c.backlog.listener());
  c.backlog.listener()->silent.push_back({c.id, now});
}

bool is_full_for(const Listener& l, const IpAddress& peer) {
  return l.backlog.full() || l.is_full_for(peer);
}

Connection* oldest_silent(const SideState& s, Listener& l, const IpAddress& peer, Instant now,
                          Instant* soon) {
  const bool own = l.is_full_for(peer);
  Connection* const first = first_silent(s, l);
  Connection* found = own ? nullptr : first;
  *soon = found != nullptr ? l.silent.front().since + kSilence : Instant::never();
  for (std::size_t i = 0; i < l.silent.size(); ++i) {
    Connection* const c = still_silent(s, l, l.silent[i]);
    if (c == nullptr || !(own ? c->key.remote == peer : l.is_full_for(c->key.remote))) continue;
    found = c;
    *soon = l.silent[i].since + kSilence;
    break;
  }
  return *soon <= now ? found : nullptr;
}

bool make_room(const SideState& s, Ending& ending, Listener& l, const IpAddress& peer,
               Instant now) {
  Instant soon;
  Connection* oldest = oldest_silent(s, l, peer, now, &soon);
  if (oldest == nullptr) return false;
  s.hooks->on_note(Note::TurnedAway, oldest->key.local_end(), oldest->key.remote_end(),
                   "no MPA request received, and the backlog is full");
  ending.fail_connection(*oldest, Errc::timed_out, "", now);
  return true;
}

}  // namespace urnic::iwarp
