// Opens the kernel-TCP transport by name and presents it to the driver as a port without frames, on
// which the driver can sleep.
#pragma once

#include <memory>
#include <string_view>

#include "fault/capture_port.h"
#include "iwarp/kernel_tcp.h"
#include "port/port.h"
#include "urnic/config.h"

namespace urnic::device {

inline constexpr std::string_view kKernelTcpKind = "tcp";

// True if `spec` ("tcp", "tcp:bind=127.0.0.1") names this transport instead of a port.
bool names_kernel_tcp(std::string_view spec);

struct KernelTcpStack {
  std::shared_ptr<iwarp::KernelTcp> transport;
  std::shared_ptr<fault::CaptureFile> capture;  // null without a capture
};
// A plan in `faults` that needs frames is refused with one line.
Result<KernelTcpStack> open_kernel_tcp(const Config& config);

port::Port make_kernel_tcp_port(std::shared_ptr<iwarp::KernelTcp> transport);

}  // namespace urnic::device
