// A DPDK device for one port: attached, configured and started; and the descriptors to sleep on.
#pragma once

#include <rte_ethdev.h>
#include <rte_mempool.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace urnic::port::dpdk {

struct DeviceOptions {
  std::string bus = "vdev";  // or "pci"
  std::string name;          // "net_af_packet0", "0000:01:00.0"
  std::string arguments;     // for the driver, separated by commas
  std::uint32_t max_frame = 1514;
  unsigned queues = 1;
  unsigned buffers = 1024;  // per queue, in addition to its rings
};

struct Device {
  std::uint16_t port = 0;
  std::string bus, name;
  rte_mempool* pool = nullptr;
  unsigned queues = 1;
  bool interrupts = false;    // the driver can interrupt on receive
  std::vector<int> wait_fds;  // per queue: readable when a frame arrives; -1: none
};

Outcome<Device, std::string> open_device(const DeviceOptions& options);
void close_device(Device* d);

}  // namespace urnic::port::dpdk
