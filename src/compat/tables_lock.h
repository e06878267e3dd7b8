// The lock of the tables a whole process has: of queue pair numbers, of channels that are known, of
// queues that were destroyed. Nobody holds it while the process forks, so that a child finds them
// whole. Held for a moment, and no other lock is taken under it.
#pragma once

#include <mutex>

namespace urnic::compat {

inline std::mutex tables_lock;

}  // namespace urnic::compat
