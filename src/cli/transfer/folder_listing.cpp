// Lists the content of a folder and computes its usage.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "cli/transfer/folder.h"

namespace urnic::cli {
namespace {

ListEntry entry_of(const std::string& name, const struct stat& st) {
  const bool folder = S_ISDIR(st.st_mode);
  return {name, folder ? 0 : static_cast<std::uint64_t>(st.st_size), st.st_mtime, folder,
          st.st_mode & 0777};
}

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
      out->push_back(entry_of(prefix + name, st));
    } else if (S_ISDIR(st.st_mode) && depth < kMaxComponents) {
      out->push_back(entry_of(prefix + name, st));
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
      out->bytes += static_cast<std::uint64_t>(st.st_size);
      ++out->files;
    } else if (S_ISDIR(st.st_mode)) {
      ++out->files;
      if (depth >= kMaxComponents) continue;
      const FileDescriptor below(
          openat(fd, e->d_name, O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC));
      if (below) measure_into(below.get(), depth + 1, out);
    }
  }
  closedir(dir);
}

}  // namespace

Outcome<std::vector<ListEntry>, FileError> list_folder(int folder, const std::string& name,
                                                       std::size_t limit) {
  std::vector<ListEntry> out;
  if (name.empty()) {
    list_into(folder, "", 0, limit, &out);
  } else {
    std::string leaf;
    auto directory = walk_to(folder, name, &leaf);
    if (!directory.ok()) return fail(directory.error());
    struct stat st {};
    if (fstatat(directory->get(), leaf.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
      return fail(file_error(errno, name));
    }
    if (S_ISLNK(st.st_mode)) return fail(file_error(ELOOP, name));
    if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) out.push_back(entry_of(name, st));
    if (S_ISDIR(st.st_mode)) {
      const FileDescriptor below(
          openat(directory->get(), leaf.c_str(), O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC));
      if (!below) return fail(file_error(errno, name));
      const auto depth = static_cast<unsigned>(std::count(name.begin(), name.end(), '/')) + 1;
      list_into(below.get(), name + "/", depth, limit, &out);
    }
  }
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
  const auto directory = walk_to(folder, name, &leaf);
  struct stat st {};
  if (!directory.ok() || fstatat(directory->get(), leaf.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0 ||
      !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))) {
    return std::nullopt;
  }
  if (S_ISDIR(st.st_mode)) return 0;
  return static_cast<std::uint64_t>(st.st_size);
}

}  // namespace urnic::cli
