#include "dropin/memory.h"

#include <memory>
#include <new>

#include "dropin/context.h"
#include "dropin/errors.h"
#include "dropin/injector.h"
#include "dropin/queue_pair.h"

namespace urnic::dropin {
namespace {

// Flags that a device may ignore silently.
constexpr unsigned kOptional = IBV_ACCESS_OPTIONAL_RANGE;
// Large pages make no difference here.
constexpr unsigned kWithoutEffect = kOptional | IBV_ACCESS_HUGETLB;
constexpr unsigned kEffective = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                                IBV_ACCESS_ZERO_BASED | IBV_ACCESS_MW_BIND;

// Here in_use means that windows are bound to the region; elsewhere it is about an address.
int why_not(const Error& e) {
  return e.code == Errc::in_use ? EBUSY : to_errno(e.code);
}

std::uint32_t to_access(unsigned flags) {
  std::uint32_t out = 0;
  if ((flags & IBV_ACCESS_LOCAL_WRITE) != 0) out |= access_local_write;
  if ((flags & IBV_ACCESS_REMOTE_WRITE) != 0) out |= access_remote_write;
  if ((flags & IBV_ACCESS_REMOTE_READ) != 0) out |= access_remote_read;
  if ((flags & IBV_ACCESS_REMOTE_ATOMIC) != 0) out |= access_remote_atomic;
  if ((flags & IBV_ACCESS_ZERO_BASED) != 0) out |= access_zero_based;
  if ((flags & IBV_ACCESS_MW_BIND) != 0) out |= access_bind_window;
  return out;
}

// Returns 0, or the errno value for rights that a region cannot have.
int refusal_of(unsigned flags) {
  if ((flags & IBV_ACCESS_ON_DEMAND) != 0) return EOPNOTSUPP;
  if ((flags & ~(kEffective | kWithoutEffect)) != 0) return EINVAL;
  const bool writes_from_afar = (flags & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0;
  return writes_from_afar && (flags & IBV_ACCESS_LOCAL_WRITE) == 0 ? EINVAL : 0;
}

void show(Mr* mr) {
  mr->base.addr = mr->region.address();
  mr->base.length = mr->region.length();
  mr->base.handle = mr->base.lkey = mr->base.rkey = mr->region.lkey();
}

ibv_mr* register_region(ibv_pd* p, void* address, std::size_t length, std::uint64_t iova,
                        unsigned flags) {
  if (const int e = refusal_of(flags); e != 0) return nothing(e);
  if (!Pd::of(p)->is_known()) return nothing(ENOENT);
  auto mr = std::make_unique<Mr>();
  if (!count_up(counts(p->context).regions, Limits::kRegions)) return nothing(ENOMEM);
  Pd* pd = Pd::of(p);
  auto region = Adapter::of(p->context)
                    .device()
                    .register_memory(pd->domain, address, length, to_access(flags), iova);
  if (!region) {
    counts(p->context).regions.fetch_sub(1);
    return nothing(to_errno(region.error().code));
  }
  mr->region = std::move(*region);
  mr->base = {};
  mr->base.context = p->context;
  mr->base.pd = p;
  show(mr.get());
  pd->users.fetch_add(1);
  return &mr.release()->base;
}

ibv_mr* registered(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                   unsigned flags) {
  return guarded([&] { return register_region(pd, address, length, iova, flags); }, nullptr);
}

// rdma-core's results: errors of the input that it checks itself, and errors of the device.
int wrong_input() {
  errno = EINVAL;
  return IBV_REREG_MR_ERR_INPUT;
}
int refused(int error) {
  errno = error;
  return IBV_REREG_MR_ERR_CMD;
}

int reregister(Mr* mr, int flags, ibv_pd* pd, void* address, std::size_t length, int access) {
  if ((flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0) return wrong_input();
  const bool moves = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  const bool other_rights = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0;
  const bool other_domain = (flags & IBV_REREG_MR_CHANGE_PD) != 0;
  if (moves && (address == nullptr || length == 0)) return wrong_input();
  if (access != 0 && !other_rights) return wrong_input();
  if (other_domain && pd == nullptr) return wrong_input();
  if (flags == 0) return refused(EINVAL);
  RegionChange change;
  if (moves) change.memory = {address, length, {}};
  if (other_domain) change.domain = &Pd::of(pd)->domain;
  if (other_rights) {
    const auto rights = static_cast<unsigned>(access);
    if (const int e = refusal_of(rights); e != 0) return refused(e);
    change.access = to_access(rights);
  }
  const auto done = mr->region.reregister(change);
  if (!done) return refused(why_not(done.error()));
  show(mr);
  if (other_domain) {
    Pd::of(mr->base.pd)->users.fetch_sub(1);
    Pd::of(pd)->users.fetch_add(1);
    mr->base.pd = pd;
    mr->base.context = pd->context;  // the old context may be closed when nothing else uses it
  }
  return 0;
}

// ---- windows

ibv_mw* alloc_mw(ibv_pd* p, ibv_mw_type type) {
  return guarded(
      [&]() -> ibv_mw* {
        if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) return nothing(EINVAL);
        if (!Pd::of(p)->is_known()) return nothing(ENOENT);
        auto mw = std::make_unique<Mw>();
        if (!count_up(counts(p->context).windows, Limits::kWindows)) return nothing(ENOMEM);
        Pd* pd = Pd::of(p);
        auto window = Adapter::of(p->context)
                          .device()
                          .create_window(pd->domain, type == IBV_MW_TYPE_1 ? WindowType::type1
                                                                           : WindowType::type2);
        if (!window) {
          counts(p->context).windows.fetch_sub(1);
          return nothing(to_errno(window.error().code));
        }
        mw->window = std::move(*window);
        mw->base = {};
        mw->base.context = p->context;
        mw->base.pd = p;
        mw->base.type = type;
        mw->base.handle = mw->base.rkey = mw->window.rkey();
        pd->users.fetch_add(1);
        return &mw.release()->base;
      },
      nullptr);
}

// Type 1: the provider chooses the key, which is known as soon as the request is in the queue.
int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind) {
  if (mw->type != IBV_MW_TYPE_1) return EINVAL;
  if ((bind->bind_info.mw_access_flags & IBV_ACCESS_ZERO_BASED) != 0) return EINVAL;
  WindowBind wanted;
  if (bind->bind_info.mr != nullptr && bind->bind_info.mr->pd != mw->pd) return EPERM;
  const std::uint32_t rkey = ibv_inc_rkey(mw->rkey);
  if (const int e = to_bind(*mw, rkey, bind->bind_info, &wanted); e != 0) return e;
  if (const int e = post_bind(qp, bind->wr_id, bind->send_flags, wanted); e != 0) return e;
  mw->rkey = rkey;
  return 0;
}

int dealloc_mw(ibv_mw* m) {
  if (is_inherited(m->context)) return 0;
  Pd::of(m->pd)->users.fetch_sub(1);
  counts(m->context).windows.fetch_sub(1);
  delete Mw::of(m);
  return 0;
}

// ---- thread domains and parent domains: the program promises to use objects created with them
// from one thread. The promise is accepted but not used, because nothing here would be faster.

struct Td {
  ibv_td base;  // first
  std::atomic<int> users{0};
};

ibv_td* alloc_td(ibv_context* c, ibv_td_init_attr* attr) {
  return guarded(
      [&]() -> ibv_td* {
        if (attr->comp_mask != 0) return nothing(EINVAL);
        auto td = std::make_unique<Td>();
        td->base.context = c;
        Context::of(c)->users.fetch_add(1);
        return &td.release()->base;
      },
      nullptr);
}

int dealloc_td(ibv_td* t) {
  if (is_inherited(t->context)) return 0;
  Td* td = reinterpret_cast<Td*>(t);
  if (td->users.load() != 0) return EBUSY;
  Context::drop(t->context);
  delete td;
  return 0;
}

// The same domain as its parent's, with another handle; freed like any other.
ibv_pd* alloc_parent_domain(ibv_context* c, ibv_parent_domain_init_attr* attr) {
  return guarded(
      [&]() -> ibv_pd* {
        if (attr->pd == nullptr || !is_same_device(attr->pd->context, c)) return nothing(EINVAL);
        constexpr std::uint32_t kKnown = IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
        if ((attr->comp_mask & ~kKnown) != 0) return nothing(EOPNOTSUPP);
        auto pd = std::make_unique<Pd>();
        if (!count_up(counts(c).domains, Limits::kDomains)) return nothing(ENOMEM);
        pd->domain = Pd::of(attr->pd)->domain;
        pd->parent = Pd::of(attr->pd);
        pd->parent->users.fetch_add(1);
        pd->thread_users = attr->td != nullptr ? &reinterpret_cast<Td*>(attr->td)->users : nullptr;
        if (pd->thread_users != nullptr) pd->thread_users->fetch_add(1);
        pd->base = {};
        pd->base.context = c;
        pd->base.handle = pd->number;
        Context::of(c)->users.fetch_add(1);
        return &pd.release()->base;
      },
      nullptr);
}

}  // namespace

std::uint32_t to_remote_access(unsigned flags) {
  return to_access(flags &
                   (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC));
}

int to_bind(const ibv_mw& mw, std::uint32_t rkey, const ibv_mw_bind_info& info, WindowBind* out) {
  constexpr unsigned kRights = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                               IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED;
  // Local write is not a right of a window. Programs set it together with remote rights all the
  // same (rdma-core's own tests), and devices accept it.
  constexpr unsigned kPasses = IBV_ACCESS_LOCAL_WRITE;
  if ((info.mw_access_flags & ~(kRights | kPasses)) != 0) return EINVAL;
  if (info.mr == nullptr && (info.addr != 0 || info.length != 0)) return EINVAL;
  const bool is_whole = rkey >> 8 != 0;  // else only the consumer's byte, which devices accept
  if (is_whole && (rkey ^ mw.rkey) >> 8 != 0) return EINVAL;  // the key of another window
  out->rkey = (mw.rkey & ~0xffu) | (rkey & 0xffu);
  out->lkey = info.mr != nullptr ? info.mr->lkey : 0;
  out->address = info.addr;
  out->length = info.length;
  out->access = to_access(info.mw_access_flags & kRights);
  return 0;
}

void set_memory_calls(verbs_context* v) {
  v->alloc_td = alloc_td;
  v->dealloc_td = dealloc_td;
  v->alloc_parent_domain = alloc_parent_domain;
  v->context.ops.alloc_mw = alloc_mw;
  v->context.ops.bind_mw = bind_mw;
  v->context.ops.dealloc_mw = dealloc_mw;
}

}  // namespace urnic::dropin

