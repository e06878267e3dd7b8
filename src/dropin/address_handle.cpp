#include "dropin/address_handle.h"

#include <cstring>
#include <memory>
#include <new>

#include "dropin/context.h"
#include "dropin/errors.h"
#include "dropin/flow_label.h"
#include "dropin/gids.h"
#include "dropin/injector.h"
#include "dropin/memory.h"

namespace urnic::dropin {

int to_path(Adapter& adapter, const ibv_ah_attr& a, std::uint32_t pair, QpPath* out) {
  if (a.is_global == 0 || a.port_num != 1) return EINVAL;
  const GidSlots gids = adapter.gids();
  Address local, remote;
  if (a.grh.sgid_index >= gids.size()) return EINVAL;
  if (!to_address(gids.at(a.grh.sgid_index), &local)) return EINVAL;
  if (!to_address(a.grh.dgid, &remote)) return EINVAL;
  out->local = host_of(local);
  out->remote = host_of(remote);
  out->traffic_class = a.grh.traffic_class;
  // Programs that know no routers set 0 or 1. Linux uses the hop limit of its route instead.
  if (a.grh.hop_limit > 1) out->hop_limit = a.grh.hop_limit;
  out->source_port = source_port(a.grh.flow_label, pair);
  return 0;
}

ibv_ah_attr address_vector_between(Adapter& adapter, const Address& own, const Address& peer) {
  ibv_ah_attr a{};
  a.is_global = 1;
  a.port_num = 1;
  a.grh.dgid = to_gid(peer);
  a.grh.sgid_index = static_cast<std::uint8_t>(adapter.gids().find(to_gid(own)).value_or(0));
  return a;
}

ibv_ah_attr to_address_vector(Adapter& adapter, const QpPath& path) {
  const auto address = [](const std::string& host) {
    Address a{};
    (void)from_host(host, &a);
    return a;
  };
  ibv_ah_attr a = address_vector_between(adapter, address(path.local), address(path.remote));
  a.grh.traffic_class = static_cast<std::uint8_t>(path.traffic_class);
  a.grh.hop_limit = static_cast<std::uint8_t>(path.hop_limit);
  return a;
}

namespace {

ibv_ah* create(ibv_pd* p, const ibv_ah_attr& attr) {
  Adapter& adapter = Adapter::of(p->context);
  if (!adapter.traits().has_datagrams) return nothing(EOPNOTSUPP);
  if (!Pd::of(p)->is_known()) return nothing(ENOENT);
  QpPath path;
  if (const int e = to_path(adapter, attr, 0, &path); e != 0) return nothing(e);
  auto ah = std::unique_ptr<Ah>(new Ah{});
  auto handle = adapter.device().create_address_handle(Pd::of(p)->domain, path);
  if (!handle) return nothing(to_errno(handle.error().code));
  ah->handle = std::move(*handle);
  ah->base.context = p->context;
  ah->base.handle = ah->number;
  ah->base.pd = p;
  Pd::of(p)->users.fetch_add(1);
  return &ah.release()->base;
}

// Checks the 40 bytes in front of a datagram: they are an IPv6 header, or an IPv4 header in the
// second half after 20 unchanged bytes.
bool is_v4_header(const std::uint8_t* at) {
  if (at[0] != 0x45) return false;
  std::uint32_t sum = 0;  // RFC 791: a header including its checksum adds up to all ones
  for (int i = 0; i < 20; i += 2) sum += static_cast<std::uint32_t>(at[i] << 8 | at[i + 1]);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return sum == 0xffff;
}

ibv_gid mapped(const std::uint8_t* v4) {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  std::memcpy(gid.raw + 12, v4, 4);
  return gid;
}

// Fills the route back to the sender, from the address where the datagram arrived. Returns 0 or
// errno.
int from_headers(const ibv_wc& wc, const ibv_grh& grh, ibv_gid* own, ibv_global_route* back) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&grh);
  constexpr int kV4 = 20, kSource = 12, kDestination = 16;
  back->hop_limit = 0xff;
  if (is_v4_header(bytes + kV4)) {
    back->dgid = mapped(bytes + kV4 + kSource);
    *own = mapped(bytes + kV4 + kDestination);
    back->traffic_class = bytes[kV4 + 1];
    // IPv4 has no flow label: use the sender's QP number
    back->flow_label = wc.src_qp & kFlowLabels;
    return 0;
  }
  const std::uint32_t first = be32toh(grh.version_tclass_flow);
  if (first >> 28 != 6) return EPROTONOSUPPORT;
  back->dgid = grh.sgid;
  *own = grh.dgid;
  back->traffic_class = static_cast<std::uint8_t>(first >> 20);
  back->flow_label = first & kFlowLabels;
  return 0;
}

int init_from_wc(Adapter& adapter, std::uint8_t port, const ibv_wc& wc, const ibv_grh* grh,
                 ibv_ah_attr* out) {
  if (!adapter.traits().has_datagrams) return EOPNOTSUPP;
  if (port != 1 || (wc.wc_flags & IBV_WC_GRH) == 0 || grh == nullptr) return EINVAL;
  ibv_ah_attr a{};
  a.port_num = port;
  a.is_global = 1;
  ibv_gid own;
  if (const int e = from_headers(wc, *grh, &own, &a.grh); e != 0) return e;
  const auto index = adapter.gids().find(own);
  if (!index) return EINVAL;
  a.grh.sgid_index = static_cast<std::uint8_t>(*index);
  *out = a;
  return 0;
}

}  // namespace
}  // namespace urnic::dropin

using namespace urnic::dropin;  // the exported functions are in the global namespace

ibv_ah* urnic_ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  if (const int e = injected(VerbsKind::ibv_create_ah); e != 0) return nothing(e);
  return guarded([&] { return create(pd, *attr); }, nullptr);
}

// Requests that have not left yet are lost, as any datagram may be.
int urnic_ibv_destroy_ah(ibv_ah* a) {
  if (is_inherited(a->context)) return 0;
  if (!Ah::of(a)->is_known()) return told(ENOENT);
  Pd::of(a->pd)->users.fetch_sub(1);
  delete Ah::of(a);
  return 0;
}

int urnic_ibv_init_ah_from_wc(ibv_context* c, std::uint8_t port, ibv_wc* wc, ibv_grh* grh,
                              ibv_ah_attr* attr) {
  return guarded([&] { return zero_or_failed(init_from_wc(Adapter::of(c), port, *wc, grh, attr)); },
                 -1);
}

ibv_ah* urnic_ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, std::uint8_t port) {
  return guarded(
      [&]() -> ibv_ah* {
        ibv_ah_attr attr;
        if (const int e = init_from_wc(Adapter::of(pd->context), port, *wc, grh, &attr); e != 0)
          return nothing(e);
        return create(pd, attr);
      },
      nullptr);
}
