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

// Octet 16 (RFC 5044, 7.1; S is RFC 6581, 9.1).
constexpr std::uint8_t kM = 0x80, kC = 0x40, kR = 0x20, kS = 0x10, kReserved = 0x0f;
// The two words behind the header when S is set (RFC 6581, 9.2).
constexpr std::uint16_t kA = 0x8000, kB = 0x4000;           // in the IRD word
constexpr std::uint16_t kCWrite = 0x8000, kDRead = 0x4000;  // in the ORD word
constexpr std::uint16_t kDepth = 0x3fff;

constexpr std::uint8_t kNewestRevision = 2;

// Revision 0 is that of parts older than RFC 5044; siw takes and answers it, and so does urnic.
bool is_enhanced(std::uint8_t flags, std::uint8_t revision) {
  return revision >= 2 && (flags & kS) != 0;
}

// A depth as it can be said on the wire: within the local limit, and not the value that means
// "do not negotiate".
std::uint16_t depth(std::uint16_t wanted, std::uint16_t limit) {
  return std::min({wanted, limit, static_cast<std::uint16_t>(kNoNegotiation - 1)});
}

std::uint16_t offered(std::uint16_t wanted, std::uint16_t limit) {
  return wanted == kNoNegotiation ? kNoNegotiation : depth(wanted, limit);
}

void set_private(StartupFrame& frame, ByteView data) {
  const std::size_t n = std::min<std::size_t>(data.size(), max_private_data(frame.enhanced));
  if (n != 0) std::memcpy(frame.private_data.data(), data.data(), n);
  frame.private_len = static_cast<std::uint16_t>(n);
}

// One kind out of those both can do. Write first: it takes no read slot on either side.
std::uint8_t choose_rtr(std::uint8_t common, bool read_possible) {
  if ((common & kRtrWrite) != 0) return kRtrWrite;
  if ((common & kRtrRead) != 0 && read_possible) return kRtrRead;
  if ((common & kRtrSend) != 0) return kRtrSend;
  return kRtrNone;
}

StartupFrame reply_to(const StartupFrame& request) {
  StartupFrame reply;
  reply.reply = true;
  reply.crc = request.crc;
  reply.revision = request.revision;
  reply.enhanced = request.enhanced;
  reply.peer_to_peer = request.enhanced && request.peer_to_peer;
  return reply;
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
  // PD_Length counts up to 512: its high octet alone can give it away.
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
    if (f.peer_to_peer) {  // without A the others mean nothing (RFC 6581, 9.2)
      f.rtr = static_cast<std::uint8_t>(((ird & kB) != 0 ? kRtrSend : 0) |
                                        ((ord & kCWrite) != 0 ? kRtrWrite : 0) |
                                        ((ord & kDRead) != 0 ? kRtrRead : 0));
    }
    data = data.subspan(kEnhancedWord);
  }
  set_private(f, data);
  return f;
}

std::uint32_t emit_frame(const StartupFrame& f, std::uint8_t* dst) {
  const bool enhanced = f.enhanced && f.revision >= 2;
  std::memcpy(dst, (f.reply ? kReplyKey : kRequestKey).data(), kKeyLength);
  // Reserved bits are sent 0 whatever was received (siw reads one of them as its private GSO
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
  const std::uint32_t n = std::min<std::uint32_t>(f.private_len, max_private_data(enhanced));
  std::memcpy(dst + at, f.private_data.data(), n);
  store_be16(dst + kPrivateLengthAt, static_cast<std::uint16_t>(at - kFrameHeader + n));
  return at + n;
}

StartupFrame make_request(const StartupOptions& o, ByteView private_data) {
  StartupFrame f;
  f.markers = o.markers;
  f.crc = o.crc;
  f.revision = std::min(o.revision, kNewestRevision);
  f.enhanced = f.revision >= 2;
  if (f.enhanced) {
    // A says an RTR will come, so there must be a kind of it to offer.
    f.peer_to_peer = o.peer_to_peer && o.rtr != kRtrNone;
    f.rtr = f.peer_to_peer ? o.rtr : std::uint8_t{kRtrNone};
    f.ird = offered(o.ird, o.max_ird);
    f.ord = offered(o.ord, o.max_ord);
    // The RTR Read is a Read like any other and needs a slot (RFC 6581, 9.2).
    if ((f.rtr & kRtrRead) != 0 && f.ord == 0) f.ord = 1;
  }
  set_private(f, private_data);
  return f;
}

