#include "cli/transfer/file_mover.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace urnic::cli {
namespace {

constexpr std::uint32_t kHashPiece = 64 << 10;
constexpr std::uint8_t kZeros[kHashPiece] = {};

}  // namespace

void HashLine::push(std::uint32_t slot, const std::uint8_t* data, std::uint32_t length) {
  line_.push_back({slot, data, length});
}

std::optional<std::uint32_t> HashLine::step(bool* worked) {
  if (line_.empty()) return std::nullopt;
  *worked = true;
  Item& item = line_.front();
  const std::uint32_t n = std::min(item.left, kHashPiece);
  hash_.add({item.data != nullptr ? item.data : kZeros, n});
  if (item.data != nullptr) item.data += n;
  item.left -= n;
  if (item.left != 0) return std::nullopt;
  const std::uint32_t slot = item.slot;
  line_.pop_front();
  return slot;
}

// ---- source

FileSource::FileSource(FileQueue* queue, std::uint64_t tag_base, Window window, FileDescriptor fd,
                       std::uint64_t size, std::string what)
    : queue_(queue),
      tag_base_(tag_base),
      window_(window),
      fd_(std::move(fd)),
      size_(size),
      what_(std::move(what)),
      states_(window.slots) {}

FileSource::FileSource(Window window, std::vector<std::uint8_t> content)
    : window_(window), memory_(std::move(content)), size_(memory_.size()), states_(window.slots) {}

void FileSource::begin_at(std::uint64_t offset, Xxh128 hash) {
  read_to_ = sent_ = taken_ = stretch_ends_ = offset;
  hash_.begin_with(std::move(hash));
}

void FileSource::look_ahead() {
  in_hole_ = false;
  stretch_ends_ = size_;
  if (queue_ == nullptr) return;
  const auto from = static_cast<off_t>(read_to_);
  const off_t data = lseek(fd_.get(), from, SEEK_DATA);
  if (data == from) {
    const off_t hole = lseek(fd_.get(), from, SEEK_HOLE);
    if (hole > from) stretch_ends_ = std::min(size_, static_cast<std::uint64_t>(hole));
    return;
  }
  // No data from here on: there is a hole up to the end, or the file has become shorter.
  if (data < 0 && errno != ENXIO) return;  // the file system does not report holes
  const off_t end = lseek(fd_.get(), 0, SEEK_END);
  if (end < 0 || static_cast<std::uint64_t>(end) < size_) return;  // reading will show it
  in_hole_ = true;
  if (data > from) stretch_ends_ = std::min(size_, static_cast<std::uint64_t>(data));
}

bool FileSource::step() {
  bool worked = false;
  while (!error_ && read_to_ < size_ && states_[next_read_].state == Slot::Free) {
    if (read_to_ >= stretch_ends_) look_ahead();
    const std::uint32_t slot = next_read_;
    const auto n = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(in_hole_ ? kMaxHole : window_.chunk, stretch_ends_ - read_to_));
    states_[slot].chunk = {slot, n, read_to_, in_hole_};
    states_[slot].state = Slot::Reading;
    read_to_ += n;
    next_read_ = (slot + 1) % window_.slots;
    ++in_flight_;
    worked = true;
    if (in_hole_) {
      file_done(slot, n);
    } else if (queue_ != nullptr) {
      queue_->read(fd_.get(), window_.slot(slot), n, states_[slot].chunk.offset, tag_base_ + slot);
    } else {
      std::memcpy(window_.slot(slot), memory_.data() + states_[slot].chunk.offset, n);
      file_done(slot, n);
    }
  }
  if (const auto hashed = hash_.step(&worked)) states_[*hashed].hashing = false;
  return worked;
}

void FileSource::file_done(std::uint32_t slot, std::int64_t result) {
  --in_flight_;
  State& s = states_[slot];
  if (error_) return;
  if (result < 0) {
    error_ = file_error(static_cast<int>(-result), what_);
  } else if (static_cast<std::uint64_t>(result) < s.chunk.length) {
    error_ = FileError{Status::Truncated, what_ + ": was truncated while it was read"};
  } else {
    s.state = Slot::Ready;
  }
}

std::optional<ChunkRef> FileSource::next_ready() {
  State& s = states_[next_send_];
  if (error_ || s.state != Slot::Ready || s.hashing) return std::nullopt;
  s.state = Slot::Lent;
  s.hashing = true;
  hash_.push(next_send_, s.chunk.hole ? nullptr : window_.slot(next_send_), s.chunk.length);
  next_send_ = (next_send_ + 1) % window_.slots;
  sent_ += s.chunk.length;
  return s.chunk;
}

bool FileSource::slot_free(std::uint32_t slot) {
  if (slot >= states_.size() || states_[slot].state != Slot::Lent) return false;
  State& s = states_[slot];
  taken_ += s.chunk.length;
  // The hash also reads the slot. It is at most one window late, so it is completed here.
  bool worked = false;
  while (s.hashing) {
    if (const auto hashed = hash_.step(&worked)) states_[*hashed].hashing = false;
  }
  s.state = Slot::Free;
  return true;
}

