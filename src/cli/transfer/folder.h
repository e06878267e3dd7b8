// The exported folder of a target, and what is in it (E-38). Names are followed component by
// component without symbolic links, so that none leaves the folder. Files that come into it:
// cli/transfer/incoming_file.h.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/file_descriptor.h"
#include "cli/transfer/storage_message.h"

namespace urnic::cli {

// What went wrong with a file, for the other end and for a person.
struct FileError {
  Status status = Status::InputOutput;
  std::string text;  // "file: No space left on device"
};
FileError file_error(int errno_value, std::string_view what);

// What is kept of a file beside its content.
struct FileAttributes {
  std::uint64_t size = 0;
  std::uint64_t allocated = 0;  // bytes that its blocks take: less than its size where it has holes
  std::uint32_t permissions = 0;  // the nine bits
  FileTime modified;
};

struct OpenedFile {
  FileDescriptor fd;
  FileAttributes is;
};
// Of an open file.
FileAttributes attributes_of(const struct stat& st);

// The folder a name lies in, and its last component.
Outcome<FileDescriptor, FileError> walk_to(int folder, const std::string& name, std::string* leaf);

// A regular file for reading. Never blocks on a pipe or device put in its place.
Outcome<OpenedFile, FileError> open_for_reading(int folder, const std::string& name);

// Opens the folder of `path`; "" of a plain name is the current one.
Outcome<FileDescriptor, FileError> open_folder(const std::string& path);
// Makes the folder `name` (checked by check_name), which its owner may always use; false when it is
// there already.
Outcome<bool, FileError> make_folder(int folder, const std::string& name,
                                     std::uint32_t permissions);
// `name` and what is below it, "" is all: regular files and folders, by name, at most `limit`.
Outcome<std::vector<ListEntry>, FileError> list_folder(int folder, const std::string& name,
                                                       std::size_t limit);

// How much there is: regular files by their sizes, folders as files without any.
struct Usage {
  std::uint64_t bytes = 0, files = 0;
  bool operator==(const Usage&) const = default;
};
// All below the folder, whatever their names, but for files that are on their way. Links are not
// followed; folders are, to a depth of 64, which is as deep as names are (kMaxComponents).
Usage folder_usage(int folder);
// Of the regular file `name` (checked by check_name), 0 of a folder; nullopt when there is neither.
std::optional<std::uint64_t> size_of_file(int folder, const std::string& name);

}  // namespace urnic::cli
