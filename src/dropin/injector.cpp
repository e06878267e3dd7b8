#include "dropin/injector.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>
#include <vector>

namespace urnic::dropin {
namespace {

constexpr const char* kPlans = "URNIC_VERBS_FAULTS";
constexpr const char* kLog = "URNIC_VERBS_FAULTS_LOG";

// One write for each line, so that lines of several processes do not mix.
bool say(int fd, std::string line) {
  line = "urnic[" + std::to_string(getpid()) + "]: " + line + "\n";
  return ::write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

bool is_from(const void* address, const std::string& name) {
  Dl_info found;
  if (address == nullptr || dladdr(address, &found) == 0) return false;
  if (found.dli_sname != nullptr && name == found.dli_sname) return true;
  const std::string file = found.dli_fname != nullptr ? found.dli_fname : "";
  return name == file || name == file.substr(file.rfind('/') + 1);
}

// Objects of parent processes are kept reachable: a thread of the parent may have held their lock.
const Injector* forgotten = nullptr;

}  // namespace

std::atomic<Injector*> Injector::active{nullptr};

Injector::Injector(const std::vector<fault::VerbsPlan>& plans, int log)
    : log_(log), faults_(plans, is_from) {}

bool Injector::start() {
  const char* const text = std::getenv(kPlans);
  if (text == nullptr || *text == 0 || get() != nullptr) return true;
  const auto plans = fault::parse_verbs_plans(text);
  if (!plans.ok()) {
    say(STDERR_FILENO, plans.error());
    return false;
  }
  int log = STDERR_FILENO;
  if (const char* const file = std::getenv(kLog); file != nullptr && *file != 0) {
    log = ::open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log < 0) {
      say(STDERR_FILENO, "verbs faults: " + std::string(file) + ": " + strerror(errno));
      return false;
    }
  }
  say(STDERR_FILENO, "verbs faults are injected: " + std::string(text));
  auto* const made = new Injector(*plans, log);
  active.store(made);
  return true;
}

void Injector::forget_parent() {
  Injector* const parents = active.exchange(nullptr);
  if (parents == nullptr) return;
  parents->before_ = forgotten;
  forgotten = parents;
}

void Injector::note(const std::string& line) const {
  const int before = errno;
  const bool written = say(log_, "verbs fault: " + line);
  if (!written && !lost_.exchange(true)) {
    say(STDERR_FILENO, std::string("verbs faults: the log is incomplete: ") + strerror(errno));
  }
  errno = before;
}

std::optional<fault::VerbsHit> Injector::next(VerbsKind kind,
                                              const fault::VerbsFaults::Where& where,
                                              const std::string& about) {
  if (!has(kind)) return std::nullopt;
  const std::lock_guard guard(mutex_);
  const auto hit = faults_.next(kind, where);
  if (hit) note(hit->to_string() + (about.empty() ? "" : ", " + about));
  return hit;
}

}  // namespace urnic::dropin