bool FileSource::finished() const {
  return !error_ && taken_ == size_ && sent_ == size_ && hash_.idle();
}

// ---- sink

FileSink::FileSink(FileQueue* queue, std::uint64_t tag_base, Window window, int fd,
                   std::uint64_t size, std::string what)
    : queue_(queue),
      tag_base_(tag_base),
      window_(window),
      fd_(fd),
      size_(size),
      what_(std::move(what)),
      states_(window.slots) {}

FileSink::FileSink(Window window, std::uint64_t size)
    : window_(window), memory_(size), size_(size), states_(window.slots) {}

FileSink::FileSink(Window window, int stream, std::uint64_t size, std::string what)
    : window_(window),
      fd_(stream),
      stream_(true),
      size_(size),
      what_(std::move(what)),
      states_(window.slots) {}

// Chunks arrive in order, so the bytes of a stream are written in order.
void FileSink::write_stream(std::uint32_t slot) {
  const ChunkRef& c = states_[slot].chunk;
  std::uint32_t left = c.length;
  while (left != 0) {
    const std::uint32_t n = c.hole ? std::min(left, kHashPiece) : left;
    if (!write_all(c.hole ? kZeros : window_.slot(slot), n)) {
      file_done(slot, -errno);
      return;
    }
    left -= n;
  }
  file_done(slot, c.length);
}

// On false, errno holds the reason.
bool FileSink::write_all(const std::uint8_t* at, std::uint32_t left) {
  while (left != 0) {
    const ssize_t n = ::write(fd_, at, left);
    if (n < 0 && errno == EAGAIN) {
      pollfd p{fd_, POLLOUT, 0};
      if (::poll(&p, 1, -1) >= 0) continue;
    }
    if (n == 0) errno = EIO;
    if (n <= 0) return false;
    at += n;
    left -= static_cast<std::uint32_t>(n);
  }
  return true;
}

void FileSink::begin_at(std::uint64_t offset, Xxh128 hash) {
  announced_ = freed_bytes_ = offset;
  hash_.begin_with(std::move(hash));
}

bool FileSink::announce(const ChunkRef& c) {
  if (c.slot != next_slot_ || c.offset != announced_ || states_[c.slot].used) return false;
  const std::uint64_t most =
      std::min<std::uint64_t>(c.hole ? kMaxHole : window_.chunk, size_ - announced_);
  if (c.length == 0 || c.length > most) return false;
  states_[c.slot] = {true, false, false, false, c};
  announced_ += c.length;
  next_slot_ = (c.slot + 1) % window_.slots;
  return true;
}

void FileSink::arrived(std::uint32_t slot) {
  states_[slot].there = true;
  // Hash and streams need the chunks in order: a hole is complete before the data that precedes it.
  while (states_[next_taken_].used && states_[next_taken_].there) {
    states_[next_taken_].there = false;
    take(next_taken_);
    next_taken_ = (next_taken_ + 1) % window_.slots;
  }
}

void FileSink::take(std::uint32_t slot) {
  State& s = states_[slot];
  if (error_) return;
  s.writing = s.hashing = true;
  hash_.push(slot, s.chunk.hole ? nullptr : window_.slot(slot), s.chunk.length);
  ++in_flight_;
  if (stream_) {
    write_stream(slot);
  } else if (s.chunk.hole) {
    file_done(slot, s.chunk.length);
  } else if (queue_ != nullptr) {
    queue_->write(fd_, window_.slot(slot), s.chunk.length, s.chunk.offset, tag_base_ + slot);
  } else {
    std::memcpy(memory_.data() + s.chunk.offset, window_.slot(slot), s.chunk.length);
    file_done(slot, s.chunk.length);
  }
}

bool FileSink::step() {
  bool worked = false;
  if (const auto hashed = hash_.step(&worked)) {
    states_[*hashed].hashing = false;
    release_if_done(*hashed);
  }
  return worked;
}

void FileSink::file_done(std::uint32_t slot, std::int64_t result) {
  --in_flight_;
  if (error_) return;
  if (result < 0) {
    error_ = file_error(static_cast<int>(-result), what_);
    return;
  }
  states_[slot].writing = false;
  release_if_done(slot);
}

void FileSink::release_if_done(std::uint32_t slot) {
  State& s = states_[slot];
  if (!s.used || s.writing || s.hashing) return;
  s.used = false;
  freed_bytes_ += s.chunk.length;
  freed_.push_back(slot);
}

std::optional<std::uint32_t> FileSink::next_freed() {
  if (freed_.empty()) return std::nullopt;
  const std::uint32_t slot = freed_.front();
  freed_.pop_front();
  return slot;
}

}  // namespace urnic::cli
