#include "cli/transfer/local_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace urnic::cli {
namespace {

constexpr std::size_t kPiece = 1 << 20;

// Splits a local path into its folder and its last component.
std::pair<std::string, std::string> split_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {"", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

std::string because(const std::string& what, int why) {
  return what + ": " + (why == EINTR ? "stopped" : std::strerror(why));
}

// Creates a temporary file without a name.
Outcome<FileDescriptor, std::string> unnamed_file() {
  const char* named = std::getenv("TMPDIR");
  const std::string folder = named != nullptr && *named == '/' ? named : "/tmp";
  FileDescriptor fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd) return fd;
  std::string path = folder + "/urnic-put-XXXXXX";
  fd = FileDescriptor(mkostemp(path.data(), O_CLOEXEC));
  if (!fd) return fail(because("cannot create a temporary file in " + folder, errno));
  unlink(path.c_str());
  return fd;
}

// Copies all of standard input; the error is one line.
std::string copy_input(int to) {
  std::vector<char> piece(kPiece);
  for (;;) {
    const ssize_t n = ::read(STDIN_FILENO, piece.data(), piece.size());
    if (n == 0) return {};
    if (n < 0) return because("standard input", errno);
    for (ssize_t done = 0; done < n;) {
      const ssize_t w = ::write(to, piece.data() + done, static_cast<std::size_t>(n - done));
      if (w <= 0)
        return because("cannot copy standard input to a temporary file", w == 0 ? EIO : errno);
      done += w;
    }
  }
}

}  // namespace

Outcome<OpenedFile, std::string> open_local(const std::string& path) {
  OpenedFile f;
  // Non-blocking: a FIFO without a writer is refused below instead of blocking here.
  f.fd = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!f.fd) return fail(path + ": " + std::strerror(errno));
  struct stat st {};
  if (fstat(f.fd.get(), &st) != 0) return fail(path + ": " + std::strerror(errno));
  if (S_ISDIR(st.st_mode)) return fail(path + ": a folder, not a regular file");
  if (!S_ISREG(st.st_mode)) {
    return fail(path + ": not a regular file (use '-' to read standard input)");
  }
  f.is = attributes_of(st);
  return f;
}

Outcome<LocalSource, std::string> LocalSource::open(const std::string& path) {
  LocalSource s;
  s.path_ = s.shown_ = path;
  if (path != "-") {
    if (auto f = open_local(path); !f.ok()) return fail(f.error());
    return s;
  }
  s.shown_ = "standard input";
  struct stat st {};
  if (fstat(STDIN_FILENO, &st) != 0) return fail(because(s.shown_, errno));
  if (S_ISDIR(st.st_mode)) return fail(s.shown_ + ": is a folder");
  if (S_ISREG(st.st_mode) && lseek(STDIN_FILENO, 0, SEEK_CUR) == 0) {
    s.copy_ = FileDescriptor(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
    if (!s.copy_) return fail(because(s.shown_, errno));
    return s;
  }
  auto copy = unnamed_file();
  if (!copy.ok()) return fail(copy.error());
  s.copy_ = std::move(*copy);
  if (const std::string wrong = copy_input(s.copy_.get()); !wrong.empty()) return fail(wrong);
  return s;
}

Outcome<OpenedFile, std::string> LocalSource::again() const {
  if (!copy_) return open_local(path_);
  OpenedFile f;
  f.fd = FileDescriptor(fcntl(copy_.get(), F_DUPFD_CLOEXEC, 3));
  struct stat st {};
  if (!f.fd || fstat(f.fd.get(), &st) != 0) return fail(because(shown_, errno));
  f.is = attributes_of(st);
  f.is.permissions = 0644;
  f.is.modified = {};
  return f;
}

Outcome<LocalDestination, std::string> LocalDestination::open(const std::string& path) {
  LocalDestination d;
  d.shown_ = path;
  if (path == "-") {
    d.shown_ = "standard output";
    d.stream_ = FileDescriptor(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
    if (!d.stream_) return fail(because(d.shown_, errno));
    return d;
  }
  std::string at = path;
  struct stat st {};
  if (lstat(path.c_str(), &st) == 0) {
    if (S_ISLNK(st.st_mode)) {
      if (stat(path.c_str(), &st) != 0) {
        return fail(path + ": a broken symbolic link (" + std::strerror(errno) +
                    "); remove it or name another file");
      }
      if (S_ISREG(st.st_mode)) {
        char* real = realpath(path.c_str(), nullptr);
        if (real == nullptr) return fail(because(path, errno));
        at = real;
        std::free(real);
      }
    }
    if (S_ISDIR(st.st_mode)) return fail(path + ": Is a directory");
    if (S_ISSOCK(st.st_mode)) return fail(path + ": is a socket; name another file");
    if (!S_ISREG(st.st_mode)) {
      d.stream_ = FileDescriptor(::open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC));
      if (!d.stream_) return fail(because(path, errno));
      return d;
    }
  }
  const auto [folder, leaf] = split_path(at);
  if (leaf.empty()) return fail(path + ": names a folder, not a file");
  auto opened = open_folder(folder);
  if (!opened.ok()) return fail(opened.error().text);
  d.folder_ = std::move(*opened);
  d.leaf_ = leaf;
  d.prefix_ = folder.empty() || folder == "/" ? folder : folder + "/";
  return d;
}

Outcome<LocalDestination, std::string> LocalDestination::below(int folder, const std::string& shown,
                                                               const std::string& name) {
  LocalDestination d;
  d.folder_ = FileDescriptor(fcntl(folder, F_DUPFD_CLOEXEC, 3));
  if (!d.folder_) return fail(because(shown, errno));
  d.leaf_ = name;
  d.prefix_ = shown.back() == '/' ? shown : shown + "/";
  d.shown_ = d.prefix_ + name;
  return d;
}

}  // namespace urnic::cli
