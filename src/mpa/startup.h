// MPA Request and Reply frames (RFC 5044, 7.1; RFC 6581) and their negotiation, as pure functions.
// No timers here: the engine limits the start-up time (E-35).
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/result.h"
#include "mpa/framing.h"

namespace urnic::mpa {

inline constexpr std::uint32_t kFrameHeader = 20;
inline constexpr std::uint32_t kMaxPrivateData = 512;  // PD_Length
inline constexpr std::uint32_t kEnhancedWord = 4;
inline constexpr std::uint16_t kNoNegotiation = 0x3fff;  // IRD/ORD "do not negotiate"

// A token before the private data of the ULP negotiates the framing policies E2 and E3 (D6). An MPA
// flag would not work, since some peers echo reserved bits. The token of a Reply differs from that
// of the Request, so that an echo is not an answer.
//
//   8 "urnicMPA" | 1 kind 'O', 'A', 'R' | 1 policy 0..3 | 1 filler 0..3 | 1 zero
struct PolicyToken {
  enum class Kind : std::uint8_t {
    None,
    Offer,   // Request: this policy in both directions, or no connection
    Accept,  // Reply: agreed
    Refuse,  // Reply with R=1: `policy` is the policy of this end
  };
  Kind kind = Kind::None;
  Policy policy = Policy::NoMarkers;
  // Zero bytes after the private data, within PD_Length: the correcting factor 150 of E2.
  std::uint8_t filler = 0;
  bool operator==(const PolicyToken&) const = default;
};
inline constexpr std::uint32_t kTokenLength = 12;
inline constexpr std::uint32_t kMaxFiller = 3;

// The part of PD_Length that is left for the ULP on a connection with this policy.
constexpr std::uint32_t max_private_data(bool enhanced, Policy policy = Policy::NoMarkers) {
  return kMaxPrivateData - (enhanced ? kEnhancedWord : 0) -
         (is_extension(policy) ? kTokenLength + kMaxFiller : 0);
}

// Ready-to-receive kinds (RFC 6581, 9.2).
enum Rtr : std::uint8_t { kRtrNone = 0, kRtrSend = 1, kRtrWrite = 2, kRtrRead = 4 };

struct StartupFrame {
  bool reply = false;
  bool markers = false;       // M: this end wants markers in what it receives
  bool crc = false;           // C
  bool reject = false;        // R, meaningful in a Reply only
  bool enhanced = false;      // S
  std::uint8_t reserved = 0;  // low four flag bits as received; sent 0 by us
  std::uint8_t revision = 2;
  bool peer_to_peer = false;    // A
  std::uint8_t rtr = kRtrNone;  // B, C, D
  std::uint16_t ird = 0, ord = 0;
  PolicyToken token;
  std::uint16_t private_len = 0;  // ULP private data, without enhanced word, token and filler
  std::array<std::uint8_t, kMaxPrivateData> private_data{};

  ByteView private_view() const { return {private_data.data(), private_len}; }
};

enum class StartupError : std::uint8_t {
  BadKey,  // not MPA, or a Request instead of a Reply (both ends are initiators)
  BadRevision,
  BadPrivateData,  // PD_Length over 512, too short for the enhanced word, or different from the
                   // data's length
};

// Length of the frame at the start of `bytes`; nullopt if more bytes are needed. Finds errors as
// early as the bytes allow.
Outcome<std::optional<std::uint32_t>, StartupError> frame_length(ByteView bytes, bool expect_reply);
// Parses a complete frame (frame_length() bytes).
Outcome<StartupFrame, StartupError> parse_frame(ByteView frame, bool expect_reply);
// Writes the frame. `dst` must have kFrameHeader + kMaxPrivateData bytes. Returns the frame's
// length. Private data beyond max_private_data() is cut off (here and in make_*), so the caller
// must reject larger data from a ULP.
std::uint32_t emit_frame(const StartupFrame&, std::uint8_t* dst);
// Bytes emit_frame() writes.
std::uint32_t emitted_length(const StartupFrame&);
// Sets the filler of a frame whose first byte has sequence number `sn`, so that the byte after the
// frame is at a multiple of four. Only frames with an E2 token have filler.
void set_filler(StartupFrame&, std::uint32_t sn);

// The options of the local consumer for a connection.
struct StartupOptions {
  bool crc = true;  // false only if the user turned it off (E-2)
  // The policy of what we receive. The peer decides about what we send, except with E2 and E3,
  // which apply to both directions.
  Policy policy = Policy::NoMarkers;
  std::uint8_t revision = 2;  // 2 = enhanced; 1 = RFC 5044 alone
  bool peer_to_peer = true;
  std::uint8_t rtr = kRtrWrite | kRtrRead;  // offered by the initiator / taken by the responder
  std::uint16_t ird = 32, ord = 32;
  std::uint16_t max_ird = 128, max_ord = 128;
};

// The result of the negotiation.
struct Agreement {
  bool crc = true;
  Policy send = Policy::NoMarkers, receive = Policy::NoMarkers;
  std::uint8_t revision = 2;
  bool enhanced = true;
  std::uint8_t rtr = kRtrNone;  // the one kind the initiator sends as its first FPDU
  std::uint16_t ird = 0, ord = 0;
};

enum class Refusal : std::uint8_t {
  None,
  Rejected,         // R=1 from the peer's ULP
  PolicyDiffers,    // the peer uses another framing policy, named in its token
  PolicyUnknown,    // the peer does not know, or did not offer, the extension that this end
                    // requires
  NotEnhanced,      // the Reply is not enhanced, or has another revision than the Request
  NoMatchingRtr,    // Terminate 2/0/7
  InsufficientIrd,  // Terminate 2/0/6
};

StartupFrame make_request(const StartupOptions&, ByteView private_data);
// The format that a peer expects which sent `frame`.
Policy send_policy(const StartupOptions&, const StartupFrame& frame);
// The responder's Reply to `request`, and the resulting agreement.
struct Answer {
  StartupFrame reply;
  Agreement agreement;
  Refusal refusal = Refusal::None;
  bool send_reply = true;  // false: close TCP without a Reply (the revision is not allowed here)
};
Answer answer_request(const StartupFrame& request, const StartupOptions&, ByteView private_data);
StartupFrame make_reject(const StartupFrame& request, ByteView private_data);
// The initiator's evaluation of the Reply.
Outcome<Agreement, Refusal> read_reply(const StartupFrame& request, const StartupFrame& reply,
                                       const StartupOptions&);

}  // namespace urnic::mpa
