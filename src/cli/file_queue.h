// Reads and writes of files in the background with io_uring; where the kernel or a container
// refuses io_uring, the same calls work at once with pread and pwrite.
//
// One thread at a time. Buffers and descriptors must stay until the operation has been reported.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

struct io_uring;

namespace urnic::cli {

class FileQueue {
 public:
  struct Done {
    std::uint64_t tag = 0;
    // Bytes moved: all that were asked for, fewer only where the file ended (reads). Or -errno.
    std::int64_t result = 0;
  };

  // `depth` operations are given to the kernel at once; more wait their turn here. With
  // `use_uring` false, or when the probe fails, the fallback is used.
  // bound: file reads and writes pending in the kernel; limit: 64; beyond: further ones wait; test:
  // FileQueue.MoreOperationsThanItsDepthAllComplete
  explicit FileQueue(unsigned depth = 64, bool use_uring = true);
  ~FileQueue();
  FileQueue(const FileQueue&) = delete;
  FileQueue& operator=(const FileQueue&) = delete;

  // "io_uring", or "pread/pwrite (...why)".
  const std::string& backend() const { return backend_; }

  void read(int fd, void* to, std::uint32_t length, std::uint64_t offset, std::uint64_t tag);
  void write(int fd, const void* from, std::uint32_t length, std::uint64_t offset,
             std::uint64_t tag);
  // Next finished operation, or false. Gives waiting ones to the kernel.
  bool poll(Done* out);
  // Asked for and not yet reported.
  unsigned outstanding() const { return outstanding_; }
  // Readable when poll() may have something; -1 for the fallback, where it always has at once.
  int event_fd() const { return event_fd_; }
  // Clears event_fd(); poll() once more before sleeping on it.
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
  // One partial result taken in; true when the operation has ended.
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
