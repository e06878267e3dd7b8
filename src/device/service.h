// Checks that a post or a connection fits the service of the queue pair; errors are texts.
#pragma once

#include <optional>

#include "device/device_impl.h"

namespace urnic::device {

// Null: no error. `handle`: the object of the request's address handle, null when there is none.
const char* not_of_service(const QpImpl& qp, const SendRequest& request,
                           const AddressHandleImpl* handle) noexcept;
// The error in its queues; null: no error. Each end of XRC has only one kind of queue.
const char* not_of_end(const QpOptions& options) noexcept;
// An error unless it is RC or the sending end of XRC: only these are connected by a connection
// manager.
std::optional<Error> not_to_connect(const QpImpl& qp);
// An error unless the queue pair has the requested service: RC, or the receiving end of XRC.
std::optional<Error> not_to_accept(const QpImpl& qp, Service asked);

}  // namespace urnic::device
