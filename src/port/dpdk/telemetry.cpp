#include "port/dpdk/telemetry.h"

#include <rte_telemetry.h>

#include <algorithm>
#include <cctype>
#include <mutex>
#include <utility>
#include <vector>

namespace urnic::port::dpdk {
namespace {

struct Shown {
  std::string name;
  const void* port;
  void (*read)(const void*, urnic_port_stats*);
};
struct Shelf {
  std::mutex lock;
  std::vector<Shown> ports;
  bool registered = false;
};
// Never destroyed, because the telemetry thread runs until the process ends.
Shelf& shelf() {
  static Shelf* s = new Shelf;
  return *s;
}

int list_ports(const char*, const char*, rte_tel_data* answer) {
  rte_tel_data_start_dict(answer);
  std::lock_guard hold(shelf().lock);
  for (const Shown& p : shelf().ports) {
    rte_tel_data* one = rte_tel_data_alloc();
    if (one == nullptr) return -1;
    rte_tel_data_start_dict(one);
    urnic_port_stats s{};
    p.read(p.port, &s);
    const std::pair<const char*, std::uint64_t> values[] = {
        {"rx_frames", s.rx_frames}, {"rx_bytes", s.rx_bytes}, {"tx_frames", s.tx_frames},
        {"tx_bytes", s.tx_bytes},   {"rx_bad", s.rx_bad},     {"tx_dropped", s.tx_dropped},
        {"tx_full", s.tx_full},     {"syscalls", s.syscalls}, {"wakeups", s.wakeups}};
    for (const auto& [name, value] : values) rte_tel_data_add_dict_u64(one, name, value);
    rte_tel_data_add_dict_container(answer, p.name.c_str(), one, 0);
  }
  return 0;
}

}  // namespace

void show(const std::string& name, const void* port, void (*read)(const void*, urnic_port_stats*)) {
  std::string plain = name;  // names in telemetry consist of letters, digits, '_' and '/'
  for (char& c : plain) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  Shelf& s = shelf();
  std::lock_guard hold(s.lock);
  if (!s.registered) {
    s.registered = rte_telemetry_register_cmd("/urnic/ports", list_ports,
                                              "Counters of urnic's DPDK ports") == 0;
  }
  s.ports.push_back({plain, port, read});
}

void hide(const void* port) {
  Shelf& s = shelf();
  std::lock_guard hold(s.lock);
  std::erase_if(s.ports, [&](const Shown& one) { return one.port == port; });
}

}  // namespace urnic::port::dpdk
