#include "sim/rd/ee_context.h"

namespace urnic::sim {
namespace {

using verbs::QpState;
using enum verbs::QpState;

// InfiniBand's transitions without attribute masks, which are checked separately.
const verbs::QpRules& rules_without_attributes() {
  static const verbs::QpRules kMoves{verbs::kIbRules.moves, false, verbs::kIbRules.unsupported};
  return kMoves;
}

struct MaskRow {
  QpState from, to;
  verbs::QpMask mask;
};

// The address, PSNs and retries are attributes of the EE context, not of the queue pair.
constexpr MaskRow kMasks[] = {
    {Reset, Init, {verbs::kQpAttrAccess | verbs::kQpAttrQkey, 0}},
    {Init, Init, {0, verbs::kQpAttrAccess | verbs::kQpAttrQkey}},
    {Init,
     Rtr,
     {verbs::kQpAttrMaxDestRdAtomic,
      verbs::kQpAttrAccess | verbs::kQpAttrQkey | verbs::kQpAttrMinRnrTimer}},
    {Rtr,
     Rts,
     {verbs::kQpAttrMaxRdAtomic, verbs::kQpAttrCurState | verbs::kQpAttrAccess |
                                     verbs::kQpAttrQkey | verbs::kQpAttrMinRnrTimer}},
    {Rts,
     Rts,
     {0, verbs::kQpAttrCurState | verbs::kQpAttrAccess | verbs::kQpAttrQkey |
             verbs::kQpAttrMinRnrTimer}},
    {Rts, Sqd, {0, verbs::kQpAttrSqdNotify}},
    {Sqd,
     Sqd,
     {0, verbs::kQpAttrMaxRdAtomic | verbs::kQpAttrMaxDestRdAtomic | verbs::kQpAttrAccess |
             verbs::kQpAttrQkey | verbs::kQpAttrMinRnrTimer}},
    {Sqd,
     Rts,
     {0, verbs::kQpAttrCurState | verbs::kQpAttrAccess | verbs::kQpAttrQkey |
             verbs::kQpAttrMinRnrTimer}},
    {Sqe, Rts, {0, verbs::kQpAttrCurState | verbs::kQpAttrAccess | verbs::kQpAttrQkey}},
};

}  // namespace

RequestFate fate_of_request(QpState ee_context) {
  if (ee_context == Rts) return RequestFate::Begins;
  return ee_context == Sqd ? RequestFate::Waits : RequestFate::Fails;
}

verbs::QpMask rd_attributes(QpState from, QpState to) {
  for (const MaskRow& row : kMasks) {
    if (row.from == from && row.to == to) return row.mask;
  }
  return {};
}

verbs::QpMove judge_rd_move(QpState from, QpState to, verbs::Mover by, std::uint32_t mask) {
  const verbs::QpMove move =
      judge_move(rules_without_attributes(), verbs::Service::Ud, from, to, by, mask);
  if (!move.ok() || by != verbs::Mover::Consumer) return move;
  const verbs::QpMask takes = rd_attributes(from, to);
  if ((mask & takes.required) != takes.required) return {verbs::QpVerdict::MissingAttribute};
  if ((mask & ~(takes.required | takes.optional | verbs::kQpAttrState)) != 0) {
    return {verbs::QpVerdict::ForeignAttribute};
  }
  return move;
}

verbs::QpMove judge_ee_move(QpState from, QpState to, verbs::Mover by) {
  return judge_move(rules_without_attributes(), verbs::Service::Rc, from, to, by);
}

}  // namespace urnic::sim
