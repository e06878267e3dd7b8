// What a queue pair of its service is not asked for, in words, when it is posted or connected.
#pragma once

#include <optional>

#include "device/device_impl.h"

namespace urnic::device {

// Null: nothing is wrong. `handle`: what is behind that of the request, null when there is none.
const char* not_of_service(const QpImpl& qp, const SendRequest& request,
                           const AddressHandleImpl* handle) noexcept;
// What is wrong with its queues; null: nothing. XRC has one kind of them at each end.
const char* not_of_end(const QpOptions& options) noexcept;
// Only RC and the sending end of XRC are connected by a connection manager.
std::optional<Error> not_to_connect(const QpImpl& qp);
// And accepted is what was asked for: RC, or the receiving end.
std::optional<Error> not_to_accept(const QpImpl& qp, Service asked);

}  // namespace urnic::device
