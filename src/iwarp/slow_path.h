// SLOW: through the reassembly buffer, FPDU by FPDU, in turns with the other connections (S3, R-8).
#pragma once

#include <cstdint>

#include "iwarp/rx_commit.h"

namespace urnic::iwarp {

// OutLogic's arbiter: bytes one SLOW connection may have parsed before the others have their
// turn, and bytes of all of them in one round. FAST segments are placed as they come, at most a
// burst in a poll, which carries about as much.
inline constexpr std::uint64_t kDrainTurn = 64u << 10;
// bound: bytes of SLOW connections parsed in one turn of the engine; beyond: the rest waits until
// the next arrivals are handled; test: Arbitration.ASlowBacklogIsParsedInTurns
inline constexpr std::uint64_t kDrainRound = 256u << 10;
inline constexpr std::uint64_t kNoBudget = ~std::uint64_t{0};

class SlowPath {
 public:
  SlowPath(SideState* s, RxCommit* rx_commit) : s_(*s), rx_commit_(*rx_commit) {}

  // Into the reassembly buffer; TCP regards it as received (S3).
  void store(Connection& c, const InHand& in, Instant now, Found* found);
  // Whole FPDUs out of the in-order bytes, placed and delivered one by one, at most about `budget`
  // bytes; what is left waits for its turn. Returns bytes parsed.
  std::uint64_t drain(Connection& c, std::uint64_t budget, Instant now, Found* found);
  // A FIN in order at `at`, alone. The part of an FPDU before it never becomes a whole one.
  void take_fin(Connection& c, StreamOffset at, Instant now, Found* found);
  // Fig 5: from FAST to SLOW.
  void downgrade(Connection& c, fastpath::Reason why);

 private:
  void finish_drain(Connection& c, Instant now, Found* found);
  void abandon_detour(Connection& c, Instant now);

  SideState& s_;
  RxCommit& rx_commit_;
};

// For a log; never for segments that are plainly taken.
inline void note(const SideState& s, const Connection& c, Note what, fastpath::Reason why) {
  s.hooks->on_note(what, c.key.local_end(), c.key.remote_end(),
                   reason_label(static_cast<std::size_t>(why)));
}

}  // namespace urnic::iwarp
