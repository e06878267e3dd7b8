#include "mpa/startup.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace urnic::mpa {
namespace {

constexpr std::uint32_t kKeyLength = 16;
constexpr std::string_view kRequestKey = "MPA ID Req Frame";
constexpr std::string_view kReplyKey = "MPA ID Rep Frame";
static_assert(kRequestKey.size() == kKeyLength && kReplyKey.size() == kKeyLength);

constexpr std::uint32_t kFlagsAt = 16, kRevisionAt = 17, kPrivateLengthAt = 18;

// Byte 16 (RFC 5044, 7.1; S is RFC 6581, 6).
constexpr std::uint8_t kM = 0x80, kC = 0x40, kR = 0x20, kS = 0x10, kReserved = 0x0f;
// The two words after the header if S is set (RFC 6581, 9).
constexpr std::uint16_t kA = 0x8000, kB = 0x4000;           // in the IRD word
constexpr std::uint16_t kCWrite = 0x8000, kDRead = 0x4000;  // in the ORD word
constexpr std::uint16_t kDepth = 0x3fff;

constexpr std::uint8_t kNewestRevision = 2;

constexpr std::string_view kTokenKey = "urnicMPA";
constexpr std::uint32_t kTokenKindAt = 8, kTokenPolicyAt = 9, kTokenFillerAt = 10,
                        kTokenZeroAt = 11;
constexpr std::uint8_t kOffer = 'O', kAccept = 'A', kRefuse = 'R';

std::uint8_t kind_byte(PolicyToken::Kind kind) {
  switch (kind) {
    case PolicyToken::Kind::Offer:
      return kOffer;
    case PolicyToken::Kind::Accept:
      return kAccept;
    default:
      return kRefuse;
  }
}

// Parses the token at the start of private data. Kind::None if the bytes belong to the ULP. All of
// the token must be valid, so that ULP data is not mistaken for one.
PolicyToken parse_token(ByteView data) {
  PolicyToken t;
  if (data.size() < kTokenLength ||
      std::memcmp(data.data(), kTokenKey.data(), kTokenKey.size()) != 0 ||
      data[kTokenPolicyAt] > static_cast<std::uint8_t>(Policy::ModifiedLength) ||
      data[kTokenFillerAt] > kMaxFiller || data[kTokenZeroAt] != 0 ||
      data.size() < kTokenLength + data[kTokenFillerAt]) {
    return t;
  }
  for (const std::uint8_t byte : data.last(data[kTokenFillerAt])) {
    if (byte != 0) return t;
  }
  switch (data[kTokenKindAt]) {
    case kOffer:
      t.kind = PolicyToken::Kind::Offer;
      break;
    case kAccept:
      t.kind = PolicyToken::Kind::Accept;
      break;
    case kRefuse:
      t.kind = PolicyToken::Kind::Refuse;
      break;
    default:
      return t;
  }
  t.policy = static_cast<Policy>(data[kTokenPolicyAt]);
  t.filler = data[kTokenFillerAt];
  return t;
}

void emit_token(const PolicyToken& t, std::uint8_t* dst) {
  std::memcpy(dst, kTokenKey.data(), kTokenKey.size());
  dst[kTokenKindAt] = kind_byte(t.kind);
  dst[kTokenPolicyAt] = static_cast<std::uint8_t>(t.policy);
  dst[kTokenFillerAt] = t.filler;
  dst[kTokenZeroAt] = 0;
}

bool has_token(const StartupFrame& f) {
  return f.token.kind != PolicyToken::Kind::None;
}

bool is_emitted_enhanced(const StartupFrame& f) {
  return f.enhanced && f.revision >= 2;
}

// Bytes of ULP private data in the emitted frame.
std::uint32_t emitted_private(const StartupFrame& f) {
  std::uint32_t room = max_private_data(is_emitted_enhanced(f));
  if (has_token(f)) room -= kTokenLength + kMaxFiller;
  return std::min<std::uint32_t>(f.private_len, room);
}

// Revision 0 is used by adapters older than RFC 5044. siw accepts and answers it, and so does
// urnic.
bool is_enhanced(std::uint8_t flags, std::uint8_t revision) {
  return revision >= 2 && (flags & kS) != 0;
}

}  // namespace

Outcome<std::optional<std::uint32_t>, StartupError> frame_length(ByteView bytes,
                                                                 bool expect_reply) {
  const std::string_view key = expect_reply ? kReplyKey : kRequestKey;
  const std::size_t n = std::min<std::size_t>(bytes.size(), kKeyLength);
  if (n != 0 && std::memcmp(bytes.data(), key.data(), n) != 0) return fail(StartupError::BadKey);
  if (bytes.size() > kRevisionAt && bytes[kRevisionAt] > kNewestRevision) {
    return fail(StartupError::BadRevision);
  }
  // PD_Length is at most 512, so its high byte alone can prove it invalid.
  if (bytes.size() > kPrivateLengthAt && bytes[kPrivateLengthAt] > kMaxPrivateData >> 8) {
    return fail(StartupError::BadPrivateData);
  }
  if (bytes.size() < kFrameHeader) return std::optional<std::uint32_t>();
  const std::uint32_t length = load_be16(bytes.data() + kPrivateLengthAt);
  const bool enhanced = is_enhanced(bytes[kFlagsAt], bytes[kRevisionAt]);
  if (length > kMaxPrivateData || (enhanced && length < kEnhancedWord)) {
    return fail(StartupError::BadPrivateData);
  }
  return std::optional<std::uint32_t>(kFrameHeader + length);
}

