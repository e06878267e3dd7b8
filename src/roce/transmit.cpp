// Sending. A turn of a queue pair is some packets (Options::turn), responses and requests
// alternately, so that a long READ it serves holds up neither its own requests nor those of other
// queue pairs.
#include <algorithm>
#include <new>
#include <span>

#include "ib/receive_credits.h"
#include "roce/side.h"

namespace urnic::roce {
namespace {

bool may_answer(const Context& c) {
  return c.responder && c.attributes.reliable() && verbs::rights(c.qp->state).takes_requests;
}
bool has_responses(const Context& c) {
  return may_answer(c) && c.responder.rc() != nullptr && c.responder.rc()->due();
}
bool may_request(const Context& c) {
  return c.requester && verbs::rights(c.qp->state).takes_responses;
}
// True if it may send what is due now; an ACK may have to wait.
bool answers(const Context& c, bool acks_wait) {
  return !acks_wait && has_responses(c);
}

std::size_t put(FrameHeaders& headers, const ib::RequestPacket& p, std::uint8_t* frame) {
  return headers.write(frame, p.header, std::span(p.pieces).first(p.count), p.length);
}
std::size_t put(FrameHeaders& headers, const ib::ResponsePacket& p, std::uint8_t* frame) {
  const auto bytes = static_cast<std::uint32_t>(p.payload.size());
  return headers.write(frame, p.header, {&p.payload, 1}, bytes);
}

unsigned waiting_requests(const Context& c) {
  return c.qp->sq.tail() - c.qp->sq.started();
}

// A keepalive probe to a silent peer, or the response to the peer's if there is no responder yet.
// Returns the bytes of its frame; 0: neither is due.
std::size_t keep_alive_packet(Context& c, std::uint8_t* to) {
  if (c.alive.answers() && may_answer(c)) {
    const std::uint8_t credits = ib::credit_code(c.qp->rq, c.attributes.tells_credits);
    return c.path.headers.write(to, c.alive.answer(c.attributes, credits), {}, 0);
  }
  if (!c.alive.asks() || !may_request(c)) return 0;
  const ib::Requester* const half = c.requester.rc();
  const ib::Psn next = half != nullptr ? half->state().fresh.psn : c.attributes.sq_psn;
  return c.path.headers.write(to, c.alive.question(c.attributes, next), {}, 0);
}

// Makes the requester at the first post: a queue pair that never sends needs none.
void wake_requester(Context& c, const HalfMaker& halves) {
  if (verbs::rights(c.qp->state).begins_sends && !c.qp->sq.all_started()) halves.requester(c);
}

// The next request, for any service.
bool next_request(Context& c, ib::RequestPacket* p, Instant now) {
  const bool may_begin = verbs::rights(c.qp->state).begins_sends;
  if (auto* const half = c.requester.rc()) return half->next_packet(now, may_begin, p);
  if (c.requester.awaited()) return false;
  std::uint32_t handle = 0;
  auto* const uc = c.requester.uc();
  const bool is = uc != nullptr ? uc->next_packet(may_begin, p)
                                : c.requester.ud()->next_packet(may_begin, p, &handle);
  if (is) ++c.unreliable;
  return is;
}

// The payload of a request from next_request() cannot be read: its memory is gone.
[[gnu::noinline, gnu::cold]] void lose_request(Context& c, const ib::RequestPacket& p) {
  if (auto* const half = c.requester.rc()) return half->lose_packet(p);
  --c.unreliable;
  if (auto* const uc = c.requester.uc()) return uc->lose_packet();
  c.requester.ud()->lose_packet();
}

// Sends consecutive middle packets of a long message, if nothing else is due. Returns how many.
unsigned send_run(Context& c, unsigned most, bool acks_wait, port::TxBatch& tx, Instant now) {
  ib::Requester* const half = c.requester.rc();
  if (half == nullptr || !half->in_message()) return 0;
  if (c.path.route != Route::Known || !may_request(c)) return 0;
  if (answers(c, acks_wait) || c.greeting.wanted() || c.marks.wanted()) return 0;
  ib::RequestRun run;
  if (!half->next_run(most, &run)) return 0;
  const FrameRun frames = c.path.headers.run_of(run.header, run.bytes);
  unsigned n = 0;
  for (; n < run.packets; ++n) {
    port::Frame* const slot = tx.next(run.packets - n);
    if (slot == nullptr) break;
    const bool ask = run.ask && n + 1 == run.packets;
    const std::uint8_t* const payload = run.payload + std::size_t{n} * run.bytes;
    const std::size_t bytes = frames.write(slot->data[0], run.header.bth.psn + n, ask, payload);
    if (bytes == 0) break;  // the path for single packets reports it
    slot->len[0] = static_cast<std::uint32_t>(bytes);
    slot->len[1] = 0;
    tx.keep();
  }
  if (n == 0) return 0;
  half->left(run, n, now);
  return n;
}

// The next hop is unreachable. Drops what would leave, so that the transport's own timers and
// counters decide when to give up; the path is resolved again next time. Returns the packets
// dropped.
std::uint64_t drop_unroutable(Context& c, unsigned turn, Instant now) {
  ib::RequestPacket request;
  ib::ResponsePacket response;
  std::uint64_t lost = 0;
  for (unsigned n = 0; n < turn && may_request(c); ++n) {
    if (!next_request(c, &request, now)) break;
    ++lost;
  }
  for (unsigned n = 0; n < turn && has_responses(c); ++n) {
    if (!c.responder.rc()->next_response(&response)) break;
    ++lost;
  }
  c.path.route = Route::Unknown;
  return lost;
}

// The same for datagrams: drops those at the head of the queue with this handle, at most one turn.
// `way` null: the handle is closed.
std::uint64_t drop_unroutable_datagrams(Context& c, std::uint32_t handle, unsigned turn,
                                        Path* path) {
  ib::RequestPacket request;
  std::uint32_t next = 0;
  std::uint64_t lost = 0;
  while (lost < turn && c.requester.ud()->next_handle(true, &next) && next == handle &&
         next_request(c, &request, Instant())) {
    ++lost;
  }
  if (path != nullptr) path->route = Route::Unknown;
  return lost;
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
    } catch (const std::bad_alloc&) {  // no lookup is pending that would wake it
      sending_.add(*c);
      throw;
    }
    any |= turn.sent;
    if (turn.again && verbs::rights(c->qp->state).takes_requests) {
      sending_.add(*c);
    } else if (sending_.acks_wait() && has_responses(*c)) {
      sending_.add_owing(*c);
    }
    if (turn.full || c == last) break;
  }
  wire_.finish_sending();
  return any;
}

