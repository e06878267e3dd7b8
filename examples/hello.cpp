// The smallest program: opens a device, registers memory and prints information about both.
#include <urnic/urnic.h>

#include <cstdio>
#include <vector>

int main() {
  auto config = urnic::Config::load();  // urnic.toml and URNIC_* in the environment
  if (!config) return std::fprintf(stderr, "%s\n", config.error().message.c_str()), 1;
  auto device = urnic::Device::open(*config);
  if (!device) return std::fprintf(stderr, "%s\n", device.error().message.c_str()), 1;
  auto pd = device->alloc_pd();
  if (!pd) return std::fprintf(stderr, "%s\n", pd.error().message.c_str()), 1;
  std::vector<char> memory(4096);
  auto region = device->register_memory(*pd, memory.data(), memory.size(),
                                        urnic::access_local_write | urnic::access_remote_write);
  if (!region) return std::fprintf(stderr, "%s\n", region.error().message.c_str()), 1;
  const urnic::DeviceInfo info = device->info();
  std::printf("%s, addresses %s: %zu bytes that others may write, rkey 0x%08x\n", info.port.c_str(),
              info.addresses.c_str(), memory.size(), region->rkey());
}
