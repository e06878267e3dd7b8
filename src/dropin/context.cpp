#include "dropin/context.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "dropin/completion.h"
#include "dropin/errors.h"
#include "dropin/gids.h"
#include "dropin/injector.h"
#include "dropin/memory.h"
#include "dropin/process.h"
#include "dropin/queue_pair.h"
#include "dropin/shared_receive.h"
#include "dropin/undo.h"
#include "dropin/xrc.h"

#ifndef URNIC_VERSION
#define URNIC_VERSION "unknown"
#endif

namespace urnic::dropin {
namespace {

constexpr std::uint32_t kVendor = 0x55524e;  // not assigned: so programs use their generic code
constexpr std::uint64_t kMostRegion = std::uint64_t{1} << 47;

__be64 guid_of(const std::uint8_t* mac) {
  // EUI-64 from the MAC address.
  const std::uint8_t bytes[8] = {mac[0], mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
  __be64 out;
  std::memcpy(&out, bytes, 8);
  return out;
}

void fill_device(const Adapter& adapter, ibv_device_attr* a) {
  *a = {};
  std::strncpy(a->fw_ver, URNIC_VERSION, sizeof a->fw_ver - 1);
  a->node_guid = a->sys_image_guid = guid_of(adapter.mac());
  a->max_mr_size = kMostRegion;
  a->page_size_cap = 0xfffff000;
  a->vendor_id = kVendor;
  a->vendor_part_id = 1;
  a->hw_ver = 1;
  a->max_qp = static_cast<int>(
      std::min<std::int64_t>(adapter.config().get_int("max_connections"), Limits::kQueuePairs));
  a->max_qp_wr = Limits::kWork;
  a->device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT |
                        IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_MEM_WINDOW |
                        IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  a->max_sge = a->max_sge_rd = Limits::kSges;
  a->max_cq = Limits::kCompletionQueues;
  a->max_cqe = Limits::kCompletions;
  a->max_mr = Limits::kRegions;
  a->max_mw = Limits::kWindows;
  a->max_pd = Limits::kDomains;
  a->max_qp_rd_atom = adapter.most_reads("ird");
  a->max_qp_init_rd_atom = adapter.most_reads("ord");
  a->max_res_rd_atom = static_cast<int>(
      std::min<std::int64_t>(std::int64_t{a->max_qp_rd_atom} * a->max_qp, 0x7fffffff));
  a->atomic_cap = IBV_ATOMIC_GLOB;
  a->max_srq = Limits::kSharedQueues;
  a->max_srq_wr = Limits::kWork;
  a->max_srq_sge = Limits::kSges;
  a->max_pkeys = 1;
  a->phys_port_cnt = 1;
  const TransportTraits& traits = adapter.traits();
  if (traits.has_datagrams) a->max_ah = Limits::kAddressHandles;
  if (traits.has_rnr_nak) a->device_cap_flags |= IBV_DEVICE_RC_RNR_NAK_GEN;
  if (traits.has_xrc) a->device_cap_flags |= IBV_DEVICE_XRC;
}

// The path MTU that fits this IP MTU, also with IPv6 (IB-13).
ibv_mtu path_mtu_in(std::uint32_t ip_mtu) {
  constexpr std::uint32_t kAround = 84;
  for (const ibv_mtu mtu : {IBV_MTU_4096, IBV_MTU_2048, IBV_MTU_1024, IBV_MTU_512}) {
    if ((128u << mtu) + kAround <= ip_mtu) return mtu;
  }
  return IBV_MTU_256;
}

ibv_mtu class_of(std::uint32_t ip_mtu) {
  return ip_mtu >= 4096 ? IBV_MTU_4096 : ip_mtu >= 2048 ? IBV_MTU_2048 : IBV_MTU_1024;
}

int fill_port(Adapter& adapter, std::uint8_t number, ibv_port_attr* a) {
  if (number != 1) return EINVAL;
  *a = {};
  const DeviceInfo info = adapter.device().info();
  const TransportTraits& traits = adapter.traits();
  const bool up = adapter.is_port_up();
  a->state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  a->max_mtu = IBV_MTU_4096;
  a->active_mtu = traits.port.has_path_mtu ? path_mtu_in(info.mtu) : class_of(info.mtu);
  a->gid_tbl_len = static_cast<int>(adapter.gids().size());
  a->port_cap_flags = traits.port.cap_flags;
  a->max_msg_sz = traits.port.max_msg_sz;
  a->pkey_tbl_len = 1;
  a->max_vl_num = 1;
  a->active_width = 2;  // 4X
  a->active_speed = 1;  // the lowest speed that has a number
  a->phys_state = up ? 5 : 3;
  a->link_layer = IBV_LINK_LAYER_ETHERNET;
  a->flags = traits.port.flags;
  return 0;
}

int fill_gid(Adapter& adapter, std::uint32_t port, std::uint32_t index, ibv_gid* gid) {
  return guarded(
      [&] {
        const GidSlots gids = adapter.gids();
        if (port != 1 || index >= gids.size()) return EINVAL;
        *gid = gids.at(index);
        return 0;
      },
      ENOMEM);
}

ibv_gid_type gid_type(const Adapter& adapter) {
  return adapter.is_ib_like() ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_IB;
}

// `size` is the size of the program's structure.
void fill_entry(const Adapter& adapter, std::uint32_t index, const ibv_gid& gid, void* entry,
                std::size_t size) {
  ibv_gid_entry e{};
  e.gid = gid;
  e.gid_index = index;
  e.port_num = 1;
  e.gid_type = gid_type(adapter);
  e.ndev_ifindex = interface_of(gid);
  std::memset(entry, 0, size);
  std::memcpy(entry, &e, std::min(size, sizeof e));
}

int query_port(ibv_context* c, std::uint8_t number, ibv_port_attr* out, std::size_t size) {
  ibv_port_attr a;
  const int e = guarded([&] { return fill_port(Adapter::of(c), number, &a); }, ENOMEM);
  if (e != 0) return e;
  std::memset(out, 0, size);
  std::memcpy(out, &a, std::min(size, sizeof a));
  return 0;
}

int query_device_ex(ibv_context* c, const ibv_query_device_ex_input* input, ibv_device_attr_ex* out,
                    std::size_t size) {
  if (input != nullptr && input->comp_mask != 0) return EINVAL;
  if (size < sizeof(ibv_device_attr)) return EINVAL;
  ibv_device_attr_ex a{};
  const int e = guarded([&] { return fill_device(Adapter::of(c), &a.orig_attr), 0; }, ENOMEM);
  if (e != 0) return e;
  a.phys_port_cnt_ex = 1;
  a.device_cap_flags_ex = a.orig_attr.device_cap_flags;
  std::memset(out, 0, size);
  std::memcpy(out, &a, std::min(size, sizeof a));
  return 0;
}

}  // namespace

ibv_context* Context::make(Adapter& adapter) {
  auto context = std::unique_ptr<Context>(new (std::nothrow) Context(adapter));
  if (context == nullptr) return nothing(ENOMEM);
  verbs_context& v = context->verbs;
  ibv_context& c = v.context;
  c.device = adapter.slot();
  c.cmd_fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);  // programs may check that it is a descriptor
  c.async_fd = context->async.fd();
  if (c.cmd_fd < 0 || c.async_fd < 0) {
    const int error = errno;
    if (c.cmd_fd >= 0) close(c.cmd_fd);
    return nothing(error);
  }
  Undo descriptor([&] { close(c.cmd_fd); });
  c.num_comp_vectors = 1;
  pthread_mutex_init(&c.mutex, nullptr);
  c.abi_compat = reinterpret_cast<void*>(UINTPTR_MAX);
  v.sz = sizeof v;
  v.query_port = query_port;
  v.query_device_ex = query_device_ex;
  set_memory_calls(&v);
  set_completion_calls(&v);
  set_queue_pair_calls(&v);
  set_shared_receive_calls(&v);
  if (adapter.traits().has_xrc) set_xrc_calls(&v);
  adapter.add_context(context.get());
  descriptor.keep();
  return &context.release()->verbs.context;
}

void Context::drop(ibv_context* c) {
  Context* context = of(c);
  if (context->users.fetch_sub(1) != 1) return;
  pthread_mutex_destroy(&c->mutex);
  delete context;
}

}  // namespace urnic::dropin