using namespace urnic::dropin;  // the exported functions are in the global namespace

ibv_pd* urnic_ibv_alloc_pd(ibv_context* c) {
  if (const int e = injected(VerbsKind::ibv_alloc_pd); e != 0) return nothing(e);
  return guarded(
      [&]() -> ibv_pd* {
        auto pd = std::make_unique<Pd>();
        if (!count_up(counts(c).domains, Limits::kDomains)) return nothing(ENOMEM);
        auto domain = Adapter::of(c).device().alloc_pd();
        if (!domain) {
          counts(c).domains.fetch_sub(1);
          return nothing(to_errno(domain.error().code));
        }
        pd->domain = std::move(*domain);
        pd->base = {};
        pd->base.context = c;
        pd->base.handle = pd->number;
        Context::of(c)->users.fetch_add(1);
        return &pd.release()->base;
      },
      nullptr);
}

int urnic_ibv_dealloc_pd(ibv_pd* p) {
  if (is_inherited(p->context)) return 0;
  Pd* pd = Pd::of(p);
  if (!pd->is_known()) return told(ENOENT);
  if (pd->users.load() != 0) return told(EBUSY);
  if (pd->parent != nullptr) pd->parent->users.fetch_sub(1);
  if (pd->thread_users != nullptr) pd->thread_users->fetch_sub(1);
  counts(p->context).domains.fetch_sub(1);
  Context::drop(p->context);
  delete pd;
  return 0;
}

