// Binding and listening of ids, and the choice of their device: rdma_bind_addr, rdma_resolve_addr,
// rdma_listen.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

#include "dropin/cm_datagrams.h"
#include "dropin/cm_id.h"
#include "dropin/cm_inherited.h"
#include "dropin/errors.h"
#include "dropin/injected_answers.h"

namespace urnic::dropin {
namespace {

constexpr int kBacklog = 128;
// How long to wait for the duplicate detection of a device's own addresses.
constexpr std::chrono::milliseconds kSettling{1000}, kSettlingStep{20};
// For a wildcard without a port: the port chosen on the first device may be taken on the second.
constexpr int kPortTries = 16;

// Binds on each of these devices that can, at the same port. A port that is taken on one of them
// counts as taken, since clients would reach the other program there.
int bind_on(const std::vector<Adapter*>& where, const BindOptions& options, Address* a,
            std::vector<DeviceBinding>* out) {
  int error = 0;
  for (Adapter* adapter : where) {
    BindOptions o = options;
    o.transport = adapter->transport();
    auto bound = adapter->device().bind(text_of(*a), o);
    if (bound) {
      set_port(a, bound->port());
      out->push_back({adapter, std::move(*bound), {}, 0, nullptr});
      continue;
    }
    if (error == 0) error = to_errno(bound.error().code);
    if (bound.error().code == Errc::in_use) return EADDRINUSE;
  }
  return out->empty() ? error : 0;
}

// For listening. A kernel treats a loopback address as a wildcard (its cma_any_addr), although an
// interface has it; but it connects from it.
bool is_everywhere(const Address& a) {
  return is_wildcard(a) || is_loopback(a);
}

// The wildcard of the same version of IP, for an address that names no device.
Address without_device(const Address& a) {
  Address any{};
  any.any.sa_family = a.any.sa_family;
  set_port(&any, port_of(a));
  return any;
}

// Binds the id to this address and port; `everywhere`: to the port of all addresses. Returns 0 or
// errno; on an error its bindings are unchanged.
int keep_address(CmId* id, const std::vector<Adapter*>& where, bool everywhere, Address* a) {
  const bool any_port = port_of(*a) == 0;
  for (int tries = any_port && where.size() > 1 ? kPortTries : 1;; --tries) {
    Address at = everywhere ? without_device(*a) : *a;
    std::vector<DeviceBinding> bindings;
    const int e = bind_on(where, id->options, &at, &bindings);
    if (e == EADDRINUSE && tries > 1) continue;
    if (e != 0) return e;
    id->bindings = std::move(bindings);
    id->bound_everywhere = everywhere;
    set_port(a, port_of(at));
    return 0;
  }
}

// All devices that support the id's port space. Returns 0 or errno.
int devices_for(const CmId& id, std::vector<Adapter*>* out) {
  if (const int e = Process::get().open(out); e != 0) return e;
  if (id.has_datagrams()) keep_those_with_datagrams(out);
  return out->empty() ? ENODEV : 0;
}

// `connects`: binds for connecting instead of listening.
int bind_to(CmId* id, const sockaddr* address, bool connects = false) {
  Address a;
  if (!copy_address(address, &a)) return EAFNOSUPPORT;
  if (id->stage != IdState::Idle) return EINVAL;
  std::vector<Adapter*> where;
  if (const int e = devices_for(*id, &where); e != 0) return e;
  const bool looks = connects ? !is_wildcard(a) : !is_everywhere(a);
  Adapter* const owner = looks ? owner_of(a, where) : nullptr;
  const bool names_no_link = is_link_local(a) && a.v6.sin6_scope_id == 0;
  if (names_no_link && (owner == nullptr || link_of(*owner, a) != 0)) return EINVAL;
  if (owner == nullptr && !is_everywhere(a)) return EADDRNOTAVAIL;
  if (owner != nullptr) where = {owner};
  int e = keep_address(id, where, owner == nullptr, &a);
  if (e == EADDRINUSE && inherited_gives_way(port_of(a))) {
    e = keep_address(id, where, owner == nullptr, &a);
  }
  if (e != 0) return e;
  if (owner != nullptr) {
    if (e = give_device(id, *owner); e != 0) {
      id->bindings.clear();
      return e;
    }
  }
  const std::lock_guard guard(Process::get().cm);
  id->source = a;
  id->show_addresses();
  id->stage = IdState::Bound;
  return 0;
}

// Like choose_device(), but waits if devices were opened only a moment ago: a device that also has
// a route must not be chosen instead of one that will have a better route.
int choose_settled(const Address& to, const std::vector<Adapter*>& among, Adapter** chosen,
                   Address* from) {
  for (auto left = kSettling;; left -= kSettlingStep) {
    const int e = choose_device(to, among, chosen, from);
    if ((e == 0 && among.size() == 1) || left.count() <= 0) return e;
    if (std::none_of(among.begin(), among.end(), [](Adapter* a) { return is_settling(*a); })) {
      return e;
    }
    std::this_thread::sleep_for(kSettlingStep);
  }
}

// True if both are of the same version of IP, as given or after conversion from v4-mapped.
bool is_one_family(const sockaddr& a, const sockaddr& b) {
  Address x, y;
  if (a.sa_family == b.sa_family) return true;
  return !copy_address(&a, &x) || !copy_address(&b, &y) || x.any.sa_family == y.any.sa_family;
}

// Assigns the device with the route to the id; the id's bindings on other devices are released.
int take_device(CmId* id, Adapter& chosen, Address from) {
  const bool had_none = id->adapter == nullptr;
  const bool binds = id->stage == IdState::Idle && chosen.traits().resolve_addr_binds;
  if (binds) {
    if (const int e = keep_address(id, {&chosen}, false, &from); e != 0) return e;
  }
  if (const int e = give_device(id, chosen); e != 0) {
    if (binds) id->bindings.clear();
    return e;
  }
  std::vector<DeviceBinding> left;  // destroyed without the lock
  const std::lock_guard guard(Process::get().cm);
  const auto other =
      std::stable_partition(id->bindings.begin(), id->bindings.end(),
                            [&](const DeviceBinding& b) { return b.adapter == &chosen; });
  left.assign(std::move_iterator(other), std::move_iterator(id->bindings.end()));
  id->bindings.erase(other, id->bindings.end());
  if (id->stage == IdState::Idle) {
    id->source = from;
  } else if (had_none) {
    set_port(&from, port_of(id->source));
    id->source = from;
  }
  return 0;
}

// An error of the call is returned; an error of the network is reported as an event. An id that
// could not be resolved stays bound as before, as with a kernel.
int resolve_address(CmId* id, const sockaddr* source, const sockaddr* destination) {
  if (destination == nullptr) return EINVAL;
  if (id->stage != IdState::Idle && id->stage != IdState::Bound) return EINVAL;
  Address to;
  if (!copy_address(destination, &to)) return EAFNOSUPPORT;
  const bool binds =
      id->stage == IdState::Idle && source != nullptr && source->sa_family != AF_UNSPEC;
  const sockaddr* const from_where = binds                         ? source
                                     : id->stage == IdState::Bound ? &id->source.any
                                                                   : nullptr;
  if (from_where != nullptr && !is_one_family(*from_where, *destination)) return EINVAL;
  if (binds) {
    if (const int e = bind_to(id, source, true); e != 0) return e;
  }
  // then the destination is on the same link
  if (id->stage == IdState::Bound && is_link_local(id->source)) {
    give_link(&to, id->source.v6.sin6_scope_id);
    if (is_link_local(to) && to.v6.sin6_scope_id != id->source.v6.sin6_scope_id) return EINVAL;
  }
  std::vector<Adapter*> among = id->where_bound();
  if (among.empty()) {
    if (const int e = devices_for(*id, &among); e != 0) return e;
  }
  Address from{};
  Adapter* chosen = nullptr;
  const int unreachable = choose_settled(to, among, &chosen, &from);
  if (unreachable == EMFILE) return EMFILE;  // the result is unknown
  if (unreachable != 0 && is_link_local(to) && to.v6.sin6_scope_id == 0) return EINVAL;
  if (unreachable == 0) {
    if (const int e = take_device(id, *chosen, from); e != 0) return e;
  }
  const std::lock_guard guard(Process::get().cm);
  id->destination = to;
  if (unreachable != 0) {
    id->tell(RDMA_CM_EVENT_ADDR_ERROR, -unreachable);
    return 0;
  }
  id->show_addresses();
  id->stage = IdState::AddressResolved;
  id->tell(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
  return 0;
}

class ListenSubject : public IdSubject {
 public:
  ListenSubject(CmId* id, Adapter& at) : IdSubject(id), at_(at) {}
  void on_event(Event& event) override {
    if (event.kind != EventKind::connect_request) return;
    // The new id needs the device; both exist since rdma_listen, so this does not fail.
    ibv_context* verbs = at_.shared_context();
    ibv_pd* pd = at_.default_pd();
    if (verbs == nullptr || pd == nullptr) return;
    const std::lock_guard guard(Process::get().cm);
    if (id_ != nullptr) id_->on_request(event, at_, verbs, pd);
  }

 private:
  Adapter& at_;
};

int listen_at(CmId* id, DeviceBinding* at, int backlog) {
  Adapter& adapter = *at->adapter;
  if (adapter.default_pd() == nullptr) return errno;  // needed by the ids of requests
  Process& process = Process::get();
  auto subject = std::make_shared<ListenSubject>(id, adapter);
  at->subject = subject;
  at->number = process.add(std::move(subject));
  auto listener = adapter.device().listen(at->bound, backlog > 0 ? backlog : kBacklog,
                                          adapter.events(), Process::as_context(at->number));
  if (listener) {
    at->listener = std::move(*listener);
    return 0;
  }
  process.remove(at->number);
  at->number = 0;
  at->subject.reset();
  return to_errno(listener.error().code);
}

// After an error on one device, binds the first `listening` bindings again without listening. The
// others are kept, because another id with RDMA_OPTION_ID_REUSEADDR that listens there would make
// binding them again fail.
void bind_again(CmId* id, std::ptrdiff_t listening) {
  const auto others = id->bindings.begin() + listening;
  std::vector<DeviceBinding> kept{std::move_iterator(others),
                                  std::move_iterator(id->bindings.end())};
  id->bindings.erase(others, id->bindings.end());
  const std::vector<Adapter*> where = id->where_bound();
  id->unbind();
  (void)keep_address(id, where, id->bound_everywhere, &id->source);
  std::move(kept.begin(), kept.end(), std::back_inserter(id->bindings));
}

int listen_on(CmId* id, int backlog) {
  if (id->stage == IdState::Idle) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    if (const int e = bind_to(id, reinterpret_cast<sockaddr*>(&any)); e != 0) return e;
  }
  if (id->stage != IdState::Bound || id->bindings.empty()) return EINVAL;
  for (DeviceBinding& at : id->bindings) {
    const int e = listen_at(id, &at, backlog);
    if (e == 0) continue;
    if (&at != &id->bindings.front()) bind_again(id, &at - &id->bindings.front());
    return e;
  }
  remember_listener(id, backlog);
  const std::lock_guard guard(Process::get().cm);
  id->show_addresses();
  id->stage = IdState::Listening;
  return 0;
}

}  // namespace

int CmId::set_binding(bool* option, bool value) {
  if (stage != IdState::Idle && stage != IdState::Bound) return EINVAL;
  const bool before = std::exchange(*option, value);
  if (stage == IdState::Idle || before == value) return 0;
  // Binds again with the new option, which needs the port to be free; on an error, with the old
  // one.
  const std::vector<Adapter*> where = where_bound();
  bindings.clear();
  const int e = keep_address(this, where, bound_everywhere, &source);
  if (e == 0) return 0;
  *option = before;
  (void)keep_address(this, where, bound_everywhere, &source);
  return e;
}

int CmId::set_ack_timeout(std::uint8_t code) {
  constexpr std::uint8_t kLastCode = 31;  // a 5-bit field of the messages
  if (code > kLastCode) return EINVAL;
  const std::lock_guard guard(Process::get().cm);
  path_options.ack_timeout = code;
  return 0;
}

int CmId::listen_again(const std::vector<Adapter*>& where, int backlog) {
  if (const int e = keep_address(this, where, bound_everywhere, &source); e != 0) return e;
  stage = IdState::Bound;
  return listen_on(this, backlog);
}

void CmId::unbind() {
  for (const DeviceBinding& b : bindings) {
    if (b.number != 0) Process::get().remove(b.number);
  }
  {
    const std::lock_guard guard(Process::get().cm);
    stop_listening();
  }
  bindings.clear();
}

void CmId::stop_listening() {
  for (DeviceBinding& b : bindings) {
    if (b.subject != nullptr) b.subject->detach();
    b.subject.reset();
  }
}

std::vector<Adapter*> CmId::where_bound() const {
  std::vector<Adapter*> where;
  for (const DeviceBinding& b : bindings) where.push_back(b.adapter);
  return where;
}

}  // namespace urnic::dropin

using namespace urnic::dropin;  // the exported functions are in the global namespace

namespace {

int answer(int error) {
  return error == 0 ? 0 : failed(error);
}

}  // namespace

int urnic_rdma_bind_addr(rdma_cm_id* r, sockaddr* address) {
  if (const int e = injected(VerbsKind::rdma_bind_addr); e != 0) return failed(e);
  return guarded(
      [&] { return answer(address == nullptr ? EINVAL : bind_to(CmId::of(r), address)); }, -1);
}

int urnic_rdma_resolve_addr(rdma_cm_id* r, sockaddr* source, sockaddr* destination, int) {
  if (const int e = injected(VerbsKind::rdma_resolve_addr); e != 0) return failed(e);
  const auto fault = injected_answer(kAddressAnswers);
  return guarded(
      [&] {
        CmId* id = CmId::of(r);
        return begun(id, fault ? give(id, *fault) : resolve_address(id, source, destination));
      },
      -1);
}

int urnic_rdma_listen(rdma_cm_id* r, int backlog) {
  if (const int e = injected(VerbsKind::rdma_listen); e != 0) return failed(e);
  return guarded([&] { return answer(listen_on(CmId::of(r), backlog)); }, -1);
}
