#include "compat/process.h"

#include <dlfcn.h>
#include <errno.h>
#include <ifaddrs.h>
#include <link.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "compat/context.h"
#include "compat/errors.h"
#include "compat/rendezvous.h"

namespace urnic::compat {
namespace {

constexpr std::uint64_t kDeviceEvents = ~std::uint64_t{0};

std::atomic<Process*> current{nullptr};
std::mutex making;

// In a child the parent's is left as it is: its threads are not there, its locks may be taken.
void forget_parent() {
  current.store(nullptr);
  generation.fetch_add(1);
  new (&making) std::mutex;
}

// A MAC address that stays: of the first real interface, else made from the machine's name.
void choose_mac(std::uint8_t* mac) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) == 0) {
    for (const ifaddrs* i = all; i != nullptr; i = i->ifa_next) {
      if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_PACKET) continue;
      const auto* link = reinterpret_cast<const sockaddr_ll*>(i->ifa_addr);
      if (link->sll_halen != 6 || (i->ifa_flags & IFF_LOOPBACK) != 0) continue;
      std::memcpy(mac, link->sll_addr, 6);
      break;
    }
    freeifaddrs(all);
  }
  if (std::all_of(mac, mac + 6, [](std::uint8_t b) { return b == 0; })) {
    char name[256] = {};
    gethostname(name, sizeof name - 1);
    std::uint64_t hash = 14695981039346656037u;  // FNV-1a
    for (const char* p = name; *p != 0; ++p) {
      hash = (hash ^ static_cast<std::uint8_t>(*p)) * 1099511628211u;
    }
    std::memcpy(mac, &hash, 6);
  }
  mac[0] = static_cast<std::uint8_t>((mac[0] | 2) & ~1);  // ours, not the interface's own
}

std::string folder_of(const char* path) {
  const std::string text = path == nullptr ? "" : path;
  const std::size_t slash = text.rfind('/');
  return slash == std::string::npos ? "" : text.substr(0, slash);
}

struct Search {
  std::string own_folder, wrong;
};

int look_at(dl_phdr_info* info, std::size_t, void* arg) {
  auto* search = static_cast<Search*>(arg);
  const std::string path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  const std::string file = path.substr(path.rfind('/') + 1);
  const bool one_of_two = file.starts_with("libibverbs.so.1") || file.starts_with("librdmacm.so.1");
  if (!one_of_two) return 0;
  char* real = realpath(path.c_str(), nullptr);
  if (folder_of(real != nullptr ? real : path.c_str()) != search->own_folder) search->wrong = path;
  std::free(real);
  return 0;
}

}  // namespace

Process& Process::get() {
  if (Process* p = current.load(); p != nullptr) return *p;
  const std::lock_guard guard(making);
  if (Process* p = current.load(); p != nullptr) return *p;
  static const int once = pthread_atfork(nullptr, nullptr, forget_parent);
  (void)once;
  auto* p = new Process;
  current.store(p);
  return *p;
}

Process::Process() : rendezvous_(std::make_unique<Rendezvous>()) {
  choose_mac(mac_);
  ibv_device& d = slot_.device;
  d.node_type = IBV_NODE_RNIC;
  d.transport_type = IBV_TRANSPORT_IWARP;
  std::strcpy(d.name, "urnic0");
  std::strcpy(d.dev_name, "uverbs0");
  std::strcpy(d.dev_path, "/sys/class/infiniband_verbs/uverbs0");
  std::strcpy(d.ibdev_path, "/sys/class/infiniband/urnic0");
}

// One of the two libraries of another origin beside ours: their structures and their idea of who
// has a connection are not ours.
std::string Process::wrong_companion() const {
  Search search;
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(&choose_mac), &self) == 0) return {};
  char* real = realpath(self.dli_fname, nullptr);
  search.own_folder = folder_of(real != nullptr ? real : self.dli_fname);
  std::free(real);
  dl_iterate_phdr(look_at, &search);
  return search.wrong;
}

bool Process::load() {
  const auto complain = [](const std::string& what) {
    std::fprintf(stderr, "urnic: %s\n", what.c_str());
    return false;
  };
  if (const std::string wrong = wrong_companion(); !wrong.empty()) {
    return complain("this process has " + wrong +
                    " as well, which does not go with urnic's libraries: no device");
  }
  auto config = Config::load();
  if (!config) return complain(config.error().message);
  // What verbs programs are used to: no set-up, and a Send that waits for its receive (RNR).
  static constexpr std::pair<const char*, const char*> kOwn[] = {{"port", "tcp"},
                                                                 {"receive_wait_ms", "120000"}};
  for (const auto& [name, value] : kOwn) {
    for (const Setting& s : config->settings()) {
      if (s.name != name || s.origin != Origin::standard) continue;
      if (auto ok = config->set(name, value); !ok) return complain(ok.error().message);
      break;
    }
  }
  if (auto ok = config->check(); !ok) return complain(ok.error().message);
  config_ = std::move(*config);
  const std::string port = config_.get("port");
  if (config_.get("identity") == "ib-like") {
    slot_.device.node_type = IBV_NODE_CA;
    slot_.device.transport_type = IBV_TRANSPORT_IB;
  }
  over_kernel_tcp_ = port == "tcp" || port.starts_with("tcp:");
  is_memif_ = port.starts_with("memif:");
  return true;
}

