// Which paths libsysfsview.so leads elsewhere. No run-time of C++, as the library itself.
#pragma once

#include <cstddef>
#include <cstring>

namespace urnic::dropin {

// The variable that names the folder with the tree, as `urnic run --sysfs` sets it.
inline constexpr const char* kSysfsVariable = "URNIC_SYSFS";

// What a kernel shows of RDMA devices. The longer name first where one begins another.
inline constexpr const char* kShown[] = {"/sys/class/infiniband_verbs", "/sys/class/infiniband",
                                         "/dev/infiniband"};

// What all of them have in their names; a path without it is none of them.
inline constexpr const char* kInEach = "infiniband";

// Adds the steps of `path` to the absolute path in `out`, `n` bytes without a slash at its end:
// one slash for several, `.` is no step, and `..` takes the last one back, though it were a link
// (the folders above what is shown are none). The new length; `size` where there is no room.
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

// `path`, or where in the folder `root` it is: then written to `out`. `base` is what a relative
// path is relative to; null: it is left as it is, and so is a path that does not fit.
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

// The other way: a path in the folder `root` as the program knows it.
inline const char* shown_as(const char* path, const char* root) {
  const std::size_t before = root == nullptr ? 0 : std::strlen(root);
  const bool is_in = before != 0 && std::strncmp(path, root, before) == 0 && path[before] == '/';
  return is_in ? path + before : path;
}

}  // namespace urnic::dropin
