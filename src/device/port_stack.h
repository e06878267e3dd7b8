// The port a configuration names, inside the wrappers it asks for: faults (E-37), then capture on
// the outside of them, so that a capture shows what the engine really saw.
#pragma once

#include <memory>
#include <string>

#include "fault/capture_port.h"
#include "port/port.h"
#include "urnic/config.h"

namespace urnic::device {

struct PortStack {
  port::Port port;
  std::shared_ptr<fault::CaptureFile> capture;  // null without one
};
// What a port says when it cannot be had, as an error. It says so in words alone; that no
// descriptor was left stands at their end, as the system says it.
Error why_unavailable(std::string words);

Result<PortStack> open_port_stack(const Config& config);

}  // namespace urnic::device
