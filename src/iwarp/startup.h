// The MPA start-up of one connection, as a state machine over bytes (RFC 5044 7.1, RFC 6581; E-1,
// E-2, E-35). It has no timer and no socket: the engine passes in-order bytes in, and sends the
// bytes it returns. It exists on the heap only while a connection starts.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "ddp_rdma/violation.h"
#include "mpa/startup.h"

namespace urnic::iwarp {

class Startup {
 public:
  enum class Phase : std::uint8_t {
    SendRequest,   // active: TCP is being opened
    WaitReply,     // active
    WaitRequest,   // passive
    WaitConsumer,  // passive: a request waits for accept or reject
    Done,
    Failed,
  };
  enum class What : std::uint8_t {
    NeedMore,        // not a whole frame yet
    Request,         // passive: a valid Request for the consumer
    Established,     // active: full operation from the byte after `consumed`
    Rejected,        // active: R=1; private data in reply()
    RetryRevision1,  // active: the peer supports revision 1 only: reconnect (E-35)
    Fail,            // `violation` selects the Terminate (or MpaStartup: close without one)
  };
  struct Step {
    What what = What::NeedMore;
    std::uint32_t consumed = 0;  // bytes of the input that belonged to the frame
    ddp::Violation violation = ddp::Violation::None;
    mpa::Refusal refusal = mpa::Refusal::None;
  };

  static Startup active(const mpa::StartupOptions&, ByteView private_data);
  static Startup passive(const mpa::StartupOptions&);

  // Sets the sequence numbers of the first byte after the SYN in each direction, known once TCP is
  // established. E2 aligns its start by them. Call it before the first frame in either
  // direction.
  void set_first_sns(std::uint32_t own, std::uint32_t peer) {
    own_first_sn_ = own;
    peer_first_sn_ = peer;
  }
  // Active: the Request, to be sent as soon as TCP is established.
  std::vector<std::uint8_t> request_bytes();
  // Takes all in-order bytes that were not consumed yet.
  Step feed(ByteView bytes);
  // Passive, in WaitConsumer: returns the Reply; agreement() is valid from then on. If the Request
  // cannot be accepted, sets *refusal (and returns an R=1 reply, or nothing).
  std::vector<std::uint8_t> accept(const mpa::StartupOptions&, ByteView private_data,
                                   mpa::Refusal* refusal);
  std::vector<std::uint8_t> reject(ByteView private_data);

  Phase phase() const { return phase_; }
  bool is_active() const { return active_; }
  const mpa::StartupOptions& options() const { return options_; }
  const mpa::StartupFrame& request() const { return request_; }
  const mpa::StartupFrame& reply() const { return reply_; }
  const mpa::Agreement& agreement() const { return agreement_; }
  // Bytes of the frame that this end has sent. Its full operation begins after them.
  std::uint32_t sent_bytes() const { return sent_bytes_; }
  // The format of what is sent next, also if the start-up failed after the peer's frame.
  mpa::Policy send_policy() const {
    return mpa::send_policy(options_, active_ ? reply_ : request_);
  }
  // The agreement the passive side would make now, for the consumer (IRD/ORD).
  mpa::Agreement preview(const mpa::StartupOptions&) const;

 private:
  std::vector<std::uint8_t> emit(mpa::StartupFrame& frame);
  bool ends_at_a_word(const mpa::StartupFrame& frame, std::uint32_t length) const;

  bool active_ = false;
  Phase phase_ = Phase::Failed;
  mpa::StartupOptions options_;
  mpa::StartupFrame request_, reply_;
  mpa::Agreement agreement_;
  std::uint32_t own_first_sn_ = 0, peer_first_sn_ = 0, sent_bytes_ = 0;
};

}  // namespace urnic::iwarp
