// Connections of RC and UC queue pairs: REQ, REP and RTU with MRA and REJ, then DREQ and DREP, then
// time-wait; both sides.
//
//   opening.cpp     the active side
//   accepting.cpp   the passive side
//   ending.cpp      rejections, disconnection, timers
//
//   active    ReqSent --REP--> RepReceived --confirm--> Established
//   passive   ReqReceived --accept--> RepSent --RTU, or the first request--> Established
//   both      Established --disconnect--> DreqSent --DREP--> TimeWait; --DREQ--> TimeWait
//
// A message that does not fit the state is dropped and counted. If two ends send each other a REQ
// at the same time, both are requests like any other.
#pragma once

#include "base/result.h"
#include "ib_cm/core.h"

namespace urnic::ib_cm {

class Connections {
 public:
  explicit Connections(Core* core) : core_(*core) {}

  // ---- calls of the owner
  Outcome<Handle, Refusal> connect(const Connect& what, ByteView data, Instant now);
  // After Accepted: the queue pair is in Rts.
  Refusal confirm(Handle h, ByteView data);
  // After ConnectRequest: the queue pair is in Rtr. Depths are limited to those of the REQ.
  // `extensions`: those offered by the REQ that this end agrees to.
  Refusal accept(Handle h, const QpValues& qp, ByteView data, Instant now,
                 std::uint8_t extensions = 0xff);
  // Answers a ConnectRequest or Accepted with a REJ.
  Refusal reject(Handle h, Reason reason, ByteView data, Instant now);
  // RepSent: the first request has arrived on the queue pair, with or without the RTU (IB-139).
  Refusal established(Handle h);
  Refusal disconnect(Handle h, ByteView data, Instant now);
  // Ends it in any state; then only its release is reported.
  Refusal abandon(Handle h, Instant now);
  // Calls abandon() for every request that waits for accept() or reject().
  void abandon_requests(Instant now);

  // ---- messages of the peer
  void take_req(const AddressPair& addresses, const MadHeader& h, const Req& r, Instant now);
  void take_rep(const AddressPair& addresses, const MadHeader& h, const Rep& r, Instant now);
  void take_rtu(const AddressPair& addresses, const Rtu& r);
  void take_mra(const AddressPair& addresses, const MadHeader& h, const Mra& m, Instant now);
  void take_rej(const AddressPair& addresses, const MadHeader& h, const Rej& r, Instant now);
  void take_dreq(const AddressPair& addresses, const MadHeader& h, const Dreq& d, Instant now);
  void take_drep(const AddressPair& addresses, const MadHeader& h, const Drep& d, Instant now);
  void take_lap(const AddressPair& addresses, const MadHeader& h, const Lap& l);

  // The deadline of `c` has passed.
  void on_time(Connection& c, Instant now);

 private:
  // opening.cpp
  Req make_req(const Connection& c, const Connect& what, ByteView data) const;
  void rep_accepted(Connection& c, const MadHeader& h, const Rep& r, Instant now);
  void ask_for_time(Connection& c, Which which);
  // accepting.cpp
  void repeated_req(Connection& c, const AddressPair& addresses, const MadHeader& h, const Req& r);
  void new_req(const AddressPair& addresses, const MadHeader& h, const Req& r, Instant now);
  bool may_pass(const Listeners::Found& l, const AddressPair& addresses, const Req& r, Instant now);
  void begin_passive(Listeners::Found& l, const AddressPair& addresses, const MadHeader& h,
                     const Req& r, Instant now);
  void refuse_req(const AddressPair& addresses, const MadHeader& h, const Req& r, Reason reason);
  void end_stale(Connection& c, Instant now);
  // ending.cpp
  Connection* find(const AddressPair& addresses, std::uint32_t local_id, std::uint32_t remote_id);
  void refuse(Connection& c, Which which, Reason reason, ByteView data, Instant now);
  void begin_disconnect(Connection& c, ByteView data, Instant now);
  void ended(Connection& c, Reason reason, ByteView data, Instant now);
  void unanswered(Connection& c, Instant now);

  Core& core_;
};

}  // namespace urnic::ib_cm
