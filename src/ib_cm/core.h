// What the machines of connection management stand on: the connections there are, the MADs and
// events that wait to be taken, time. Nothing here knows a protocol.
#pragma once

#include <cstdint>

#include "base/deadlines.h"
#include "base/ring.h"
#include "ib/context.h"
#include "ib_cm/connection_table.h"
#include "ib_cm/counters.h"
#include "ib_cm/listeners.h"
#include "ib_cm/resting.h"

namespace urnic::ib_cm {

struct Options {
  SipKey key;  // ids and transactions: out of the system, or a seed
  std::uint64_t ca_guid = 0;
  ib::PathMtu most_mtu = ib::PathMtu::k4096;  // REQs beyond are refused
  std::uint8_t ack_delay = 15;                // code: ours, as told in REPs
  std::uint8_t packet_life_time = 18;         // code: of the network
  std::uint8_t service_timeout = 22;          // code: what an MRA of ours asks for
  std::uint8_t extensions = 0;                // what REQs may be offered (consent.h)
  // bound: connections of connection management, including time-wait; limit: 262144; beyond:
  // connecting fails with no_memory; a REQ is dropped, counted, and repeated by the peer; test:
  // RefusalTest.ATableThatIsFullTakesNoMore
  std::uint32_t most = 1u << 18;  // connections at a time, those in time-wait too
  // bound: incoming connections not yet established; limit: 1024 from one address, 4096 in all;
  // beyond: a REQ is dropped, counted, and repeated by the peer; the oldest refused one gives way;
  // test: RefusalTest.HalfOpenConnectionsAreBoundedAcrossListeners,
  // RefusalTest.OneAddressTakesAQuarterOfTheHalfOpenConnections
  std::uint32_t most_half_open = 4096;
  // bound: connections of connection management in time-wait; limit: 16384 from one address, 65536
  // in all; beyond: the oldest gives way and its ids are free; test:
  // RestingTest.WhoRestsGivesWayWhenItsAddressHasTooMany
  std::uint32_t most_resting = 1u << 16;
  // Whatever codes a peer sends, no wait is shorter or longer.
  Duration least_wait = Duration::ms(10), most_wait = Duration::s(120);
};

// The time of a code of 5 bits, 4.096 us * 2^n.
constexpr Duration time_of(std::uint8_t code) {
  return Duration::ns(std::int64_t{4096} << (code & 31));
}

// The local ACK timeout, a code, for what takes twice `life_time` on its way and `ack_delay` at the
// other end (all codes): rounded up, as others do.
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
  // One more in `state`, with its way; null: Drop::Full. Has an id, and no name of the peer's yet.
  Connection* open(State state, const AddressPair& way);
  // Counts what is half open, and what waits for a listener.
  void move(Connection& c, State to);
  // Its handle is told to be free, and is.
  void release(Connection& c);
  // May one more be begun by `peer`, for this listener? Who was refused gives way to it.
  bool room_for(const Listeners::Found& l, const IpAddress& peer, Instant now);
  // There was room: `c` has it from now on, as long as it is half open and waits. False: no memory.
  bool take_room(Connection& c, const Listeners::Found& l, Instant now);

  // ---- out
  // Room for the events of one step: who has it is not left in the middle without memory.
  void make_room() { events.reserve(events.size() + 4); }
  // Lost, and counted, when too many wait already, or there is no memory.
  void send(const AddressPair& way, const Mad& mad);
  // What is sent again until it is answered, or as answer to the same.
  void send_first(Connection& c, const Mad& mad) {
    c.last = mad;
    send(c.way, mad);
  }
  void answer_again(Connection& c) {
    ++counters.answered;
    send(c.way, c.last);
  }
  // Nothing when nobody wants to hear.
  Event& tell(Connection& c, EventKind kind, Reason reason = Reason::None);
  // Somebody asks its listener for its service. `data`: the private data of the request, looked at
  // already; where the service is of IP its header is taken off.
  Event& tell_asked(Connection& c, EventKind kind, ByteView data);
  // Of a listener: a request was refused at its gate.
  void tell_turned_away(ListenerId listener, const AddressPair& way, const Req& r,
                        GateVerdict verdict);

  // ---- time
  Duration bounded(Duration d) const {
    return d < options.least_wait  ? options.least_wait
           : d > options.most_wait ? options.most_wait
                                   : d;
  }
  Duration wait_of(std::uint8_t code) const { return bounded(time_of(code)); }
  void set_due(Connection& c, Instant due) { deadlines.set(c, due); }
  // For an answer to `last`, in `c.interval`, as often as `c.retries` says.
  void await_answer(Connection& c, Instant now);
  // Time is up: sent again, unless it was the last time, which is false.
  bool repeat(Connection& c, Instant now);
  // The peer asks for more time; false when it has done so too often.
  bool lengthen(Connection& c, std::uint8_t service_timeout, Instant now);
  // Everything is over but that its names are held back; the oldest that rests may give way.
  void hold_back(Connection& c, State state, Instant now);

  // A number that cannot be guessed, for the exchange `which` of a connection.
  std::uint64_t transaction(const Connection& c, std::uint64_t which) const {
    return siphash24(options.key, {c.id, which});
  }

  // bound: outgoing MADs; beyond: lost and counted (`unsent`), as on the wire; test:
  // RefusalTest.MadsThatNobodyFetchesAreBounded
  static constexpr std::size_t kMostWaiting = 4096;  // MADs
  // bound: MRAs of a peer in one exchange; beyond: no more time is granted; test:
  // Opening.AnMraPutsOffTheRepetitionForItsTime
  static constexpr std::uint8_t kMostMras = 15;  // of one exchange

  Options options;
  Counters counters;
  ConnectionTable table;
  Listeners listeners;
  Deadlines<Connection> deadlines;
  Ring<Outgoing> outgoing;
  Ring<Event> events;
  std::shared_ptr<Gate> half_open;
  Resting ended, answered;  // `answered`: it is half open

 private:
  // Rests no longer. False: no memory to tell of it.
  bool give_way(Connection& c);

  const GateRules resting_ = quarters_of(options.most_resting);
  Event unheard_;
};

}  // namespace urnic::ib_cm
