// The options of a connection, as the transports have them.
#pragma once

#include "device/device_impl.h"

namespace urnic::device {

// To connect. `from`: the binding that the options name, if they name one; it has to be of
// `control`. Errors: invalid_argument (a value out of its range, or the binding), unsupported.
Result<verbs::ConnectParams> params_to_connect(const ConnectionOptions& o, const DeviceImpl& device,
                                               const verbs::ControlPath& control,
                                               const BindingImpl* from);
// To accept, where a binding means nothing.
Result<verbs::ConnectParams> params_to_accept(const ConnectionOptions& o,
                                              const verbs::ControlPath& control);

}  // namespace urnic::device