// ---- exported functions

using urnic::dropin::Adapter;
using urnic::dropin::Context;
using urnic::dropin::failed;
using urnic::dropin::guarded;
using urnic::dropin::injected;
using urnic::dropin::nothing;
using urnic::dropin::Process;
using urnic::dropin::VerbsKind;
using urnic::dropin::zero_or_failed;

ibv_device** urnic_ibv_get_device_list(int* number) {
  if (number != nullptr) *number = 0;
  return guarded(
      [&]() -> ibv_device** {
        Process& process = Process::get();
        (void)process.configure();
        const auto& adapters = process.adapters();
        auto** list = new ibv_device*[adapters.size() + 1]();
        for (std::size_t i = 0; i < adapters.size(); ++i) list[i] = adapters[i]->slot();
        if (number != nullptr) *number = static_cast<int>(adapters.size());
        return list;
      },
      nullptr);
}

void urnic_ibv_free_device_list(ibv_device** list) {
  delete[] list;
}

const char* urnic_ibv_get_device_name(ibv_device* device) {
  return device->name;
}

int urnic_ibv_get_device_index(ibv_device*) {
  return -1;  // a number of the kernel, which this device does not have
}

__be64 urnic_ibv_get_device_guid(ibv_device* device) {
  return urnic::dropin::guid_of(Adapter::of(device).mac());
}

