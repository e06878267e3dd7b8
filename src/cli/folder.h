// The exported folder of a target and files that appear in it only once they are complete (E-38).
// Names are followed component by component without symbolic links, so that none leaves the folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/storage_message.h"

namespace urnic::cli {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor();
  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

// What went wrong with a file, for the other end and for a person.
struct FileError {
  Status status = Status::InputOutput;
  std::string text;  // "file: No space left on device"
};
FileError file_error(int errno_value, std::string_view what);

struct OpenedFile {
  FileDescriptor fd;
  std::uint64_t size = 0;
  std::uint32_t permissions = 0;
};

// A regular file for reading. Never blocks on a pipe or device put in its place.
Outcome<OpenedFile, FileError> open_for_reading(int folder, const std::string& name);

// The name of a file that is to become `leaf`, as long as it needs one of its own. Always the same,
// so that the next file to become `leaf` finds what was left by a process that was killed.
std::string temporary_name(std::string_view leaf);

// A file being written: without a name where the file system can do that, else under a temporary
// one beside its final place, with its lock held (flock). Gone without a trace unless commit()
// succeeds; of a process that is killed a temporary name may stay until the next file of this name.
class IncomingFile {
 public:
  // `name` (checked by check_name) below the folder. A name that is taken by anything but a regular
  // file is refused: it would be replaced. Nothing is reserved on the disk for what has not come
  // yet; a disk that has no room for `size` octets is found now, all the same.
  static Outcome<IncomingFile, FileError> create(int folder, const std::string& name,
                                                 std::uint64_t size, std::uint32_t permissions);
  IncomingFile() = default;
  IncomingFile(IncomingFile&& o) noexcept { *this = std::move(o); }
  IncomingFile& operator=(IncomingFile&& o) noexcept;
  ~IncomingFile() { discard(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }

  int fd() const { return fd_.get(); }
  // Give it its name, in place of any file that had it. `durable`: on the disk before this returns.
  // The file is closed either way.
  Outcome<bool, FileError> commit(std::uint64_t size, bool durable);
  void discard();

 private:
  Outcome<bool, FileError> take_name();

  FileDescriptor directory_, fd_;
  std::string leaf_, temporary_;  // temporary_ empty: the file has no name yet
  std::string shown_;             // the name as the user said it
  bool locked_ = false;           // whose lock says that its owner lives
};

// Opens the folder of `path`; "" of a plain name is the current one.
Outcome<FileDescriptor, FileError> open_folder(const std::string& path);
// Regular files below the folder, by name, at most `limit`; sub-folders are walked.
std::vector<ListEntry> list_folder(int folder, std::size_t limit);

// How much regular files take, by their sizes.
struct Usage {
  std::uint64_t octets = 0, files = 0;
  bool operator==(const Usage&) const = default;
};
// All below the folder, whatever their names, but for files that are on their way. Links are not
// followed; folders are, to a depth of 64.
Usage folder_usage(int folder);
// Of the regular file `name` (checked by check_name); nullopt when there is none.
std::optional<std::uint64_t> size_of_file(int folder, const std::string& name);

}  // namespace urnic::cli
