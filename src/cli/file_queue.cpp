#include "cli/file_queue.h"

#include <errno.h>
#include <liburing.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>

namespace urnic::cli {
namespace {

// Allowed system calls are not enough: this kernel must also support the operations we need.
bool knows_operations(io_uring* ring) {
  io_uring_probe* probe = io_uring_get_probe_ring(ring);
  if (probe == nullptr) return false;
  const bool known = io_uring_opcode_supported(probe, IORING_OP_READ) != 0 &&
                     io_uring_opcode_supported(probe, IORING_OP_WRITE) != 0;
  io_uring_free_probe(probe);
  return known;
}

}  // namespace

FileQueue::FileQueue(unsigned depth, bool use_uring) : depth_(depth) {
  if (!use_uring) {
    backend_ = "pread/pwrite (--no-uring)";
    return;
  }
  auto ring = std::make_unique<io_uring>();
  if (const int r = io_uring_queue_init(depth, ring.get(), 0); r < 0) {
    backend_ = std::string("pread/pwrite (no io_uring: ") + std::strerror(-r) + ")";
    return;
  }
  event_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (!knows_operations(ring.get()) || event_fd_ < 0 ||
      io_uring_register_eventfd(ring.get(), event_fd_) < 0) {
    io_uring_queue_exit(ring.get());
    if (event_fd_ >= 0) close(event_fd_);
    event_fd_ = -1;
    backend_ = "pread/pwrite (this kernel's io_uring is too old)";
    return;
  }
  ring_ = std::move(ring);
  slots_ = std::make_unique<Operation[]>(depth);
  for (unsigned i = 0; i < depth; ++i) free_.push_back(i);
  backend_ = "io_uring";
}

FileQueue::~FileQueue() {
  // The kernel may still be writing into buffers that their owner frees after this call.
  Done ignored;
  waiting_.clear();
  while (ring_ != nullptr && free_.size() < depth_) {
    if (!poll(&ignored)) io_uring_submit_and_wait(ring_.get(), 1);
  }
  if (ring_ != nullptr) io_uring_queue_exit(ring_.get());
  if (event_fd_ >= 0) close(event_fd_);
}

void FileQueue::read(int fd, void* to, std::uint32_t length, std::uint64_t offset,
                     std::uint64_t tag) {
  add({false, fd, static_cast<char*>(to), length, 0, offset, tag});
}

void FileQueue::write(int fd, const void* from, std::uint32_t length, std::uint64_t offset,
                      std::uint64_t tag) {
  add({true, fd, const_cast<char*>(static_cast<const char*>(from)), length, 0, offset, tag});
}

void FileQueue::add(Operation op) {
  ++outstanding_;
  if (ring_ == nullptr) {
    run_now(op);
    return;
  }
  waiting_.push_back(op);
  submit_waiting();
}

void FileQueue::run_now(Operation& op) {
  for (;;) {
    const auto offset = static_cast<off_t>(op.offset + op.done);
    const ssize_t n = op.write ? pwrite(op.fd, op.data + op.done, op.length - op.done, offset)
                               : pread(op.fd, op.data + op.done, op.length - op.done, offset);
    if (advance(op, n < 0 ? -errno : n)) return;
  }
}

bool FileQueue::advance(Operation& op, std::int64_t result) {
  if (result == -EINTR || result == -EAGAIN) return false;
  if (result > 0) {
    op.done += static_cast<std::uint32_t>(result);
    if (op.done < op.length) return false;
  }
  // A write of 0 bytes would be repeated forever.
  if (result == 0 && op.write && op.done < op.length) result = -EIO;
  done_.push_back({op.tag, result < 0 ? result : static_cast<std::int64_t>(op.done)});
  return true;
}

void FileQueue::submit_waiting() {
  bool any = false;
  while (!waiting_.empty() && !free_.empty()) {
    io_uring_sqe* sqe = io_uring_get_sqe(ring_.get());
    if (sqe == nullptr) break;
    const unsigned slot = free_.front();
    free_.pop_front();
    Operation& op = slots_[slot] = waiting_.front();
    waiting_.pop_front();
    if (op.write) {
      io_uring_prep_write(sqe, op.fd, op.data + op.done, op.length - op.done, op.offset + op.done);
    } else {
      io_uring_prep_read(sqe, op.fd, op.data + op.done, op.length - op.done, op.offset + op.done);
    }
    sqe->user_data = slot;
    any = true;
  }
  if (any || io_uring_sq_ready(ring_.get()) != 0) io_uring_submit(ring_.get());
}

bool FileQueue::reap() {
  io_uring_cqe* cqe = nullptr;
  bool any = false;
  while (io_uring_peek_cqe(ring_.get(), &cqe) == 0 && cqe != nullptr) {
    const auto slot = static_cast<unsigned>(cqe->user_data);
    const std::int64_t result = cqe->res;
    io_uring_cqe_seen(ring_.get(), cqe);
    Operation& op = slots_[slot];
    if (!advance(op, result)) waiting_.push_front(op);  // continue with the remaining bytes
    free_.push_back(slot);
    any = true;
  }
  return any;
}

bool FileQueue::poll(Done* out) {
  if (ring_ != nullptr && done_.empty() && outstanding_ != 0) {
    reap();
    submit_waiting();
  }
  if (done_.empty()) return false;
  *out = done_.front();
  done_.pop_front();
  --outstanding_;
  return true;
}

void FileQueue::clear_event() {
  std::uint64_t v = 0;
  if (event_fd_ >= 0) [[maybe_unused]]
    const ssize_t n = ::read(event_fd_, &v, sizeof v);
}

}  // namespace urnic::cli