Side::Turn Side::transmit(Context& c, Instant now) {
  if (!may_answer(c) && !may_request(c)) return {};
  const bool datagrams = c.requester.ud() != nullptr;
  const Turn turn = datagrams ? transmit_datagrams(c, now) : transmit_connected(c, now);
  settle(c);
  return turn;
}

Side::Turn Side::transmit_connected(Context& c, Instant now) {
  Turn turn;
  if (c.requester.awaited()) [[unlikely]]
    wake_requester(c, halves_);
  if (!paths_.find(&c.path, c.attributes.av, now)) return turn;  // an event follows
  if (c.path.route == Route::None) {
    statistics_.unroutable += drop_unroutable(c, options_.turn, now);
    return turn;
  }
  turn.again = true;
  bool acks_wait = sending_.acks_wait();
  const unsigned expected = std::max(waiting_requests(c), port::TxBatch::kFirst);
  for (unsigned n = 0; n < options_.turn; ++n) {
    if (const unsigned run = send_run(c, options_.turn - n, acks_wait, wire_.tx(), now)) {
      turn.sent = true;
      statistics_.sent += run;
      n += run - 1;
      continue;
    }
    SendBuffers::Buffer buffer;
    turn.full = !buffers_.take(c.path, expected, &buffer);
    if (turn.full) break;
    std::size_t frame = next_packet(c, {n % 2 == 0, acks_wait}, buffer.at, now);
    if (frame == 0 && n > 1 && acks_wait) {
      // An ACK waited for these requests, and leaves with them. A single one does not wait for it.
      acks_wait = false;
      frame = next_packet(c, {true, acks_wait}, buffer.at, now);
    }
    if (frame == 0) {
      buffers_.give_back(buffer);
      turn.again = false;
      break;
    }
    buffers_.keep(buffer, frame);
    ++statistics_.sent;
    turn.sent = true;
  }
  return turn;
}

