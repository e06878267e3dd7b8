// The DPDK port: physical NICs and DPDK's software drivers. It is a separate shared object (D11),
// loaded when a configuration names it. Keys and rights: docs/ports.md.
#include <errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "port/adapter.h"
#include "port/counters.h"
#include "port/dpdk/device.h"
#include "port/dpdk/eal.h"
#include "port/dpdk/forwarding.h"
#include "port/dpdk/telemetry.h"
#include "port/fd.h"

namespace urnic::port::dpdk {
namespace {

constexpr std::uint32_t kEthernetHeader = 14;
constexpr std::uint32_t kVlanTag = 4;
constexpr unsigned kSlots = 64;  // frames per burst, each direction
// Receive calls between two checks of the link.
constexpr std::uint32_t kLookEvery = 4096;
// Devices without a wait descriptor are polled by a timer: immediately after traffic, then at
// doubling intervals up to once a second (E-39).
constexpr std::uint64_t kPollFirstUs = 50;
constexpr std::uint64_t kPollMostUs = 1'000'000;
// Interval for retrying frames that the device had no room for.
constexpr std::uint64_t kRoomUs = 100;

// Commas separate the keys of a port, so a semicolon represents a comma inside vdev= and eal=.
std::string with_commas(std::string s) {
  std::replace(s.begin(), s.end(), ';', ',');
  return s;
}

class DpdkPort {
 public:
  static Outcome<std::unique_ptr<DpdkPort>, std::string> make(Args& args);
  ~DpdkPort();

  void info(urnic_port_info* i) const;
  void stats(urnic_port_stats* s) const;
  unsigned rx_burst(unsigned q, urnic_frame* frames, unsigned n);
  void rx_release(unsigned q, const urnic_frame* frames, unsigned n);
  unsigned tx_reserve(unsigned q, std::uint32_t len, urnic_frame* frames, unsigned n);
  void tx_commit(unsigned q, urnic_frame* frames, unsigned n);
  unsigned wait_fds(unsigned q, int* fds, unsigned max);
  int arm(unsigned q);
  void disarm(unsigned q);

 private:
  struct alignas(64) Queue {
    std::array<rte_mbuf*, kSlots> borrowed;  // received frames lent to the caller
    unsigned borrowed_count = 0;
    std::array<rte_mbuf*, kSlots> reserved;  // transmit buffers lent to the caller
    unsigned reserved_count = 0, reserved_next = 0;
    std::array<rte_mbuf*, kSlots> waiting;  // frames that the device had no room for
    unsigned waiting_count = 0;
    Fd timer;
    bool timer_set = false, slept = false;
    std::uint64_t poll_us = 0;
    std::uint32_t calls = 0;
    QueueCounters counters;
  };

  DpdkPort(Device device, std::uint32_t max_frame)
      : device_(std::move(device)), max_frame_(max_frame), queues_(new Queue[device_.queues]) {}
  void look_at_link();
  void flush(Queue& me, unsigned q);
  void drop_reserved(Queue& me);
  static bool put(const urnic_frame& f, rte_mbuf* m, std::uint32_t max_frame);
  void set_timer(Queue& me, std::uint64_t us);

