// The path record of an id: RoCE has one, made of its addresses and its port, as a kernel makes it
// where nobody is asked for it; iWARP has none. A program that knows a way may say so instead of
// asking (rdma_resolve_route); it leads to the same peer over the same device, so nothing else of
// it is looked at.
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/sa.h>

#include <cstring>

#include "dropin/cm_id.h"
#include "dropin/gids.h"

namespace urnic::dropin {
namespace {

constexpr std::uint8_t kExactly = 2;  // of the selectors: this value
constexpr std::uint8_t kLifeTime =
    16;  // 4.096 us << 16, as rdma_cm has it without a subnet manager
constexpr std::uint8_t kHops = 64;

// Of the records a program brings the first that says all of the way.
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
  path.rate = IBV_RATE_10_GBPS;  // what the port says it has
  path.packet_life_time = kLifeTime;
  id().route.path_rec = &path;
  id().route.num_paths = 1;
}

}  // namespace urnic::dropin
