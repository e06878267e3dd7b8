// What a queue pair of its service is not asked for, in words, when it is posted or connected.
#pragma once

#include <optional>

#include "device/device_impl.h"

namespace urnic::detail {

// Null: nothing is wrong. `handle`: what is behind that of the request, null when there is none.
const char* not_of_service(const QpImpl& qp, const SendRequest& request,
                           const AddressHandleImpl* handle) noexcept;
// Only RC is connected by a connection manager.
std::optional<Error> not_to_connect(const QpImpl& qp);

}  // namespace urnic::detail
