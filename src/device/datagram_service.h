// Answers requests for UD queue pairs, for the public API.
#pragma once

#include "device/device_impl.h"

namespace urnic::device {

// Accepts `request`, which is for datagrams, on `qp`. Errors: invalid_argument (`qp` is not of UD;
// private data), wrong_state (answered already; `qp` takes no datagrams), closed.
Result<void> serve_datagrams(RequestImpl& request, QpImpl& qp, const ConnectionOptions& options);

}  // namespace urnic::device
