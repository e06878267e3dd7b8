// The negotiation over MPA Request and Reply (startup.h): pure functions of two frames and options.
#include <algorithm>
#include <cstring>

#include "mpa/startup.h"

namespace urnic::mpa {
namespace {

constexpr std::uint8_t kNewestRevision = 2;

// Limits a depth to what the frame can carry: within the local limit, and not the value that means
// "do not negotiate".
std::uint16_t clamp_depth(std::uint16_t wanted, std::uint16_t limit) {
  return std::min({wanted, limit, static_cast<std::uint16_t>(kNoNegotiation - 1)});
}

std::uint16_t offered(std::uint16_t wanted, std::uint16_t limit) {
  return wanted == kNoNegotiation ? kNoNegotiation : clamp_depth(wanted, limit);
}

void set_private(StartupFrame& frame, ByteView data) {
  // Both extensions leave the same room for private data.
  const Policy policy =
      frame.token.kind != PolicyToken::Kind::None ? Policy::AbsoluteMarkers : Policy::NoMarkers;
  const std::size_t n =
      std::min<std::size_t>(data.size(), max_private_data(frame.enhanced, policy));
  if (n != 0) std::memcpy(frame.private_data.data(), data.data(), n);
  frame.private_len = static_cast<std::uint16_t>(n);
}

// Chooses one kind that both ends support. Write first: it uses no read slot at either end.
std::uint8_t choose_rtr(std::uint8_t common, bool read_possible) {
  if ((common & kRtrWrite) != 0) return kRtrWrite;
  if ((common & kRtrRead) != 0 && read_possible) return kRtrRead;
  if ((common & kRtrSend) != 0) return kRtrSend;
  return kRtrNone;
}

// Returns why a Request cannot be accepted under the responder's policy. E2 and E3 must be offered
// by a token for the same policy. The others need no token, since the M bit expresses them.
Refusal judge_offer(const PolicyToken& token, Policy own) {
  const bool offered = token.kind == PolicyToken::Kind::Offer;
  if (!is_extension(own)) return offered ? Refusal::PolicyDiffers : Refusal::None;
  if (!offered) return Refusal::PolicyUnknown;
  return token.policy == own ? Refusal::None : Refusal::PolicyDiffers;
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

Policy send_policy(const StartupOptions& o, const StartupFrame& frame) {
  if (is_extension(o.policy)) return o.policy;
  return frame.markers ? Policy::Markers : Policy::NoMarkers;  // the receiver decides
}

StartupFrame make_request(const StartupOptions& o, ByteView private_data) {
  StartupFrame f;
  f.markers = has_markers(o.policy);
  if (is_extension(o.policy)) f.token = {PolicyToken::Kind::Offer, o.policy, 0};
  f.crc = o.crc;
  f.revision = std::min(o.revision, kNewestRevision);
  f.enhanced = f.revision >= 2;
  if (f.enhanced) {
    // A means that an RTR will come, so at least one kind must be offered.
    f.peer_to_peer = o.peer_to_peer && o.rtr != kRtrNone;
    f.rtr = f.peer_to_peer ? o.rtr : std::uint8_t{kRtrNone};
    f.ird = offered(o.ird, o.max_ird);
    f.ord = offered(o.ord, o.max_ord);
    // The RTR Read needs a slot like any other Read (RFC 6581, 9.2).
    if ((f.rtr & kRtrRead) != 0 && f.ord == 0) f.ord = 1;
  }
  set_private(f, private_data);
  return f;
}

Answer answer_request(const StartupFrame& request, const StartupOptions& o, ByteView private_data) {
  Answer answer;
  if (request.revision > o.revision) {
    // RFC 5044 7.1: close on an unknown revision. RFC 6581 10: the initiator then retries with
    // revision 1.
    answer.reply = make_reject(request, {});
    answer.refusal = Refusal::NotEnhanced;
    answer.send_reply = false;
    return answer;
  }
  answer.refusal = judge_offer(request.token, o.policy);
  if (answer.refusal != Refusal::None) {
    answer.reply = make_reject(request, {});
    answer.reply.token = {PolicyToken::Kind::Refuse, o.policy, 0};
    return answer;
  }

  StartupFrame& reply = answer.reply;
  Agreement& a = answer.agreement;
  reply = reply_to(request);
  reply.markers = has_markers(o.policy);
  if (is_extension(o.policy)) reply.token = {PolicyToken::Kind::Accept, o.policy, 0};
  a.receive = o.policy;
  a.send = send_policy(o, request);
  reply.crc = a.crc = request.crc || o.crc;
  a.revision = request.revision;
  a.enhanced = request.enhanced;
  a.ird = clamp_depth(o.ird, o.max_ird);
  a.ord = clamp_depth(o.ord, o.max_ord);

  if (!request.enhanced) {
    // Chelsio adapters begin with a zero-length Read even on revision 1, so there must be a slot.
    if (o.max_ird != 0) a.ird = std::max<std::uint16_t>(a.ird, 1);
    set_private(reply, private_data);
    return answer;
  }

  if (reply.peer_to_peer) {
    const std::uint8_t common = request.rtr & o.rtr;
    a.rtr = choose_rtr(common, o.max_ird != 0);
    // A=1 requires a kind in the Reply even if none matches (RFC 6581, 9.2). The initiator then
    // ends the connection.
    if (a.rtr == kRtrNone) a.rtr = kRtrWrite;
    reply.rtr = a.rtr;
  }
  if (a.rtr == kRtrRead) a.ird = std::max<std::uint16_t>(a.ird, 1);
  // Offers room for all Reads the initiator wants, up to the limit.
  if (request.ord == kNoNegotiation) {
    reply.ird = kNoNegotiation;
  } else {
    a.ird = std::max(a.ird, clamp_depth(request.ord, o.max_ird));
    reply.ird = a.ird;
  }
  // RFC 6581: the responder's ORD MUST NOT exceed the initiator's IRD.
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
  // Some initiators check A and the RTR bits before R, so the Reply must be valid for them.
  if (reply.peer_to_peer) {
    reply.rtr = choose_rtr(request.rtr, true);
    if (reply.rtr == kRtrNone) reply.rtr = kRtrWrite;
  }
  set_private(reply, private_data);
  return reply;
}

Outcome<Agreement, Refusal> read_reply(const StartupFrame& request, const StartupFrame& reply,
                                       const StartupOptions& o) {
  if (reply.reject) {
    return fail(reply.token.kind == PolicyToken::Kind::Refuse ? Refusal::PolicyDiffers
                                                              : Refusal::Rejected);
  }
  if (reply.revision != request.revision || reply.enhanced != request.enhanced) {
    return fail(Refusal::NotEnhanced);
  }
  // An echo of our offer is not an answer to it (D6).
  if (is_extension(o.policy) &&
      (reply.token.kind != PolicyToken::Kind::Accept || reply.token.policy != o.policy)) {
    return fail(Refusal::PolicyUnknown);
  }
  Agreement a;
  a.receive = o.policy;
  a.send = send_policy(o, reply);
  // A C bit at either end turns CRC on for both (RFC 5044, 7.1).
  a.crc = request.crc || reply.crc;
  a.revision = request.revision;
  a.enhanced = request.enhanced;
  a.ird = clamp_depth(o.ird, o.max_ird);
  a.ord = clamp_depth(o.ord, o.max_ord);
  if (!a.enhanced) return a;

  if (reply.ord != kNoNegotiation) {
    if (reply.ord > std::max(a.ird, o.max_ird)) return fail(Refusal::InsufficientIrd);
    a.ird = std::max(a.ird, reply.ord);
  }
  // The requested ORD, which an RTR Read may have raised, limited to what the responder can hold.
  if (request.ord != kNoNegotiation) a.ord = request.ord;
  if (reply.ird != kNoNegotiation) a.ord = std::min(a.ord, reply.ird);

  if (request.peer_to_peer) {
    // A Read RTR to a responder without room for one Read would exceed its IRD.
    const std::uint8_t common = reply.peer_to_peer ? request.rtr & reply.rtr : kRtrNone;
    a.rtr = choose_rtr(common, a.ord != 0);
    if (a.rtr == kRtrNone) return fail(Refusal::NoMatchingRtr);
  }
  return a;
}

}  // namespace urnic::mpa
