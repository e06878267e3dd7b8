// Opens the kernel-TCP transport by name and makes it look like a port to the driver, which sleeps
// on it; frames it has none.
#pragma once

#include <memory>
#include <string_view>

#include "engine/stream_link.h"
#include "port/port.h"
#include "urnic/config.h"

namespace urnic::engine {

inline constexpr std::string_view kStreamKind = "tcp";

// Whether `spec` ("tcp", "tcp:bind=127.0.0.1") names this transport and not a port.
bool names_stream_transport(std::string_view spec);

// Settings that need frames (faults, capture) are refused with one line.
Result<std::shared_ptr<StreamTransport>> open_stream_transport(const Config& config);

port::Port make_stream_port(std::shared_ptr<StreamTransport> transport);

}  // namespace urnic::engine
