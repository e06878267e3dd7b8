// The local ends of put and get as a person names them: a path, or "-" for standard input and
// output. Links are followed, as cp does.
#pragma once

#include <cstdint>
#include <string>

#include "cli/transfer/folder.h"

namespace urnic::cli {

// The file `path` for put: a regular one that may be read, or one line why not.
Outcome<OpenedFile, std::string> open_local(const std::string& path);

// What put reads, as often as it is repeated. Standard input that is no regular file is first
// copied to a temporary file without a name, since a put begins with the size.
class LocalSource {
 public:
  static Outcome<LocalSource, std::string> open(const std::string& path);
  Outcome<OpenedFile, std::string> again() const;
  // As errors call it.
  const std::string& shown() const { return shown_; }

 private:
  std::string path_, shown_;
  FileDescriptor copy_;  // of standard input
};

// Where get writes. A regular file, or a name that is free, gets its content complete or not at
// all. A device, a FIFO or standard output is written to as the bytes come and never replaced.
class LocalDestination {
 public:
  static Outcome<LocalDestination, std::string> open(const std::string& path);
  // `name` below a folder, which `shown` is called: no link is followed on the way there.
  static Outcome<LocalDestination, std::string> below(int folder, const std::string& shown,
                                                      const std::string& name);
  bool is_stream() const { return static_cast<bool>(stream_); }
  int stream() const { return stream_.get(); }
  int folder() const { return folder_.get(); }
  const std::string& leaf() const { return leaf_; }
  // The folder as errors show it, with its slash.
  const std::string& prefix() const { return prefix_; }
  const std::string& shown() const { return shown_; }

 private:
  FileDescriptor stream_, folder_;
  std::string leaf_, prefix_, shown_;
};

}  // namespace urnic::cli
