#include "fault/pcapng.h"

#include <algorithm>

namespace urnic::fault {
namespace {

constexpr std::uint32_t kSection = 0x0a0d0d0a;
constexpr std::uint32_t kByteOrderMagic = 0x1a2b3c4d;
constexpr std::uint32_t kInterface = 1;
constexpr std::uint32_t kEnhancedPacket = 6;
constexpr std::uint16_t kEthernet = 1;

constexpr std::uint16_t kEndOfOptions = 0;
constexpr std::uint16_t kComment = 1;
constexpr std::uint16_t kShbApplication = 4;
constexpr std::uint16_t kIfName = 2;
constexpr std::uint16_t kIfTimeResolution = 9;
constexpr std::uint16_t kEpbFlags = 2;

void put16(std::vector<std::uint8_t>& out, std::uint16_t v) {
  const std::size_t at = out.size();
  out.resize(at + 2);
  store_le16(out.data() + at, v);
}
void put32(std::vector<std::uint8_t>& out, std::uint32_t v) {
  const std::size_t at = out.size();
  out.resize(at + 4);
  store_le32(out.data() + at, v);
}
void put_bytes(std::vector<std::uint8_t>& out, ByteView b) {
  out.insert(out.end(), b.begin(), b.end());
}
void pad(std::vector<std::uint8_t>& out, std::size_t length) {
  out.resize(out.size() + (4 - length % 4) % 4);
}
void put_option(std::vector<std::uint8_t>& out, std::uint16_t code, ByteView value) {
  put16(out, code);
  put16(out, static_cast<std::uint16_t>(value.size()));
  put_bytes(out, value);
  pad(out, value.size());
}
ByteView text(std::string_view s) {
  s = s.substr(0, 1024);
  return {reinterpret_cast<const std::uint8_t*>(s.data()), s.size()};
}

// A block: type and total length first, total length again at the end.
class Block {
 public:
  Block(std::vector<std::uint8_t>& out, std::uint32_t type) : out_(out), start_(out.size()) {
    put32(out, type);
    put32(out, 0);
  }
  ~Block() {
    const auto length = static_cast<std::uint32_t>(out_.size() - start_ + 4);
    put32(out_, length);
    store_le32(out_.data() + start_ + 4, length);
  }

 private:
  std::vector<std::uint8_t>& out_;
  std::size_t start_;
};

}  // namespace

void append_section(std::vector<std::uint8_t>& out, std::string_view application,
                    std::string_view comment) {
  const Block block(out, kSection);
  put32(out, kByteOrderMagic);
  put16(out, 1);
  put16(out, 0);
  put32(out, 0xffffffff);  // length of the section: unknown, 64 one bits
  put32(out, 0xffffffff);
  if (!comment.empty()) put_option(out, kComment, text(comment));
  put_option(out, kShbApplication, text(application));
  put_option(out, kEndOfOptions, {});
}

void append_interface(std::vector<std::uint8_t>& out, std::string_view name,
                      std::uint32_t snap_length) {
  const Block block(out, kInterface);
  put16(out, kEthernet);
  put16(out, 0);
  put32(out, snap_length);
  put_option(out, kIfName, text(name));
  const std::uint8_t nanoseconds = 9;
  put_option(out, kIfTimeResolution, {&nanoseconds, 1});
  put_option(out, kEndOfOptions, {});
}

void append_packet(std::vector<std::uint8_t>& out, std::uint32_t interface_id, Direction direction,
                   std::uint64_t unix_ns, ByteView head, ByteView tail, std::uint32_t kept) {
  const Block block(out, kEnhancedPacket);
  put32(out, interface_id);
  put32(out, static_cast<std::uint32_t>(unix_ns >> 32));
  put32(out, static_cast<std::uint32_t>(unix_ns));
  put32(out, kept);
  put32(out, static_cast<std::uint32_t>(head.size() + tail.size()));
  const std::size_t first = std::min<std::size_t>(head.size(), kept);
  put_bytes(out, head.first(first));
  put_bytes(out, tail.first(kept - first));
  pad(out, kept);
  std::uint8_t flags[4];
  store_le32(flags, direction == Direction::Rx ? 1 : 2);  // inbound, outbound
  put_option(out, kEpbFlags, flags);
  put_option(out, kEndOfOptions, {});
}

}  // namespace urnic::fault
