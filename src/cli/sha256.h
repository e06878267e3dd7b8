// SHA-256 (FIPS 180-4) from OpenSSL's libcrypto; see docs/decisions.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

struct evp_md_ctx_st;

namespace urnic::cli {

using Digest = std::array<std::uint8_t, 32>;

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void add(std::span<const std::uint8_t> bytes);
  // A copy of the state: it has hashed the same bytes.
  Sha256 copy() const;
  // Ends the message and returns its digest; the object then begins a new message.
  Digest finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st*) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

std::string to_hex(const Digest& digest);

}  // namespace urnic::cli