Outcome<StartupFrame, StartupError> parse_frame(ByteView bytes, bool expect_reply) {
  const auto length = frame_length(bytes, expect_reply);
  if (!length) return fail(length.error());
  if (!length->has_value() || **length != bytes.size()) return fail(StartupError::BadPrivateData);

  StartupFrame f;
  const std::uint8_t flags = bytes[kFlagsAt];
  f.reply = expect_reply;
  f.revision = bytes[kRevisionAt];
  f.markers = (flags & kM) != 0;
  f.crc = (flags & kC) != 0;
  f.reject = (flags & kR) != 0;
  f.enhanced = is_enhanced(flags, f.revision);
  f.reserved = flags & kReserved;
  ByteView data = bytes.subspan(kFrameHeader);
  if (f.enhanced) {
    const std::uint16_t ird = load_be16(data.data());
    const std::uint16_t ord = load_be16(data.data() + 2);
    f.ird = ird & kDepth;
    f.ord = ord & kDepth;
    f.peer_to_peer = (ird & kA) != 0;
    if (f.peer_to_peer) {  // without A the other bits have no meaning (RFC 6581, 9.2)
      f.rtr = static_cast<std::uint8_t>(((ird & kB) != 0 ? kRtrSend : 0) |
                                        ((ord & kCWrite) != 0 ? kRtrWrite : 0) |
                                        ((ord & kDRead) != 0 ? kRtrRead : 0));
    }
    data = data.subspan(kEnhancedWord);
  }
  f.token = parse_token(data);
  if (has_token(f)) {
    data = data.subspan(kTokenLength, data.size() - kTokenLength - f.token.filler);
  }
  f.private_len = static_cast<std::uint16_t>(data.size());
  if (!data.empty()) std::memcpy(f.private_data.data(), data.data(), data.size());
  return f;
}

std::uint32_t emitted_length(const StartupFrame& f) {
  return kFrameHeader + (is_emitted_enhanced(f) ? kEnhancedWord : 0) +
         (has_token(f) ? kTokenLength + f.token.filler : 0) + emitted_private(f);
}

void set_filler(StartupFrame& f, std::uint32_t sn) {
  f.token.filler = 0;
  if (!has_token(f) || f.token.policy != Policy::AbsoluteMarkers) return;
  f.token.filler = static_cast<std::uint8_t>(correcting_factor(sn + emitted_length(f)));
}

std::uint32_t emit_frame(const StartupFrame& f, std::uint8_t* dst) {
  const bool enhanced = is_emitted_enhanced(f);
  std::memcpy(dst, (f.reply ? kReplyKey : kRequestKey).data(), kKeyLength);
  // Reserved bits are sent as 0, whatever was received (siw reads one of them as its private GSO
  // offer).
  dst[kFlagsAt] = static_cast<std::uint8_t>((f.markers ? kM : 0) | (f.crc ? kC : 0) |
                                            (f.reject ? kR : 0) | (enhanced ? kS : 0));
  dst[kRevisionAt] = f.revision;
  std::uint32_t at = kFrameHeader;
  if (enhanced) {
    const std::uint8_t rtr = f.peer_to_peer ? f.rtr : std::uint8_t{kRtrNone};
    const auto ird = static_cast<std::uint16_t>((f.ird & kDepth) | (f.peer_to_peer ? kA : 0) |
                                                ((rtr & kRtrSend) != 0 ? kB : 0));
    const auto ord =
        static_cast<std::uint16_t>((f.ord & kDepth) | ((rtr & kRtrWrite) != 0 ? kCWrite : 0) |
                                   ((rtr & kRtrRead) != 0 ? kDRead : 0));
    store_be16(dst + at, ird);
    store_be16(dst + at + 2, ord);
    at += kEnhancedWord;
  }
  if (has_token(f)) {
    emit_token(f.token, dst + at);
    at += kTokenLength;
  }
  const std::uint32_t n = emitted_private(f);
  std::memcpy(dst + at, f.private_data.data(), n);
  at += n;
  if (has_token(f)) {
    std::memset(dst + at, 0, f.token.filler);
    at += f.token.filler;
  }
  store_be16(dst + kPrivateLengthAt, static_cast<std::uint16_t>(at - kFrameHeader));
  return at;
}

}  // namespace urnic::mpa
