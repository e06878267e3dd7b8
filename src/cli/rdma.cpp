#include "cli/rdma.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "base/ip_address.h"
#include "cli/runtime.h"

namespace urnic::cli {
namespace {

constexpr std::size_t kHugePage = 2 << 20;

}  // namespace

Result<RdmaBuffer> RdmaBuffer::make(Device& device, const ProtectionDomain& pd, std::size_t length,
                                    std::uint32_t access) {
  RdmaBuffer b;
  void* p = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) {
    return Error{Errc::no_memory, std::string("no memory for buffers: ") + std::strerror(errno)};
  }
  // Fewer page faults at the first use: 4 MiB otherwise take some milliseconds on a virtual
  // machine.
  if (length >= kHugePage) madvise(p, length, MADV_HUGEPAGE);
  b.memory_ = static_cast<std::uint8_t*>(p);
  b.length_ = length;
  auto region = device.register_memory(pd, p, length, access);
  if (!region) return region.error();
  b.region_ = std::move(*region);
  return b;
}

RdmaBuffer& RdmaBuffer::operator=(RdmaBuffer&& o) noexcept {
  std::swap(memory_, o.memory_);
  std::swap(length_, o.length_);
  std::swap(region_, o.region_);
  return *this;
}

RdmaBuffer::~RdmaBuffer() {
  region_ = MemoryRegion();  // must come first: the engine may still read the memory
  if (memory_ != nullptr) munmap(memory_, length_);
}

std::string no_link_text(const std::string& port, const std::string& reason,
                         const std::string& whom) {
  if (reason.find("Already connected") != std::string::npos) {
    return port + " is in use by another client (one client per memif socket; " + whom +
           " can serve more sockets, and urnic switch connects many)";
  }
  if (!reason.empty() && !reason.starts_with("no server")) {
    return "no link on " + port + ": " + reason;
  }
  return "no peer on " + port + "; start " + whom + " on this port first";
}

Result<Config> serving(const Config& config, const std::string& what) {
  Config c = config;
  const std::string spec = c.get("port");
  if (!spec.starts_with("memif:") || spec.find("serves=") != std::string::npos) return c;
  if (auto ok = c.set("port", spec + ",serves=" + what); !ok) return ok.error();
  return c;
}

Result<void> wait_ready(Device& device, const std::string& port, const std::string& whom,
                        int timeout_ms) {
  const double until = now_seconds() + timeout_ms / 1000.0;
  // Wait in short steps, so that a signal can end the wait.
  while (!device.wait_link(100)) {
    if (stop_requested()) return Error{Errc::closed, "stopped"};
    if (now_seconds() > until) {
      return Error{Errc::unreachable, no_link_text(port, device.info().link_reason, whom)};
    }
  }
  while (device.info().addresses.find("tentative") != std::string::npos && now_seconds() < until) {
    if (stop_requested()) return Error{Errc::closed, "stopped"};
    usleep(20'000);
  }
  return {};
}

Result<void> not_ourselves(Device& device, const std::string& endpoint) {
  const DeviceInfo info = device.info();
  const auto to = SocketAddress::parse_zoned(endpoint);
  if (!to || info.mtu == 0) return {};  // possible over the kernel's TCP
  if ((" " + info.addresses).find(" " + to->ip.without_zone().to_string() + "/") ==
      std::string::npos) {
    return {};
  }
  return Error{Errc::invalid_argument,
               endpoint +
                   ": is a local address; give the address of the other end (local addresses: " +
                   info.addresses + ")"};
}

Transport configured_transport(const Config& config) {
  return config.get("transport") == "roce" ? Transport::roce : Transport::iwarp;
}

Result<void> make_ready(QueuePair& qp) {
  if (qp.state() != QpState::reset) return {};
  QpAttributes a;
  a.access = access_remote_write | access_remote_read;
  return qp.modify(QpState::init, a);
}

}  // namespace urnic::cli
