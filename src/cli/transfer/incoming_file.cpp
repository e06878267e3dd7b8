#include "cli/transfer/incoming_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace urnic::cli {
namespace {

std::string name_of(std::uint64_t bits) {
  static constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyz234567";
  std::string out(kTemporaryPrefix);
  for (int i = 0; i < 12; ++i, bits >>= 5) out += kLetters[bits & 31];
  return out + ".part";
}

std::string random_name() {
  std::uint64_t r = 0;
  if (getrandom(&r, sizeof r, 0) != static_cast<ssize_t>(sizeof r)) {
    r = static_cast<std::uint64_t>(getpid());
  }
  return name_of(r);
}

// Returns true if a complete file may take this name: the name is free, or belongs to a regular
// file, which is replaced.
Outcome<bool, FileError> may_take(int directory, const std::string& leaf,
                                  const std::string& shown) {
  struct stat st {};
  if (fstatat(directory, leaf.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return true;
  if (S_ISREG(st.st_mode)) return true;
  if (S_ISDIR(st.st_mode)) return fail(file_error(EISDIR, shown));
  if (S_ISLNK(st.st_mode)) return fail(file_error(ELOOP, shown));
  return fail(
      FileError{Status::NotAFile,
                shown + ": exists and is not a regular file; only regular files are replaced"});
}

// True if the file system has no room for `size` bytes. Some file systems do not report their room.
bool no_room(int fd, std::uint64_t size) {
  struct statvfs fs {};
  if (fstatvfs(fd, &fs) != 0 || fs.f_blocks == 0 || fs.f_frsize == 0) return false;
  const std::uint64_t blocks = geteuid() == 0 ? fs.f_bfree : fs.f_bavail;
  return size / fs.f_frsize > blocks;
}

// Reading it with umask() would change it for a moment, for every thread.
mode_t process_umask() {
  mode_t mask = 077;
  std::FILE* f = std::fopen("/proc/self/status", "re");
  if (f == nullptr) return mask;
  char line[256];
  while (std::fgets(line, sizeof line, f) != nullptr) {
    if (std::strncmp(line, "Umask:", 6) == 0) {
      mask = static_cast<mode_t>(std::strtoul(line + 6, nullptr, 8));
      break;
    }
  }
  std::fclose(f);
  return mask;
}

}  // namespace

// Takes the lock before looking at the name again, to be sure that it is the same file.
bool take_away_left(int folder, const std::string& temporary) {
  const FileDescriptor left(
      openat(folder, temporary.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat held {
  }, named{};
  if (!left || flock(left.get(), LOCK_EX | LOCK_NB) != 0) return false;
  if (fstat(left.get(), &held) != 0 ||
      fstatat(folder, temporary.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0) {
    return false;
  }
  return held.st_dev == named.st_dev && held.st_ino == named.st_ino && S_ISREG(held.st_mode) &&
         unlinkat(folder, temporary.c_str(), 0) == 0;
}

std::string temporary_name(std::string_view leaf) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : leaf) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return name_of(hash);
}

Outcome<IncomingFile, FileError> IncomingFile::create(int folder, const std::string& name,
                                                      const FileAttributes& is, Resume resume) {
  IncomingFile f;
  f.shown_ = name;
  f.is_ = is;
  if (is.size > static_cast<std::uint64_t>(INT64_MAX)) return fail(file_error(EFBIG, name));
  auto directory = walk_to(folder, name, &f.leaf_);
  if (!directory.ok()) return fail(directory.error());
  f.directory_ = std::move(*directory);
  if (auto free = may_take(f.directory_.get(), f.leaf_, name); !free.ok()) {
    return fail(free.error());
  }
  const mode_t mode = static_cast<mode_t>(is.permissions & 0777);
  if (resume == Resume::Keep) {
    Outcome<bool, FileError> mine = true;
    f.take_over(temporary_name(f.leaf_), &mine);
    if (!mine.ok()) return fail(mine.error());
  }
  if (f.fd_) {
    // Only the missing bytes need room.
    const std::uint64_t more = std::min(is.size, is.allocated);
    if (no_room(f.fd_.get(), more - std::min(more, f.there_)))
      return fail(file_error(ENOSPC, name));
    if (f.there_ == 0) f.find_existing();
    return f;
  }
  if (access("/proc/self/fd", X_OK) == 0) {  // commit() links it through this path
    f.fd_ = FileDescriptor(openat(f.directory_.get(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode));
  }
  // Prefer a name that the next file of this name checks, in case this process is killed.
  take_away_left(f.directory_.get(), temporary_name(f.leaf_));
  for (const std::string& temporary : {temporary_name(f.leaf_), random_name()}) {
    if (f.fd_) break;
    f.fd_ = FileDescriptor(openat(f.directory_.get(), temporary.c_str(),
                                  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (f.fd_) f.temporary_ = temporary;
  }
  if (!f.fd_) return fail(file_error(errno, name));
  f.locked_ = flock(f.fd_.get(), LOCK_EX | LOCK_NB) == 0;
  if (resume == Resume::Compare) f.find_existing();
  // Detect a full disk now rather than at the end.
  if (no_room(f.fd_.get(), std::min(is.size, is.allocated))) return fail(file_error(ENOSPC, name));
  return f;
}

std::uint64_t IncomingFile::left(int folder, const std::string& name) {
  std::string leaf;
  auto directory = walk_to(folder, name, &leaf);
  struct stat st {};
  if (!directory.ok()) return 0;
  for (const std::string& of : {temporary_name(leaf), leaf}) {
    if (fstatat(directory->get(), of.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(st.st_mode) && st.st_size > 0) {
      return static_cast<std::uint64_t>(st.st_size);
    }
  }
  return 0;
}

IncomingFile& IncomingFile::operator=(IncomingFile&& o) noexcept {
  std::swap(directory_, o.directory_);
  std::swap(fd_, o.fd_);
  std::swap(existing_, o.existing_);
  std::swap(leaf_, o.leaf_);
  std::swap(temporary_, o.temporary_);
  std::swap(shown_, o.shown_);
  std::swap(is_, o.is_);
  std::swap(there_, o.there_);
  std::swap(locked_, o.locked_);
  std::swap(resumable_, o.resumable_);
  return *this;
}

Outcome<bool, FileError> IncomingFile::commit(std::uint64_t size, bool durable) {
  const auto failed = [&] {
    const int why = errno;
    discard();
    return fail(file_error(why, shown_));
  };
  if (existing_) return commit_existing(durable);
  if (ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) return failed();
  if (auto given = give_attributes(fd_.get(), resumable_); !given.ok()) {
    discard();
    return fail(given.error());
  }
  if (durable && fsync(fd_.get()) != 0) return failed();
  if (auto named = take_name(); !named.ok()) {
    discard();
    return fail(named.error());
  }
  const bool synced = !durable || fsync(directory_.get()) == 0;
  const int why = errno;
  discard();
  if (!synced) return fail(file_error(why, shown_));
  return true;
}

Outcome<bool, FileError> IncomingFile::take_name() {
  const int folder = directory_.get();
  if (temporary_.empty()) {
    const std::string self = "/proc/self/fd/" + std::to_string(fd_.get());
    const auto link_as = [&](const std::string& name) {
      return linkat(AT_FDCWD, self.c_str(), folder, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
    };
    if (link_as(leaf_)) return true;
    // linkat cannot replace a file, and rename cannot name an unnamed file, so both are used in
    // turn. A process that dies between them leaves the temporary name, which the next file of this
    // name deletes.
    if (errno != EEXIST) return fail(file_error(errno, shown_));
    if (locked_ && link_as(temporary_name(leaf_))) {
      temporary_ = temporary_name(leaf_);
    } else if (const std::string name = random_name(); link_as(name)) {
      temporary_ = name;
    } else {
      return fail(file_error(errno, shown_));
    }
  }
  // Check again: the name may have changed during the transfer.
  if (auto free = may_take(folder, leaf_, shown_); !free.ok()) return free;
  if (renameat(folder, temporary_.c_str(), folder, leaf_.c_str()) != 0) {
    return fail(file_error(errno, shown_));
  }
  temporary_.clear();
  return true;
}

// Sets the modification time of the original. Also sets the permissions with `mode`: a file that
// waited for its remaining bytes has been private so far.
Outcome<bool, FileError> IncomingFile::give_attributes(int fd, bool mode) {
  if (mode && fchmod(fd, is_.permissions & 0777 & ~process_umask()) != 0) {
    return fail(file_error(errno, shown_));
  }
  if (!is_.modified.known()) return true;
  const timespec times[2] = {{0, UTIME_OMIT},
                             {is_.modified.seconds, static_cast<long>(is_.modified.nanoseconds)}};
  if (futimens(fd, times) != 0) return fail(file_error(errno, shown_));
  return true;
}

// Returns true if the temporary name is now ours, with or without bytes of an earlier transfer.
// Refuses a file that belongs to another user or has a second name, because it could be changed
// behind our back. Sets `why` if another client is writing the file at this moment.
bool IncomingFile::take_over(const std::string& temporary, Outcome<bool, FileError>* why) {
  const int folder = directory_.get();
  for (int tries = 0; tries < 3; ++tries) {
    FileDescriptor fd(openat(folder, temporary.c_str(),
                             O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
    if (!fd) return false;
    if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      *why = fail(FileError{Status::Busy,
                            shown_ + ": another client is writing this file; try again later"});
      return false;
    }
    struct stat held {
    }, named{};
    if (fstat(fd.get(), &held) != 0) return false;
    if (!S_ISREG(held.st_mode) || held.st_uid != geteuid() || held.st_nlink > 1) return false;
    // Its owner may have renamed or deleted it before we got the lock.
    if (fstatat(folder, temporary.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0 ||
        held.st_dev != named.st_dev || held.st_ino != named.st_ino) {
      continue;
    }
    if (fchmod(fd.get(), 0600) != 0) return false;
    fd_ = std::move(fd);
    temporary_ = temporary;
    locked_ = resumable_ = true;
    there_ = static_cast<std::uint64_t>(held.st_size);
    return true;
  }
  return false;
}

// The existing file with this name may already have the requested content.
void IncomingFile::find_existing() {
  FileDescriptor fd(
      openat(directory_.get(), leaf_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat st {};
  if (!fd || is_.size == 0 || fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode) ||
      static_cast<std::uint64_t>(st.st_size) != is_.size) {
    return;
  }
  existing_ = std::move(fd);
  there_ = is_.size;
}

// The existing file is kept, and the newly created one is deleted. The existing file must still
// have the name.
Outcome<bool, FileError> IncomingFile::commit_existing(bool durable) {
  struct stat held {
  }, named{};
  Outcome<bool, FileError> done = true;
  if (fstat(existing_.get(), &held) != 0 ||
      fstatat(directory_.get(), leaf_.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0 ||
      held.st_dev != named.st_dev || held.st_ino != named.st_ino) {
    done = fail(FileError{Status::InputOutput,
                          shown_ + ": was changed by another process during the transfer"});
  } else {
    done = give_attributes(existing_.get(), true);
    if (done.ok() && durable && fsync(existing_.get()) != 0) done = fail(file_error(errno, shown_));
  }
  discard();
  return done;
}

Outcome<bool, FileError> IncomingFile::begin_at(std::uint64_t offset) {
  if (existing_ && offset == is_.size) return true;
  existing_ = FileDescriptor();
  if (ftruncate(fd_.get(), static_cast<off_t>(offset)) == 0) return true;
  return fail(file_error(errno, shown_));
}

void IncomingFile::leave() {
  struct stat st {};
  if (resumable_ && !temporary_.empty() && fstat(fd_.get(), &st) == 0 && st.st_size > 0) {
    temporary_.clear();
  }
  discard();
}

void IncomingFile::discard() {
  if (!temporary_.empty()) unlinkat(directory_.get(), temporary_.c_str(), 0);
  temporary_.clear();
  fd_ = FileDescriptor();
  existing_ = FileDescriptor();
  directory_ = FileDescriptor();
}

}  // namespace urnic::cli
