// The local ends of put and get: a path, or "-" for standard input and output. Symbolic links are
// followed, as cp does.
#pragma once

#include <cstdint>
#include <string>

#include "cli/transfer/folder.h"

namespace urnic::cli {

// Opens the file `path` for put. It must be regular and readable; otherwise returns one line with
// the reason.
Outcome<OpenedFile, std::string> open_local(const std::string& path);

// The source of a put, which may be read repeatedly. Standard input that is not a regular file is
// first copied to an unnamed temporary file, since a put begins with the size.
class LocalSource {
 public:
  static Outcome<LocalSource, std::string> open(const std::string& path);
  Outcome<OpenedFile, std::string> again() const;
  // The name to use in errors.
  const std::string& shown() const { return shown_; }

 private:
  std::string path_, shown_;
  FileDescriptor copy_;  // of standard input
};

// The destination of a get. A regular file, or a free name, receives its content completely or not
// at all. A device, a FIFO or standard output is written to as the bytes arrive and is never
// replaced.
class LocalDestination {
 public:
  static Outcome<LocalDestination, std::string> open(const std::string& path);
  // `name` below a folder. `shown` is the folder's name in errors. Symbolic links in `name` are not
  // followed.
  static Outcome<LocalDestination, std::string> below(int folder, const std::string& shown,
                                                      const std::string& name);
  bool is_stream() const { return static_cast<bool>(stream_); }
  int stream() const { return stream_.get(); }
  int folder() const { return folder_.get(); }
  const std::string& leaf() const { return leaf_; }
  // The folder as errors show it, with a trailing slash.
  const std::string& prefix() const { return prefix_; }
  const std::string& shown() const { return shown_; }

 private:
  FileDescriptor stream_, folder_;
  std::string leaf_, prefix_, shown_;
};

}  // namespace urnic::cli
