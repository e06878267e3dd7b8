#include "dropin/xrc.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "dropin/adapter.h"
#include "dropin/context.h"
#include "dropin/errors.h"
#include "dropin/qp_types.h"
#include "dropin/tables_lock.h"

namespace urnic::dropin {
namespace {

// Number of handles of each domain that has a file, by device. A domain exists only in this
// process: another process that opens the same file has a domain of its own.
struct Files {
  std::mutex mutex;
  std::map<std::pair<std::size_t, std::string>, int> handles;
};
Files& files() {
  static auto* f = new Files;
  return *f;
}

// Identifies the file itself, independent of its name.
int name_of(int fd, std::string* out) {
  struct stat s {};
  if (fstat(fd, &s) != 0) return errno;
  *out = std::to_string(s.st_dev) + ":" + std::to_string(s.st_ino);
  return 0;
}

ibv_xrcd* open_domain(ibv_context* c, std::string name) {
  Adapter& adapter = Adapter::of(c);
  auto x = std::make_unique<Xrcd>();
  auto domain = adapter.device().open_xrc_domain(name);
  if (!domain) return nothing(to_errno(domain.error().code));
  auto pd = adapter.device().alloc_pd();
  if (!pd) return nothing(to_errno(pd.error().code));
  x->base.context = c;
  x->domain = std::move(*domain);
  x->none = std::move(*pd);
  x->name = std::move(name);
  Context::of(c)->users.fetch_add(1);
  return &x.release()->base;
}

// The error that open() would return for a file with these flags.
int refusal(int oflags, bool is_there) {
  if (!is_there && (oflags & O_CREAT) == 0) return ENOENT;
  return is_there && (oflags & O_EXCL) != 0 ? EEXIST : 0;
}

ibv_xrcd* open_xrcd(ibv_context* c, ibv_xrcd_init_attr* attr) {
  if (is_inherited(c)) return nothing(ENODEV);
  constexpr std::uint32_t kAll = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  if ((attr->comp_mask & kAll) != kAll || (attr->comp_mask & ~kAll) != 0 ||
      (attr->oflags & ~(O_CREAT | O_EXCL)) != 0) {
    return nothing(EINVAL);
  }
  return guarded(
      [&]() -> ibv_xrcd* {
        if (attr->fd == -1) {
          const int e = refusal(attr->oflags, false);
          return e == 0 ? open_domain(c, {}) : nothing(e);
        }
        std::string name;
        if (const int e = name_of(attr->fd, &name); e != 0) return nothing(e);
        const std::lock_guard guard(files().mutex);
        const std::pair file{Adapter::of(c).index(), name};
        const bool is_there = files().handles.contains(file);
        if (const int e = refusal(attr->oflags, is_there); e != 0) return nothing(e);
        int& handles = files().handles[file];
        ibv_xrcd* const x = open_domain(c, std::move(name));
        if (x != nullptr) {
          ++handles;
        } else if (!is_there) {
          files().handles.erase(file);
        }
        return x;
      },
      nullptr);
}

int close_xrcd(ibv_xrcd* xrcd) {
  ibv_context* const c = xrcd->context;
  if (is_inherited(c)) return 0;
  Xrcd* const x = Xrcd::of(xrcd);
  if (x->users.load() != 0) return EBUSY;
  if (!x->name.empty()) {
    const std::lock_guard guard(files().mutex);
    const auto at = files().handles.find({Adapter::of(c).index(), x->name});
    if (at != files().handles.end() && --at->second == 0) files().handles.erase(at);
  }
  delete x;
  Context::drop(c);
  return 0;
}

// ---- queue pairs

bool is_same(const Endpoint& end, const Xrcd& x) {
  return end.xrcd == &x || (!x.name.empty() && end.domain == x.name);
}

// Opens another handle of a receiving end of XRC, by its number. The queue pair exists until its
// last handle is destroyed; its events are delivered with the handle it was created with.
ibv_qp* open_qp(ibv_context* c, ibv_qp_open_attr* attr) {
  constexpr std::uint32_t kNeeded =
      IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  if ((attr->comp_mask & kNeeded) != kNeeded || attr->xrcd == nullptr ||
      attr->qp_type != IBV_QPT_XRC_RECV) {
    return nothing(EINVAL);
  }
  if (is_inherited(c)) return nothing(ENODEV);
  return guarded(
      [&]() -> ibv_qp* {
        auto qp = std::make_unique<Qp>();
        qp->end = endpoint_of(Adapter::of(c), attr->qp_num);
        {
          const std::lock_guard guard(tables_lock);
          if (qp->end == nullptr || qp->end->opened == 0 ||
              !is_same(*qp->end, *Xrcd::of(attr->xrcd))) {
            return nothing(EINVAL);
          }
          ++qp->end->opened;
        }
        ibv_qp& b = qp->base;
        b.context = c;
        if ((attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT) != 0) b.qp_context = attr->qp_context;
        b.handle = b.qp_num = attr->qp_num;
        b.state = qp->state();
        b.qp_type = IBV_QPT_XRC_RECV;
        pthread_mutex_init(&b.mutex, nullptr);
        pthread_cond_init(&b.cond, nullptr);
        qp->xrcd = attr->xrcd;
        count_users(*qp, 1);
        return &qp.release()->base;
      },
      nullptr);
}

}  // namespace

ibv_xrcd* make_xrcd(ibv_context* c) {
  return guarded([&] { return open_domain(c, {}); }, nullptr);
}

void set_xrc_calls(verbs_context* v) {
  v->open_xrcd = open_xrcd;
  v->close_xrcd = close_xrcd;
  v->open_qp = open_qp;
}

}  // namespace urnic::dropin
