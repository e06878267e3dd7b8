#include "device/secrets.h"

#include <errno.h>
#include <sys/random.h>

#include <cstring>

namespace urnic::device {
namespace {

Result<void> fill(void* at, std::size_t n) {
  auto* p = static_cast<std::uint8_t*>(at);
  while (n != 0) {
    const ssize_t got = getrandom(p, n, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      return Error{Errc::unavailable, std::string("cannot get random numbers from the system: ") +
                                          std::strerror(errno)};
    }
    p += got;
    n -= static_cast<std::size_t>(got);
  }
  return {};
}

}  // namespace

Result<std::uint64_t> random_seed() {
  std::uint64_t seed = 0;
  if (auto ok = fill(&seed, sizeof seed); !ok) return ok.error();
  return seed;
}

Result<MacAddress> random_mac() {
  std::uint8_t bytes[6];
  if (auto ok = fill(bytes, sizeof bytes); !ok) return ok.error();
  bytes[0] = static_cast<std::uint8_t>((bytes[0] & 0xfc) | 0x02);
  return MacAddress::from_bytes(bytes);
}

}  // namespace urnic::device
