// Converts the options of a connection into those of the transports.
#pragma once

#include "device/device_impl.h"

namespace urnic::device {

// For connecting. `from`: the binding that the options name, or null; it must belong to `control`.
// Errors: invalid_argument (a value out of its range, or the binding), unsupported.
Result<verbs::ConnectParams> params_to_connect(const ConnectionOptions& o, const DeviceImpl& device,
                                               const verbs::ControlPath& control,
                                               const BindingImpl* from);
// For accepting; a binding is ignored.
Result<verbs::ConnectParams> params_to_accept(const ConnectionOptions& o,
                                              const verbs::ControlPath& control);

}  // namespace urnic::device
