#include "port/dpdk/eal.h"

#include <pthread.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <mutex>
#include <vector>

// Linked with --wrap=openlog: EAL calls openlog() at start, which would change the program's name
// in syslog. EAL logs to our stream instead.
extern "C" void __wrap_openlog(const char*, int, int) {}

namespace urnic::port::dpdk {
namespace {

// EAL keeps pointers to its arguments, so they are never freed, like the rest of this state.
struct Eal {
  std::mutex lock;
  bool tried = false, running = false, pci = false;
  pid_t owner = 0;
  std::string failure;
  std::vector<std::string> text;
  std::vector<char*> argv;
  std::mutex log_lock;
  std::string complaint;
};
Eal& eal() {
  static Eal* e = new Eal;
  return *e;
}

// EAL's log stream: keeps the last line for error messages and drops the rest.
ssize_t take_log(void*, const char* text, size_t size) {
  std::string line(text, size);
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.pop_back();
  const std::size_t start = line.rfind('\n');
  if (start != std::string::npos) line.erase(0, start + 1);
  if (!line.empty()) {
    std::lock_guard hold(eal().log_lock);
    eal().complaint = line.substr(0, 200);
  }
  return static_cast<ssize_t>(size);
}

// "0@(0,2,3)": one logical core that may run on every CPU of this thread.
std::string lcores_of_caller() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return "";
  std::string list;
  for (int cpu = 0; cpu < CPU_SETSIZE && cpu < RTE_MAX_LCORE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) list += (list.empty() ? "" : ",") + std::to_string(cpu);
  }
  return list.empty() ? "" : "--lcores=0@(" + list + ")";
}

std::vector<std::string> arguments(const EalOptions& o) {
  std::vector<std::string> a = {"urnic", "--no-shconf",
                                "--file-prefix=urnic-" + std::to_string(getpid())};
  if (std::string lcores = lcores_of_caller(); !lcores.empty()) a.push_back(lcores);
  // EAL's --telemetry does not override --no-telemetry.
  if (o.extra.find("--telemetry") == std::string::npos) a.push_back("--no-telemetry");
  if (!o.pci) a.push_back("--no-pci");
  if (o.huge_pages) {
    a.push_back("--in-memory");
  } else {
    a.push_back("--no-huge");
    a.push_back("-m");
    a.push_back(std::to_string(o.memory_mb));
  }
  std::string word;
  for (char c : o.extra + " ") {
    if (c != ' ') {
      word += c;
    } else if (!word.empty()) {
      a.push_back(std::move(word));
      word.clear();
    }
  }
  return a;
}

// Restores everything that EAL changes in the calling thread.
class Unharmed {
 public:
  Unharmed() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &signals_);
    have_cpus_ = sched_getaffinity(0, sizeof cpus_, &cpus_) == 0;
  }
  ~Unharmed() {
    if (have_cpus_) sched_setaffinity(0, sizeof cpus_, &cpus_);
    pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
  }
  Unharmed(const Unharmed&) = delete;
  Unharmed& operator=(const Unharmed&) = delete;

 private:
  sigset_t signals_;
  cpu_set_t cpus_;
  bool have_cpus_ = false;
};

std::string initialise(const EalOptions& o) {
  Eal& e = eal();
  cookie_io_functions_t io{};
  io.write = take_log;
  FILE* log = fopencookie(nullptr, "w", io);
  if (log == nullptr) return "cannot create the log stream";
  setvbuf(log, nullptr, _IOLBF, 0);
  rte_openlog_stream(log);
  e.text = arguments(o);
  for (std::string& s : e.text) e.argv.push_back(s.data());
  e.argv.push_back(nullptr);
  const int count = static_cast<int>(e.text.size());
  int result;
  {
    const Unharmed guard;
    result = rte_eal_init(count, e.argv.data());
  }
  // EAL creates this folder even without shared configuration and never removes it. It remains if
  // it is not empty (telemetry's socket, if the user requested it).
  if (const char* folder = rte_eal_get_runtime_dir(); folder != nullptr) rmdir(folder);
  if (result >= 0) return "";
  // A conflict with another EAL process returns no error number.
  std::string why = last_complaint();
  if (why.empty() && rte_errno != 0) why = rte_strerror(rte_errno);
  if (why.empty())
    why = "unknown reason; check whether another DPDK program uses the same --file-prefix";
  return why;
}

}  // namespace

std::string last_complaint() {
  std::lock_guard hold(eal().log_lock);
  return eal().complaint;
}

bool eal_is_ours() {
  return eal().owner == getpid();
}

Outcome<bool, std::string> start_eal(const EalOptions& options) {
  Eal& e = eal();
  std::lock_guard hold(e.lock);
  if (e.tried && e.owner != getpid()) {
    return fail(
        std::string("DPDK was started before fork and cannot be used in the child process: open "
                    "the port after fork"));
  }
  if (!e.tried) {
    e.tried = true;
    e.owner = getpid();
    e.pci = options.pci;
    e.failure = initialise(options);
    e.running = e.failure.empty();
  }
  if (!e.running) {
    return fail("DPDK failed to start (a retry needs a new process): " + e.failure);
  }
  if (options.pci && !e.pci) {
    return fail(std::string(
        "an earlier port of this process started DPDK without PCI: open the pci= port first"));
  }
  return true;
}

}  // namespace urnic::port::dpdk
