#include "tcp/isn.h"

#include <cstring>

namespace urnic::tcp {
namespace {

struct Input {
  std::uint8_t bytes[2 * (16 + 2) + 1] = {};
  std::size_t len = 0;

  void put(const IpAddress& a) {
    std::memcpy(bytes + len, a.bytes().data(), a.size());
    len += a.size();
  }
  void put(std::uint16_t v) {
    store_be16(bytes + len, v);
    len += 2;
  }
  void put(std::uint8_t v) { bytes[len++] = v; }
};

}  // namespace

Seq initial_sequence(const SipKey& key, const SocketAddress& local, const SocketAddress& remote,
                     Instant now) {
  Input in;
  in.put(local.ip);
  in.put(local.port);
  in.put(remote.ip);
  in.put(remote.port);
  const auto ticks = static_cast<std::uint32_t>(now.ns() / 4000);
  return Seq(ticks + static_cast<std::uint32_t>(siphash24(key, ByteView{in.bytes, in.len})));
}

std::uint32_t timestamp_offset(const SipKey& key, const IpAddress& local, const IpAddress& remote) {
  Input in;
  in.put(local);
  in.put(remote);
  in.put(std::uint8_t{0x54});  // apart from every initial sequence number
  return static_cast<std::uint32_t>(siphash24(key, ByteView{in.bytes, in.len}) >> 32);
}

}  // namespace urnic::tcp
