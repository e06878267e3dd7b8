#include "cli/transfer/old_parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

#include "cli/transfer/incoming_file.h"
#include "cli/transfer/storage_message.h"

namespace urnic::cli {
namespace {

constexpr std::int64_t kDay = 24 * 60 * 60;
constexpr std::string_view kSuffix = ".part";

bool is_temporary(std::string_view name) {
  return name.size() > kTemporaryPrefix.size() + kSuffix.size() &&
         name.starts_with(kTemporaryPrefix) && name.ends_with(kSuffix);
}

std::size_t remove_in(int folder, std::int64_t now, bool below, unsigned depth) {
  std::size_t gone = 0;
  const int fd = openat(folder, ".", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
  DIR* dir = fd < 0 ? nullptr : fdopendir(fd);
  if (dir == nullptr) {
    if (fd >= 0) close(fd);
    return 0;
  }
  while (const dirent* e = readdir(dir)) {
    const std::string_view name = e->d_name;
    struct stat st {};
    if (name == "." || name == ".." || fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;
    }
    if (S_ISDIR(st.st_mode) && below && depth < kMaxComponents) {
      const FileDescriptor next(
          openat(fd, e->d_name, O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC));
      if (next) gone += remove_in(next.get(), now, below, depth + 1);
    } else if (S_ISREG(st.st_mode) && is_temporary(name) && st.st_uid == geteuid() &&
               now - st.st_mtime > kDaysOfAPart * kDay) {
      gone += take_away_left(fd, e->d_name) ? 1 : 0;
    }
  }
  closedir(dir);
  return gone;
}

}  // namespace

std::size_t remove_old_parts(int folder, std::int64_t now, bool below) {
  return remove_in(folder, now, below, 0);
}

}  // namespace urnic::cli
