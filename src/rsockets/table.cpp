#include "rsockets/table.h"

#include <pthread.h>

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "dropin/process.h"
#include "rsockets/socket.h"

namespace urnic::rsockets {
namespace {

// For all connections together.
constexpr auto kLeaving = std::chrono::seconds(1);

std::atomic<Table*> current{nullptr};
std::mutex making;
// Objects of parent processes: never freed, and kept in a list so that they are not reported as
// leaks.
const Table* forgotten = nullptr;

}  // namespace

std::atomic<Kind> Table::kinds_[Table::kMost];

Table& Table::get() {
  Table* t = current.load();
  if (t != nullptr) return *t;
  const std::lock_guard guard(making);
  t = current.load();
  if (t != nullptr) return *t;
  static const int hooked =
      pthread_atfork(nullptr, nullptr, forget_parent) + std::atexit(leave_all);
  (void)hooked;
  t = new Table;
  current.store(t);
  return *t;
}

// Runs in the child: leaves the parent's object as it is, because its locks may be taken and its
// connections belong to the parent.
void Table::forget_parent() {
  Table* parents = current.exchange(nullptr);
  new (&making) std::mutex;
  if (parents == nullptr) return;
  parents->before_ = forgotten;
  forgotten = parents;
  for (std::size_t fd = 0; fd < parents->sockets_.size(); ++fd) {
    if (parents->sockets_[fd] != nullptr) kinds_[fd].store(Kind::inherited);
  }
}

// Connections that a program leaves open at its end are ended in order, as with TCP.
void Table::leave_all() {
  Table* const t = current.load();
  if (t == nullptr || dropin::Process::is_in_call()) return;
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + kLeaving;
  std::vector<std::shared_ptr<Socket>> all;
  {
    // An interrupted call may hold the lock and will never release it.
    std::unique_lock lock(t->mutex_, std::defer_lock);
    while (!lock.try_lock()) {
      if (Clock::now() >= until) return;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    all = t->sockets_;
  }
  for (const auto& s : all) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (s != nullptr) s->leave(left > 0 ? static_cast<int>(left) : 0);
  }
}

std::shared_ptr<Socket> Table::find(int fd) {
  if (kind(fd) != Kind::rsocket) return nullptr;
  const std::lock_guard guard(mutex_);
  return static_cast<std::size_t>(fd) < sockets_.size() ? sockets_[static_cast<std::size_t>(fd)]
                                                        : nullptr;
}

bool Table::add(int fd, std::shared_ptr<Socket> socket) {
  if (fd < 0 || fd >= kMost) return false;
  std::shared_ptr<Socket> before;  // its number was closed outside of our calls
  {
    const std::lock_guard guard(mutex_);
    const auto at = static_cast<std::size_t>(fd);
    if (at >= sockets_.size()) sockets_.resize(at + 1);
    if (sockets_[at] != socket) before = std::exchange(sockets_[at], std::move(socket));
    kinds_[fd].store(Kind::rsocket, std::memory_order_relaxed);
  }
  // Something else uses the number now, so it must not be closed with the socket.
  if (before != nullptr) before->number_lost(fd);
  return true;
}

std::shared_ptr<Socket> Table::remove(int fd) {
  if (kind(fd) != Kind::rsocket) return nullptr;
  const std::lock_guard guard(mutex_);
  const auto at = static_cast<std::size_t>(fd);
  if (at >= sockets_.size()) return nullptr;
  if (sockets_[at] != nullptr) forget(fd);
  return std::exchange(sockets_[at], nullptr);
}

}  // namespace urnic::rsockets
