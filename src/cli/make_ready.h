// A queue pair to which receives can be posted.
#pragma once

#include "urnic/verbs.h"

namespace urnic::cli {

// One of RoCE goes from reset to init, one of iWARP is there already. The peer may read and write
// what it is granted.
inline Result<void> make_ready(QueuePair& qp) {
  if (qp.state() != QpState::reset) return {};
  QpAttributes a;
  a.access = access_remote_write | access_remote_read;
  return qp.modify(QpState::init, a);
}

}  // namespace urnic::cli
