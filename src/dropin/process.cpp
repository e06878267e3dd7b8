#include "dropin/process.h"

#include <dlfcn.h>
#include <errno.h>
#include <ifaddrs.h>
#include <link.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <utility>

#include "dropin/injector.h"
#include "dropin/signalled_queue.h"
#include "dropin/tables_lock.h"

namespace urnic::dropin {
namespace {

std::atomic<Process*> current{nullptr};
std::mutex making;
// Objects of parent processes: never freed, and kept in a list so that they are not reported as
// leaks.
const Process* forgotten = nullptr;
// How long an exiting program waits for the peers of one device.
constexpr int kMomentMs = 200;

void hold_tables() {
  tables_lock.before_fork();
}
void leave_tables() {
  tables_lock.after_fork();
}

// FNV-1a.
constexpr std::uint64_t kHashBasis = 14695981039346656037u;
std::uint64_t hashed(std::uint64_t hash, char c) {
  return (hash ^ static_cast<std::uint8_t>(c)) * 1099511628211u;
}

// Chooses a MAC address that stays the same: of the first real interface, else derived from the
// machine's name.
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
    std::uint64_t hash = kHashBasis;
    for (const char* p = name; *p != 0; ++p) hash = hashed(hash, *p);
    std::memcpy(mac, &hash, 6);
  }
  // make it locally administered, different from the interface's own
  mac[0] = static_cast<std::uint8_t>((mac[0] | 2) & ~1);
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

// Runs in the child: leaves the parent's object as it is, because its threads do not exist here and
// its locks may be taken.
void Process::forget_parent() {
  leave_tables();
  Process* const parents = current.exchange(nullptr);
  Injector::forget_parent();
  generation.fetch_add(1);
  new (&making) std::mutex;
  if (parents == nullptr) return;
  parents->before_ = forgotten;
  forgotten = parents;
}

Process& Process::get() {
  if (Process* p = current.load(); p != nullptr) return *p;
  const std::lock_guard guard(making);
  if (Process* p = current.load(); p != nullptr) return *p;
  static const int once = pthread_atfork(hold_tables, leave_tables, forget_parent);
  (void)once;
  auto* p = new Process;
  current.store(p);
  return *p;
}

void Process::leave_all() {
  const Process* const p = current.load();  // null in a child of a fork that has not used it
  if (p == nullptr) return;
  // exit() may be called by a signal handler. The interrupted call does not continue, so its
  // connections stay as they are, and the peers detect the end by their time-outs.
  if (is_in_call()) return;
  for (const auto& a : p->adapters_) a->disconnect_all(kMomentMs);
}

// Returns the path of a libibverbs or librdmacm that is loaded besides ours; its structures and its
// connection state are not ours.
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

namespace {

bool complain(const std::string& what) {
  std::fprintf(stderr, "urnic: %s\n", what.c_str());
  return false;
}

// For one of several devices: derived from its name only, so that the order in the file does not
// matter.
void mix_name_in(const std::string& name, std::uint8_t* mac) {
  std::uint64_t hash = kHashBasis;
  for (const char c : name) hash = hashed(hash, c);
  for (int i = 1; i < 6; ++i) mac[i] ^= static_cast<std::uint8_t>(hash >> 8 * i);
}

}  // namespace

bool Process::complain(const Error& why) {
  if (why.code == Errc::no_descriptors) unusable_ = EMFILE;
  return urnic::dropin::complain(why.message);
}

bool Process::add_adapter(const Config& given, const std::string& name) {
  Config config = given;
  // Defaults that verbs programs expect: no set-up, and a Send that waits for its receive (RNR).
  const std::pair<const char*, const char*> own[] = {
      {"port", config.get("transport") == "roce" ? "udp" : "tcp"}, {"receive_wait_ms", "120000"}};
  for (const auto& [setting, value] : own) {
    for (const Setting& s : config.settings()) {
      if (s.name != setting || s.origin != Origin::standard) continue;
      if (auto ok = config.set(setting, value); !ok) return complain(ok.error());
      break;
    }
  }
  if (auto ok = config.check(); !ok) return complain(ok.error());
  std::uint8_t mac[6] = {};
  choose_mac(mac);
  if (!name.empty()) mix_name_in(name, mac);
  const auto index = static_cast<unsigned>(adapters_.size());
  adapters_.push_back(std::make_unique<Adapter>(index, name, std::move(config), mac));
  return true;
}

bool Process::load() {
  if (const std::string wrong = wrong_companion(); !wrong.empty()) {
    return urnic::dropin::complain(
        "this process has " + wrong +
        " too, which conflicts with urnic's libraries: no device available");
  }
  if (!Injector::start()) return false;
  auto config = Config::load();
  if (!config) return complain(config.error());
  std::vector<std::string> names = config->devices();
  if (const std::string chosen = config->get("device"); !chosen.empty()) names = {chosen};
  if (names.empty()) return add_adapter(*config, {});
  // Checks all of them together: conflicts between devices are found here, once.
  if (auto ok = config->check(); !ok) return complain(ok.error());
  for (const std::string& name : names) {
    auto of_one = config->device(name);
    if (!of_one) return complain(of_one.error());
    if (!add_adapter(*of_one, name)) return false;
  }
  return true;
}

int Process::configure() {
  const std::lock_guard guard(mutex_);
  if (!loaded_) {
    unusable_ = 0;
    if (!load() && unusable_ == 0) unusable_ = ENODEV;
    if (unusable_ != 0) adapters_.clear();
    loaded_ = unusable_ != EMFILE;
  }
  return unusable_;
}

Adapter* Process::find(const ibv_device* device) {
  if (configure() != 0) return nullptr;
  for (const auto& a : adapters_) {
    if (a->slot() == device) return a.get();
  }
  return nullptr;
}

int Process::open(std::vector<Adapter*>* opened) {
  if (const int e = configure(); e != 0) return e;
  int error = 0;
  for (const auto& a : adapters_) {
    const int e = a->open();
    if (e == 0) opened->push_back(a.get());
    if (error == 0) error = e;
  }
  return opened->empty() ? error : 0;
}

// ---- events

std::uint64_t Process::add(std::shared_ptr<Subject> subject) {
  const std::lock_guard guard(mutex_);
  subjects_.emplace(++last_, std::move(subject));
  return last_;
}

void Process::remove(std::uint64_t number) {
  std::shared_ptr<Subject> last;  // destroyed, with the objects it keeps alive, without the lock
  const std::lock_guard guard(mutex_);
  const auto found = subjects_.find(number);
  if (found == subjects_.end()) return;
  last = std::move(found->second);
  subjects_.erase(found);
}

void Process::dispatch(Event& event) {
  std::shared_ptr<Subject> subject;
  {
    const std::lock_guard guard(mutex_);
    const auto found = subjects_.find(reinterpret_cast<std::uint64_t>(event.context));
    if (found != subjects_.end()) subject = found->second;
  }
  if (subject != nullptr) subject->on_event(event);
}

}  // namespace urnic::dropin
