// MPA Request and Reply frames (RFC 5044, 7.1; RFC 6581) and the negotiation over them, as pure
// functions: no timers here, the engine guards the start-up by time (E-35).
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/result.h"

namespace urnic::mpa {

inline constexpr std::uint32_t kFrameHeader = 20;
inline constexpr std::uint32_t kMaxPrivateData = 512;  // PD_Length
inline constexpr std::uint32_t kEnhancedWord = 4;
inline constexpr std::uint16_t kNoNegotiation = 0x3fff;  // IRD/ORD "do not negotiate"

// What is left of PD_Length for the ULP.
constexpr std::uint32_t max_private_data(bool enhanced) {
  return enhanced ? kMaxPrivateData - kEnhancedWord : kMaxPrivateData;
}

// Ready-to-receive kinds (RFC 6581, 9.2).
enum Rtr : std::uint8_t { kRtrNone = 0, kRtrSend = 1, kRtrWrite = 2, kRtrRead = 4 };

struct StartupFrame {
  bool reply = false;
  bool markers = false;       // M: "put markers into what you send me"
  bool crc = false;           // C
  bool reject = false;        // R, meaningful in a Reply only
  bool enhanced = false;      // S
  std::uint8_t reserved = 0;  // low four flag bits as received; sent 0 by us
  std::uint8_t revision = 2;
  bool peer_to_peer = false;    // A
  std::uint8_t rtr = kRtrNone;  // B, C, D
  std::uint16_t ird = 0, ord = 0;
  std::uint16_t private_len = 0;  // ULP private data, the enhanced word not counted
  std::array<std::uint8_t, kMaxPrivateData> private_data{};

  ByteView private_view() const { return {private_data.data(), private_len}; }
};

enum class StartupError : std::uint8_t {
  BadKey,  // not MPA, or Request where a Reply belongs (initiator/initiator collision)
  BadRevision,
  BadPrivateData,  // PD_Length over 512, too short for the enhanced word, or not the data's length
};

// How many octets the frame at the start of `bytes` has: nullopt while more are needed to tell.
// Errors are found as early as the bytes allow.
Outcome<std::optional<std::uint32_t>, StartupError> frame_length(ByteView bytes, bool expect_reply);
// Parse a complete frame (frame_length octets).
Outcome<StartupFrame, StartupError> parse_frame(ByteView frame, bool expect_reply);
// Writes the frame; `dst` has kFrameHeader + kMaxPrivateData octets. Returns its length. Private
// data beyond max_private_data() is cut off (here and in make_*); whoever takes it from a ULP
// refuses it.
std::uint32_t emit_frame(const StartupFrame&, std::uint8_t* dst);

// What the local consumer wants of a connection.
struct StartupOptions {
  bool crc = true;            // false only when set so explicitly (E-2)
  bool markers = false;       // require markers in what we receive (next version)
  std::uint8_t revision = 2;  // 2 = enhanced; 1 = RFC 5044 alone
  bool peer_to_peer = true;
  std::uint8_t rtr = kRtrWrite | kRtrRead;  // offered by the initiator / taken by the responder
  std::uint16_t ird = 32, ord = 32;
  std::uint16_t max_ird = 128, max_ord = 128;
};

// What both ends have agreed on.
struct Agreement {
  bool crc = true;
  bool send_markers = false;  // the peer asked for markers in what we send
  std::uint8_t revision = 2;
  bool enhanced = true;
  std::uint8_t rtr = kRtrNone;  // the one kind the initiator sends as its first FPDU
  std::uint16_t ird = 0, ord = 0;
};

enum class Refusal : std::uint8_t {
  None,
  Rejected,         // R=1 from the peer's ULP
  MarkersWanted,    // the peer requires markers, which this build does not send yet
  NotEnhanced,      // enhanced Request answered without, or another revision than asked for
  NoMatchingRtr,    // Terminate 2/0/7
  InsufficientIrd,  // Terminate 2/0/6
};

StartupFrame make_request(const StartupOptions&, ByteView private_data);
// The responder's Reply to `request` and what it then means for us. A Request with M=1 is answered
// with R=1 until marker connections exist.
struct Answer {
  StartupFrame reply;
  Agreement agreement;
  Refusal refusal = Refusal::None;
  bool send_reply =
      true;  // false: close TCP without a Reply (a revision we were told not to speak)
};
Answer answer_request(const StartupFrame& request, const StartupOptions&, ByteView private_data);
StartupFrame make_reject(const StartupFrame& request, ByteView private_data);
// The initiator's reading of the Reply.
Outcome<Agreement, Refusal> read_reply(const StartupFrame& request, const StartupFrame& reply,
                                       const StartupOptions&);

}  // namespace urnic::mpa
