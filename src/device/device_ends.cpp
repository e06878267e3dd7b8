// Ends the connections of a device when the device is destroyed, or its program exits.
#include <unistd.h>

#include "device/device_impl.h"

namespace urnic::device {

// Destroyed queue pairs leave connections that end in order; this waits for them for a moment.
void DeviceImpl::finish_ends() {
  constexpr Duration kMoment = Duration::s(1);
  Instant until = monotonic_now() + kMoment;
  std::uint64_t sent = 0;
  const auto ended = [&](Instant now) {
    iwarp::ConnectionEvents& iwarp = engine->iwarp().events();
    const bool says_so =
        port.info().link_up != 0 && engine->roce_control().connections().leaving() != 0;
    if (iwarp.leaving() == 0 && !says_so) return true;
    // Continue as long as they make progress, even on a busy machine; linger_timeout bounds each of
    // them.
    if (const std::uint64_t so_far = iwarp.leaving_sent(); so_far != sent) {
      sent = so_far;
      until = now + kMoment;
    }
    if (now >= until) iwarp.drop_leaving(now);
    engine->poll(now);
    return now >= until;
  };
  while (!driver->own(ended)) usleep(200);
}

// Afterwards the program may exit without destroying the device.
void DeviceImpl::disconnect_all(Duration most) {
  if (!engine->over_kernel_tcp()) end_connections(most);
  finish_faults(most);
  publish_counters();
}

void DeviceImpl::end_connections(Duration most) {
  const auto is_ending = [&] {
    return engine->iwarp().events().ending() + engine->roce_control().connections().leaving(true) !=
           0;
  };
  const Instant until = monotonic_now() + most;
  bool ends = driver->own([&](Instant now) {
    engine->roce_control().connections().refuse_requests(now);
    engine->roce_control().connections().cm_connections().end_all(now);
    engine->queue_pairs().for_each([&](verbs::QueuePair& qp) { qp.control->disconnect(qp, now); });
    return is_ending();
  });
  while (ends && monotonic_now() < until) {
    usleep(200);
    ends = driver->own([&](Instant now) {
      engine->poll(now);
      return is_ending();
    });
  }
}

// On a real network, what a plan of faults holds would be under way, whatever becomes of the
// program.
void DeviceImpl::finish_faults(Duration most) {
  const bool streams = engine->over_kernel_tcp() && engine->iwarp().state().kernel->faults;
  if (!streams && faults == nullptr) return;
  const auto waits = [&](Instant now) {
    engine->poll(now);
    return streams ? engine->iwarp().events().under_way() != 0 : faults->backlog() != 0;
  };
  const Instant until = monotonic_now() + most;
  while (driver->own(waits) && monotonic_now() < until) usleep(200);
}

}  // namespace urnic::device
