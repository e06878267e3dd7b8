// Creation and destruction of ids, channels and events.
#include "dropin/cm_id.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "dropin/cm_inherited.h"
#include "dropin/errors.h"
#include "dropin/gids.h"
#include "dropin/injector.h"

namespace urnic::dropin {
namespace {

bool has_datagrams(const Process& process) {
  const auto& all = process.adapters();
  return std::any_of(all.begin(), all.end(),
                     [](const auto& a) { return a->traits().has_datagrams; });
}

// The ids of requests that nobody has fetched follow their listener. Under Process::cm.
void move_requests(const CmId* listener, const std::list<CmEvent*>& events, CmChannel* to) {
  for (const CmEvent* e : events) {
    CmId* const made = CmId::of(e->base.id);
    if (made == listener) continue;
    if (made->sync) delete CmChannel::of(made->id().channel);
    made->sync = false;
    made->id().channel = &to->base;
  }
}

}  // namespace

CmId* make_id(CmChannel* channel, void* context, rdma_port_space ps, bool sync) {
  auto id = std::make_unique<CmId>();
  id->handle.self = id.get();
  id->sync = sync;
  if (sync) {
    auto own = std::make_unique<CmChannel>();
    if (own->base.fd < 0) return nothing(EMFILE);
    channel = own.release();
  }
  id->id().channel = &channel->base;
  id->id().context = context;
  id->id().ps = ps;
  id->id().qp_type = ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;
  id->options.service = id->has_datagrams() ? Service::ud : Service::rc;
  return id.release();
}

int give_device(CmId* id, Adapter& adapter) {
  ibv_context* verbs = adapter.shared_context();
  if (verbs == nullptr) return errno;
  ibv_pd* pd = adapter.default_pd();
  if (pd == nullptr) return errno;
  const std::lock_guard guard(Process::get().cm);
  id->adapter = &adapter;
  id->id().verbs = verbs;
  id->id().pd = pd;
  id->id().port_num = 1;
  return 0;
}

void CmId::show_addresses() {
  std::memcpy(&id().route.addr.src_storage, &source.room, sizeof source.room);
  std::memcpy(&id().route.addr.dst_storage, &destination.room, sizeof destination.room);
  if (adapter == nullptr || !adapter->traits().has_path_records) return;
  rdma_ib_addr& ib = id().route.addr.addr.ibaddr;
  ib.pkey = 0xffff;
  if (source.any.sa_family != AF_UNSPEC && !is_wildcard(source)) ib.sgid = to_gid(source);
  if (destination.any.sa_family != AF_UNSPEC) ib.dgid = to_gid(destination);
}

void CmId::show_source(const std::string& local) {
  Address a;
  if (!from_text(local, &a) || port_of(a) == 0) return;
  if (is_link_local(source)) give_link(&a, source.v6.sin6_scope_id);
  source = a;
  show_addresses();
}

void deliver(CmId* id, std::unique_ptr<CmEvent> event) {
  event->counted = id;
  CmChannel::of(id->id().channel)->events.push(event.get());
  (void)event.release();
  ++id->outstanding;
}

void CmId::tell(rdma_cm_event_type type, int status, std::string private_data,
                const rdma_conn_param& shown) {
  auto event = std::make_unique<CmEvent>();
  event->base.id = &id();
  event->base.event = type;
  event->base.status = status;
  event->base.param.conn = shown;
  event->keep_data(std::move(private_data));
  deliver(this, std::move(event));
}

void CmId::detach_end() {
  if (end != nullptr && end->manager == this) end->manager = nullptr;
  end.reset();
}

void CmId::stop_asking() {
  if (question.subject != nullptr) question.subject->detach();
}

std::shared_ptr<CmConnection> CmId::leave_number() {
  if (numbered.subject != nullptr) numbered.subject->detach();
  return std::move(numbered.connection);
}

void drop_events(CmId* id) {
  const auto dropped = CmChannel::of(id->id().channel)->events.take_if([&](const CmEvent* e) {
    return e->counted == id;
  });
  for (CmEvent* e : dropped) {
    --id->outstanding;
    CmId* made = CmId::of(e->base.id);
    if (made != id) {  // a request that was not fetched: destroying it refuses it
      if (made->sync) delete CmChannel::of(made->id().channel);
      delete made;
    }
    delete e;
  }
}

void drop_last_event(rdma_cm_id* r) {
  if (r->event == nullptr) return;
  urnic_rdma_ack_cm_event(r->event);
  r->event = nullptr;
}

int complete(CmId* id) {
  if (!id->sync) return 0;
  rdma_cm_id& r = id->id();
  drop_last_event(&r);
  if (urnic_rdma_get_cm_event(r.channel, &r.event) != 0) return -1;
  if (r.event->status == 0) return 0;
  if (r.event->event == RDMA_CM_EVENT_REJECTED) return failed(ECONNREFUSED);
  return failed(std::abs(r.event->status));
}

}  // namespace urnic::dropin

