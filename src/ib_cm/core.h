// The common base of connection management: the connections, the queues of outgoing MADs and
// events, and timers. It knows no protocol.
#pragma once

#include <cstdint>
#include <functional>

#include "base/deadlines.h"
#include "base/ring.h"
#include "ib/context.h"
#include "ib_cm/connection_table.h"
#include "ib_cm/counters.h"
#include "ib_cm/listeners.h"
#include "ib_cm/resting.h"

namespace urnic::ib_cm {

struct Options {
  SipKey key;  // for ids and transactions: random, or from a seed
  std::uint64_t ca_guid = 0;
  // The largest path MTU between two addresses: REQs with a larger one are refused.
  std::function<ib::PathMtu(const AddressPair&)> most_mtu = [](const AddressPair&) {
    return ib::PathMtu::k4096;
  };
  std::uint8_t ack_delay = 15;         // code: ours, sent in REPs
  std::uint8_t packet_life_time = 18;  // code: of the network
  std::uint8_t service_timeout = 22;   // code: the time an MRA of ours asks for
  std::uint8_t extensions = 0;         // that REQs may offer (consent.h)
  // bound: connections of connection management, including time-wait; limit: 262144; beyond:
  // connecting fails with no_memory; a REQ is dropped, counted, and repeated by the peer; test:
  // RefusalTest.AFullTableAcceptsNoMoreConnections
  std::uint32_t most = 1u << 18;  // connections at a time, those in time-wait too
  // bound: incoming connections not yet established; limit: 1024 from one address, 4096 in all;
  // beyond: a REQ is dropped, counted, and repeated by the peer; the oldest refused one gives way;
  // test: RefusalTest.HalfOpenConnectionsAreBoundedAcrossListeners,
  // RefusalTest.OneAddressTakesAQuarterOfTheHalfOpenConnections
  std::uint32_t most_half_open = 4096;
  // bound: connections of connection management in time-wait; limit: 16384 from one address, 65536
  // in all; beyond: the oldest gives way and its ids are free; test:
  // RestingTest.TheOldestRestingConnectionGivesWayWhenItsAddressHasTooMany
  std::uint32_t most_resting = 1u << 16;
  // Limits for the waits in the codes of a peer.
  Duration least_wait = Duration::ms(10), most_wait = Duration::s(120);
};

// The time of a code of 5 bits, 4.096 us * 2^n.
constexpr Duration time_of(std::uint8_t code) {
  return Duration::ns(std::int64_t{4096} << (code & 31));
}

// The local ACK timeout, a code, for twice the `life_time` of packets on the way and the
// `ack_delay` of the other end (all codes): rounded up, as other implementations do.
constexpr std::uint8_t ack_timeout_of(std::uint8_t life_time, std::uint8_t ack_delay) {
  const unsigned twice = life_time + 1u, delay = ack_delay;
  const unsigned sum = twice >= delay ? twice + (delay + 1 >= twice) : delay + (twice + 1 >= delay);
  return static_cast<std::uint8_t>(sum < 31 ? sum : 31);
}

struct Core {
  explicit Core(const Options& o)
      : options(o),
        table(o.key, o.most),
        half_open(std::make_shared<Gate>(quarters_of(o.most_half_open))) {}

  // ---- connections
  // Makes a connection in `state` between these addresses; null: Drop::Full. It has an id, but no
  // remote id or queue pair yet.
  Connection* open(State state, const AddressPair& addresses);
  // Changes the state, and gives back its place among half-open and waiting connections.
  void move(Connection& c, State to);
  // Reports that its handle is free, and frees it.
  void release(Connection& c);
  // True if `peer` may begin one more for this listener. The oldest refused connection gives way if
  // necessary.
  bool room_for(const Listeners::Found& l, const IpAddress& peer, Instant now);
  // Takes the room, after room_for(), for as long as `c` is half open and waiting. False: out of
  // memory.
  bool take_room(Connection& c, const Listeners::Found& l, Instant now);

  // ---- output
  // Reserves memory for the events of one step, so that a step does not fail half way.
  void make_room() { events.reserve(events.size() + 4); }
  // Drops and counts the MAD if too many wait already, or out of memory.
  void send(const AddressPair& addresses, const Mad& mad);
  // Sends a MAD that is repeated until it is answered, or when the peer repeats its message.
  void send_first(Connection& c, const Mad& mad) {
    c.last = mad;
    send(c.addresses, mad);
  }
  void answer_again(Connection& c) {
    ++counters.answered;
    send(c.addresses, c.last);
  }
  // The event is discarded if the connection is an orphan.
  Event& tell(Connection& c, EventKind kind, Reason reason = Reason::None);
  // Reports a request to its listener. `data`: the private data of the request, checked already;
  // for an IP service its header is removed.
  Event& report_request(Connection& c, EventKind kind, ByteView data);
  // Reports to a listener that its gate refused a request.
  void report_turned_away(ListenerId listener, const AddressPair& addresses, const Req& r,
                          GateVerdict verdict);

  // ---- time
  Duration bounded(Duration d) const {
    return d < options.least_wait  ? options.least_wait
           : d > options.most_wait ? options.most_wait
                                   : d;
  }
  Duration wait_of(std::uint8_t code) const { return bounded(time_of(code)); }
  void set_due(Connection& c, Instant due) { deadlines.set(c, due); }
  // Begins to wait for an answer to `last`: `c.interval`, with `c.retries` repetitions.
  void await_answer(Connection& c, Instant now);
  // The wait is over: sends it again; false if no repetition is left.
  bool repeat(Connection& c, Instant now);
  // The peer asks for more time; false if it has done so too often.
  bool lengthen(Connection& c, std::uint8_t service_timeout, Instant now);
  // The connection ends, but its ids rest in `state`; the oldest resting one may give way.
  void hold_back(Connection& c, State state, Instant now);

  // An unpredictable number for the exchange `which` of a connection.
  std::uint64_t transaction(const Connection& c, std::uint64_t which) const {
    return siphash24(options.key, {c.id, which});
  }

  // bound: outgoing MADs; beyond: lost and counted (`unsent`), as on the wire; test:
  // RefusalTest.MadsThatTheOwnerDoesNotFetchAreBounded
  static constexpr std::size_t kMostWaiting = 4096;  // MADs
  // bound: MRAs of a peer in one exchange; beyond: no more time is granted; test:
  // Opening.AnMraDelaysTheRepetitionByItsTime
  static constexpr std::uint8_t kMostMras = 15;  // of one exchange

  Options options;
  Counters counters;
  ConnectionTable table;
  Listeners listeners;
  Deadlines<Connection> deadlines;
  Ring<Outgoing> outgoing;
  Ring<Event> events;
  std::shared_ptr<Gate> half_open;
  Resting ended, answered;  // `answered`: half open ones

 private:
  // Ends its rest early. False: no memory for the event.
  bool give_way(Connection& c);

  const GateRules resting_ = quarters_of(options.most_resting);
  Event unheard_;
};

}  // namespace urnic::ib_cm
