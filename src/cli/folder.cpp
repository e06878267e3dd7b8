#include "cli/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace urnic::cli {
namespace {

constexpr unsigned kMaxDepth = 16;     // of a listing
constexpr unsigned kMaxMeasured = 64;  // of folder_usage

// The folder a name lies in, and its last component.
Outcome<FileDescriptor, FileError> walk(int folder, const std::string& name, std::string* leaf) {
  FileDescriptor at(openat(folder, ".", O_DIRECTORY | O_RDONLY | O_CLOEXEC));
  if (!at) return fail(file_error(errno, name));
  std::size_t from = 0;
  for (;;) {
    const std::size_t slash = name.find('/', from);
    if (slash == std::string::npos) break;
    const std::string part = name.substr(from, slash - from);
    // O_NOFOLLOW: a link might lead out of the folder.
    FileDescriptor next(
        openat(at.get(), part.c_str(), O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC));
    if (!next) {
      struct stat st {};
      const int why = errno;  // of a link, ENOTDIR as well
      const bool link =
          fstatat(at.get(), part.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
      return fail(file_error(link ? ELOOP : why, name.substr(0, slash)));
    }
    at = std::move(next);
    from = slash + 1;
  }
  *leaf = name.substr(from);
  return at;
}

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

// Who uses a temporary name holds the lock of its file. Where nobody does, its owner was killed:
// the name goes. The lock is asked for before the name is looked at again, so that it is the same
// file.
void take_away_left(int folder, const std::string& temporary) {
  const FileDescriptor left(
      openat(folder, temporary.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat held {
  }, named{};
  if (!left || flock(left.get(), LOCK_EX | LOCK_NB) != 0) return;
  if (fstat(left.get(), &held) != 0 ||
      fstatat(folder, temporary.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0) {
    return;
  }
  if (held.st_dev == named.st_dev && held.st_ino == named.st_ino && S_ISREG(held.st_mode)) {
    unlinkat(folder, temporary.c_str(), 0);
  }
}

// Whether a complete file may take this name: nothing, or a regular file that it replaces.
Outcome<bool, FileError> may_take(int directory, const std::string& leaf,
                                  const std::string& shown) {
  struct stat st {};
  if (fstatat(directory, leaf.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return true;
  if (S_ISREG(st.st_mode)) return true;
  if (S_ISDIR(st.st_mode)) return fail(file_error(EISDIR, shown));
  if (S_ISLNK(st.st_mode)) return fail(file_error(ELOOP, shown));
  return fail(FileError{Status::NotAFile, shown + ": not a regular file, and is not replaced"});
}

// The file system has no room for so much. Some do not say how much they have.
bool no_room(int fd, std::uint64_t size) {
  struct statvfs fs {};
  if (fstatvfs(fd, &fs) != 0 || fs.f_blocks == 0 || fs.f_frsize == 0) return false;
  const std::uint64_t blocks = geteuid() == 0 ? fs.f_bfree : fs.f_bavail;
  return size / fs.f_frsize > blocks;
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

std::string temporary_name(std::string_view leaf) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : leaf) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return name_of(hash);
}

FileError file_error(int e, std::string_view what) {
  Status s = Status::InputOutput;
  switch (e) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
      s = Status::NotFound;
      break;
    case EACCES:
    case EPERM:
      s = Status::Permission;
      break;
    case EROFS:
      s = Status::ReadOnly;
      break;
    case ENOSPC:
    case EDQUOT:
      s = Status::NoSpace;
      break;
    case EFBIG:
      s = Status::TooLarge;
      break;
    case EISDIR:
      s = Status::NotAFile;
      break;
    default:
      break;
  }
  return {s, std::string(what) + ": " +
                 (e == ELOOP ? "symbolic links are not followed" : std::strerror(e))};
}

Outcome<OpenedFile, FileError> open_for_reading(int folder, const std::string& name) {
  std::string leaf;
  auto directory = walk(folder, name, &leaf);
  if (!directory.ok()) return fail(directory.error());
  OpenedFile f;
  f.fd = FileDescriptor(
      openat(directory->get(), leaf.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!f.fd) return fail(file_error(errno, name));
  struct stat st {};
  if (fstat(f.fd.get(), &st) != 0) return fail(file_error(errno, name));
  if (!S_ISREG(st.st_mode)) {
    return fail(FileError{Status::NotAFile, name + ": not a regular file"});
  }
  f.size = static_cast<std::uint64_t>(st.st_size);
  f.permissions = st.st_mode & 0777;
  return f;
}

Outcome<IncomingFile, FileError> IncomingFile::create(int folder, const std::string& name,
                                                      std::uint64_t size,
                                                      std::uint32_t permissions) {
  IncomingFile f;
  f.shown_ = name;
  if (size > static_cast<std::uint64_t>(INT64_MAX)) return fail(file_error(EFBIG, name));
  auto directory = walk(folder, name, &f.leaf_);
  if (!directory.ok()) return fail(directory.error());
  f.directory_ = std::move(*directory);
  if (auto free = may_take(f.directory_.get(), f.leaf_, name); !free.ok()) {
    return fail(free.error());
  }
  const mode_t mode = static_cast<mode_t>(permissions & 0777);
  if (access("/proc/self/fd", X_OK) == 0) {  // commit() names it through there
    f.fd_ = FileDescriptor(openat(f.directory_.get(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode));
  }
  // As the first choice a name that the next file of this name looks for, if we are killed.
  take_away_left(f.directory_.get(), temporary_name(f.leaf_));
  for (const std::string& temporary : {temporary_name(f.leaf_), random_name()}) {
    if (f.fd_) break;
    f.fd_ = FileDescriptor(openat(f.directory_.get(), temporary.c_str(),
                                  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (f.fd_) f.temporary_ = temporary;
  }
  if (!f.fd_) return fail(file_error(errno, name));
  f.locked_ = flock(f.fd_.get(), LOCK_EX | LOCK_NB) == 0;
  // A full disk is better found now than at the end.
  if (no_room(f.fd_.get(), size)) return fail(file_error(ENOSPC, name));
  return f;
}

IncomingFile& IncomingFile::operator=(IncomingFile&& o) noexcept {
  std::swap(directory_, o.directory_);
  std::swap(fd_, o.fd_);
  std::swap(leaf_, o.leaf_);
  std::swap(temporary_, o.temporary_);
  std::swap(shown_, o.shown_);
  std::swap(locked_, o.locked_);
  return *this;
}

Outcome<bool, FileError> IncomingFile::commit(std::uint64_t size, bool durable) {
  const auto failed = [&] {
    const int why = errno;
    discard();
    return fail(file_error(why, shown_));
  };
  if (ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) return failed();
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
    // linkat cannot replace a file, rename cannot name an unnamed one: both in turn. Who dies
    // between them leaves the other name, which the next file of this name takes away.
    if (errno != EEXIST) return fail(file_error(errno, shown_));
    if (locked_ && link_as(temporary_name(leaf_))) {
      temporary_ = temporary_name(leaf_);
    } else if (const std::string name = random_name(); link_as(name)) {
      temporary_ = name;
    } else {
      return fail(file_error(errno, shown_));
    }
  }
  // Once more: it may have changed while the file came.
  if (auto free = may_take(folder, leaf_, shown_); !free.ok()) return free;
  if (renameat(folder, temporary_.c_str(), folder, leaf_.c_str()) != 0) {
    return fail(file_error(errno, shown_));
  }
  temporary_.clear();
  return true;
}

void IncomingFile::discard() {
  if (!temporary_.empty()) unlinkat(directory_.get(), temporary_.c_str(), 0);
  temporary_.clear();
  fd_ = FileDescriptor();
  directory_ = FileDescriptor();
}

Outcome<FileDescriptor, FileError> open_folder(const std::string& path) {
  const std::string& shown = path.empty() ? "." : path;
  FileDescriptor fd(open(shown.c_str(), O_DIRECTORY | O_RDONLY | O_CLOEXEC));
  if (!fd) {
    const int why = errno;
    return fail(FileError{file_error(why, shown).status, shown + ": " + std::strerror(why)});
  }
  return fd;
}

namespace {

void list_into(int folder, const std::string& prefix, unsigned depth, std::size_t limit,
               std::vector<ListEntry>* out) {
  const int fd = openat(folder, ".", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
  DIR* dir = fd < 0 ? nullptr : fdopendir(fd);
  if (dir == nullptr) {
    if (fd >= 0) close(fd);
    return;
  }
  while (out->size() < limit) {
    const dirent* e = readdir(dir);
    if (e == nullptr) break;
    const std::string name = e->d_name;
    struct stat st {};
    if (!check_name(prefix + name).empty()) continue;
    if (fstatat(fd, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISREG(st.st_mode)) {
      out->push_back({prefix + name, static_cast<std::uint64_t>(st.st_size), st.st_mtime});
    } else if (S_ISDIR(st.st_mode) && depth < kMaxDepth) {
      const FileDescriptor below(
          openat(fd, name.c_str(), O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC));
      if (below) list_into(below.get(), prefix + name + "/", depth + 1, limit, out);
    }
  }
  closedir(dir);
}

void measure_into(int folder, unsigned depth, Usage* out) {
  const int fd = openat(folder, ".", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
  DIR* dir = fd < 0 ? nullptr : fdopendir(fd);
  if (dir == nullptr) {
    if (fd >= 0) close(fd);
    return;
  }
  while (const dirent* e = readdir(dir)) {
    const std::string_view name = e->d_name;
    struct stat st {};
    if (name == "." || name == ".." || name.starts_with(kTemporaryPrefix)) continue;
    if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISREG(st.st_mode)) {
      out->octets += static_cast<std::uint64_t>(st.st_size);
      ++out->files;
    } else if (S_ISDIR(st.st_mode) && depth < kMaxMeasured) {
      const FileDescriptor below(
          openat(fd, e->d_name, O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC));
      if (below) measure_into(below.get(), depth + 1, out);
    }
  }
  closedir(dir);
}

}  // namespace

std::vector<ListEntry> list_folder(int folder, std::size_t limit) {
  std::vector<ListEntry> out;
  list_into(folder, "", 0, limit, &out);
  std::sort(out.begin(), out.end(),
            [](const ListEntry& a, const ListEntry& b) { return a.name < b.name; });
  return out;
}

Usage folder_usage(int folder) {
  Usage all;
  measure_into(folder, 0, &all);
  return all;
}

std::optional<std::uint64_t> size_of_file(int folder, const std::string& name) {
  std::string leaf;
  const auto directory = walk(folder, name, &leaf);
  struct stat st {};
  if (!directory.ok() || fstatat(directory->get(), leaf.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISREG(st.st_mode)) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(st.st_size);
}

}  // namespace urnic::cli
