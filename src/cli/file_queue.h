// Reads and writes files in the background with io_uring. If the kernel or a container refuses
// io_uring, the same calls complete at once with pread and pwrite.
//
// Not thread safe: use it from one thread at a time. Buffers and descriptors must stay valid until
// the operation has been reported.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

struct io_uring;

namespace urnic::cli {

// How long to poll while operations are pending; one on a file in memory takes a tenth of this. A
// caller that sleeps until the next completion of RDMA learns of them too late: all slots may be
// in use, and the peer then sends nothing.
inline constexpr int kFileSpinUs = 1000;

class FileQueue {
 public:
  struct Done {
    std::uint64_t tag = 0;
    // Bytes moved: the requested length, or less if a read reached the end of the file. Or -errno.
    std::int64_t result = 0;
  };

  // At most `depth` operations are in the kernel at once; further ones wait in a queue. If
  // `use_uring` is false, or if the probe fails, the fallback is used.
  // bound: file reads and writes pending in the kernel; limit: 64; beyond: further ones wait; test:
  // FileQueue.MoreOperationsThanItsDepthAllComplete
  explicit FileQueue(unsigned depth = 64, bool use_uring = true);
  ~FileQueue();
  FileQueue(const FileQueue&) = delete;
  FileQueue& operator=(const FileQueue&) = delete;

  // "io_uring", or "pread/pwrite (reason)".
  const std::string& backend() const { return backend_; }

  void read(int fd, void* to, std::uint32_t length, std::uint64_t offset, std::uint64_t tag);
  void write(int fd, const void* from, std::uint32_t length, std::uint64_t offset,
             std::uint64_t tag);
  // The next finished operation, or false. Also submits waiting operations to the kernel.
  bool poll(Done* out);
  // Operations requested but not yet reported.
  unsigned outstanding() const { return outstanding_; }
  // Readable when poll() may have a result; -1 for the fallback, where results are available at
  // once.
  int event_fd() const { return event_fd_; }
  // Clears event_fd(). Call poll() once more before sleeping on the descriptor.
  void clear_event();

 private:
  struct Operation {
    bool write = false;
    int fd = -1;
    char* data = nullptr;
    std::uint32_t length = 0, done = 0;
    std::uint64_t offset = 0, tag = 0;
  };
  void add(Operation op);
  void submit_waiting();
  void run_now(Operation& op);
  bool reap();
  // Accounts for one partial result; true if the operation has ended.
  bool advance(Operation& op, std::int64_t result);

  std::unique_ptr<io_uring> ring_;
  unsigned depth_;
  int event_fd_ = -1;
  std::string backend_;
  std::deque<Operation> waiting_;
  std::unique_ptr<Operation[]> slots_;  // in the kernel; user_data is the index
  std::deque<unsigned> free_;
  std::deque<Done> done_;
  unsigned outstanding_ = 0;
};

}  // namespace urnic::cli