// Sends each datagram on the path of its address handle. One whose path is not resolved yet waits,
// and so do all after it: datagrams leave in order.
Side::Turn Side::transmit_datagrams(Context& c, Instant now) {
  Turn turn;
  ib::UdRequester& requester = *c.requester.ud();
  const bool may_begin = verbs::rights(c.qp->state).begins_sends;
  std::uint32_t handle = 0;
  for (unsigned n = 0; n < options_.turn; ++n) {
    if (!requester.next_handle(may_begin, &handle)) return turn;
    AddressHandles::Handle* const to = paths_.of(handle);
    if (to != nullptr && !paths_.find(&to->path, to->av, now)) return turn;  // an event follows
    if (to == nullptr || to->path.route == Route::None) {
      statistics_.unroutable +=
          drop_unroutable_datagrams(c, handle, options_.turn, to != nullptr ? &to->path : nullptr);
      continue;
    }
    SendBuffers::Buffer buffer;
    turn.full = !buffers_.take(to->path, port::TxBatch::kFirst, &buffer);
    if (turn.full) break;
    ib::RequestPacket packet;
    if (!next_request(c, &packet, now)) {
      buffers_.give_back(buffer);
      return turn;
    }
    const std::size_t frame = put(to->path.headers, packet, buffer.at);
    if (frame == 0) {
      buffers_.give_back(buffer);
      lose_request(c, packet);
      return turn;
    }
    buffers_.keep(buffer, frame);
    ++statistics_.sent;
    turn.sent = true;
  }
  turn.again = true;
  return turn;
}

// Writes the next packet. Returns the bytes of the frame at `to`; 0 if there is none to send.
std::size_t Side::next_packet(Context& c, Choice choice, std::uint8_t* to, Instant now) {
  FrameHeaders& headers = c.path.headers;
  if (c.greeting.wanted() && may_answer(c)) {
    ++statistics_.hellos_sent;
    ib::Hello hello;
    const ib::PacketHeader h = c.greeting.next(c.attributes, bool{c.requester}, &hello);
    const auto bytes = ib::write_hello(hello);
    const ByteView said(bytes);
    return headers.write(to, h, {&said, 1}, static_cast<std::uint32_t>(said.size()));
  }
  if (c.marks.wanted() && may_answer(c)) {
    const auto bytes = ib::Marks::payload();
    const ByteView said(bytes);
    return headers.write(to, c.marks.next(c.attributes), {&said, 1},
                         static_cast<std::uint32_t>(said.size()));
  }
  if (const std::size_t frame = keep_alive_packet(c, to); frame != 0) [[unlikely]]
    return frame;
  for (const bool response : {choice.responses_first, !choice.responses_first}) {
    if (response) {
      if (!answers(c, choice.acks_wait)) continue;
      ib::ResponsePacket p;
      if (!c.responder.rc()->next_response(&p)) continue;
      if (const std::size_t frame = put(headers, p, to)) return frame;
      c.responder.rc()->lose_response(&p);
      return put(headers, p, to);
    }
    if (!may_request(c) || !next_request(c, &request_, now)) continue;
    if (const std::size_t frame = put(headers, request_, to)) return frame;
    lose_request(c, request_);
  }
  return 0;
}

void Side::reroute(const IpAddress* next_hop, bool failed) {
  if (general_ != nullptr) general_->reroute(next_hop, failed);
  paths_.forget(next_hop, failed);
  table_.for_each([&](Context& c) {
    // Datagrams may wait for the path of a handle that has been closed meanwhile.
    const bool waits = c.requester.ud() != nullptr || c.path.forget(next_hop, failed);
    if (waits) sending_.add(c);
  });
}

}  // namespace urnic::roce
