// The deadlines of queue pairs.
#pragma once

#include "base/deadlines.h"
#include "roce/context.h"

namespace urnic::roce {

using ContextDeadlines = urnic::Deadlines<Context>;

}  // namespace urnic::roce
