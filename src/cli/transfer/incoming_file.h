// A file that is received into a folder and appears in it only once it is complete (E-38).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/transfer/folder.h"

namespace urnic::cli {

// The temporary name of a file that will become `leaf`. It is always the same for a given leaf, so
// that the next such transfer finds what a killed process left.
std::string temporary_name(std::string_view leaf);

// A process that uses a temporary name holds the lock of its file. If nothing holds the lock, the
// owner was killed or has left the file for later: deletes the name. False if the name remains.
bool take_away_left(int folder, const std::string& temporary);

// How to use the result of an earlier transfer.
enum class Resume : std::uint8_t {
  No,
  Compare,  // a file that has the name and the size may have the content already
  Keep,     // also use an interrupted transfer's part, and leave a part if interrupted
};

// A file that is being written. It has no name if the file system supports that. Otherwise it has a
// temporary name beside its final place, with its lock held (flock). It disappears completely
// unless commit() succeeds. If the process is killed, a temporary name may remain until the next
// file of this name.
//
// A resumable file (Resume::Keep) has the temporary name from its beginning and keeps it when it is
// abandoned. The next resumable transfer to that name continues it; any other transfer to it
// deletes it.
class IncomingFile {
 public:
  // Creates the file `name` (checked by check_name) below the folder. If the name exists and is not
  // a regular file, it is refused, because it would be replaced. No disk space is reserved, but a
  // disk without enough room is detected now.
  static Outcome<IncomingFile, FileError> create(int folder, const std::string& name,
                                                 const FileAttributes& is,
                                                 Resume resume = Resume::No);
  // The number of bytes to compare: the part of an earlier transfer, or else the existing file.
  static std::uint64_t left(int folder, const std::string& name);
  IncomingFile() = default;
  IncomingFile(IncomingFile&& o) noexcept { *this = std::move(o); }
  IncomingFile& operator=(IncomingFile&& o) noexcept;
  ~IncomingFile() { leave(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }

  int fd() const { return fd_.get(); }
  // Bytes already present in check_fd(). It is not known whether they match the file.
  std::uint64_t there() const { return there_; }
  int check_fd() const { return existing_ ? existing_.get() : fd_.get(); }
  // They belong to the existing file with this name, so begin either at 0 or after all of them.
  bool whole_only() const { return static_cast<bool>(existing_); }
  // Truncates after `offset`. With whole_only() and an offset equal to the size, the file stays as
  // it is.
  Outcome<bool, FileError> begin_at(std::uint64_t offset);
  // Gives the file its name, replacing any file that has it, and its modification time. `durable`:
  // it is on disk before this returns. The file is closed in either case.
  Outcome<bool, FileError> commit(std::uint64_t size, bool durable);
  // Leaves nothing for later even if the file is resumable: the part would keep the disk full.
  void keep_nothing() { resumable_ = false; }
  // Abandons the file; if it is resumable, the received bytes remain for later.
  void leave();
  // Abandons the file and leaves nothing.
  void discard();

 private:
  void find_existing();
  Outcome<bool, FileError> commit_existing(bool durable);
  bool take_over(const std::string& temporary, Outcome<bool, FileError>* why);
  Outcome<bool, FileError> take_name();
  Outcome<bool, FileError> give_attributes(int fd, bool mode);

  FileDescriptor directory_, fd_, existing_;
  std::string leaf_, temporary_;  // temporary_ empty: the file has no name yet
  std::string shown_;             // the name as the user gave it
  FileAttributes is_;
  std::uint64_t there_ = 0;
  bool locked_ = false;     // holds the lock that marks a living owner
  bool resumable_ = false;  // leave() keeps the part
};

}  // namespace urnic::cli
