// A device with one object of each kind, like a program at one end of a connection.
#pragma once

#include <vector>

#include "urnic/urnic.h"

namespace urnic::test {

struct DeviceEnd {
  // `device` is empty if it cannot be opened.
  explicit DeviceEnd(const Config& config) {
    auto opened = Device::open(config);
    if (!opened) return;
    device = *opened;
    events = *device.create_event_queue();
    pd = *device.alloc_pd();
    cq = *device.create_cq(16);
    mr = *device.register_memory(pd, memory.data(), memory.size(),
                                 access_local_write | access_remote_write);
    QpOptions o;
    o.send_cq = o.receive_cq = cq;
    o.events = events;
    qp = *device.create_qp(pd, o);
  }

  Device device;
  EventQueue events;
  ProtectionDomain pd;
  CompletionQueue cq;
  std::vector<char> memory = std::vector<char>(4096);
  MemoryRegion mr;
  QueuePair qp;
};

}  // namespace urnic::test