using namespace urnic::dropin;  // the exported functions are in the global namespace

namespace {

// The first call of a program finds out whether there are faults.
void configure() {
  (void)guarded([] { return Process::get().configure(); }, ENOMEM);
}

}  // namespace

rdma_event_channel* urnic_rdma_create_event_channel() {
  configure();
  if (const int e = injected(VerbsKind::rdma_create_event_channel); e != 0) return nothing(e);
  return guarded(
      []() -> rdma_event_channel* {
        Process& process = Process::get();
        if (const int e = process.configure(); e != 0) return nothing(e);
        auto channel = std::make_unique<CmChannel>();
        if (channel->base.fd < 0) return nothing(EMFILE);
        return &channel.release()->base;
      },
      nullptr);
}

void urnic_rdma_destroy_event_channel(rdma_event_channel* channel) {
  CmChannel::destroy(channel);
}

int urnic_rdma_create_id(rdma_event_channel* channel, rdma_cm_id** out, void* context,
                         rdma_port_space ps) {
  configure();
  if (const int e = injected(VerbsKind::rdma_create_id); e != 0) return failed(e);
  return guarded(
      [&] {
        if (ps != RDMA_PS_TCP && ps != RDMA_PS_UDP) return failed(EOPNOTSUPP);
        Process& process = Process::get();
        if (const int e = process.configure(); e != 0) return failed(e);
        if (ps == RDMA_PS_UDP && !has_datagrams(process)) return failed(EOPNOTSUPP);
        CmId* id = make_id(channel == nullptr ? nullptr : CmChannel::of(channel), context, ps,
                           channel == nullptr);
        if (id == nullptr) return -1;
        *out = &id->id();
        return 0;
      },
      -1);
}

int urnic_rdma_destroy_id(rdma_cm_id* r) {
  CmId* id = CmId::of(r);
  if (let_inherited_go(id)) return 0;
  forget_listener(id);
  drop_last_event(r);
  // Its listeners and its pending resolution are destroyed without the lock, because ending them
  // waits.
  std::vector<DeviceBinding> bindings;
  DatagramQuestion question;
  std::shared_ptr<urnic::CmConnection> numbered;
  urnic::ConnectRequest request;
  std::shared_ptr<Endpoint> left;  // a connection whose id is destroyed ends
  Process& process = Process::get();
  for (const DeviceBinding& b : id->bindings) {
    if (b.number != 0) process.remove(b.number);
  }
  if (id->question.number != 0) process.remove(id->question.number);
  if (id->numbered.number != 0) process.remove(id->numbered.number);
  {
    std::unique_lock lock(process.cm);
    id->stop_listening();
    id->stop_asking();
    question = std::move(id->question);
    numbered = id->leave_number();
    bindings = std::move(id->bindings);
    request = std::move(id->request);
    if (id->stage >= IdState::Connecting && id->stage <= IdState::Connected) left = id->end;
    id->detach_end();
    drop_events(id);
    id->acknowledged.wait(lock, [&] { return id->outstanding == 0; });
  }
  if (left != nullptr) left->abandon();
  if (id->sync) delete CmChannel::of(r->channel);
  delete id;
  return 0;
}

