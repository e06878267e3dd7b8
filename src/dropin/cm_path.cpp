// The path record of an id. A RoCE id has one, built from its addresses and its port, as a kernel
// builds it without a subnet manager; an iWARP id has none. A program that knows a path may set it
// instead of resolving one (rdma_resolve_route). Such a path leads to the same peer over the same
// device, so the rest of it is ignored.
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/sa.h>

#include <cstring>

#include "dropin/cm_id.h"
#include "dropin/gids.h"

namespace urnic::dropin {
namespace {

constexpr std::uint8_t kExactly = 2;  // selector value: exactly this value
constexpr std::uint8_t kLifeTime =
    16;  // 4.096 us << 16, as rdma_cm sets it without a subnet manager
constexpr std::uint8_t kHops = 64;

// True if one of the program's records describes the whole path.
bool has_whole_path(const void* records, std::size_t bytes) {
  constexpr std::uint32_t kWhole =
      IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
  const auto* at = static_cast<const std::uint8_t*>(records);
  for (; bytes != 0; bytes -= sizeof(ibv_path_data), at += sizeof(ibv_path_data)) {
    std::uint32_t flags;
    std::memcpy(&flags, at, sizeof flags);
    if (flags == kWhole) return true;
  }
  return false;
}

}  // namespace

int CmId::set_path(const void* records, std::size_t bytes) {
  if (bytes % sizeof(ibv_path_data) != 0 || !has_whole_path(records, bytes)) return EINVAL;
  const std::lock_guard guard(Process::get().cm);
  if (adapter == nullptr || stage != IdState::AddressResolved) return EINVAL;
  stage = IdState::RouteResolved;
  show_path();
  tell(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
  return 0;
}

void CmId::show_path() {
  if (adapter == nullptr || !adapter->traits().has_path_records) return;
  ibv_port_attr port{};
  verbs_context* const verbs = verbs_get_ctx(id().verbs);
  if (verbs->query_port(id().verbs, 1, &port, sizeof port) != 0) return;
  path = {};
  path.sgid = to_gid(source);
  path.dgid = to_gid(destination);
  path.hop_limit = kHops;
  path.reversible = 1;
  path.numb_path = 1;
  path.pkey = htons(0xffff);
  path.mtu_selector = path.rate_selector = path.packet_life_time_selector = kExactly;
  path.mtu = static_cast<std::uint8_t>(port.active_mtu);
  path.rate = IBV_RATE_10_GBPS;  // the rate that the port reports
  path.packet_life_time = kLifeTime;
  id().route.path_rec = &path;
  id().route.num_paths = 1;
}

}  // namespace urnic::dropin
