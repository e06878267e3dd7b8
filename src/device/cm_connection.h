// Connections of RoCE as the public API has them: what both kinds of them take of the consumer.
#pragma once

#include <optional>

#include "device/device_impl.h"

namespace urnic::detail {

// As the engine takes it; the source is not part of it.
engine::RoceConnect roce_params_of(const engine::Engine& engine, const ConnectionOptions& o);
// What is wrong with the options that both transports have, and with those of RoCE.
std::optional<Error> check_common(const ConnectionOptions& o);

}  // namespace urnic::detail
