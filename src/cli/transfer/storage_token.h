// The token of a target (AC-8): who does not say it in the private data of its request is refused
// before anything is set up. What is said is a digest of it, the same each time: whoever reads
// along on the wire can say it too.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "cli/sha256.h"
#include "urnic/status.h"

namespace urnic::cli {

class StorageToken {
 public:
  // From the first line to the end of the file, without the end of the last line; 16 to 4096
  // bytes. Errors: io, permission, invalid_argument, each one line.
  static Result<StorageToken> load(const std::string& path);
  static StorageToken of(std::string_view secret);

  const Digest& digest() const { return digest_; }
  // In a time that says nothing of where they differ.
  bool is(std::span<const std::uint8_t, 32> said) const;

 private:
  Digest digest_{};
};

}  // namespace urnic::cli
