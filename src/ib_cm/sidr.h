// Questions about services for UD: SIDR REQ and SIDR REP; both sides (IB-141).
#pragma once

#include "base/result.h"
#include "ib_cm/core.h"

namespace urnic::ib_cm {

class Sidr {
 public:
  explicit Sidr(Core* core) : core_(*core) {}

  // ---- the owner's
  // Resolved or Unreachable follows, and Released behind it.
  Outcome<Handle, Refusal> resolve(const Resolve& what, ByteView data, Instant now);
  // ServiceRequest: Released follows when nobody asks any more.
  Refusal answer(Handle h, const Service& s, ByteView data, Instant now);
  // No more is told but the release. Who has asked is refused.
  Refusal abandon(Handle h, Instant now);

  // ---- the peer's
  void take_req(const AddressPair& way, const MadHeader& h, const SidrReq& r, Instant now);
  void take_rep(const AddressPair& way, const MadHeader& h, const SidrRep& r);

  void on_time(Connection& c, Instant now);

 private:
  void refuse(const AddressPair& way, const MadHeader& h, const SidrReq& r, SidrStatus status);
  bool is_denied(const Listeners::Found& l, const AddressPair& way, Instant now);
  void begin(Listeners::Found& l, const AddressPair& way, const MadHeader& h, const SidrReq& r,
             Instant now);

  Core& core_;
};

}  // namespace urnic::ib_cm
