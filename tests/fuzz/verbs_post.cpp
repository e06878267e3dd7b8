// Work of an end: posted, polled, and compared with what was posted.
#include "tests/fuzz/verbs_end.h"

namespace urnic::fuzz {

// Mostly a piece of a region; sometimes beyond it, with another key, or of another region.
Sge End::sge(Input& in, bool written) {
  Region* r = any(regions_, in);
  if (r == nullptr) return {};
  const auto size = static_cast<std::uint32_t>(r->memory->size());
  const std::uint32_t at = in.below(size);
  std::uint32_t length = in.often(128) ? in.u8() : in.u16();
  std::uint32_t key = r->mr.lkey();
  if (in.often(240)) {
    length = std::min(length, size - at);
  } else if (in.often(128)) {
    key ^= 1u << in.below(32);
  }
  if (written) r->memory->name_to_write((r->access & access_local_write) != 0);
  return {r->mr.remote_address() + at, length, key};
}

// Chooses the destination in the peer's memory.
void End::aim(SendRequest* r, End& peer, Input& in) {
  const Region* region = any(peer.regions_, in);
  if (region == nullptr) return;
  r->rkey = region->mr.rkey();
  r->remote_address = region->mr.remote_address();
  const auto size = static_cast<std::uint32_t>(region->memory->size());
  std::uint32_t at = in.below(size) / 2;
  if (in.often(240)) at &= ~7u;
  r->remote_address += at;
  r->invalidate_rkey = in.often(128) ? r->rkey : in.u32();
  if (in.often(48)) {
    const MemoryWindow* w = any(peer.windows_, in);
    if (w != nullptr) r->rkey = w->rkey();
  }
  if (in.often(12)) r->rkey ^= 1u << in.below(32);
  if (in.often(12)) r->remote_address += in.u16() << 8;
}

void End::post_send(End& peer, Input& in) {
  static constexpr Opcode kOps[] = {Opcode::send,
                                    Opcode::send,
                                    Opcode::send,
                                    Opcode::write,
                                    Opcode::write,
                                    Opcode::write,
                                    Opcode::read,
                                    Opcode::read,
                                    Opcode::send_with_invalidate,
                                    Opcode::send_with_immediate,
                                    Opcode::write_with_immediate,
                                    Opcode::fetch_add,
                                    Opcode::compare_swap,
                                    Opcode::swap,
                                    Opcode::local_invalidate,
                                    Opcode::bind_window};
  Pair* p = any(pairs_, in);
  if (p == nullptr) return;
  SendRequest r;
  r.opcode = in.often(2) ? static_cast<Opcode>(in.u8()) : kOps[in.below(16)];
  r.flags = in.often(192) ? std::uint32_t{send_signaled} : 0;
  r.flags |= in.often(16) ? std::uint32_t{send_solicited} : 0;
  r.flags |= in.often(16) ? std::uint32_t{send_fence} : 0;
  aim(&r, peer, in);
  const bool atomic = r.opcode >= Opcode::fetch_add && r.opcode <= Opcode::swap;
  const bool sink = atomic || r.opcode == Opcode::read;
  Sge pieces[5];
  std::uint32_t n = in.often(200) ? 1 : in.below(6);
  if (r.opcode == Opcode::local_invalidate || r.opcode == Opcode::bind_window) n = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    pieces[i] = sge(in, sink);
    if (atomic && in.often(250)) pieces[i].length = std::min(pieces[i].length, 8u);
  }
  r.sges = {pieces, n};
  // Inline data is read by the program itself, so it must exist.
  std::uint8_t text[2048] = {1, 2, 3};
  if (!sink && in.often(32)) {
    r.flags |= send_inline;
    pieces[0] = {reinterpret_cast<std::uint64_t>(text),
                 in.often(224) ? in.below(65) : in.below(2048), 0};
    r.sges = {pieces, 1};
  }
  r.immediate = r.atomic.data = in.u8();
  WindowBind bind;
  if (r.opcode == Opcode::bind_window && in.often(250)) {
    MemoryWindow* w = any(windows_, in);
    Region* region = any(regions_, in);
    if (w != nullptr && region != nullptr) {
      const auto size = static_cast<std::uint32_t>(region->memory->size());
      bind = {region->mr.remote_address() + in.below(size), in.u8(), region->mr.lkey(),
              in.often(192) ? w->next_rkey() : w->rkey(), 0};
      bind.access = in.often(16) ? in.u8() : access_remote_read | access_remote_write;
      if ((bind.access & (access_remote_write | access_remote_atomic)) != 0) {
        region->memory->name_to_write((region->access & access_local_write) != 0);
      }
    }
    r.bind = &bind;
  }
  if (p->service == Service::ud && in.often(240)) {
    r.address_handle = any(handles_, in);
    const Pair* other = any(peer.pairs_, in);
    r.remote_qp = other == nullptr ? 0 : other->qp.number();
    r.remote_qkey = 0x11111111;
  }
  const std::uint32_t many = in.often(32) ? 1 + in.below(4) : 1;
  std::vector<SendRequest> all(many, r);
  for (std::uint32_t i = 0; i < many; ++i) all[i].wr_id = ledger_.next_id() + i;
  Error why;
  const std::size_t taken = call([&] { return p->qp.post_send(all, &why); });
  require(taken <= many, "more is taken than was posted");
  const bool signaled = p->signal_all || (r.flags & send_signaled) != 0;
  for (std::size_t i = 0; i < taken; ++i) {
    ledger_.post({p->sends, p->qp.number(), 0, false, signaled});
  }
}

