// The paths that libsysfsview.so redirects. Needs no C++ run-time, like the library itself.
#pragma once

#include <cstddef>
#include <cstring>

namespace urnic::dropin {

// The variable with the path of the tree's folder; `urnic run --sysfs` sets it.
inline constexpr const char* kSysfsVariable = "URNIC_SYSFS";

// The paths where a kernel shows RDMA devices. If one name is a prefix of another, the longer comes
// first.
inline constexpr const char* kShown[] = {"/sys/class/infiniband_verbs", "/sys/class/infiniband",
                                         "/dev/infiniband"};

// A part that all of them contain; a path without it needs no further check.
inline constexpr const char* kInEach = "infiniband";

// Appends the components of `path` to the absolute path in `out`, which has `n` bytes and no slash
// at its end. Several slashes count as one, `.` is skipped, and `..` removes the last component,
// even if it is a link (the folders above the shown ones are not links). Returns the new length, or
// `size` if there is no room.
inline std::size_t add_steps(const char* path, char* out, std::size_t n, std::size_t size) {
  while (*path != 0) {
    const std::size_t step = std::strcspn(path, "/");
    if (step == 2 && path[0] == '.' && path[1] == '.') {
      while (n != 0 && out[--n] != '/') continue;
    } else if (step != 0 && !(step == 1 && path[0] == '.')) {
      if (n + 1 + step >= size) return size;
      out[n++] = '/';
      std::memcpy(out + n, path, step);
      n += step;
    }
    path += step;
    if (*path == '/') ++path;
  }
  return n;
}

// Returns `path`, or its place in the folder `root`, written to `out`. `base` is the folder of a
// relative path; if it is null, a relative path is not changed. A path that does not fit is not
// changed either.
inline const char* led(const char* path, const char* base, const char* root, char* out,
                       std::size_t size) {
  if (path == nullptr || root == nullptr || root[0] == 0) return path;
  const std::size_t before = std::strlen(root);
  if (before + 1 >= size) return path;
  char* own = out + before;
  const std::size_t room = size - before;
  std::size_t n = 0;
  if (path[0] != '/') {
    if (base == nullptr) return path;
    n = add_steps(base, own, n, room);
  }
  if (n < room) n = add_steps(path, own, n, room);
  if (n >= room) return path;
  own[n] = 0;
  for (const char* shown : kShown) {
    const std::size_t length = std::strlen(shown);
    if (std::strncmp(own, shown, length) != 0) continue;
    if (own[length] != 0 && own[length] != '/') continue;
    std::memcpy(out, root, before);
    return out;
  }
  return path;
}

// The opposite: converts a path in the folder `root` into the path that the program knows.
inline const char* shown_as(const char* path, const char* root) {
  const std::size_t before = root == nullptr ? 0 : std::strlen(root);
  const bool is_in = before != 0 && std::strncmp(path, root, before) == 0 && path[before] == '/';
  return is_in ? path + before : path;
}

}  // namespace urnic::dropin
