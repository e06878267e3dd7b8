// What goes out. A turn of a queue pair is a few packets, answers and requests by turns, so that a
// long READ which it serves holds up neither its own requests nor those of others.
#include <new>

#include "roce/side.h"

namespace urnic::roce {
namespace {

constexpr unsigned kTurn = 16;  // packets

bool may_answer(const Context& c) {
  return c.responder && verbs::rights(c.qp->state).takes_requests;
}
bool may_request(const Context& c) {
  return c.requester && verbs::rights(c.qp->state).takes_responses;
}

std::size_t put(const ib::ResponsePacket& p, std::uint8_t* to) {
  return ib::emit_packet(p.header, p.payload, to);
}
std::size_t put(const ib::RequestPacket& p, std::uint8_t* to) {
  std::uint8_t* const payload = to + ib::header_octets(p.header.bth.opcode);
  p.copy_payload(payload);
  return ib::emit_packet(p.header, {payload, p.length}, to);
}

}  // namespace

bool Side::transmit_round(Instant now) {
  bool any = general_ != nullptr && general_->transmit(now);
  Context* const last = sending_.last();
  while (Context* const c = sending_.first()) {
    sending_.remove(*c);
    Turn turn;
    try {
      turn = transmit(*c, now);
    } catch (const std::bad_alloc&) {  // nothing has been asked of the network: it looks again
      sending_.add(*c);
      throw;
    }
    any |= turn.sent;
    if (turn.again && verbs::rights(c->qp->state).takes_requests) sending_.add(*c);
    if (turn.full || c == last) break;
  }
  wire_.finish_sending();
  return any;
}

Side::Turn Side::transmit(Context& c, Instant now) {
  Turn turn;
  if (!may_answer(c) && !may_request(c)) return turn;
  if (!find_route(c, now)) return turn;  // an event follows
  if (c.route == Route::None) {
    lose(c, now);
    settle(c);
    return turn;
  }
  turn.again = true;
  for (unsigned n = 0; n < kTurn; ++n) {
    Buffer buffer;
    turn.full = !take_buffer(c, &buffer);
    if (turn.full) break;
    const std::size_t packet = next_packet(c, n % 2 == 0, buffer.at + c.headers.size(), now);
    if (packet == 0) {
      give_back(buffer);
      turn.again = false;
      break;
    }
    keep(buffer, c.headers.finish(buffer.at, packet, 0));
    ++statistics_.sent;
    turn.sent = true;
  }
  settle(c);
  return turn;
}

// Octets at `to`, whole but for the ICRC; 0 when there is none to send.
std::size_t Side::next_packet(Context& c, bool responses_first, std::uint8_t* to, Instant now) {
  for (const bool response : {responses_first, !responses_first}) {
    if (response) {
      ib::ResponsePacket p;
      if (may_answer(c) && c.responder->due() && c.responder->next_response(&p)) return put(p, to);
    } else {
      ib::RequestPacket p;
      const bool may_begin = verbs::rights(c.qp->state).begins_sends;
      if (may_request(c) && c.requester->next_packet(now, may_begin, &p)) return put(p, to);
    }
  }
  return 0;
}

// Nobody answers on the way. What would leave is lost here, so that the transport's own timer and
// counters say when it is enough; the next time the way is looked for again.
void Side::lose(Context& c, Instant now) {
  ib::RequestPacket request;
  ib::ResponsePacket response;
  const bool may_begin = verbs::rights(c.qp->state).begins_sends;
  for (unsigned n = 0; n < kTurn && may_request(c); ++n) {
    if (!c.requester->next_packet(now, may_begin, &request)) break;
    ++statistics_.unroutable;
  }
  for (unsigned n = 0; n < kTurn && may_answer(c) && c.responder->due(); ++n) {
    if (!c.responder->next_response(&response)) break;
    ++statistics_.unroutable;
  }
  c.route = Route::Unknown;
}

// ---- the way

// False: asked for, and whoever waits is woken by reroute().
bool Side::find_route(Context& c, Instant now) {
  using Kind = net::Resolution::Kind;
  if (c.route == Route::Known || c.route == Route::Own || c.route == Route::None) return true;
  const net::Resolution r = wire_.interface().resolve(c.attributes.av.remote, now);
  c.next_hop = r.next_hop;
  switch (r.kind) {
    case Kind::Mac:
      c.headers = headers_to(r.mac, c);
      c.route = Route::Known;
      return true;
    case Kind::Loopback:
      c.headers = headers_to(wire_.interface().mac(), c);
      c.route = Route::Own;
      return true;
    case Kind::Pending:
      c.route = Route::Awaited;
      return false;
    case Kind::Unreachable:
      c.route = Route::None;
      return true;
  }
  return false;
}

FrameHeaders Side::headers_to(const MacAddress& to, const Context& c) const {
  const net::Interface& interface = wire_.interface();
  return FrameHeaders({interface.mac(), to, interface.vlan(), c.attributes.av});
}

void Side::reroute(const IpAddress* next_hop, bool failed) {
  if (general_ != nullptr) general_->reroute(next_hop, failed);
  table_.for_each([&](Context& c) {
    if (c.route == Route::Unknown || (next_hop != nullptr && c.next_hop != *next_hop)) return;
    c.route = failed ? Route::None : Route::Unknown;
    sending_.add(c);
  });
}

// ---- buffers

bool Side::take_buffer(const Context& c, Buffer* b) {
  if (c.route != Route::Own) {
    b->frame = wire_.tx().next();
    if (b->frame == nullptr) return false;
    b->at = b->frame->data[0];
    return true;
  }
  if (wire_.loop_full()) return false;
  try {
    b->looped = &wire_.new_looped(c.headers.size() + wire_.mtu());
  } catch (const std::bad_alloc&) {
    return false;
  }
  b->at = b->looped->data();
  return true;
}

void Side::keep(const Buffer& b, std::size_t octets) {
  if (b.looped != nullptr) return b.looped->resize(octets);
  b.frame->len[0] = static_cast<std::uint32_t>(octets);
  b.frame->len[1] = 0;
  wire_.tx().keep();
}

void Side::give_back(const Buffer& b) {
  if (b.looped != nullptr) wire_.take_back_looped();
}

}  // namespace urnic::roce