int urnic_rdma_migrate_id(rdma_cm_id* r, rdma_event_channel* to) {
  return guarded(
      [&] {
        CmId* id = CmId::of(r);
        if (id->sync && to == nullptr) return failed(EINVAL);
        std::unique_ptr<CmChannel> own;
        if (to == nullptr) {
          own = std::make_unique<CmChannel>();
          if (own->base.fd < 0) return failed(EMFILE);
        }
        drop_last_event(r);
        CmChannel* from = CmChannel::of(r->channel);
        CmChannel* target = own ? own.get() : CmChannel::of(to);
        {
          const std::lock_guard guard(Process::get().cm);
          auto moved = from->events.take_if([&](const CmEvent* e) { return e->counted == id; });
          if (own == nullptr) move_requests(id, moved, target);
          target->events.put(std::move(moved));
          r->channel = &target->base;
        }
        if (id->sync) delete from;
        id->sync = own != nullptr;
        (void)own.release();
        return 0;
      },
      -1);
}

int urnic_rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** out) {
  // libiscsi cancels its thread without waiting: the channel may be destroyed already
  pthread_testcancel();
  CmEvent* event = nullptr;
  {
    const CmChannel::Inside of(channel);  // also ends when the thread is cancelled
    if (of.channel() == nullptr) return failed(EINVAL);
    if (const int e = of.channel()->events.pop(&event); e != 0) return failed(e);
  }
  *out = &event->base;
  return 0;
}

int urnic_rdma_ack_cm_event(rdma_cm_event* e) {
  if (e == nullptr) return failed(EINVAL);
  CmEvent* event = CmEvent::of(e);
  {
    const std::lock_guard guard(Process::get().cm);
    --event->counted->outstanding;
    event->counted->acknowledged.notify_all();
  }
  delete event;
  return 0;
}

__be16 urnic_rdma_get_src_port(rdma_cm_id* id) {
  return htons(port_of(CmId::of(id)->source));
}

__be16 urnic_rdma_get_dst_port(rdma_cm_id* id) {
  return htons(port_of(CmId::of(id)->destination));
}

ibv_context** urnic_rdma_get_devices(int* number) {
  return guarded(
      [&]() -> ibv_context** {
        if (number != nullptr) *number = 0;
        std::vector<Adapter*> opened;
        if (const int e = Process::get().open(&opened); e != 0) return nothing(e);
        std::vector<ibv_context*> contexts;
        for (Adapter* adapter : opened) {
          ibv_context* context = adapter->shared_context();
          if (context == nullptr) return nullptr;
          contexts.push_back(context);
        }
        auto** list = new ibv_context*[contexts.size() + 1]();
        std::copy(contexts.begin(), contexts.end(), list);
        if (number != nullptr) *number = static_cast<int>(contexts.size());
        return list;
      },
      nullptr);
}

void urnic_rdma_free_devices(ibv_context** list) {
  delete[] list;
}

int urnic_rdma_set_option(rdma_cm_id* r, int level, int name, void* value, std::size_t length) {
  CmId* id = CmId::of(r);
  if (value == nullptr && length != 0) return failed(EFAULT);
  if (level == RDMA_OPTION_IB && name == RDMA_OPTION_IB_PATH) {
    return zero_or_failed(guarded([&] { return id->set_path(value, length); }, ENOMEM));
  }
  if (level != RDMA_OPTION_ID) return failed(ENOSYS);
  switch (name) {
    case RDMA_OPTION_ID_AFONLY:
    case RDMA_OPTION_ID_REUSEADDR: {
      if (length != sizeof(int)) return failed(EINVAL);
      bool& option = name == RDMA_OPTION_ID_AFONLY ? id->options.ipv6_only : id->options.shared;
      const bool on = *static_cast<int*>(value) != 0;
      return zero_or_failed(guarded([&] { return id->set_binding(&option, on); }, ENOMEM));
    }
    case RDMA_OPTION_ID_TOS: {
      if (length != sizeof(std::uint8_t)) return failed(EINVAL);
      const std::lock_guard guard(Process::get().cm);
      id->path_options.tos = *static_cast<std::uint8_t*>(value);
      return 0;
    }
    case RDMA_OPTION_ID_ACK_TIMEOUT: {
      if (length != sizeof(std::uint8_t) || id->has_datagrams()) return failed(EINVAL);
      return zero_or_failed(id->set_ack_timeout(*static_cast<std::uint8_t*>(value)));
    }
    default:
      return failed(ENOSYS);
  }
}
