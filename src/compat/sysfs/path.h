// Which paths libsysfsview.so leads elsewhere. No run-time of C++, as the library itself.
#pragma once

#include <cstddef>
#include <cstring>

namespace urnic::compat {

// The variable that names the folder with the tree, as `urnic run --sysfs` sets it.
inline constexpr const char* kSysfsVariable = "URNIC_SYSFS";

// What a kernel shows of RDMA devices. The longer name first where one begins another.
inline constexpr const char* kShown[] = {"/sys/class/infiniband_verbs", "/sys/class/infiniband",
                                         "/dev/infiniband"};

// `path` with one slash for several; false where `out` has no room for it.
inline bool one_slash(const char* path, char* out, std::size_t size) {
  std::size_t n = 0;
  for (; *path != 0; ++path) {
    if (*path == '/' && n != 0 && out[n - 1] == '/') continue;
    if (n + 1 >= size) return false;
    out[n++] = *path;
  }
  out[n] = 0;
  return true;
}

// `path`, or where in the folder `root` it is: then written to `out`. A path that does not fit is
// left as it is.
inline const char* led(const char* path, const char* root, char* out, std::size_t size) {
  if (path == nullptr || path[0] != '/' || root == nullptr || root[0] == 0) return path;
  const std::size_t before = std::strlen(root);
  if (before + 1 >= size) return path;
  char* own = out + before;
  if (!one_slash(path, own, size - before)) return path;
  for (const char* shown : kShown) {
    const std::size_t n = std::strlen(shown);
    if (std::strncmp(own, shown, n) != 0 || (own[n] != 0 && own[n] != '/')) continue;
    std::memcpy(out, root, before);
    return out;
  }
  return path;
}

}  // namespace urnic::compat
