// Objects of the C library except queue pairs and identifiers.
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "tests/fuzz/dropin_program.h"

namespace urnic::fuzz {
namespace {

constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                     IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;

void do_not_wait(int fd) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

template <class T>
void drop(std::vector<T>& of, std::size_t at) {
  std::swap(of[at], of.back());
  of.pop_back();
}

}  // namespace

CProgram::CProgram(Shortage* shortage) : shortage_(shortage) {
  devices_ = ibv_get_device_list(&many_devices_);
  for (int i = 0; i < many_devices_; ++i) {
    contexts_.push_back(ibv_open_device(devices_[i]));
    require(contexts_.back() != nullptr, "a device does not open");
    do_not_wait(contexts_.back()->async_fd);
    domains_.push_back(ibv_alloc_pd(contexts_.back()));
    queues_.push_back({ibv_create_cq(contexts_.back(), 128, nullptr, nullptr, 0)});
    auto memory = std::make_unique<GuardedMemory>(4096);
    memory->may_change = true;
    ibv_mr* mr = ibv_reg_mr(domains_.back(), memory->data(), memory->size(), kAll);
    require(mr != nullptr, "there is no region at the beginning");
    regions_.push_back({std::move(memory), mr, kAll});
  }
  for (rdma_event_channel*& c : cm_) {
    c = rdma_create_event_channel();
    require(c != nullptr, "there is no channel at the beginning");
    do_not_wait(c->fd);
  }
}
CProgram::~CProgram() = default;

void CProgram::require_done(int result, const char* what) const {
  if (result == 0) return;
  require(shortage_->refused() != 0, what);
}

std::size_t CProgram::users_of(const ibv_pd* pd) const {
  const auto of = [&](const auto& all, auto&& is) {
    return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), is));
  };
  return of(regions_, [&](const CRegion& r) { return r.mr->pd == pd; }) +
         of(windows_, [&](const ibv_mw* w) { return w->pd == pd; }) +
         of(shared_, [&](const CShared& s) { return s.srq->pd == pd; }) +
         of(pairs_, [&](const CPair& p) { return p.qp->pd == pd; }) +
         of(handles_, [&](const ibv_ah* a) { return a->pd == pd; });
}

void CProgram::move_context(Input& in) {
  if (in.often(128) && contexts_.size() < kMost) {
    ibv_device* d =
        in.often(4) ? nullptr : devices_[in.below(static_cast<std::uint32_t>(many_devices_))];
    ibv_context* c = call([&] { return ibv_open_device(d); });
    require(c == nullptr || d != nullptr, "no device was opened");
    if (c == nullptr) return;
    do_not_wait(c->async_fd);
    contexts_.push_back(c);
    return;
  }
  // With or without remaining objects; its events are acknowledged before.
  if (static_cast<int>(contexts_.size()) <= many_devices_) return;
  acknowledge(0);
  ibv_context* c = contexts_.back();
  contexts_.pop_back();
  require(call([&] { return ibv_close_device(c); }) == 0, "a context is not closed");
}

bool CProgram::free_domain(std::size_t at) {
  const std::size_t users = users_of(domains_[at]);
  const int gone = call([&] { return ibv_dealloc_pd(domains_[at]); });
  if (users != 0) {
    require(gone == EBUSY, "a protection domain goes that is in use");
    return false;
  }
  require(gone == 0, "a protection domain that nobody uses does not go");
  drop(domains_, at);
  return true;
}

void CProgram::move_domain(Input& in) {
  if (in.often(128)) {
    ibv_context* c = pick(contexts_, in);
    if (c == nullptr || domains_.size() >= kMost) return;
    ibv_pd* pd = nullptr;
    if (in.often(64)) {
      ibv_parent_domain_init_attr a{};
      a.pd = in.often(32) ? nullptr : domains_.front();
      pd = call([&] { return ibv_alloc_parent_domain(c, &a); });
      // Its parent would be in use by it, which is not counted here.
      if (pd != nullptr) require(call([&] { return ibv_dealloc_pd(pd); }) == 0, "it does not go");
      return;
    }
    pd = call([&] { return ibv_alloc_pd(c); });
    if (pd != nullptr) domains_.push_back(pd);
    return;
  }
  if (!domains_.empty()) free_domain(in.below(static_cast<std::uint32_t>(domains_.size())));
}

bool CProgram::close_region(std::size_t at, bool may_be_bound) {
  const int gone = call([&] { return ibv_dereg_mr(regions_[at].mr); });
  if (gone != 0) {
    require((gone == EBUSY && may_be_bound) || shortage_->refused() != 0,
            "a region is not deregistered");
    return false;
  }
  graves_.bury(std::move(regions_[at].memory));
  drop(regions_, at);
  return true;
}

