#include "cli/sysfs_view.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <system_error>
#include <vector>

#include "cli/runtime.h"
#include "cli/xxh128.h"
#include "counters/files.h"
#include "urnic/stats.h"

namespace urnic::cli {
namespace {

namespace fs = std::filesystem;

Error trouble(const std::string& what, int error) {
  return {Errc::io, "--sysfs: " + what + ": " + std::strerror(error)};
}

// Runs in the child; the exit status is an errno value.
[[noreturn]] void write_and_exit(const std::string& library, const std::string& to,
                                 const std::map<std::string, std::string>& variables) {
  restore_signals();
  for (const auto& [name, value] : variables) {
    if (name.starts_with("URNIC_")) setenv(name.c_str(), value.c_str(), 1);
  }
  void* dropin = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (dropin == nullptr) {
    complain("run", dlerror());
    _exit(ELIBACC);
  }
  auto* write_tree = reinterpret_cast<int (*)(const char*)>(dlsym(dropin, "urnic_write_sysfs"));
  _exit(write_tree == nullptr ? ELIBBAD : write_tree(to.c_str()));
}

int written_by_child(const std::string& library, const std::string& to,
                     const std::map<std::string, std::string>& variables) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) write_and_exit(library, to, variables);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return errno;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

void add_text(Xxh128& hash, const std::string& text) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.c_str());
  hash.add(std::span(bytes, text.size() + 1));  // includes the terminating zero byte
}

// Hashes names and contents in sorted order, independent of the order in which the folder lists
// them.
std::string name_by_content(const fs::path& tree) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(tree)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  Xxh128 hash;
  for (const fs::path& file : files) {
    add_text(hash, file.lexically_relative(tree).string());
    if (!fs::is_regular_file(fs::symlink_status(file))) continue;
    std::ifstream in(file, std::ios::binary);
    add_text(hash, {std::istreambuf_iterator<char>(in), {}});
  }
  return "sysfs-" + to_hex(hash.finish()).substr(0, 16);
}

// Deletes the tree at the end of the scope unless it was renamed.
struct Unfinished {
  fs::path path;
  ~Unfinished() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

Result<std::string> keep(const Unfinished& tree, const fs::path& folder) {
  const fs::path kept = folder / name_by_content(tree.path);
  // If a tree with the same content already exists, that one is used.
  if (rename(tree.path.c_str(), kept.c_str()) != 0 && errno != ENOTEMPTY && errno != EEXIST) {
    return trouble(kept.string(), errno);
  }
  return kept.string();
}

}  // namespace

Result<std::string> write_sysfs(const std::string& folder,
                                const std::map<std::string, std::string>& variables) {
  const std::string own = stats_directory();
  if (mkdir(own.c_str(), 0700) != 0 && errno != EEXIST) return trouble(own, errno);
  struct stat s;
  if (lstat(own.c_str(), &s) != 0 || !S_ISDIR(s.st_mode) || s.st_uid != geteuid() ||
      (s.st_mode & 077) != 0) {
    return Error{
        Errc::permission,
        "--sysfs: " + own +
            " is accessible to other users; set XDG_RUNTIME_DIR to a folder of this user only"};
  }
  std::string name = own + "/sysfs.XXXXXX";
  if (mkdtemp(name.data()) == nullptr) return trouble(own, errno);
  const Unfinished tree{name};
  if (const int e = written_by_child(folder + "/liburnic-dropin.so", name, variables); e != 0) {
    return trouble("cannot write the device files", e);
  }
  try {
    auto kept = keep(tree, own);
    if (!kept) return kept;
    auto ok = refresh_counters(*kept);
    return ok || ok.error().code == Errc::unavailable ? kept : ok.error();
  } catch (const fs::filesystem_error& e) {
    return trouble(own, e.code().value());
  }
}

Result<void> refresh_counters(const std::string& tree) {
  const int e = counters::refresh_tree(tree.c_str(), stats_directory().c_str());
  if (e == 0) return {};
  if (e == EBUSY) {
    return Error{Errc::unavailable, "--sysfs: another process is writing counters"};
  }
  if (e == ENOENT || e == ENOTDIR) {
    return Error{Errc::invalid_argument,
                 "--sysfs " + tree + ": no such folder of urnic run --sysfs (see its --env)"};
  }
  return trouble("cannot write counters in " + tree, e);
}

std::string sysfs_library(const std::string& folder) {
  return folder + "/libsysfsview.so";
}

}  // namespace urnic::cli
