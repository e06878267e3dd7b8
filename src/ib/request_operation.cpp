#include "ib/request_operation.h"

namespace urnic::ib {
namespace {

using verbs::WrOp;

// The operations of the packets of one kind of request.
struct Packets {
  Operation first, middle, last, only;
};
constexpr Packets kSends = {Operation::SendFirst, Operation::SendMiddle, Operation::SendLast,
                            Operation::SendOnly};
constexpr Packets kSendsImm = {Operation::SendFirst, Operation::SendMiddle, Operation::SendLastImm,
                               Operation::SendOnlyImm};
constexpr Packets kSendsInv = {Operation::SendFirst, Operation::SendMiddle, Operation::SendLastInv,
                               Operation::SendOnlyInv};
constexpr Packets kWrites = {Operation::WriteFirst, Operation::WriteMiddle, Operation::WriteLast,
                             Operation::WriteOnly};
constexpr Packets kWritesImm = {Operation::WriteFirst, Operation::WriteMiddle,
                                Operation::WriteLastImm, Operation::WriteOnlyImm};

const Packets& packets_of(WrOp op) {
  switch (op) {
    case WrOp::SendImm:
      return kSendsImm;
    case WrOp::SendInv:
      return kSendsInv;
    case WrOp::Write:
      return kWrites;
    case WrOp::WriteImm:
      return kWritesImm;
    default:
      return kSends;
  }
}

}  // namespace

Operation operation_of(WrOp op, std::uint32_t packet, std::uint32_t packets) {
  switch (op) {
    case WrOp::Read:
      return Operation::ReadRequest;
    case WrOp::CmpSwap:
      return Operation::CmpSwap;
    case WrOp::FetchAdd:
      return Operation::FetchAdd;
    default:
      break;
  }
  const Packets& p = packets_of(op);
  if (packet + 1 == packets) return packet == 0 ? p.only : p.last;
  return packet == 0 ? p.first : p.middle;
}

}  // namespace urnic::ib