void CProgram::move_region(Input& in) {
  static constexpr int kSets[] = {kAll,
                                  IBV_ACCESS_LOCAL_WRITE,
                                  IBV_ACCESS_REMOTE_READ,
                                  0,
                                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
                                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED};
  const int access = in.often(16) ? in.u16() : kSets[in.below(6)];
  constexpr int kWritten = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  switch (in.below(3)) {
    case 0: {
      ibv_pd* pd = pick(domains_, in);
      if (pd == nullptr || regions_.size() >= kMost) return;
      auto memory = std::make_unique<GuardedMemory>(1 + in.below(5000));
      memory->may_change = (access & kWritten) != 0;
      ibv_mr* mr = call([&] { return ibv_reg_mr(pd, memory->data(), memory->size(), access); });
      if (mr != nullptr) regions_.push_back({std::move(memory), mr, access});
      return;
    }
    case 1:
      if (!regions_.empty()) {
        close_region(in.below(static_cast<std::uint32_t>(regions_.size())), !windows_.empty());
      }
      return;
    default: {
      CRegion* r = any(regions_, in);
      if (r == nullptr) return;
      const int flags = in.often(16) ? in.u8() : in.below(8);
      auto other = std::make_unique<GuardedMemory>(1 + in.below(5000));
      ibv_pd* pd = in.often(32) ? nullptr : pick(domains_, in);
      const bool moves = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
      const bool rights = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0;
      const int done = call([&] {
        return ibv_rereg_mr(r->mr, flags, pd, moves ? other->data() : nullptr, other->size(),
                            rights ? access : 0);
      });
      if (done != 0) return;
      if (rights) r->access = access;
      if (moves) {
        std::swap(other, r->memory);
        r->memory->take_names(*other);
        graves_.bury(std::move(other));
      }
      r->memory->change_rights((r->access & IBV_ACCESS_LOCAL_WRITE) != 0,
                               (r->access & kWritten) != 0);
      return;
    }
  }
}

void CProgram::move_window(Input& in) {
  ibv_mw* w = pick(windows_, in);
  switch (in.below(4)) {
    case 0: {
      ibv_pd* pd = pick(domains_, in);
      if (pd == nullptr || windows_.size() >= kMost) return;
      const auto type = static_cast<ibv_mw_type>(in.often(8) ? in.below(4) : 1 + in.below(2));
      ibv_mw* made = call([&] { return ibv_alloc_mw(pd, type); });
      if (made != nullptr) windows_.push_back(made);
      return;
    }
    case 1:
    case 2: {
      CPair* p = any(pairs_, in);
      CRegion* r = any(regions_, in);
      if (w == nullptr || p == nullptr || r == nullptr) return;
      ibv_mw_bind b{};
      b.wr_id = ledger_.next_id();
      b.send_flags = IBV_SEND_SIGNALED;
      b.bind_info.mr = in.often(16) ? nullptr : r->mr;
      b.bind_info.addr = r->memory->address() + in.u8();
      b.bind_info.length = in.u8();
      b.bind_info.mw_access_flags =
          in.often(32) ? unsigned{in.u16()} : IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
      r->memory->name_to_write((r->access & IBV_ACCESS_LOCAL_WRITE) != 0);
      if (call([&] { return ibv_bind_mw(p->qp, w, &b); }) == 0) {
        ledger_.post({p->sends, p->qp->qp_num, 0, false, true});
      }
      return;
    }
    default:
      if (w == nullptr) return;
      require(call([&] { return ibv_dealloc_mw(w); }) == 0, "a window does not go");
      std::erase(windows_, w);
      return;
  }
}

bool CProgram::destroy_channel(std::size_t at) {
  ibv_comp_channel* c = channels_[at];
  const bool used = std::any_of(queues_.begin(), queues_.end(),
                                [&](const CQueue& q) { return q.cq->channel == c; });
  const int gone = call([&] { return ibv_destroy_comp_channel(c); });
  require(gone == (used ? EBUSY : 0), "a completion channel goes in use, or does not go");
  if (!used) drop(channels_, at);
  return !used;
}

bool CProgram::destroy_queue(std::size_t at) {
  CQueue& q = queues_[at];
  const bool used = std::any_of(pairs_.begin(), pairs_.end(), [&](const CPair& p) {
    return p.qp->send_cq == q.cq || p.qp->recv_cq == q.cq;
  });
  acknowledge(0);
  if (q.handed != q.acknowledged) ibv_ack_cq_events(q.cq, q.handed - q.acknowledged);
  q.acknowledged = q.handed;
  const int gone = call([&] { return ibv_destroy_cq(q.cq); });
  require(gone == (used ? EBUSY : 0), "a completion queue goes in use, or does not go");
  if (!used) drop(queues_, at);
  return !used;
}