bool Process::configured() {
  const std::lock_guard guard(mutex_);
  if (!loaded_) {
    loaded_ = true;
    usable_ = load();
  }
  return usable_;
}

int Process::open() {
  if (!configured()) return ENODEV;
  const std::lock_guard guard(mutex_);
  if (device_) return 0;
  auto device = Device::open(config_);
  if (!device) {
    std::fprintf(stderr, "urnic: %s\n", device.error().message.c_str());
    return to_errno(device.error().code);
  }
  auto events = device->create_event_queue();
  if (!events) return to_errno(events.error().code);
  if (auto ok = device->deliver_events(*events, as_context(kDeviceEvents)); !ok) {
    return to_errno(ok.error().code);
  }
  device_ = std::move(*device);
  events_ = std::move(*events);
  if (device_.info().link_up) had_link_ = true;  // before anybody listened
  // The program's signals are the program's.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  int error = 0;
  try {
    std::thread([this] { serve(); }).detach();
  } catch (const std::system_error&) {
    error = ENOMEM;
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  if (error != 0) {
    events_ = {};
    device_ = {};
  }
  return error;
}

// The wire of a memif is there when both programs are, and a server starts before its client: until
// its first link that port can be used, as one of the kernel's TCP can.
bool Process::is_port_up() const {
  if (over_kernel_tcp_ || device_.info().link_up) return true;
  return is_memif_ && !had_link_.load();
}

ibv_context* Process::shared_context() {
  if (const int e = open(); e != 0) {
    errno = e;
    return nullptr;
  }
  const std::lock_guard guard(cm);
  if (shared_ == nullptr) shared_ = Context::make();
  return shared_;
}

// ---- events

std::uint64_t Process::add(std::shared_ptr<Subject> subject) {
  const std::lock_guard guard(mutex_);
  subjects_.emplace(++last_, std::move(subject));
  return last_;
}

void Process::remove(std::uint64_t number) {
  std::shared_ptr<Subject> last;  // what it keeps alive goes without the lock
  const std::lock_guard guard(mutex_);
  const auto found = subjects_.find(number);
  if (found == subjects_.end()) return;
  last = std::move(found->second);
  subjects_.erase(found);
}

void Process::add_context(Context* context) {
  const std::lock_guard guard(mutex_);
  contexts_.push_back(context);
}

void Process::remove_context(Context* context) {
  const std::lock_guard guard(mutex_);
  std::erase(contexts_, context);
}

int Process::next_ms() {
  const std::lock_guard guard(cm);
  return rendezvous_->next_ms();
}

void Process::expire() {
  const std::lock_guard guard(cm);
  rendezvous_->expire();
}

void Process::serve() {
  pthread_setname_np(pthread_self(), "urnic-events");
  for (;;) {
    Event event;
    try {
      if (events_.wait(&event, next_ms())) {
        dispatch(event);
      } else {
        expire();
      }
    } catch (const std::exception&) {
      // Without memory an event is lost, as it is where a device has no room for it.
    }
  }
}

void Process::dispatch(Event& event) {
  const auto number = reinterpret_cast<std::uint64_t>(event.context);
  if (number == kDeviceEvents) {
    if (event.kind == EventKind::link_up) {
      // The first one is no news where the port was active before.
      const bool was_active = is_memif_ || over_kernel_tcp_;
      if (had_link_.exchange(true) || !was_active) tell_contexts(IBV_EVENT_PORT_ACTIVE);
    }
    if (event.kind == EventKind::link_down) tell_contexts(IBV_EVENT_PORT_ERR);
    return;
  }
  std::shared_ptr<Subject> subject;
  {
    const std::lock_guard guard(mutex_);
    const auto found = subjects_.find(number);
    if (found != subjects_.end()) subject = found->second;
  }
  if (subject != nullptr) subject->on_event(event);
}

void Process::tell_contexts(ibv_event_type what) {
  const std::lock_guard guard(mutex_);
  for (Context* c : contexts_) {
    ibv_async_event e{};
    e.event_type = what;
    e.element.port_num = 1;
    c->async.push(e);
  }
}

}  // namespace urnic::compat
