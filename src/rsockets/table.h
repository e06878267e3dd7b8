// The table of the descriptors of this process that are rsockets.
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
  inherited = 2,  // of the parent: the connection belongs to it, only the number is ours
};

class Table {
 public:
  static constexpr int kMost = 1 << 20;

  // The object of this process.
  static Table& get();
  // Takes no lock.
  static Kind kind(int fd) {
    if (fd < 0 || fd >= kMost) return Kind::other;
    return kinds_[fd].load(std::memory_order_relaxed);
  }

  // Null if it is not an rsocket.
  std::shared_ptr<Socket> find(int fd);
  // False when the number is too large for the table.
  bool add(int fd, std::shared_ptr<Socket>);
  // Removes and returns it; null if it is not an rsocket.
  std::shared_ptr<Socket> remove(int fd);
  // For an inherited one whose number is closed.
  static void forget(int fd) { kinds_[fd].store(Kind::other, std::memory_order_relaxed); }

 private:
  static void forget_parent();
  static void leave_all();

  // Zeros that were never written occupy no memory.
  static std::atomic<Kind> kinds_[kMost];
  std::mutex mutex_;
  std::vector<std::shared_ptr<Socket>> sockets_;
  const Table* before_ = nullptr;  // list of the objects of this process's ancestors
};

}  // namespace urnic::rsockets
