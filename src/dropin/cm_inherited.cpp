#include "dropin/cm_inherited.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "dropin/cm_id.h"
#include "dropin/process.h"
#include "dropin/tables_lock.h"

namespace urnic::dropin {
namespace {

struct Known {
  CmId* id;
  int backlog;
};

// Never destroyed: a thread of a child reads it while the child exits.
struct Inherited {
  std::vector<Known> listeners;  // needs tables_lock
  std::vector<CmId*> taken;      // those that this process has taken over; needs `taking`
  // pidfds of the processes that had the listeners before this one; each is readable when its
  // process has ended.
  std::vector<int> ancestors;
  // The parent's bindings are kept, because a child must not close the parent's devices.
  std::vector<std::vector<DeviceBinding>> parents_bindings;
  pid_t forking = 0;
  std::mutex taking;  // held while one listener is taken over
};

Inherited& inherited() {
  static auto* const it = new Inherited;
  return *it;
}

CmChannel* channel_of(CmId* id) {
  return CmChannel::of(id->id().channel);
}

void wait_for_ancestors() {
  for (const int process : inherited().ancestors) {
    pollfd p{process, POLLIN, 0};
    while (::poll(&p, 1, -1) < 0 && errno == EINTR) {
    }
  }
}

// This process's devices that correspond to the parent's. Returns 0 or errno.
int devices_again(const std::vector<Adapter*>& parents, std::vector<Adapter*>* out) {
  Process& process = Process::get();
  if (const int e = process.configure(); e != 0) return e;
  for (const Adapter* was : parents) {
    if (was->index() >= process.adapters().size()) return ENODEV;
    Adapter* const now = process.adapters()[was->index()].get();
    if (const int e = now->open(); e != 0) return e;
    out->push_back(now);
  }
  return 0;
}

int listen_in_its_place(const Known& known) {
  CmId* const id = known.id;
  std::vector<Adapter*> where;
  if (const int e = devices_again(id->where_bound(), &where); e != 0) return e;
  inherited().parents_bindings.push_back(std::exchange(id->bindings, {}));
  if (id->adapter != nullptr) {
    if (const int e = give_device(id, *where.front()); e != 0) return e;
  }
  id->of_requests.pd = nullptr;  // it belongs to the parent
  new (&id->acknowledged) std::condition_variable;
  {
    const std::lock_guard guard(tables_lock);
    channel_of(id)->made_in = generation.load();
  }
  channel_of(id)->events.take_over();
  if (const int e = id->listen_again(where, known.backlog); e != 0) return e;
  id->handle.made_in = generation.load();
  inherited().taken.push_back(id);
  return 0;
}

// Another child of the same parent has taken it over, and owns the shared descriptor.
void leave_to_others(CmId* id) {
  const int silent = eventfd(0, EFD_CLOEXEC);
  if (silent < 0) return;
  dup3(silent, channel_of(id)->base.fd, O_CLOEXEC);
  close(silent);
}

void take_over(const Known& known) {
  CmId* const id = known.id;
  int e = ENOMEM;
  try {
    e = listen_in_its_place(known);
  } catch (const std::bad_alloc&) {
  }
  if (e == 0) return;
  leave_to_others(id);
  if (e == EADDRINUSE) return;  // taken by another child, or by this child's program
  std::fprintf(stderr, "urnic: process %d cannot listen on port %u in place of its parent: %s\n",
               static_cast<int>(getpid()), port_of(id->source), std::strerror(e));
}

// Takes over the listeners that are not this process's own yet, one after another.
void take_all_over() {
  Inherited& all = inherited();
  std::vector<CmId*> done;
  for (;;) {
    const std::lock_guard taking(all.taking);
    Known next{};
    {
      const std::lock_guard guard(tables_lock);
      const auto found =
          std::find_if(all.listeners.begin(), all.listeners.end(), [&](const Known& k) {
            return k.id->handle.made_in != generation.load() &&
                   std::find(done.begin(), done.end(), k.id) == done.end();
          });
      if (found == all.listeners.end()) return;
      next = *found;
    }
    take_over(next);
    done.push_back(next.id);
  }
}

void wait_with_a_thread() {
  Inherited& all = inherited();
  const int parent = static_cast<int>(syscall(SYS_pidfd_open, all.forking, 0));
  // Linux before 5.3: the end of the parent cannot be detected
  if (parent < 0 && errno != ESRCH) return;
  if (parent >= 0) all.ancestors.push_back(parent);
  std::thread([] {
    pthread_setname_np(pthread_self(), "urnic-inherits");
    wait_for_ancestors();
    take_all_over();
  }).detach();
}

void before_fork() {
  inherited().forking = getpid();
}

// Runs in the child, which has no other threads yet; threads of the parent may have stopped at any
// point.
void begin_waiting() {
  Inherited& all = inherited();
  if (all.listeners.empty()) return;
  new (&all.taking) std::mutex;
  all.taken.clear();
  for (const auto& [id, backlog] : all.listeners) {
    id->outstanding -= static_cast<std::uint32_t>(channel_of(id)->events.count_inherited(
        [of = id](const CmEvent* event) { return event->counted == of; }));
  }
  for (const Known& k : all.listeners) channel_of(k.id)->events.drop_inherited();
  sigset_t every, old;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &old);
  try {
    wait_with_a_thread();
  } catch (const std::exception&) {
    // Without memory or threads the listeners stay with the parent.
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

}  // namespace

void remember_listener(CmId* id, int backlog) {
  // Registered after the handlers of the devices, which release the parent's descriptors.
  static const int once = pthread_atfork(before_fork, nullptr, begin_waiting);
  (void)once;
  Inherited& all = inherited();
  const std::lock_guard guard(tables_lock);
  std::erase_if(all.listeners, [&](const Known& k) { return k.id == id; });
  all.listeners.push_back({id, backlog});
}

void forget_listener(CmId* id) {
  const std::lock_guard guard(tables_lock);
  std::erase_if(inherited().listeners, [&](const Known& k) { return k.id == id; });
}

bool let_inherited_go(CmId* id) {
  const std::lock_guard taking(inherited().taking);
  if (id->handle.made_in == generation.load()) {
    std::erase(inherited().taken, id);
    return false;
  }
  forget_listener(id);
  return true;
}

bool inherited_gives_way(std::uint16_t port) {
  Inherited& all = inherited();
  const std::lock_guard taking(all.taking);
  bool gave = false;
  for (CmId* id : all.taken) {
    if (port_of(id->source) != port || id->bindings.empty()) continue;
    id->unbind();
    forget_listener(id);
    gave = true;
  }
  return gave;
}

}  // namespace urnic::dropin
