// The port named by a configuration, inside the wrappers that it requests: faults (E-37), then
// capture outside of them, so that a capture shows the frames that the engine really handled.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "fault/capture_port.h"
#include "fault/fault_port.h"
#include "port/port.h"
#include "urnic/config.h"

namespace urnic::device {

struct PortStack {
  port::Port port;
  std::shared_ptr<fault::CaptureFile> capture;  // null without a capture
  std::shared_ptr<fault::FaultControl> faults;  // null without a plan
};
// Converts a port's message why it cannot be opened into an error. Ports only have text; if no
// descriptor was left, the text ends with the system's message for that.
Error why_unavailable(std::string words);

// The file that the configuration requests (`comment`: for its readers; may be empty), or null.
Result<std::shared_ptr<fault::CaptureFile>> open_capture(const Config& config,
                                                         std::string_view comment);
// The time since 1970.
fault::WireClock wall_clock();

Result<PortStack> open_port_stack(const Config& config);

}  // namespace urnic::device