ibv_mr* urnic_ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                               unsigned access) {
  if (const int e = injected(VerbsKind::ibv_reg_mr); e != 0) return nothing(e);
  return registered(pd, address, length, iova, access);
}

ibv_mr* urnic_ibv_reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  if (const int e = injected(VerbsKind::ibv_reg_mr); e != 0) return nothing(e);
  return registered(pd, address, length, reinterpret_cast<std::uint64_t>(address),
                    static_cast<unsigned>(access));
}

ibv_mr* urnic_ibv_reg_mr_iova(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                              int access) {
  if (const int e = injected(VerbsKind::ibv_reg_mr); e != 0) return nothing(e);
  return registered(pd, address, length, iova, static_cast<unsigned>(access));
}

int urnic_ibv_rereg_mr(ibv_mr* m, int flags, ibv_pd* pd, void* address, std::size_t length,
                       int access) {
  return guarded([&] { return reregister(Mr::of(m), flags, pd, address, length, access); },
                 static_cast<int>(IBV_REREG_MR_ERR_CMD));
}

int urnic_ibv_dereg_mr(ibv_mr* m) {
  if (is_inherited(m->context)) return 0;
  Mr* mr = Mr::of(m);
  if (!mr->is_known()) return told(ENOENT);
  if (const auto gone = mr->region.deregister(); !gone) return told(why_not(gone.error()));
  Pd::of(m->pd)->users.fetch_sub(1);
  counts(m->context).regions.fetch_sub(1);
  delete mr;
  return 0;
}
