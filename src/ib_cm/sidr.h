// UD service requests: SIDR REQ and SIDR REP; both sides (IB-141).
#pragma once

#include "base/result.h"
#include "ib_cm/core.h"

namespace urnic::ib_cm {

class Sidr {
 public:
  explicit Sidr(Core* core) : core_(*core) {}

  // ---- calls of the owner
  // Resolved or Unreachable follows, then Released.
  Outcome<Handle, Refusal> resolve(const Resolve& what, ByteView data, Instant now);
  // Answers a ServiceRequest; Released follows when the peer no longer repeats it.
  Refusal answer(Handle h, const Service& s, ByteView data, Instant now);
  // Only the release is reported any more. A request of the peer is refused.
  Refusal abandon(Handle h, Instant now);

  // ---- messages of the peer
  void take_req(const AddressPair& addresses, const MadHeader& h, const SidrReq& r, Instant now);
  void take_rep(const AddressPair& addresses, const MadHeader& h, const SidrRep& r);

  void on_time(Connection& c, Instant now);

 private:
  void refuse(const AddressPair& addresses, const MadHeader& h, const SidrReq& r,
              SidrStatus status);
  bool is_denied(const Listeners::Found& l, const AddressPair& addresses, Instant now);
  void begin(Listeners::Found& l, const AddressPair& addresses, const MadHeader& h,
             const SidrReq& r, Instant now);

  Core& core_;
};

}  // namespace urnic::ib_cm
