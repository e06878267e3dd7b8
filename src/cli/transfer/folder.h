// The exported folder of a target and its content (E-38). Paths are followed component by component
// without symbolic links, so that no name can leave the folder. For incoming files see
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

// A file error, for the other end and for the user.
struct FileError {
  Status status = Status::InputOutput;
  std::string text;  // "file: No space left on device"
};
FileError file_error(int errno_value, std::string_view what);

// The attributes of a file that are transferred besides its content.
struct FileAttributes {
  std::uint64_t size = 0;
  std::uint64_t allocated = 0;    // bytes of its blocks: less than its size if it has holes
  std::uint32_t permissions = 0;  // the nine permission bits
  FileTime modified;
};

struct OpenedFile {
  FileDescriptor fd;
  FileAttributes is;
};
// The attributes of an open file.
FileAttributes attributes_of(const struct stat& st);

// Opens the folder that contains `name` and sets *leaf to its last component.
Outcome<FileDescriptor, FileError> walk_to(int folder, const std::string& name, std::string* leaf);

// Opens a regular file for reading. Never blocks on a pipe or device with that name.
Outcome<OpenedFile, FileError> open_for_reading(int folder, const std::string& name);

// Opens the folder `path`; "" is the current folder.
Outcome<FileDescriptor, FileError> open_folder(const std::string& path);
// Creates the folder `name` (checked by check_name); its owner always has full access. False if it
// exists already.
Outcome<bool, FileError> make_folder(int folder, const std::string& name,
                                     std::uint32_t permissions);
// Lists `name` and everything below it ("" is all): regular files and folders, sorted by name, at
// most `limit`.
Outcome<std::vector<ListEntry>, FileError> list_folder(int folder, const std::string& name,
                                                       std::size_t limit);

// Space in use: regular files count with their sizes, folders as empty files.
struct Usage {
  std::uint64_t bytes = 0, files = 0;
  bool operator==(const Usage&) const = default;
};
// The usage of everything below the folder, whatever the names, except files still being
// transferred. Does not follow links. Descends to a depth of 64, the depth that names can have
// (kMaxComponents).
Usage folder_usage(int folder);
// The size of the regular file `name` (checked by check_name); 0 for a folder; nullopt if there is
// neither.
std::optional<std::uint64_t> size_of_file(int folder, const std::string& name);

}  // namespace urnic::cli
