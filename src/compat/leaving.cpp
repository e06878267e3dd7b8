#include "compat/leaving.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <new>

namespace urnic::compat {
namespace {

struct Errand {
  void (*work)();
  std::atomic<bool> done{false};
};

void* run(void* arg) {
  auto* const errand = static_cast<Errand*>(arg);
  errand->work();
  errand->done.store(true);
  return nullptr;
}

}  // namespace

void do_beside(void (*work)(), int most_ms) {
  auto* const errand = new (std::nothrow) Errand{work};
  if (errand == nullptr) return;
  // The program's signals are the program's.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  pthread_t thread;
  const bool runs = pthread_create(&thread, nullptr, run, errand) == 0;
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  if (!runs) {
    delete errand;
    return;
  }
  pthread_detach(thread);
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::milliseconds(most_ms);
  while (!errand->done.load() && Clock::now() < until) usleep(100);
  if (errand->done.load()) delete errand;  // else that thread still has it
}

}  // namespace urnic::compat
