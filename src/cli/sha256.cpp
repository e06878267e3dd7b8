#include "cli/sha256.h"

#include <cstdio>
#include <cstdlib>

#include <openssl/evp.h>

namespace urnic::cli {
namespace {

// libcrypto fails here only if it is out of memory or its installation is broken.
void require(int done) {
  if (done == 1) return;
  std::fputs("urnic: libcrypto cannot compute SHA-256\n", stderr);
  std::exit(1);
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* c) const {
  EVP_MD_CTX_free(c);
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  require(context_ != nullptr ? EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) : 0);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::add(std::span<const std::uint8_t> bytes) {
  require(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
}

Sha256 Sha256::copy() const {
  Sha256 other;
  require(EVP_MD_CTX_copy_ex(other.context_.get(), context_.get()));
  return other;
}

Digest Sha256::finish() {
  Digest d{};
  require(EVP_DigestFinal_ex(context_.get(), d.data(), nullptr));
  require(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
  return d;
}

std::string to_hex(const Digest& digest) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const std::uint8_t b : digest) {
    out += kHex[b >> 4];
    out += kHex[b & 15];
  }
  return out;
}

}  // namespace urnic::cli
