#include "cli/transfer/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace urnic::cli {

Outcome<FileDescriptor, FileError> walk_to(int folder, const std::string& name, std::string* leaf) {
  FileDescriptor at(openat(folder, ".", O_DIRECTORY | O_RDONLY | O_CLOEXEC));
  if (!at) return fail(file_error(errno, name));
  std::size_t from = 0;
  for (;;) {
    const std::size_t slash = name.find('/', from);
    if (slash == std::string::npos) break;
    const std::string part = name.substr(from, slash - from);
    // O_NOFOLLOW: a symbolic link might lead out of the folder.
    FileDescriptor next(
        openat(at.get(), part.c_str(), O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC));
    if (!next) {
      struct stat st {};
      const int why = errno;  // for a link this is ENOTDIR too
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
  auto directory = walk_to(folder, name, &leaf);
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
  f.is = attributes_of(st);
  return f;
}

FileAttributes attributes_of(const struct stat& st) {
  return {static_cast<std::uint64_t>(st.st_size),
          static_cast<std::uint64_t>(st.st_blocks) * 512,
          st.st_mode & 0777,
          {st.st_mtim.tv_sec, static_cast<std::uint32_t>(st.st_mtim.tv_nsec)}};
}

Outcome<bool, FileError> make_folder(int folder, const std::string& name,
                                     std::uint32_t permissions) {
  std::string leaf;
  auto directory = walk_to(folder, name, &leaf);
  if (!directory.ok()) return fail(directory.error());
  if (mkdirat(directory->get(), leaf.c_str(), (permissions & 0777) | 0700) == 0) return true;
  const int why = errno;
  struct stat st {};
  if (why != EEXIST || fstatat(directory->get(), leaf.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
    return fail(file_error(why, name));
  }
  if (S_ISDIR(st.st_mode)) return false;
  return fail(file_error(S_ISLNK(st.st_mode) ? ELOOP : ENOTDIR, name));
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

}  // namespace urnic::cli