  Device device_;
  std::uint32_t max_frame_;
  std::unique_ptr<Queue[]> queues_;
  std::atomic<bool> up_{false};
  std::atomic<std::uint32_t> epoch_{0};
};

Outcome<std::unique_ptr<DpdkPort>, std::string> DpdkPort::make(Args& args) {
  const std::string vdev = with_commas(args.str("vdev"));
  const std::string pci = with_commas(args.str("pci"));
  const std::string iface = args.str("iface");
  const std::uint64_t mtu = args.num("mtu", 1500, 68, 65000);
  EalOptions e;
  DeviceOptions d;
  d.queues = static_cast<unsigned>(args.num("queues", 1, 1, 64));
  e.memory_mb = static_cast<unsigned>(args.num("memory", 256, 64, 1 << 20));
  e.huge_pages = args.on_off("huge", !pci.empty());
  e.extra = with_commas(args.str("eal"));
  const bool drop_rule = args.on_off("drop_rule", false);
  if (std::string wrong = args.finish(); !wrong.empty()) return fail(wrong);
  if (vdev.empty() == pci.empty()) {
    return fail(
        std::string("set either vdev=<driver><n> (for example vdev=net_af_packet0,iface=veth0) or "
                    "pci=<address>"));
  }
  e.pci = !pci.empty();
  d.bus = e.pci ? "pci" : "vdev";
  const std::string& device = e.pci ? pci : vdev;
  d.name = device.substr(0, device.find(','));
  if (d.name.size() < device.size()) d.arguments = device.substr(d.name.size() + 1);
  const auto add = [&](const std::string& argument) {
    d.arguments += (d.arguments.empty() ? "" : ",") + argument;
  };
  if (!iface.empty()) add("iface=" + iface);
  if (d.name.starts_with("net_af_xdp")) {
    // Busy polling would keep the kernel from waking a sleeping thread.
    if (d.arguments.find("busy_budget") == std::string::npos) add("busy_budget=0");
    d.buffers = 8192;  // the driver's own rings need many, whatever ring sizes are configured
  }
  d.max_frame = static_cast<std::uint32_t>(mtu) + kEthernetHeader;
  if (d.name.starts_with("net_af_packet") && !drop_rule) {
    std::string wrong = forwarding_complaint(driver_argument(d.arguments, "iface"));
    if (!wrong.empty()) return fail(wrong);
  }

  if (auto started = start_eal(e); !started.ok()) return fail(started.error());
  auto opened = open_device(d);
  if (!opened.ok()) return fail(opened.error());
  std::unique_ptr<DpdkPort> p(new DpdkPort(std::move(opened.value()), d.max_frame));
  for (unsigned q = 0; q < d.queues; ++q) {
    p->queues_[q].timer.reset(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
    if (!p->queues_[q].timer)
      return fail(std::string("cannot create a timer: ") + std::strerror(errno));
  }
  p->look_at_link();
  show(p->device_.name, p.get(), [](const void* port, urnic_port_stats* counters) {
    static_cast<const DpdkPort*>(port)->stats(counters);
  });
  return p;
}

DpdkPort::~DpdkPort() {
  // In a forked child the device belongs to the parent.
  if (!eal_is_ours()) return;
  hide(this);
  for (unsigned q = 0; q < device_.queues; ++q) {
    Queue& me = queues_[q];
    rte_pktmbuf_free_bulk(me.borrowed.data(), me.borrowed_count);
    drop_reserved(me);
    flush(me, q);
    rte_pktmbuf_free_bulk(me.waiting.data(), me.waiting_count);
  }
  close_device(&device_);
}

void DpdkPort::look_at_link() {
  rte_eth_link link{};
  const bool now = rte_eth_link_get_nowait(device_.port, &link) != 0 || link.link_status != 0;
  if (now && !up_.exchange(true)) epoch_.fetch_add(1);
  if (!now) up_.store(false);
}

void DpdkPort::info(urnic_port_info* i) const {
  *i = {};
  rte_ether_addr mac{};
  if (rte_eth_macaddr_get(device_.port, &mac) == 0) std::memcpy(i->mac, mac.addr_bytes, 6);
  i->link_up = up_.load(std::memory_order_relaxed) ? 1 : 0;
  i->max_frame = max_frame_;
  i->queues = device_.queues;
  i->link_epoch = epoch_.load(std::memory_order_relaxed);
}

void DpdkPort::stats(urnic_port_stats* s) const {
  *s = {};
  for (unsigned q = 0; q < device_.queues; ++q) queues_[q].counters.add_to(s);
  rte_eth_stats device{};
  if (rte_eth_stats_get(device_.port, &device) == 0) s->rx_bad += device.ierrors;
}

// ---- receive ----

unsigned DpdkPort::rx_burst(unsigned q, urnic_frame* frames, unsigned n) {
  Queue& me = queues_[q];
  if (++me.calls % kLookEvery == 0) look_at_link();
  if (me.waiting_count != 0) flush(me, q);
  if (me.borrowed_count != 0) rx_release(q, nullptr, me.borrowed_count);
  std::array<rte_mbuf*, kSlots> in;
  const unsigned came = rte_eth_rx_burst(device_.port, static_cast<std::uint16_t>(q), in.data(),
                                         static_cast<std::uint16_t>(std::min(n, kSlots)));
  unsigned got = 0;
  std::uint64_t bytes = 0;
  for (unsigned i = 0; i < came; ++i) {
    rte_mbuf* m = in[i];
    if ((m->nb_segs > 1 && rte_pktmbuf_linearize(m) != 0) || m->data_len < kEthernetHeader ||
        m->data_len > max_frame_ + kVlanTag) {
      me.counters.rx_bad.add();
      rte_pktmbuf_free(m);
      continue;
    }
    me.borrowed[got] = m;
    urnic_frame& f = frames[got++];
    f = {};
    f.data[0] = rte_pktmbuf_mtod(m, std::uint8_t*);
    f.len[0] = m->data_len;
    if ((m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_GOOD) {
      f.csum = URNIC_CSUM_GOOD;
    }
    bytes += m->data_len;
  }
  me.borrowed_count = got;
  if (got != 0) {
    me.counters.rx_frames.add(got);
    me.counters.rx_bytes.add(bytes);
    if (me.slept) me.counters.wakeups.add();
    me.poll_us = 0;
  }
  me.slept = false;
  return got;
}

void DpdkPort::rx_release(unsigned q, const urnic_frame*, unsigned) {
  Queue& me = queues_[q];
  rte_pktmbuf_free_bulk(me.borrowed.data(), me.borrowed_count);
  me.borrowed_count = 0;
}

// ---- transmit ----

void DpdkPort::drop_reserved(Queue& me) {
  rte_pktmbuf_free_bulk(me.reserved.data() + me.reserved_next,
                        me.reserved_count - me.reserved_next);
  me.reserved_count = me.reserved_next = 0;
}

unsigned DpdkPort::tx_reserve(unsigned q, std::uint32_t len, urnic_frame* frames, unsigned n) {
  Queue& me = queues_[q];
  drop_reserved(me);
  if (me.waiting_count != 0) flush(me, q);
  unsigned got = std::min(n, kSlots - me.waiting_count);
  if (len > max_frame_ || rte_pktmbuf_alloc_bulk(device_.pool, me.reserved.data(), got) != 0) {
    got = 0;
  }
  for (unsigned i = 0; i < got; ++i) {
    frames[i] = {};
    frames[i].data[0] = rte_pktmbuf_mtod(me.reserved[i], std::uint8_t*);
    frames[i].len[0] = len;
  }
  me.reserved_count = got;
  if (got < n) me.counters.tx_full.add();
  return got;
}

bool DpdkPort::put(const urnic_frame& f, rte_mbuf* m, std::uint32_t max_frame) {
  const std::uint64_t total = std::uint64_t{f.len[0]} + f.len[1];
  if (total > max_frame) return false;
  auto* to =
      reinterpret_cast<std::uint8_t*>(rte_pktmbuf_append(m, static_cast<std::uint16_t>(total)));
  if (to == nullptr) return false;
  if (f.len[1] != 0) std::memcpy(to + f.len[0], f.data[1], f.len[1]);
  return true;
}

void DpdkPort::tx_commit(unsigned q, urnic_frame* frames, unsigned n) {
  Queue& me = queues_[q];
  for (unsigned i = 0; i < n && me.reserved_next < me.reserved_count; ++i) {
    rte_mbuf* m = me.reserved[me.reserved_next++];
    const urnic_frame& f = frames[i];
    if (f.len[0] == 0 || !put(f, m, max_frame_)) {
      if (f.len[0] != 0) me.counters.tx_dropped.add();
      rte_pktmbuf_free(m);
      continue;
    }
    me.waiting[me.waiting_count++] = m;
  }
  flush(me, q);
}

void DpdkPort::flush(Queue& me, unsigned q) {
  std::array<std::uint16_t, kSlots> length;  // the device owns the frames it has taken
  for (unsigned i = 0; i < me.waiting_count; ++i) length[i] = me.waiting[i]->data_len;
  const unsigned sent =
      rte_eth_tx_burst(device_.port, static_cast<std::uint16_t>(q), me.waiting.data(),
                       static_cast<std::uint16_t>(me.waiting_count));
  std::uint64_t bytes = 0;
  for (unsigned i = 0; i < sent; ++i) bytes += length[i];
  me.counters.tx_frames.add(sent);
  me.counters.tx_bytes.add(bytes);
  std::copy(me.waiting.begin() + sent, me.waiting.begin() + me.waiting_count, me.waiting.begin());
  me.waiting_count -= sent;
}

// ---- sleeping ----

void DpdkPort::set_timer(Queue& me, std::uint64_t us) {
  itimerspec t{};
  t.it_value.tv_sec = static_cast<time_t>(us / 1000000);
  t.it_value.tv_nsec = static_cast<long>(us % 1000000) * 1000;
  me.counters.syscalls.add();
  timerfd_settime(me.timer.get(), 0, &t, nullptr);
  me.timer_set = us != 0;
}

unsigned DpdkPort::wait_fds(unsigned q, int* fds, unsigned max) {
  const int all[] = {queues_[q].timer.get(), device_.wait_fds[q]};
  const unsigned n = std::min(max, device_.wait_fds[q] >= 0 ? 2u : 1u);
  std::copy_n(all, n, fds);
  return n;
}

int DpdkPort::arm(unsigned q) {
  Queue& me = queues_[q];
  const auto queue = static_cast<std::uint16_t>(q);
  if (device_.interrupts) {
    rte_eth_dev_rx_intr_enable(device_.port, queue);
    // A frame that arrived before the interrupt was enabled causes none.
    if (rte_eth_rx_queue_count(device_.port, queue) > 0) {
      rte_eth_dev_rx_intr_disable(device_.port, queue);
      return 1;
    }
  }
  std::uint64_t us = 0;
  if (device_.wait_fds[q] < 0) {
    me.poll_us = std::clamp(me.poll_us * 2, kPollFirstUs, kPollMostUs);
    us = me.poll_us;
  }
  if (me.waiting_count != 0) us = us == 0 ? kRoomUs : std::min(us, kRoomUs);
  if (us != 0) set_timer(me, us);
  me.slept = true;
  return 0;
}

void DpdkPort::disarm(unsigned q) {
  Queue& me = queues_[q];
  if (me.timer_set) set_timer(me, 0);  // also clears a timer that has fired
  if (!device_.interrupts) return;
  rte_eth_dev_rx_intr_disable(device_.port, static_cast<std::uint16_t>(q));
  std::uint64_t count;
  me.counters.syscalls.add();
  [[maybe_unused]] const ssize_t n = read(device_.wait_fds[q], &count, sizeof count);
}

constinit const urnic_port_ops kOps = Adapter<DpdkPort>::table("dpdk");

}  // namespace
}  // namespace urnic::port::dpdk

extern "C" __attribute__((visibility("default"))) const urnic_port_ops* urnic_port_entry(void) {
  return &urnic::port::dpdk::kOps;
}