Answer answer_request(const StartupFrame& request, const StartupOptions& o, ByteView private_data) {
  Answer answer;
  if (request.markers) {
    answer.reply = make_reject(request, {});
    answer.refusal = Refusal::MarkersWanted;
    return answer;
  }
  if (request.revision > o.revision) {
    // RFC 5044 7.1: an unknown revision is answered by closing, and RFC 6581 10 has the initiator
    // try again with revision 1.
    answer.reply = make_reject(request, {});
    answer.refusal = Refusal::NotEnhanced;
    answer.send_reply = false;
    return answer;
  }

  StartupFrame& reply = answer.reply;
  Agreement& a = answer.agreement;
  reply = reply_to(request);
  reply.markers = o.markers;
  reply.crc = a.crc = request.crc || o.crc;
  a.revision = request.revision;
  a.enhanced = request.enhanced;
  a.ird = depth(o.ird, o.max_ird);
  a.ord = depth(o.ord, o.max_ord);

  if (!request.enhanced) {
    // Chelsio parts begin with a zero-length Read even on revision 1: there must be a slot.
    if (o.max_ird != 0) a.ird = std::max<std::uint16_t>(a.ird, 1);
    set_private(reply, private_data);
    return answer;
  }

  if (reply.peer_to_peer) {
    const std::uint8_t common = request.rtr & o.rtr;
    a.rtr = choose_rtr(common, o.max_ird != 0);
    // A=1 demands a kind in the Reply even when none matches (RFC 6581, 9.2): the initiator ends
    // it.
    if (a.rtr == kRtrNone) a.rtr = kRtrWrite;
    reply.rtr = a.rtr;
  }
  // Room for all the Reads the initiator wants, as far as the limit goes; at least one for the RTR.
  if (request.ord == kNoNegotiation) {
    reply.ird = kNoNegotiation;
  } else {
    a.ird = std::max(a.ird, depth(request.ord, o.max_ird));
    if (a.rtr == kRtrRead) a.ird = std::max<std::uint16_t>(a.ird, 1);
    reply.ird = a.ird;
  }
  // Responder ORD <= initiator IRD is a MUST.
  if (request.ird == kNoNegotiation) {
    reply.ord = kNoNegotiation;
  } else {
    a.ord = std::min(a.ord, request.ird);
    reply.ord = a.ord;
  }
  set_private(reply, private_data);
  return answer;
}

StartupFrame make_reject(const StartupFrame& request, ByteView private_data) {
  StartupFrame reply = reply_to(request);
  reply.reject = true;
  // Some initiators check A and the RTR bits before R: give them a Reply they can read.
  if (reply.peer_to_peer) {
    reply.rtr = choose_rtr(request.rtr, true);
    if (reply.rtr == kRtrNone) reply.rtr = kRtrWrite;
  }
  set_private(reply, private_data);
  return reply;
}

Outcome<Agreement, Refusal> read_reply(const StartupFrame& request, const StartupFrame& reply,
                                       const StartupOptions& o) {
  if (reply.reject) return fail(Refusal::Rejected);
  if (reply.markers) return fail(Refusal::MarkersWanted);
  if (reply.revision != request.revision || reply.enhanced != request.enhanced) {
    return fail(Refusal::NotEnhanced);
  }
  Agreement a;
  // Either C turns it on for both (RFC 5044, 7.1).
  a.crc = request.crc || reply.crc;
  a.revision = request.revision;
  a.enhanced = request.enhanced;
  a.ird = depth(o.ird, o.max_ird);
  a.ord = depth(o.ord, o.max_ord);
  if (!a.enhanced) return a;

  if (reply.ord != kNoNegotiation) {
    if (reply.ord > std::max(a.ird, o.max_ird)) return fail(Refusal::InsufficientIrd);
    a.ird = std::max(a.ird, reply.ord);
  }
  // What was asked for, which an RTR Read may have raised, cut to what the responder can hold.
  if (request.ord != kNoNegotiation) a.ord = request.ord;
  if (reply.ird != kNoNegotiation) a.ord = std::min(a.ord, reply.ird);

  if (request.peer_to_peer) {
    // A Read RTR towards a responder without room for one Read would overrun its IRD.
    const std::uint8_t common = reply.peer_to_peer ? request.rtr & reply.rtr : kRtrNone;
    a.rtr = choose_rtr(common, a.ord != 0);
    if (a.rtr == kRtrNone) return fail(Refusal::NoMatchingRtr);
  }
  return a;
}

}  // namespace urnic::mpa