void CProgram::move_queue(Input& in) {
  CQueue* q = any(queues_, in);
  switch (in.below(8)) {
    case 0: {
      ibv_context* c = pick(contexts_, in);
      if (queues_.size() >= kMost + 2) return;
      ibv_comp_channel* channel = in.often(128) ? pick(channels_, in) : nullptr;
      const int depth = in.often(32) ? static_cast<std::int8_t>(in.u8()) : 32 + in.u8();
      ibv_cq* made = call([&] { return ibv_create_cq(c, depth, nullptr, channel, in.often(8)); });
      require(made == nullptr || depth > 0, "a queue of no depth");
      if (made != nullptr) queues_.push_back({made});
      return;
    }
    case 1:
      if (!queues_.empty()) destroy_queue(in.below(static_cast<std::uint32_t>(queues_.size())));
      return;
    case 2: {
      ibv_context* c = pick(contexts_, in);
      if (channels_.size() >= 3) return;
      ibv_comp_channel* made = call([&] { return ibv_create_comp_channel(c); });
      if (made == nullptr) return;
      do_not_wait(made->fd);
      channels_.push_back(made);
      return;
    }
    case 3:
      if (!channels_.empty()) {
        destroy_channel(in.below(static_cast<std::uint32_t>(channels_.size())));
      }
      return;
    case 4:
      if (q != nullptr) call([&] { return ibv_resize_cq(q->cq, in.u8()); });
      return;
    case 5:
      if (q != nullptr) call([&] { return ibv_req_notify_cq(q->cq, in.often(64)); });
      return;
    case 6: {
      ibv_comp_channel* channel = pick(channels_, in);
      ibv_cq* cq = nullptr;
      void* context = nullptr;
      if (channel == nullptr) return;
      if (call([&] { return ibv_get_cq_event(channel, &cq, &context); }) != 0) return;
      const auto whose =
          std::find_if(queues_.begin(), queues_.end(), [&](const CQueue& k) { return k.cq == cq; });
      require(whose != queues_.end(), "an event of no completion queue");
      ++whose->handed;
      return;
    }
    default:
      if (q != nullptr && q->handed != q->acknowledged) {
        ibv_ack_cq_events(q->cq, 1);
        ++q->acknowledged;
      }
      return;
  }
}

bool CProgram::destroy_shared(std::size_t at) {
  ibv_srq* s = shared_[at].srq;
  const bool used =
      std::any_of(pairs_.begin(), pairs_.end(), [&](const CPair& p) { return p.qp->srq == s; });
  acknowledge(0);
  const int gone = call([&] { return ibv_destroy_srq(s); });
  require(gone == (used ? EBUSY : 0), "a shared receive queue goes in use, or does not go");
  if (!used) drop(shared_, at);
  return !used;
}

void CProgram::move_shared(Input& in) {
  CShared* s = any(shared_, in);
  switch (in.below(4)) {
    case 0: {
      ibv_pd* pd = pick(domains_, in);
      if (pd == nullptr || shared_.size() >= 3) return;
      ibv_srq_init_attr a{};
      a.attr.max_wr = in.often(16) ? in.below(2) : 1 + in.below(64);
      a.attr.max_sge = in.often(16) ? in.u8() : 1 + in.below(4);
      ibv_srq* made = call([&] { return ibv_create_srq(pd, &a); });
      if (made != nullptr) shared_.push_back({made, ++last_name_});
      return;
    }
    case 1: {
      if (s == nullptr) return;
      ibv_srq_attr a{};
      a.srq_limit = in.u8();
      const int mask = in.often(32) ? int{in.u8()} : int{IBV_SRQ_LIMIT};
      call([&] { return ibv_modify_srq(s->srq, &a, mask); });
      return;
    }
    case 2: {
      if (s == nullptr) return;
      ibv_srq_attr a{};
      call([&] { return ibv_query_srq(s->srq, &a); });
      return;
    }
    default:
      if (!shared_.empty()) destroy_shared(in.below(static_cast<std::uint32_t>(shared_.size())));
      return;
  }
}

