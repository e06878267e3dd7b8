// Names from verbs that this folder uses often.
#pragma once

#include "verbs/memory.h"
#include "verbs/work.h"
#include "verbs/work_queues.h"

namespace urnic::ddp {

using verbs::Completion;
using verbs::MemoryTable;
using verbs::PdId;
using verbs::ReceiveQueue;
using verbs::ReceiveWqe;
using verbs::RecvWr;
using verbs::Region;
using verbs::SendQueue;
using verbs::SendWqe;
using verbs::SendWr;
using verbs::Sge;
using verbs::SharedReceiveQueue;
using verbs::Status;
using verbs::StoredSends;
using verbs::WqeStore;
using verbs::WrOp;
using enum verbs::WrFlag;
using enum verbs::Access;
using verbs::awaits_response;
using verbs::is_atomic;
using verbs::kAtomicBytes;
using verbs::kMaxMessage;
using verbs::kMaxSges;
using verbs::resolve_sge;

}  // namespace urnic::ddp
