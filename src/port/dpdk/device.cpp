#include "port/dpdk/device.h"

#include <dirent.h>
#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "port/dpdk/eal.h"

#ifdef URNIC_DPDK_XDP
#include <bpf/libbpf.h>
#include <xdp/libxdp.h>
#endif

namespace urnic::port::dpdk {
namespace {

constexpr int kAfXdp = 44;
constexpr std::uint16_t kDescriptors = 512;

// The libraries of the AF_XDP driver print to stderr by default. They are silenced only during our
// calls, because the program may use them as well.
class QuietXdp {
#ifdef URNIC_DPDK_XDP
 public:
  QuietXdp() : bpf_(libbpf_set_print(nullptr)), xdp_(libxdp_set_print(nullptr)) {}
  ~QuietXdp() {
    libbpf_set_print(bpf_);
    libxdp_set_print(xdp_);
  }
  QuietXdp(const QuietXdp&) = delete;
  QuietXdp& operator=(const QuietXdp&) = delete;

 private:
  libbpf_print_fn_t bpf_;
  libxdp_print_fn_t xdp_;
#else
 public:
  QuietXdp() {}
#endif
};

std::string failed(const std::string& what, int error) {
  std::string s = what;
  if (error != 0) s += std::string(": ") + rte_strerror(error < 0 ? -error : error);
  if (std::string why = last_complaint(); !why.empty()) s += " (" + why + ")";
  return s;
}

// The receive sockets that a driver has opened. DPDK's interface offers no way to sleep on those
// drivers, but their sockets become readable with every frame.
std::vector<int> driver_sockets() {
  std::vector<int> found;
  DIR* d = opendir("/proc/self/fd");
  if (d == nullptr) return found;
  while (const dirent* entry = readdir(d)) {
    const int fd = std::atoi(entry->d_name);
    int domain = 0;
    socklen_t size = sizeof domain;
    if (fd <= 2 || getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0) continue;
    if (domain == AF_PACKET || domain == kAfXdp) found.push_back(fd);
  }
  closedir(d);
  std::sort(found.begin(), found.end());
  return found;
}

// There must be one socket per queue, opened in the order of the queues; otherwise none is used.
void find_wait_fds(Device* d, const std::vector<int>& before) {
  d->wait_fds.assign(d->queues, -1);
  if (d->interrupts) {
    for (unsigned q = 0; q < d->queues; ++q) {
      d->wait_fds[q] = rte_eth_dev_rx_intr_ctl_q_get_fd(d->port, static_cast<std::uint16_t>(q));
    }
    return;
  }
  std::vector<int> fresh;
  for (int fd : driver_sockets()) {
    if (!std::binary_search(before.begin(), before.end(), fd)) fresh.push_back(fd);
  }
  if (fresh.size() == d->queues) d->wait_fds = fresh;
}

int configure(Device* d, const rte_eth_dev_info& info, bool interrupts) {
  rte_eth_conf c{};
  c.intr_conf.rxq = interrupts ? 1 : 0;
  constexpr std::uint64_t kChecksums = RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_TCP_CKSUM;
  if ((info.rx_offload_capa & kChecksums) == kChecksums) c.rxmode.offloads = kChecksums;
  const auto n = static_cast<std::uint16_t>(d->queues);
  return rte_eth_dev_configure(d->port, n, n, &c);
}

std::string set_up(Device* d, const DeviceOptions& o) {
  rte_eth_dev_info info{};
  if (int r = rte_eth_dev_info_get(d->port, &info); r != 0)
    return failed("cannot read the device info", r);
  if (d->queues > info.max_rx_queues || d->queues > info.max_tx_queues) {
    return "queues=" + std::to_string(d->queues) + ": the device supports at most " +
           std::to_string(std::min(info.max_rx_queues, info.max_tx_queues));
  }
  // Software drivers refuse interrupts. Whether a NIC supports them is only known by trying.
  d->interrupts = d->bus == "pci" && configure(d, info, true) == 0;
  if (!d->interrupts) {
    if (int r = configure(d, info, false); r != 0) return failed("cannot configure", r);
  }
  std::uint16_t rx = kDescriptors, tx = kDescriptors;
  if (int r = rte_eth_dev_adjust_nb_rx_tx_desc(d->port, &rx, &tx); r != 0) {
    return failed("cannot set the size of its rings", r);
  }
  static std::atomic<unsigned> serial{0};
  const std::string name = "urnic" + std::to_string(serial++);
  const std::uint32_t room =
      std::max<std::uint32_t>(RTE_MBUF_DEFAULT_DATAROOM, (o.max_frame + 4 + 63) / 64 * 64) +
      RTE_PKTMBUF_HEADROOM;
  if (room > UINT16_MAX)
    return "mtu: must fit into a DPDK buffer (at most 65535 bytes with its headers)";
  const unsigned buffers = (rx + tx + o.buffers) * d->queues;
  d->pool = rte_pktmbuf_pool_create(name.c_str(), buffers, 64, 0, static_cast<std::uint16_t>(room),
                                    SOCKET_ID_ANY);
  if (d->pool == nullptr) {
    return failed("not enough memory for " + std::to_string(buffers) + " buffers: increase memory=",
                  rte_errno);
  }
  for (unsigned n = 0; n < d->queues; ++n) {
    const auto q = static_cast<std::uint16_t>(n);
    int r = rte_eth_rx_queue_setup(d->port, q, rx, SOCKET_ID_ANY, nullptr, d->pool);
    if (r == 0) r = rte_eth_tx_queue_setup(d->port, q, tx, SOCKET_ID_ANY, nullptr);
    if (r != 0) return failed("cannot set up queue " + std::to_string(q), r);
  }
  if (o.max_frame > 1514) {
    const int r = rte_eth_dev_set_mtu(d->port, static_cast<std::uint16_t>(o.max_frame - 14));
    // Drivers without this call use the MTU of the interface.
    if (r != 0 && r != -ENOTSUP) return failed("cannot set the mtu", r);
  }
  if (int r = rte_eth_dev_start(d->port); r != 0) return failed("cannot start", r);
  // Our MAC may differ from the device's. Drivers without promiscuous mode do not filter either.
  rte_eth_promiscuous_enable(d->port);
  return "";
}

}  // namespace

Outcome<Device, std::string> open_device(const DeviceOptions& o) {
  Device d;
  d.bus = o.bus;
  d.name = o.name;
  d.queues = o.queues;
  std::uint16_t port = 0;
  if (rte_eth_dev_get_port_by_name(o.name.c_str(), &port) == 0) {
    return fail("device " + o.name + " is already in use by another port of this process");
  }
  const std::vector<int> before = driver_sockets();
  const QuietXdp quiet;
  if (int r = rte_eal_hotplug_add(o.bus.c_str(), o.name.c_str(), o.arguments.c_str()); r != 0) {
    return fail(failed("cannot attach " + o.bus + " device " + o.name, r));
  }
  if (int r = rte_eth_dev_get_port_by_name(o.name.c_str(), &d.port); r != 0) {
    rte_eal_hotplug_remove(o.bus.c_str(), o.name.c_str());
    return fail(o.name + " is not a network device");
  }
  if (std::string wrong = set_up(&d, o); !wrong.empty()) {
    close_device(&d);
    return fail(o.name + ": " + wrong);
  }
  find_wait_fds(&d, before);
  return d;
}

void close_device(Device* d) {
  const QuietXdp quiet;
  rte_eth_dev_stop(d->port);
  rte_eth_dev_close(d->port);
  rte_eal_hotplug_remove(d->bus.c_str(), d->name.c_str());
  if (d->pool != nullptr) rte_mempool_free(d->pool);
  d->pool = nullptr;
}

}  // namespace urnic::port::dpdk