void CProgram::move_handle(Input& in) {
  if (in.often(128) || handles_.empty()) {
    ibv_pd* pd = pick(domains_, in);
    if (pd == nullptr || handles_.size() >= kMost) return;
    ibv_ah_attr a{};
    a.is_global = in.often(240);
    ibv_query_gid(pd->context, 1, static_cast<int>(in.below(2)), &a.grh.dgid);
    a.grh.hop_limit = in.often(240) ? 4 : in.u8();
    a.grh.sgid_index = in.often(240) ? 0 : in.u8();
    a.port_num = in.often(240) ? 1 : in.u8();
    ibv_ah* made = call([&] { return ibv_create_ah(pd, &a); });
    if (made != nullptr) handles_.push_back(made);
    return;
  }
  const std::size_t at = in.below(static_cast<std::uint32_t>(handles_.size()));
  require(call([&] { return ibv_destroy_ah(handles_[at]); }) == 0, "a handle does not go");
  drop(handles_, at);
}

// Asynchronous events; some remain unacknowledged for a while.
void CProgram::take_events(Input& in) {
  ibv_context* c = pick(contexts_, in);
  ibv_async_event e{};
  if (c != nullptr && call([&] { return ibv_get_async_event(c, &e); }) == 0) {
    asynchronous_.push_back(e);
  }
  acknowledge(in.below(8));
}
void CProgram::acknowledge(std::size_t keep) {
  while (asynchronous_.size() > keep) {
    ibv_ack_async_event(&asynchronous_.back());
    asynchronous_.pop_back();
  }
}

void CProgram::look(Input& in) {
  ibv_context* c = pick(contexts_, in);
  const CPair* p = any(pairs_, in);
  switch (in.below(5)) {
    case 0: {
      ibv_device_attr a;
      call([&] { return ibv_query_device(c, &a); });
      return;
    }
    case 1: {
      ibv_port_attr a;
      const auto port = static_cast<std::uint8_t>(in.often(200) ? 1 : in.u8());
      call([&] { return ibv_query_port(c, port, &a); });
      return;
    }
    case 2: {
      ibv_gid gid;
      call([&] { return ibv_query_gid(c, 1, static_cast<std::int8_t>(in.u8()), &gid); });
      return;
    }
    case 3: {
      ibv_qp_attr a;
      ibv_qp_init_attr i;
      if (p != nullptr) call([&] { return ibv_query_qp(p->qp, &a, in.u16(), &i); });
      return;
    }
    default: {
      int n = 0;
      ibv_device** list = call([&] { return ibv_get_device_list(&n); });
      if (list != nullptr) ibv_free_device_list(list);
      return;
    }
  }
}

void CProgram::check_memory() const {
  for (const CRegion& r : regions_) r.memory->check();
  graves_.check();
}

// An object in use remains until its users are destroyed, so this takes several rounds.
void CProgram::finish(Input& in) {
  shortage_->end();
  acknowledge_cm();
  for (CPair& p : pairs_) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_ERR;
    if (p.qp->state != IBV_QPS_RESET) ibv_modify_qp(p.qp, &a, IBV_QP_STATE);
  }
  for (int i = 0; i < 2000 && !is_settled(); ++i) {
    poll_all();
    if (i > 20) usleep(1000);
  }
  require(is_settled(), "work requests never completed");
  check_memory();
  for (unsigned rounds = 0; rounds < 20; ++rounds) {
    for (unsigned i = 0; i < 16; ++i) {
      switch ((in.u8() + i) % 8) {
        case 0:
          if (!domains_.empty()) free_domain(domains_.size() - 1);
          break;
        case 1:
          if (!queues_.empty()) destroy_queue(queues_.size() - 1);
          break;
        case 2:
          if (!channels_.empty()) destroy_channel(channels_.size() - 1);
          break;
        case 3:
          if (!shared_.empty()) destroy_shared(shared_.size() - 1);
          break;
        case 4:
          if (!pairs_.empty()) destroy_pair(pairs_.size() - 1);
          break;
        case 5:
          if (!regions_.empty()) close_region(regions_.size() - 1, !windows_.empty());
          break;
        case 6:
          if (!handles_.empty()) ibv_destroy_ah(handles_.back()), handles_.pop_back();
          break;
        default:
          if (!windows_.empty()) ibv_dealloc_mw(windows_.back()), windows_.pop_back();
          break;
      }
    }
  }
  drop_ids();
  require(pairs_.empty() && regions_.empty() && windows_.empty() && queues_.empty() &&
              channels_.empty() && shared_.empty() && handles_.empty() && domains_.empty(),
          "something does not go");
  acknowledge(0);
  graves_.check();
  for (ibv_context* c : contexts_) require(ibv_close_device(c) == 0, "a context is not closed");
  for (rdma_event_channel* c : cm_) rdma_destroy_event_channel(c);
  ibv_free_device_list(devices_);
}

}  // namespace urnic::fuzz
