// Moves a file through a window of slots, chunk by chunk and in order. FileSource fills slots from
// a file; FileSink empties slots into a file. Both compute the hash meanwhile, one piece at a
// time, so that the caller's loop is not blocked. Neither depends on how the bytes cross the wire.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/file_queue.h"
#include "cli/transfer/folder.h"
#include "cli/xxh128.h"

namespace urnic::cli {

// The memory that both sides divide into slots; chunk k of a file uses slot k mod slots.
struct Window {
  std::uint8_t* base = nullptr;
  std::uint32_t slots = 0, chunk = 0;
  std::uint8_t* slot(std::uint32_t i) const { return base + std::size_t{i} * chunk; }
};

struct ChunkRef {
  std::uint32_t slot = 0, length = 0;
  std::uint64_t offset = 0;
  bool hole = false;  // zeros; the chunk takes its slot, but the slot holds no data
};

// Hashes chunks in the order in which they are pushed; chunks without data are zeros.
class HashLine {
 public:
  // `hash` has already hashed the bytes before the first chunk.
  void begin_with(Xxh128 hash) { hash_ = std::move(hash); }
  void push(std::uint32_t slot, const std::uint8_t* data, std::uint32_t length);
  // Hashes a piece. Returns the slot that this has finished, if any. `*worked`: there was work.
  std::optional<std::uint32_t> step(bool* worked);
  bool idle() const { return line_.empty(); }
  Digest finish() { return hash_.finish(); }

 private:
  struct Item {
    std::uint32_t slot;
    const std::uint8_t* data;
    std::uint32_t left;
  };
  std::deque<Item> line_;
  Xxh128 hash_;
};

class FileSource {
 public:
  // Operations on `queue` carry tags tag_base + slot. `what` names the file in errors.
  FileSource(FileQueue* queue, std::uint64_t tag_base, Window window, FileDescriptor fd,
             std::uint64_t size, std::string what);
  // Reads from memory instead of a file.
  FileSource(Window window, std::vector<std::uint8_t> content);

  // The other side has the bytes before `offset`, and `hash` has hashed them. Call before the first
  // step().
  void begin_at(std::uint64_t offset, Xxh128 hash);
  // Starts possible operations and hashes a little. True if there was any work.
  bool step();
  // Handles the end of the read into `slot`.
  void file_done(std::uint32_t slot, std::int64_t result);
  // The next chunk in order that may be sent.
  std::optional<ChunkRef> next_ready();
  // The other side has finished with `slot`. False: it was not lent (a protocol error).
  bool slot_free(std::uint32_t slot);
  // True when everything has been sent, taken and hashed.
  bool finished() const;
  // Call once, after finished().
  Digest digest() { return hash_.finish(); }
  const std::optional<FileError>& error() const { return error_; }
  // Reads in flight: the object and its window must live until there are none.
  unsigned in_flight() const { return in_flight_; }
  std::uint64_t size() const { return size_; }
  std::uint64_t sent() const { return sent_; }

 private:
  // Determines whether data or a hole follows, and where it ends.
  void look_ahead();
  enum class Slot : std::uint8_t { Free, Reading, Ready, Lent };
  struct State {
    Slot state = Slot::Free;
    bool hashing = false;
    ChunkRef chunk;
  };
  FileQueue* queue_ = nullptr;
  std::uint64_t tag_base_ = 0;
  Window window_;
  FileDescriptor fd_;
  std::vector<std::uint8_t> memory_;
  std::uint64_t size_ = 0, read_to_ = 0, sent_ = 0, taken_ = 0;
  std::uint64_t stretch_ends_ = 0;  // end of the data or hole at read_to_
  bool in_hole_ = false;
  std::uint32_t next_read_ = 0, next_send_ = 0;
  std::string what_;
  std::vector<State> states_;
  HashLine hash_;
  unsigned in_flight_ = 0;
  std::optional<FileError> error_;
};

class FileSink {
 public:
  FileSink(FileQueue* queue, std::uint64_t tag_base, Window window, int fd, std::uint64_t size,
           std::string what);
  // Writes into memory instead of a file.
  FileSink(Window window, std::uint64_t size);
  // Writes to a stream: a pipe, a device, standard output. It has no offsets. arrived() blocks
  // until the stream accepts the bytes.
  FileSink(Window window, int stream, std::uint64_t size, std::string what);

  // As for FileSource. Call before the first announce().
  void begin_at(std::uint64_t offset, Xxh128 hash);
  // The other side announces that `chunk` is in its slot, or can be fetched. False: it is not the
  // next chunk, its size is wrong, or the slot is in use (a protocol error).
  bool announce(const ChunkRef& chunk);
  // The bytes of an announced chunk are in the window, or the chunk is a hole.
  void arrived(std::uint32_t slot);
  bool step();
  void file_done(std::uint32_t slot, std::int64_t result);
  // The next slot that may be filled again.
  std::optional<std::uint32_t> next_freed();
  // True when every chunk of the file has been announced.
  bool complete() const { return announced_ == size_; }
  // True when all bytes of the file are written and hashed.
  bool finished() const { return freed_bytes_ == size_ && freed_.empty() && !error_; }
  Digest digest() { return hash_.finish(); }
  const std::optional<FileError>& error() const { return error_; }
  unsigned in_flight() const { return in_flight_; }
  std::uint64_t size() const { return size_; }
  std::uint64_t stored() const { return freed_bytes_; }
  const std::vector<std::uint8_t>& memory() const { return memory_; }

 private:
  struct State {
    bool used = false, there = false, writing = false, hashing = false;
    ChunkRef chunk;
  };
  void release_if_done(std::uint32_t slot);
  void take(std::uint32_t slot);
  void write_stream(std::uint32_t slot);
  bool write_all(const std::uint8_t* at, std::uint32_t left);

  FileQueue* queue_ = nullptr;
  std::uint64_t tag_base_ = 0;
  Window window_;
  int fd_ = -1;
  bool stream_ = false;
  std::vector<std::uint8_t> memory_;
  std::uint64_t size_ = 0, announced_ = 0, freed_bytes_ = 0;
  std::uint32_t next_slot_ = 0, next_taken_ = 0;
  std::string what_;
  std::vector<State> states_;
  std::deque<std::uint32_t> freed_;
  HashLine hash_;
  unsigned in_flight_ = 0;
  std::optional<FileError> error_;
};

}  // namespace urnic::cli