void End::post_receive(Input& in) {
  const bool shared = in.often(64);
  Shared* s = shared ? any(shared_, in) : nullptr;
  Pair* p = s == nullptr ? any(pairs_, in) : nullptr;
  if (s == nullptr && p == nullptr) return;
  Sge pieces[4];
  const std::uint32_t n = in.often(200) ? 1 : in.below(5);
  std::uint32_t most = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    pieces[i] = sge(in, true);
    most += pieces[i].length;
  }
  const ReceiveRequest r{ledger_.next_id(), {pieces, n}};
  if (s != nullptr) {
    if (call([&] { return s->queue.post_receive(r); })) {
      ledger_.post({s->name, 0, most, true, true});
    }
  } else if (call([&] { return p->qp.post_receive(r); })) {
    ledger_.post({p->receives, p->qp.number(), most, true, true});
  }
}

void End::poll(Queue& q, std::size_t most) {
  Completion c[16];
  const int n = call([&] { return q.cq.poll({c, most}); });
  if (n < 0) q.overrun = true;
  for (int i = 0; i < n; ++i) {
    ledger_.complete(c[i].wr_id, c[i].qp_number, c[i].opcode == Opcode::receive,
                     c[i].status == WcStatus::success,
                     c[i].behind_write ? 0 : c[i].byte_len);  // their data is elsewhere
  }
}

void End::poll_all() {
  for (Queue& q : queues_) {
    for (std::uint64_t before = ~std::uint64_t{0}; before != ledger_.done();) {
      before = ledger_.done();
      poll(q, 16);
    }
  }
  for (auto& q : events_) {
    Event e;
    while (q.object.poll(&e)) take_event(e);
  }
}

void End::lose_what_cannot_come(const Pair& p) {
  const auto is_lost = [&](Name name) {
    const Queue* q = find(queues_, name);
    return q == nullptr || q->overrun;
  };
  if (is_lost(p.send_cq)) ledger_.lose(p.sends);
  if (!is_lost(p.receive_cq)) return;
  if (p.srq == 0) {
    ledger_.lose(p.receives);
  } else if (Shared* s = find(shared_, p.srq); s != nullptr) {
    s->is_certain = false;
  }
}

void End::check_work() {
  for (const Pair& p : pairs_) {
    lose_what_cannot_come(p);
    ledger_.settle(p.sends);
    if (p.srq == 0) ledger_.settle(p.receives);
  }
  for (const Shared& s : shared_) {
    if (!ledger_.knows(s.name)) continue;
    const std::uint32_t left = s.queue.query().posted;
    require(left <= ledger_.open(s.name), "a receive is posted still that has completed");
    require(!s.is_certain || left == ledger_.open(s.name), "a shared receive is lost");
  }
}

void End::move(End& peer, Input& in) {
  switch (in.below(32)) {
    case 0:
    case 1:
      return make_pair(in);
    case 2:
    case 3:
      return connect(peer, in);
    case 4:
    case 5:
      return answer(in);
    case 6:
    case 7:
    case 8:
    case 9:
    case 10:
    case 11:
      return post_send(peer, in);
    case 12:
    case 13:
    case 14:
    case 15:
      return post_receive(in);
    case 16:
    case 17:
      if (Queue* q = any(queues_, in); q != nullptr) poll(*q, 1 + in.below(16));
      return;
    case 18:
      return pair_up(peer, in);
    case 19:
      return modify(peer, in);
    case 20:
      return end_connection(in);
    case 21:
      if (!pairs_.empty() && in.often(128)) {
        destroy_pair(in.below(static_cast<std::uint32_t>(pairs_.size())), in.often(96));
      }
      return;
    case 22:
      return move_queue(in);
    case 23:
      return move_region(in);
    case 24:
      return move_window(in);
    case 25:
      return move_shared(in);
    case 26:
    case 27:
      return listen(in);
    case 28:
      return move_handle(peer, in);
    case 29:
      return look(in);
    default:
      return move_events(in);
  }
}

}  // namespace urnic::fuzz
