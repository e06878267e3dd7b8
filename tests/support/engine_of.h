// Access to the engine of a device, for tests that inspect its tables. The library does not expose
// it; an explicit instantiation may name private members.
#pragma once

#include <memory>

#include "device/device_impl.h"
#include "urnic/urnic.h"

namespace urnic::test {

using DevicePart = std::shared_ptr<device::DeviceImpl>;
DevicePart& part_of(Device& d);
template <DevicePart Device::*Member>
struct DeviceOpener {
  friend DevicePart& part_of(Device& d) { return d.*Member; }
};
template struct DeviceOpener<&Device::impl_>;

inline engine::Engine& engine_of(Device& d) {
  return *part_of(d)->engine;
}

}  // namespace urnic::test
