// Connection management of one device: what comes to queue pair 1 and is a MAD goes in, with the
// time; MADs to be sent and events come out, and when it next wants to be called.
//
//   take(way, mad, now)      on_time(now) at due()      the owner's calls
//        next_mad(&out) until it says no, next_event(&event) until it says no
//
// A function of (state, input, now): all randomness is Options::key's. Memory: one block for each
// connection, none for a message but where it waits. Without any take(), on_time() and
// established() throw std::bad_alloc, and nothing has changed. Owned by one engine.
#pragma once

#include "ib_cm/connections.h"
#include "ib_cm/sidr.h"

namespace urnic::ib_cm {

class Manager {
 public:
  explicit Manager(const Options& o) : core_(o), connections_(&core_), sidr_(&core_) {}
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  // ---- driving
  // `mad`: what open_gsi() says (gsi.h); `way`: the datagram's addresses.
  void take(const AddressPair& way, ByteView mad, Instant now);
  Instant due() const { return core_.deadlines.next(); }
  void on_time(Instant now);
  bool next_mad(Outgoing* out);
  bool next_event(Event* event);
  bool has_event() const { return !core_.events.empty(); }
  bool wants_to_send() const { return !core_.outgoing.empty(); }

  // ---- listeners
  // 0: that service has one at that address already.
  ListenerId listen(const Listen& what) { return core_.listeners.open(what); }
  // Requests that were told of stay.
  void unlisten(ListenerId id) { core_.listeners.close(id); }

  // ---- connections and questions
  Connections& connections() { return connections_; }
  Sidr& sidr() { return sidr_; }
  // Whatever it is, it ends, and nothing but its release is told any more.
  Refusal abandon(Handle h, Instant now);

  // ---- looking
  // Null when there is none; until the next call that changes anything.
  const Connection* find(Handle h) { return core_.table.find(h); }
  const Counters& counters() const { return core_.counters; }
  std::size_t size() const { return core_.table.size(); }
  std::uint32_t half_open() const { return core_.half_open->inside(); }

 private:
  Core core_;
  Connections connections_;
  Sidr sidr_;
};

}  // namespace urnic::ib_cm