ibv_context* urnic_ibv_open_device(ibv_device* device) {
  if (const int e = injected(VerbsKind::ibv_open_device); e != 0) return nothing(e);
  return guarded(
      [&]() -> ibv_context* {
        Adapter* adapter = Process::get().find(device);
        if (adapter == nullptr) return nothing(ENODEV);
        if (const int e = adapter->open(); e != 0) return nothing(e);
        return Context::make(*adapter);
      },
      nullptr);
}

int urnic_ibv_close_device(ibv_context* c) {
  if (urnic::dropin::is_inherited(c)) return 0;
  Context* context = Context::of(c);
  context->adapter.remove_context(context);
  close(c->cmd_fd);
  // Objects that the program has not destroyed (perftest's receive queue of a sender) keep the
  // context alive, as with a real device; that is not an error.
  Context::drop(c);
  return 0;
}

int urnic_ibv_query_device(ibv_context* c, ibv_device_attr* out) {
  return guarded([&] { return urnic::dropin::fill_device(Adapter::of(c), out), 0; }, ENOMEM);
}

// The caller's structure is the old, shorter one, which ends after link_layer.
int urnic_ibv_query_port(ibv_context* c, std::uint8_t number, _compat_ibv_port_attr* out) {
  return guarded(
      [&] {
        ibv_port_attr a;
        if (const int e = urnic::dropin::fill_port(Adapter::of(c), number, &a); e != 0) return e;
        std::memcpy(static_cast<void*>(out), &a, offsetof(ibv_port_attr, flags));
        return 0;
      },
      ENOMEM);
}

int urnic_ibv_query_gid(ibv_context* c, std::uint8_t port, int index, ibv_gid* gid) {
  return zero_or_failed(
      urnic::dropin::fill_gid(Adapter::of(c), port, static_cast<std::uint32_t>(index), gid));
}

int urnic__ibv_query_gid_ex(ibv_context* c, std::uint32_t port, std::uint32_t index,
                            ibv_gid_entry* entry, std::uint32_t flags, std::size_t size) {
  if (flags != 0) return EOPNOTSUPP;
  Adapter& adapter = Adapter::of(c);
  ibv_gid gid;
  if (const int error = urnic::dropin::fill_gid(adapter, port, index, &gid); error != 0)
    return error;
  if (urnic::dropin::is_hole(gid)) return ENODATA;
  urnic::dropin::fill_entry(adapter, index, gid, entry, size);
  return 0;
}

ssize_t urnic__ibv_query_gid_table(ibv_context* c, ibv_gid_entry* entries, std::size_t most,
                                   std::uint32_t flags, std::size_t size) {
  if (flags != 0) return -EOPNOTSUPP;
  if (most < 1) return -EINVAL;
  return guarded(
      [&]() -> ssize_t {
        // The kernel also leaves out holes, and fails if there is no room for all.
        const urnic::dropin::GidSlots gids = Adapter::of(c).gids();
        auto* at = reinterpret_cast<char*>(entries);
        std::size_t n = 0;
        for (std::uint32_t i = 0; i < gids.size(); ++i) {
          if (urnic::dropin::is_hole(gids.at(i))) continue;
          if (n++ == most) return -EINVAL;
          urnic::dropin::fill_entry(Adapter::of(c), i, gids.at(i), at, size);
          at += size;
        }
        return static_cast<ssize_t>(n);
      },
      -ENOMEM);
}

