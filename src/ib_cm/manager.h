// Connection management of one device. Its input is the MADs sent to queue pair 1, and the time;
// its output is MADs to send, events, and the time of its next call.
//
//   take(way, mad, now)      on_time(now) at due()      calls of the owner
//        next_mad(&out) until it returns false, next_event(&event) until it returns false
//
// A function of (state, input, now): all randomness comes from Options::key. Memory: one block per
// connection, and none per message unless it waits. Out of memory, take(), on_time() and
// established() throw std::bad_alloc and change nothing. Owned by one engine.
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
  // `mad`: from open_gsi() (gsi.h); `way`: the datagram's addresses.
  void take(const AddressPair& addresses, ByteView mad, Instant now);
  Instant due() const { return core_.deadlines.next(); }
  void on_time(Instant now);
  bool next_mad(Outgoing* out);
  bool next_event(Event* event);
  bool has_event() const { return !core_.events.empty(); }
  bool wants_to_send() const { return !core_.outgoing.empty(); }

  // ---- listeners
  // 0: there is a listener for that service and address already.
  ListenerId listen(const Listen& what) { return core_.listeners.open(what); }
  // Requests already reported stay.
  void unlisten(ListenerId id) { core_.listeners.close(id); }

  // ---- connections and service requests
  Connections& connections() { return connections_; }
  Sidr& sidr() { return sidr_; }
  // Ends it in any state; then only its release is reported.
  Refusal abandon(Handle h, Instant now);

  // ---- looking
  // Null if there is none; valid until the next call that changes anything.
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
