// When something is due for which queue pair.
#pragma once

#include "base/deadlines.h"
#include "roce/context.h"

namespace urnic::roce {

using ContextDeadlines = urnic::Deadlines<Context>;

}  // namespace urnic::roce
