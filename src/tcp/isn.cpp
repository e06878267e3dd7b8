#include "tcp/isn.h"

#include <cstring>

namespace urnic::tcp {
namespace {

struct Input {
  std::uint8_t bytes[2 * (16 + 2) + 8] = {};
  std::size_t len = 0;

  void put(const IpAddress& a) {
    std::memcpy(bytes + len, a.bytes().data(), a.size());
    len += a.size();
  }
  void put(std::uint16_t v) {
    store_be16(bytes + len, v);
    len += 2;
  }
  void put(const SocketAddress& a) {
    put(a.ip);
    put(a.port);
  }
  void put(std::uint64_t v) {
    store_be64(bytes + len, v);
    len += 8;
  }
  std::uint64_t hash(const SipKey& key) const { return siphash24(key, ByteView{bytes, len}); }
};

}  // namespace

Seq initial_sequence(const SipKey& key, const SocketAddress& local, const SocketAddress& remote,
                     Instant now) {
  Input in;
  in.put(local);
  in.put(remote);
  const auto ticks = static_cast<std::uint32_t>(now.ns() / 4000);
  return Seq(ticks + static_cast<std::uint32_t>(in.hash(key)));
}

std::uint32_t timestamp_offset(const SipKey& key, const SocketAddress& local,
                               const SocketAddress& remote) {
  Input in;
  in.put(local);
  in.put(remote);
  return static_cast<std::uint32_t>(in.hash(key) >> 32);
}

std::uint64_t challenge_key(const SipKey& key, const SocketAddress& local,
                            const SocketAddress& remote) {
  Input in;
  in.put(local);
  in.put(remote);
  return in.hash(key) | 1;
}

std::uint64_t port_hash(const SipKey& key, const IpAddress& local, const SocketAddress& remote,
                        std::uint64_t count) {
  Input in;
  in.put(local);
  in.put(remote);
  in.put(count);
  return in.hash(key);
}

}  // namespace urnic::tcp
