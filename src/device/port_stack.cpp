#include "device/port_stack.h"

#include <errno.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace urnic::device {
namespace {

std::uint64_t read_clock(clockid_t id) {
  timespec t;
  clock_gettime(id, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
}

constexpr int kNoneLeft[] = {EMFILE, ENFILE};

fault::WireClock real_clock() {
  return {[](void*) { return read_clock(CLOCK_MONOTONIC); }, nullptr, true};
}

}  // namespace

Error why_unavailable(std::string words) {
  const bool none_left = std::any_of(std::begin(kNoneLeft), std::end(kNoneLeft), [&](int error) {
    return words.ends_with(std::strerror(error));
  });
  if (!none_left) return {Errc::unavailable, std::move(words)};
  return {Errc::no_descriptors, std::move(words) + " (see ulimit -n)"};
}

fault::WireClock wall_clock() {
  return {[](void*) { return read_clock(CLOCK_REALTIME); }};
}

Result<std::shared_ptr<fault::CaptureFile>> open_capture(const Config& config,
                                                         std::string_view comment) {
  const std::string path = config.get("capture");
  if (path.empty()) return std::shared_ptr<fault::CaptureFile>();
  fault::CaptureOptions options;
  options.comment = comment;
  auto file = fault::CaptureFile::create(path, options);
  if (!file) return Error{Errc::io, "capture: " + file.error()};
  return std::move(*file);
}

Result<PortStack> open_port_stack(const Config& config) {
  auto opened = port::Port::open(config.get("port"));
  if (!opened) return why_unavailable(opened.error());
  PortStack stack;
  port::Port& port = stack.port;
  port = std::move(*opened);
  if (const std::string text = config.get("faults"); !text.empty()) {
    // The plan applies to frames that this process sends; the peer configures its own side.
    const auto plan = fault::FaultPlan::parse(text);
    if (!plan) return Error{Errc::invalid_argument, "faults: " + plan.error()};
    fault::FaultOptions options;
    options.tx = *plan;
    options.clock = real_clock();
    options.log_capacity = 0;
    fault::FaultyPort faulty = fault::wrap_faults(std::move(port), options);
    port = std::move(faulty.port);
    stack.faults = std::move(faulty.control);
  }
  auto capture = open_capture(config, {});
  if (!capture) return capture.error();
  if (*capture) {
    const auto offset = static_cast<std::int64_t>(read_clock(CLOCK_REALTIME)) -
                        static_cast<std::int64_t>(read_clock(CLOCK_MONOTONIC));
    const std::string kind = port.kind();
    port = fault::wrap_capture(std::move(port), *capture, kind, real_clock(), offset);
    stack.capture = std::move(*capture);
  }
  return stack;
}

}  // namespace urnic::device
