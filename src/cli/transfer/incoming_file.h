// A file that comes into a folder and appears in it only once it is complete (E-38).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/transfer/folder.h"

namespace urnic::cli {

// The name of a file that is to become `leaf`, as long as it needs one of its own. Always the same,
// so that the next file to become `leaf` finds what was left by a process that was killed.
std::string temporary_name(std::string_view leaf);

// Who uses a temporary name holds the lock of its file. Where nobody does, its owner was killed or
// has left it for later: the name goes. False when it stays.
bool take_away_left(int folder, const std::string& temporary);

// What of an earlier transfer is made use of.
enum class Resume : std::uint8_t {
  No,
  Compare,  // a file that has the name and the size already may be the one
  Keep,     // that, or what an interrupted one has left; and what this one leaves stays
};

// A file being written: without a name where the file system can do that, else under a temporary
// one beside its final place, with its lock held (flock). Gone without a trace unless commit()
// succeeds; of a process that is killed a temporary name may stay until the next file of this name.
//
// One that may be gone on with later has the temporary name from its beginning, and keeps it when
// it is given up; the next such one of that name takes over what is there. Any other one takes it
// away.
class IncomingFile {
 public:
  // `name` (checked by check_name) below the folder. A name that is taken by anything but a regular
  // file is refused: it would be replaced. Nothing is reserved on the disk for what has not come
  // yet; a disk that has no room for it is found now, all the same.
  static Outcome<IncomingFile, FileError> create(int folder, const std::string& name,
                                                 const FileAttributes& is,
                                                 Resume resume = Resume::No);
  // How much there is to be compared: what an earlier one has left, or else the file itself.
  static std::uint64_t left(int folder, const std::string& name);
  IncomingFile() = default;
  IncomingFile(IncomingFile&& o) noexcept { *this = std::move(o); }
  IncomingFile& operator=(IncomingFile&& o) noexcept;
  ~IncomingFile() { leave(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }

  int fd() const { return fd_.get(); }
  // Bytes that are there already, in check_fd(). Whether they are those of the file nobody knows.
  std::uint64_t there() const { return there_; }
  int check_fd() const { return existing_ ? existing_.get() : fd_.get(); }
  // They are the file that has the name, which is the one or is not: begin at 0 or behind all.
  bool whole_only() const { return static_cast<bool>(existing_); }
  // What is there behind `offset` goes; behind all of a file that has the name it stays as it is.
  Outcome<bool, FileError> begin_at(std::uint64_t offset);
  // Give it its name, in place of any file that had it, and its time of change. `durable`: on the
  // disk before this returns. The file is closed either way.
  Outcome<bool, FileError> commit(std::uint64_t size, bool durable);
  // Nothing stays for later, though it was created for that: a full disk is of no use to anybody.
  void keep_nothing() { resumable_ = false; }
  // Given up: what has come stays for later where it was created for that.
  void leave();
  // Given up without a trace.
  void discard();

 private:
  void find_existing();
  Outcome<bool, FileError> commit_existing(bool durable);
  bool take_over(const std::string& temporary, Outcome<bool, FileError>* why);
  Outcome<bool, FileError> take_name();
  Outcome<bool, FileError> give_attributes(int fd, bool mode);

  FileDescriptor directory_, fd_, existing_;
  std::string leaf_, temporary_;  // temporary_ empty: the file has no name yet
  std::string shown_;             // the name as the user said it
  FileAttributes is_;
  std::uint64_t there_ = 0;
  bool locked_ = false;     // whose lock says that its owner lives
  bool resumable_ = false;  // stays when it is given up
};

}  // namespace urnic::cli