int urnic_ibv_query_gid_type(ibv_context* c, std::uint8_t port, unsigned index, unsigned* type) {
  ibv_gid gid;
  if (const int e = urnic::dropin::fill_gid(Adapter::of(c), port, index, &gid); e != 0)
    return failed(e);
  // The values of sysfs: RoCE v2, or IB and RoCE v1, which a kernel also shows for a hole.
  *type = Adapter::of(c).is_ib_like() && !urnic::dropin::is_hole(gid) ? 1 : 0;
  return 0;
}

unsigned urnic___ioctl_final_num_attrs(unsigned own, void*) {
  return own;
}

int urnic_ibv_query_pkey(ibv_context*, std::uint8_t port, int index, __be16* key) {
  if (port != 1 || index != 0) return failed(EINVAL);
  *key = 0xffff;
  return 0;
}

int urnic_ibv_get_pkey_index(ibv_context*, std::uint8_t port, __be16 key) {
  if (port != 1 || (key | htobe16(0x8000)) != 0xffff) return failed(EINVAL);
  return 0;
}

// Memory is never pinned, so a fork copies it like any other memory.
int urnic_ibv_fork_init() {
  return 0;
}
ibv_fork_status urnic_ibv_is_fork_initialized() {
  return IBV_FORK_UNNEEDED;
}
int urnic_ibv_dontfork_range(void*, std::size_t) {
  return 0;
}
int urnic_ibv_dofork_range(void*, std::size_t) {
  return 0;
}

const char* urnic_ibv_get_sysfs_path() {
  return "/sys";
}

int urnic_ibv_read_sysfs_file(const char* dir, const char* file, char* out, std::size_t size) {
  return guarded(
      [&] {
        const std::string path = std::string(dir) + "/" + file;
        const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (fd < 0) return -1;
        ssize_t n = ::read(fd, out, size);
        close(fd);
        if (n <= 0) return static_cast<int>(n);
        if (out[n - 1] == '\n') {
          out[--n] = 0;
        } else if (static_cast<std::size_t>(n) < size) {
          out[n] = 0;
        } else {
          return failed(EOVERFLOW);
        }
        return static_cast<int>(n);
      },
      -1);
}

// ---- asynchronous events

namespace {

// The counters of the object that an event is about, if it is counted.
struct Affected {
  pthread_mutex_t* mutex = nullptr;
  pthread_cond_t* cond = nullptr;
  std::uint32_t* completed = nullptr;
  std::uint32_t* handed = nullptr;
};

Affected affected_by(const ibv_async_event& e) {
  switch (e.event_type) {
    case IBV_EVENT_CQ_ERR: {
      auto* cq = urnic::dropin::Cq::of(e.element.cq);
      return {&cq->ex.mutex, &cq->ex.cond, &cq->ex.async_events_completed, &cq->async_handed};
    }
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_QP_LAST_WQE_REACHED: {
      auto* qp = urnic::dropin::Qp::of(e.element.qp);
      return {&e.element.qp->mutex, &e.element.qp->cond, &e.element.qp->events_completed,
              &qp->async_handed};
    }
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED: {
      auto* srq = urnic::dropin::Srq::of(e.element.srq);
      return {&srq->base.mutex, &srq->base.cond, &srq->base.events_completed, &srq->async_handed};
    }
    default:
      return {};
  }
}

}  // namespace

int urnic_ibv_get_async_event(ibv_context* c, ibv_async_event* event) {
  // Counted when it is taken out: a thread that destroys the object finds the event here, or waits
  // for its acknowledgement.
  return zero_or_failed(Context::of(c)->async.pop(event, [](const ibv_async_event& taken) {
    const Affected a = affected_by(taken);
    if (a.mutex == nullptr) return;
    pthread_mutex_lock(a.mutex);
    ++*a.handed;
    pthread_mutex_unlock(a.mutex);
  }));
}

void urnic_ibv_ack_async_event(ibv_async_event* event) {
  const Affected a = affected_by(*event);
  if (a.mutex == nullptr) return;
  pthread_mutex_lock(a.mutex);
  ++*a.completed;
  pthread_cond_signal(a.cond);
  pthread_mutex_unlock(a.mutex);
}
