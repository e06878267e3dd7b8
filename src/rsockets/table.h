// Which descriptors of this process are rsockets.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace urnic::rsockets {

class Socket;

enum class Kind : std::uint8_t {
  other = 0,
  rsocket = 1,
  inherited = 2,  // a parent's: its connection is the parent's, only the number is ours
};

class Table {
 public:
  static constexpr int kMost = 1 << 20;

  // Of this process.
  static Table& get();
  // Without a lock.
  static Kind kind(int fd) {
    if (fd < 0 || fd >= kMost) return Kind::other;
    return kinds_[fd].load(std::memory_order_relaxed);
  }

  // Null without one.
  std::shared_ptr<Socket> find(int fd);
  // False when the number is beyond what there is room for.
  bool add(int fd, std::shared_ptr<Socket>);
  // Takes it out; null without one.
  std::shared_ptr<Socket> remove(int fd);
  // An inherited one, whose number is given up.
  static void forget(int fd) { kinds_[fd].store(Kind::other, std::memory_order_relaxed); }

 private:
  static void forget_parent();
  static void leave_all();

  // Of zeros that nobody has touched: no memory.
  static std::atomic<Kind> kinds_[kMost];
  std::mutex mutex_;
  std::vector<std::shared_ptr<Socket>> sockets_;
  const Table* before_ = nullptr;  // of the process whose child the owner of this one was
};

}  // namespace urnic::rsockets
