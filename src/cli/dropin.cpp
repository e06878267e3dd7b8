#include "cli/dropin.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <sstream>
#include <string_view>
#include <vector>

#include "port/fd.h"

#ifndef URNIC_LIBDIR
#define URNIC_LIBDIR "lib"
#endif

namespace urnic::cli {
namespace {

constexpr std::array<const char*, 2> kLibraries{"libibverbs.so.1", "librdmacm.so.1"};
// This string occurs only in libibverbs: a program that contains it has the library linked in
// statically.
constexpr std::string_view kInside = "libibverbs: Warning: ";

// Recognizes the library by its name, also renamed copies: Python wheels contain names like
// libibverbs-1de1263b.so.1.
bool is_verbs_library(const std::string& file) {
  for (const std::string_view begin : {"libibverbs", "librdmacm"}) {
    const char after = file.size() > begin.size() ? file[begin.size()] : '\0';
    if (file.starts_with(begin) && (after == '.' || after == '-')) return true;
  }
  return false;
}

std::string real_path(const std::string& path) {
  char* p = realpath(path.c_str(), nullptr);
  if (p == nullptr) return {};
  std::string out = p;
  free(p);
  return out;
}

bool read_at(int fd, void* to, std::size_t n, std::uint64_t at) {
  return pread(fd, to, n, static_cast<off_t>(at)) == static_cast<ssize_t>(n);
}

struct Program {
  enum class Kind : std::uint8_t {
    Other,   // a script, which has an interpreter of its own, or a file that cannot be read
    Narrow,  // 32-bit ELF
    Static,
    Dynamic,
  };
  Kind kind = Kind::Other;
  std::string linker;  // the dynamic linker that a dynamic program requests
  bool has_verbs_inside = false;
};

bool contains(int fd, std::string_view text) {
  struct stat s;
  if (fstat(fd, &s) != 0 || s.st_size <= 0) return false;
  const auto size = static_cast<std::size_t>(s.st_size);
  void* const all = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (all == MAP_FAILED) return false;
  const bool found = memmem(all, size, text.data(), text.size()) != nullptr;
  munmap(all, size);
  return found;
}

Program look_at(const std::string& file) {
  using Kind = Program::Kind;
  const port::Fd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  Elf64_Ehdr head;
  if (fd.get() < 0 || !read_at(fd.get(), &head, sizeof head, 0)) return {};
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return {};
  if (head.e_ident[EI_CLASS] != ELFCLASS64) return {Kind::Narrow, {}, false};
  Program program{Kind::Static, {}, contains(fd.get(), kInside)};
  for (unsigned i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr p;
    if (!read_at(fd.get(), &p, sizeof p, head.e_phoff + std::uint64_t{i} * sizeof p)) return {};
    if (p.p_type != PT_INTERP || p.p_filesz == 0 || p.p_filesz > 4096) continue;
    std::string name(p.p_filesz, '\0');
    if (!read_at(fd.get(), name.data(), name.size(), p.p_offset)) return {};
    program.kind = Kind::Dynamic;
    program.linker = name.c_str();
  }
  return program;
}

// Runs the dynamic linker to list the libraries it would load, without running the program.
std::string listing(const std::string& linker, const std::string& file) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 1);
    const int nowhere = open("/dev/null", O_WRONLY);
    if (nowhere >= 0) dup2(nowhere, 2);
    execl(linker.c_str(), linker.c_str(), "--list", file.c_str(), nullptr);
    _exit(127);
  }
  close(ends[1]);
  std::string out;
  std::array<char, 4096> part;
  ssize_t n;
  while (child > 0 &&
         ((n = read(ends[0], part.data(), part.size())) > 0 || (n < 0 && errno == EINTR))) {
    if (n > 0) out.append(part.data(), static_cast<std::size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  if (child > 0) waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? out : "";
}

// Finds a line "libibverbs.so.1 => /usr/lib/.../libibverbs.so.1 (0x...)" where one of the two
// libraries is outside `folder`; empty if there is none.
std::string foreign_library(const std::string& list, const std::string& folder) {
  std::istringstream lines(list);
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string name, path, arrow;
    words >> name >> arrow >> path;
    if (arrow != "=>") path = name;  // preloaded, or linked by path
    const std::string file = name.substr(name.rfind('/') + 1);
    if (!is_verbs_library(file)) continue;
    const std::string real = real_path(path);
    if (real.substr(0, real.rfind('/')) != folder) return path;
  }
  return {};
}

}  // namespace

std::string dropin_folder() {
  const std::string self = real_path("/proc/self/exe");
  const std::string bin = self.substr(0, self.rfind('/'));
  for (const char* lib : {URNIC_LIBDIR, "lib"}) {
    std::string folder = real_path(bin + "/../" + lib + "/urnic/dropin");
    if (!folder.empty() && access((folder + "/" + kLibraries[0]).c_str(), R_OK) == 0) return folder;
  }
  return {};
}

std::string sockets_library(const std::string& folder) {
  return folder + "/librspreload.so";
}

std::string cannot_be_run(const std::string& file, const std::string& folder) {
  struct stat s;
  if (stat(file.c_str(), &s) != 0 || access(file.c_str(), X_OK) != 0) {
    return file + ": " + std::strerror(errno);
  }
  if ((s.st_mode & (S_ISUID | S_ISGID)) != 0) {
    return file + " is set-uid or set-gid: the dynamic linker ignores LD_PRELOAD for it";
  }
  if (getxattr(file.c_str(), "security.capability", nullptr, 0) > 0) {
    return file + " has file capabilities: the dynamic linker ignores LD_PRELOAD for it";
  }
  const Program program = look_at(file);
  if (program.kind == Program::Kind::Narrow) {
    return file + " is a 32-bit program: urnic's libraries are 64-bit only";
  }
  if (program.has_verbs_inside) {
    return file + " has libibverbs linked statically: it cannot use urnic's devices";
  }
  const std::string& linker = program.linker;
  if (linker.empty()) return {};
  std::string other = foreign_library(listing(linker, file), folder);
  if (other.empty()) return {};
  // The program has folders of its own (RPATH), which the linker searches before ours.
  std::string preload = folder + "/" + kLibraries[1] + ":" + folder + "/" + kLibraries[0];
  const char* old = getenv("LD_PRELOAD");
  if (old != nullptr && *old != 0) preload += ":" + std::string(old);
  setenv("LD_PRELOAD", preload.c_str(), 1);
  other = foreign_library(listing(linker, file), folder);
  if (other.empty()) return {};
  return file + " would load " + other + " instead of urnic's library; remove its library path";
}

}  // namespace urnic::cli
