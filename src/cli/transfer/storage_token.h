// The token of a target (AC-8): a client that does not send it in the private data of its request
// is refused before anything is set up. The client sends a digest of the token, the same one each
// time, so anyone who can read the wire can replay it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "urnic/status.h"

namespace urnic::cli {

using TokenDigest = std::array<std::uint8_t, 32>;  // SHA-256

class StorageToken {
 public:
  // Reads the file completely, without the last line feed; 16 to 4096 bytes. Errors: io,
  // permission, invalid_argument, each one line.
  static Result<StorageToken> load(const std::string& path);
  static StorageToken of(std::string_view secret);

  const TokenDigest& digest() const { return digest_; }
  // Compares in constant time, so that the time does not reveal where they differ.
  bool is(std::span<const std::uint8_t, 32> said) const;

 private:
  TokenDigest digest_{};
};

}  // namespace urnic::cli
