#include "sim/router.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/inet_checksum.h"
#include "port/adapter.h"

namespace urnic::sim {
namespace {

constexpr std::size_t kEthernet = 14, kIpv4 = 20, kIcmp = 8;
constexpr std::size_t kQuoted = kIpv4 + 8;  // IP header and the first bytes of TCP
constexpr std::uint8_t kRouter[4] = {10, 0, 0, 254};
// A real router would also limit the rate of replies.
// bound: replies of the router of `urnic sim` that wait for the node; beyond: further oversized
// packets are dropped without a reply; test:
// Router.WaitingRepliesAreLimited
constexpr std::size_t kMostWaiting = 64;

using Bytes = std::vector<std::uint8_t>;

// "Fragmentation needed and DF set" about the datagram in `frame` (RFC 792, 1191 4).
Bytes too_big(const std::uint8_t* frame, std::uint32_t mtu) {
  Bytes m(kEthernet + kIpv4 + kIcmp + kQuoted, 0);
  std::memcpy(m.data(), frame + 6, 6);
  std::memcpy(m.data() + 6, frame, 6);
  store_be16(m.data() + 12, 0x0800);
  std::uint8_t* ip = m.data() + kEthernet;
  ip[0] = 0x45;
  store_be16(ip + 2, static_cast<std::uint16_t>(kIpv4 + kIcmp + kQuoted));
  ip[8] = 64;  // TTL
  ip[9] = 1;   // ICMP
  std::memcpy(ip + 12, kRouter, 4);
  std::memcpy(ip + 16, frame + kEthernet + 12, 4);
  store_be16(ip + 10, inet_checksum(inet_sum({ip, kIpv4})));
  std::uint8_t* icmp = ip + kIpv4;
  icmp[0] = 3;
  icmp[1] = 4;
  store_be16(icmp + 6, static_cast<std::uint16_t>(mtu));
  std::memcpy(icmp + kIcmp, frame + kEthernet, kQuoted);
  store_be16(icmp + 2, inet_checksum(inet_sum({icmp, kIcmp + kQuoted})));
  return m;
}

class Router {
 public:
  Router(port::Port inner, std::shared_ptr<RouterControl> control)
      : inner_(std::move(inner)), control_(std::move(control)) {}
  static Outcome<std::unique_ptr<Router>, std::string> make(port::Args&) {
    return fail(std::string("'router' wraps another port and cannot be opened by name"));
  }

  void info(urnic_port_info* i) const { *i = inner_.info(); }
  void stats(urnic_port_stats* s) const { *s = inner_.stats(); }
  unsigned rx_burst(unsigned q, urnic_frame* frames, unsigned n);
  void rx_release(unsigned q, const urnic_frame* frames, unsigned n);
  unsigned tx_reserve(unsigned q, std::uint32_t len, urnic_frame* frames, unsigned n) {
    return inner_.tx_reserve(q, len, frames, n);
  }
  void tx_commit(unsigned q, urnic_frame* frames, unsigned n);
  unsigned wait_fds(unsigned q, int* fds, unsigned max) { return inner_.wait_fds(q, fds, max); }
  int arm(unsigned q) { return !waiting_.empty() || inner_.arm(q) ? 1 : 0; }
  void disarm(unsigned q) { inner_.disarm(q); }
  std::string why() const { return inner_.why(); }

 private:
  bool fits(const urnic_frame& f) const;

  port::Port inner_;
  std::shared_ptr<RouterControl> control_;
  std::vector<Bytes> waiting_, lent_;  // messages to the node; those currently lent to it
};

bool Router::fits(const urnic_frame& f) const {
  const std::uint32_t bytes = f.len[0] + f.len[1];
  if (control_->path_mtu == 0 || bytes <= kEthernet + control_->path_mtu) return true;
  return f.len[0] < kEthernet + kQuoted || load_be16(f.data[0] + 12) != 0x0800;
}

void Router::tx_commit(unsigned q, urnic_frame* frames, unsigned n) {
  for (unsigned i = 0; i < n; ++i) {
    if (control_->watch) control_->watch(frames[i]);
    if (fits(frames[i])) continue;
    ++control_->dropped;
    if (waiting_.size() < kMostWaiting) {
      waiting_.push_back(too_big(frames[i].data[0], control_->path_mtu));
    }
    frames[i].len[0] = frames[i].len[1] = 0;  // returned unsent
  }
  inner_.tx_commit(q, frames, n);
}

unsigned Router::rx_burst(unsigned q, urnic_frame* frames, unsigned n) {
  if (waiting_.empty()) return inner_.rx_burst(q, frames, n);
  unsigned got = 0;
  while (got < n && got < waiting_.size()) {
    urnic_frame f{};
    lent_.push_back(std::move(waiting_[got]));
    f.data[0] = lent_.back().data();
    f.len[0] = static_cast<std::uint32_t>(lent_.back().size());
    f.csum = URNIC_CSUM_UNKNOWN;
    frames[got++] = f;
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + got);
  return got;
}

void Router::rx_release(unsigned q, const urnic_frame* frames, unsigned n) {
  if (lent_.empty()) return inner_.rx_release(q, frames, n);
  lent_.clear();
}

constinit const urnic_port_ops kRouterPortOps = port::Adapter<Router>::table("router");

}  // namespace

RoutedPort wrap_router(port::Port inner) {
  RoutedPort out;
  out.control = std::make_shared<RouterControl>();
  auto router = std::make_unique<Router>(std::move(inner), out.control);
  out.port = port::Port(&kRouterPortOps, port::as_handle(router.release()));
  return out;
}

}  // namespace urnic::sim
