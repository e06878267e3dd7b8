#include "device/kernel_tcp_port.h"

#include "device/port_stack.h"
#include "device/stream_capture.h"
#include "fault/stream_line.h"
#include "port/adapter.h"
#include "port/kinds.h"

namespace urnic::device {
namespace {

// A port without frames: always up; it wakes up when a socket is ready.
class KernelTcpPort {
 public:
  explicit KernelTcpPort(std::shared_ptr<iwarp::KernelTcp> t) : transport_(std::move(t)) {}

  // It cannot be opened by name; open_kernel_tcp() opens it.
  static Outcome<std::unique_ptr<KernelTcpPort>, std::string> make(port::Args&) {
    return fail(std::string("port = tcp carries no Ethernet frames"));
  }
  void info(port::Info* i) const {
    *i = {};
    i->link_up = 1;
    i->queues = 1;
  }
  void stats(port::Stats* s) const {
    *s = {};
    s->rx_bytes = transport_->bytes_in;
    s->tx_bytes = transport_->bytes_out;
    s->syscalls = transport_->reads + transport_->writes;
    s->wakeups = wakeups_;
  }
  unsigned rx_burst(unsigned, port::Frame*, unsigned) { return 0; }
  void rx_release(unsigned, const port::Frame*, unsigned) {}
  unsigned tx_reserve(unsigned, std::uint32_t, port::Frame*, unsigned) { return 0; }
  void tx_commit(unsigned, port::Frame*, unsigned) {}
  unsigned wait_fds(unsigned, int* fds, unsigned max) const {
    if (max == 0) return 0;
    fds[0] = transport_->poller->wait_fd();
    return 1;
  }
  int arm(unsigned) {
    if (transport_->tap) transport_->tap->idle();
    return transport_->readable.empty() ? 0 : 1;
  }
  void disarm(unsigned) { ++wakeups_; }

 private:
  std::shared_ptr<iwarp::KernelTcp> transport_;
  std::uint64_t wakeups_ = 0;
};

constexpr const char* kMadeUp =
    "Captured above the kernel's TCP: Ethernet, IP and TCP headers are made up, and "
    "retransmissions are not shown.";

constexpr urnic_port_ops kStreamPortOps = port::Adapter<KernelTcpPort>::table("tcp");

std::string_view arguments_of(std::string_view spec) {
  const std::size_t colon = spec.find(':');
  return colon == std::string_view::npos ? std::string_view() : spec.substr(colon + 1);
}

Error bad(std::string text) {
  return {Errc::invalid_argument, "port = tcp: " + std::move(text)};
}

}  // namespace

bool names_kernel_tcp(std::string_view spec) {
  return spec.substr(0, spec.find(':')) == kKernelTcpKind;
}

Result<KernelTcpStack> open_kernel_tcp(const Config& config) {
  const std::string spec = config.get("port");
  port::Args args(arguments_of(spec));
  auto read = port::read_tcp_args(args);
  if (!read.ok()) return bad(read.error());
  auto t = std::make_shared<iwarp::KernelTcp>();
  t->options.align = read->align;
  if (read->bind) t->options.bind = *read->bind;
  auto poller = kernel_tcp::Poller::make();
  if (!poller) return why_unavailable("port = tcp: " + poller.error());
  t->poller = std::move(*poller);
  t->spare = kernel_tcp::Socket::spare();
  if (!t->spare.is_open()) {
    return Error{Errc::no_descriptors, "port = tcp: no file descriptor left (see ulimit -n)"};
  }
  if (const std::string text = config.get("faults"); !text.empty()) {
    const auto plan = fault::FaultPlan::parse(text, fault::Carrier::Stream);
    if (!plan) return bad("faults: " + plan.error());
    if (!plan->idle()) t->faults = std::make_unique<fault::StreamFaults>(*plan);
  }
  auto capture = open_capture(config, kMadeUp);
  if (!capture) return capture.error();
  if (*capture) t->tap = std::make_unique<StreamCapture>(*capture, wall_clock());
  return KernelTcpStack{std::move(t), std::move(*capture)};
}

port::Port make_kernel_tcp_port(std::shared_ptr<iwarp::KernelTcp> transport) {
  auto p = std::make_unique<KernelTcpPort>(std::move(transport));
  return port::Port(&kStreamPortOps, port::as_handle(p.release()));
}

}  // namespace urnic::device
