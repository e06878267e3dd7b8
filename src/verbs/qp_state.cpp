#include "verbs/qp_state.h"

namespace urnic::verbs {
namespace {

constexpr std::size_t at(QpState s) {
  return static_cast<std::size_t>(s);
}

// Rows by state, in the order of the enumeration. Columns: post receives, sends; serve receives,
// begin sends; flush receives, sends; take requests, responses.
constexpr std::array<QpRights, kQpStates> kRights{{
    {false, false, false, false, false, false, false, false},  // Reset
    {true, false, false, false, false, false, false, false},   // Init
    {true, false, true, false, false, false, true, false},     // Rtr
    {true, true, true, true, false, false, true, true},        // Rts
    {true, true, true, false, false, false, true, true},       // Sqd
    {true, true, true, false, false, true, true, false},       // Sqe
    {true, true, false, false, true, true, false, false},      // Error
}};

struct MaskRow {
  QpState from, to;
  QpMask rc, uc, ud, xrc_send, xrc_receive;
};

using enum QpState;

constexpr std::uint32_t kPath = kQpAttrAltPath | kQpAttrAccess | kQpAttrPathMigState;
constexpr std::uint32_t kAddress = kQpAttrAv | kQpAttrPathMtu | kQpAttrDestQpn | kQpAttrRqPsn;
constexpr std::uint32_t kRetries = kQpAttrTimeout | kQpAttrRetryCount | kQpAttrRnrRetry;

// Moves that take attributes, {required, optional} for each service. All other moves take none.
constexpr MaskRow kMasks[] = {
    {Reset,
     Init,
     {kQpAttrPkeyIndex | kQpAttrPort | kQpAttrAccess, 0},
     {kQpAttrPkeyIndex | kQpAttrPort | kQpAttrAccess, 0},
     {kQpAttrPkeyIndex | kQpAttrPort | kQpAttrQkey, 0},
     {kQpAttrPkeyIndex | kQpAttrPort | kQpAttrAccess, 0},
     {kQpAttrPkeyIndex | kQpAttrPort | kQpAttrAccess, 0}},
    {Init,
     Init,
     {0, kQpAttrPkeyIndex | kQpAttrPort | kQpAttrAccess},
     {0, kQpAttrPkeyIndex | kQpAttrPort | kQpAttrAccess},
     {0, kQpAttrPkeyIndex | kQpAttrPort | kQpAttrQkey},
     {0, kQpAttrPkeyIndex | kQpAttrPort | kQpAttrAccess},
     {0, kQpAttrPkeyIndex | kQpAttrPort | kQpAttrAccess}},
    {Init,
     Rtr,
     {kAddress | kQpAttrMaxDestRdAtomic | kQpAttrMinRnrTimer,
      kQpAttrAltPath | kQpAttrAccess | kQpAttrPkeyIndex},
     {kAddress, kQpAttrAltPath | kQpAttrAccess | kQpAttrPkeyIndex},
     {0, kQpAttrPkeyIndex | kQpAttrQkey},
     {kAddress, kQpAttrAltPath | kQpAttrAccess | kQpAttrPkeyIndex},
     {kAddress | kQpAttrMaxDestRdAtomic | kQpAttrMinRnrTimer,
      kQpAttrAltPath | kQpAttrAccess | kQpAttrPkeyIndex}},
    {Rtr,
     Rts,
     {kRetries | kQpAttrSqPsn | kQpAttrMaxRdAtomic, kQpAttrCurState | kPath | kQpAttrMinRnrTimer},
     {kQpAttrSqPsn, kQpAttrCurState | kPath},
     {kQpAttrSqPsn, kQpAttrCurState | kQpAttrQkey},
     {kRetries | kQpAttrSqPsn | kQpAttrMaxRdAtomic, kQpAttrCurState | kPath},
     {kQpAttrTimeout | kQpAttrSqPsn, kQpAttrCurState | kPath | kQpAttrMinRnrTimer}},
    {Rts,
     Rts,
     {0, kQpAttrCurState | kPath | kQpAttrMinRnrTimer},
     {0, kQpAttrCurState | kPath},
     {0, kQpAttrCurState | kQpAttrQkey},
     {0, kQpAttrCurState | kPath},
     {0, kQpAttrCurState | kPath | kQpAttrMinRnrTimer}},
    {Rts,
     Sqd,
     {0, kQpAttrSqdNotify},
     {0, kQpAttrSqdNotify},
     {0, kQpAttrSqdNotify},
     {0, kQpAttrSqdNotify},
     {0, kQpAttrSqdNotify}},
    {Sqd,
     Sqd,
     {0, kQpAttrPort | kQpAttrAv | kRetries | kQpAttrMaxRdAtomic | kQpAttrMaxDestRdAtomic | kPath |
             kQpAttrPkeyIndex | kQpAttrMinRnrTimer},
     {0, kQpAttrAv | kPath | kQpAttrPkeyIndex},
     {0, kQpAttrPkeyIndex | kQpAttrQkey},
     {0, kQpAttrPort | kQpAttrAv | kRetries | kQpAttrMaxRdAtomic | kPath | kQpAttrPkeyIndex},
     {0, kQpAttrPort | kQpAttrAv | kQpAttrTimeout | kQpAttrMaxDestRdAtomic | kPath |
             kQpAttrPkeyIndex | kQpAttrMinRnrTimer}},
    {Sqd,
     Rts,
     {0, kQpAttrCurState | kPath | kQpAttrMinRnrTimer},
     {0, kQpAttrCurState | kPath},
     {0, kQpAttrCurState | kQpAttrQkey},
     {0, kQpAttrCurState | kPath},
     {0, kQpAttrCurState | kPath | kQpAttrMinRnrTimer}},
    {Sqe,
     Rts,
     {0, 0},
     {0, kQpAttrCurState | kQpAttrAccess},
     {0, kQpAttrCurState | kQpAttrQkey},
     {0, 0},
     {0, 0}},
};

constexpr Mover n = Mover::Nobody, C = Mover::Consumer, T = Mover::Transport, E = Mover::Either;

QpEffect effect_of(QpState from, QpState to) {
  if (to == Reset) return QpEffect::Discard;
  if (to == Error) return from == Error ? QpEffect::Nothing : QpEffect::FlushAll;
  if (to == Sqe) return QpEffect::FlushSends;
  return QpEffect::Nothing;
}

}  // namespace

// Columns: to Reset Init Rtr Rts Sqd Sqe Error
const QpRules kIbRules{{{
                           {C, C, n, n, n, n, n},  // Reset
                           {C, C, C, n, n, n, C},  // Init
                           {C, n, n, C, n, n, E},  // Rtr
                           {C, n, n, C, C, T, E},  // Rts
                           {C, n, n, C, C, T, E},  // Sqd
                           {C, n, n, C, n, n, E},  // Sqe
                           {C, n, n, n, n, n, C},  // Error
                       }},
                       true,
                       kQpAttrAltPath | kQpAttrPathMigState | kQpAttrCap,
                       false};

// The connection manager moves it to Rtr when MPA begins and to Rts when MPA is done. Sqd is the
// orderly end, by the consumer or because the peer has closed; it cannot be left for Rts.
const QpRules kIwarpRules{{{
                              {C, C, n, n, n, n, n},  // Reset
                              {C, C, T, n, n, n, C},  // Init
                              {C, n, n, T, n, n, E},  // Rtr
                              {C, n, n, C, E, n, E},  // Rts
                              {C, n, n, n, n, n, E},  // Sqd
                              {n, n, n, n, n, n, n},  // Sqe: RC does not use it
                              {C, n, n, n, n, n, C},  // Error
                          }},
                          false,
                          kQpAttrCap,
                          true};

const QpRights& rights(QpState s) {
  return kRights[at(s)];
}

QpMask attributes(Service service, QpState from, QpState to) {
  for (const MaskRow& row : kMasks) {
    if (row.from != from || row.to != to) continue;
    switch (service) {
      case Service::Rc:
        return row.rc;
      case Service::Uc:
        return row.uc;
      case Service::Ud:
        return row.ud;
      case Service::XrcSend:
        return row.xrc_send;
      case Service::XrcReceive:
        return row.xrc_receive;
    }
  }
  return {};
}

QpMove judge_move(const QpRules& rules, Service service, QpState from, QpState to, Mover by,
                  std::uint32_t mask) {
  if (at(to) >= kQpStates) return {QpVerdict::NoSuchMove, QpEffect::Nothing};
  const auto who = static_cast<unsigned>(rules.moves[at(from)][at(to)]);
  const bool has_sqe = !is_reliable(service);
  if ((who & static_cast<unsigned>(by)) == 0 || (!has_sqe && (from == Sqe || to == Sqe))) {
    return {QpVerdict::NoSuchMove, QpEffect::Nothing};
  }
  const QpMove refused{QpVerdict::ForeignAttribute, QpEffect::Nothing};
  if (by == Mover::Consumer) {
    if ((mask & ~kQpAttrAll) != 0) return refused;
    if ((mask & rules.unsupported) != 0) return {QpVerdict::Unsupported, QpEffect::Nothing};
    const QpMask takes = attributes(service, from, to);
    if (rules.needs_attributes) {
      if ((mask & takes.required) != takes.required) {
        return {QpVerdict::MissingAttribute, QpEffect::Nothing};
      }
      if ((mask & ~(takes.required | takes.optional | kQpAttrState)) != 0) return refused;
    }
  }
  return {QpVerdict::Ok, effect_of(from, to)};
}

std::string_view name(QpState s) {
  static constexpr std::string_view kNames[] = {"RESET", "INIT", "RTR",  "RTS",
                                                "SQD",   "SQE",  "ERROR"};
  return at(s) < kQpStates ? kNames[at(s)] : "?";
}

}  // namespace urnic::verbs
