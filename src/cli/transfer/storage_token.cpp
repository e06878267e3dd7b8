#include "cli/transfer/storage_token.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include <sha2.h>

#include "cli/transfer/folder.h"

namespace urnic::cli {
namespace {

constexpr std::size_t kLeast = 16, kMost = 4096;
constexpr std::string_view kPurpose = "urnic storage token 1\n";

void add(SHA2_CTX* hash, std::string_view s) {
  SHA256Update(hash, reinterpret_cast<const std::uint8_t*>(s.data()), s.size());
}

}  // namespace

StorageToken StorageToken::of(std::string_view secret) {
  SHA2_CTX hash;
  SHA256Init(&hash);
  add(&hash, kPurpose);
  add(&hash, secret);
  StorageToken t;
  SHA256Final(t.digest_.data(), &hash);
  return t;
}

bool StorageToken::is(std::span<const std::uint8_t, 32> said) const {
  unsigned differing_bits = 0;
  for (std::size_t i = 0; i < said.size(); ++i) {
    differing_bits |= static_cast<unsigned>(digest_[i] ^ said[i]);
  }
  return differing_bits == 0;
}

Result<StorageToken> StorageToken::load(const std::string& path) {
  const auto cannot = [&](int why) {
    return Error{why == EACCES ? Errc::permission : Errc::io,
                 "--token-file " + path + ": " + std::strerror(why)};
  };
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return cannot(errno);
  std::array<char, kMost + 3> text{};
  std::size_t n = 0;
  while (n < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + n, text.size() - n);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot(errno);
    if (got == 0) break;
    n += static_cast<std::size_t>(got);
  }
  std::string_view secret(text.data(), n);
  if (secret.ends_with('\n')) secret.remove_suffix(1);
  if (secret.ends_with('\r')) secret.remove_suffix(1);
  if (secret.size() < kLeast || secret.size() > kMost) {
    return Error{Errc::invalid_argument,
                 "--token-file " + path + ": the token must have 16 to 4096 bytes"};
  }
  return of(secret);
}

}  // namespace urnic::cli
