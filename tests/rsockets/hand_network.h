// The network of hand_verbs.h: its items, and when they arrive.
#pragma once

#include <algorithm>

#include "rsockets/hand_calls.h"
#include "support/virtual_time.h"

namespace urnic::rsockets::hand {

inline HandVerbs::HandVerbs() : before_(verbs), service_(std::make_unique<Service>()) {
  the = this;
  process_ = Service::replace(service_.get());
  using C = Calls;
  verbs = {C::reg_mr,
           C::dereg_mr,
           C::create_cq,
           C::destroy_cq,
           C::create_comp_channel,
           C::destroy_comp_channel,
           C::get_cq_event,
           C::ack_cq_events,
           C::create_event_channel,
           C::get_cm_event,
           C::ack_cm_event,
           C::create_id,
           C::destroy_id,
           C::migrate_id,
           C::set_option,
           C::bind_addr,
           C::resolve_addr,
           C::resolve_route,
           C::create_qp,
           C::destroy_qp,
           C::listen,
           C::connect,
           C::accept,
           C::reject,
           C::disconnect,
           C::start};
  for (std::size_t i = 0; i < contexts_.size(); ++i) {
    contexts_[i].device = &devices_[i];
    contexts_[i].ops.poll_cq = C::poll_cq;
    contexts_[i].ops.req_notify_cq = C::req_notify;
    contexts_[i].ops.post_send = C::post_send;
    contexts_[i].ops.post_recv = C::post_recv;
    domains_[i].context = &contexts_[i];
  }
  events_channel_.fd = epoll_create1(EPOLL_CLOEXEC);
  (void)service_->start();
  for (ibv_context& c : contexts_) (void)service_->completions(&c);
}

inline HandVerbs::~HandVerbs() {
  service_.reset();
  Service::replace(process_);
  close(events_channel_.fd);
  verbs = before_;
  the = nullptr;
}

inline Left HandVerbs::left() const {
  return {ids_.size(),
          queues_.size(),
          regions_.size(),
          events_.size(),
          unacknowledged_ + cq_events_,
          lines_.size(),
          service_->known()};
}

inline void HandVerbs::tell(Id* id, rdma_cm_event_type what, int status, std::string said,
                            Id* listener) {
  auto e = std::make_unique<Event>();
  e->base.id = &id->base;
  e->base.listen_id = listener != nullptr ? &listener->base : nullptr;
  e->base.event = what;
  e->base.status = status;
  e->said = std::move(said);
  e->base.param.conn.private_data = e->said.empty() ? nullptr : e->said.data();
  e->base.param.conn.private_data_len = static_cast<std::uint8_t>(e->said.size());
  events_.push_back(std::move(e));
}

inline Mr* HandVerbs::region(std::uint32_t key) {
  const auto found = regions_.find(key / 2);
  return found == regions_.end() ? nullptr : found->second.get();
}

inline void HandVerbs::gather(const Qp& q, Item* item) {
  for (const ibv_sge& s : item->from) {
    const Mr* const mr = region(s.lkey);
    if (mr == nullptr || mr->base.lkey != s.lkey || !mr->holds(s.addr, s.length) ||
        mr->base.context != q.base.context) {
      return blame("bytes are sent from memory that is not registered");
    }
    const auto* at = reinterpret_cast<const std::uint8_t*>(s.addr);
    item->bytes.insert(item->bytes.end(), at, at + s.length);
  }
  item->from.clear();
}

inline void HandVerbs::complete(Qp& q, bool received, std::uint64_t wr_id, ibv_wc_status status,
                                std::uint32_t bytes) {
  Cq* const cq = Calls::own<Cq>(received ? q.base.recv_cq : q.base.send_cq);
  if (cq->done.size() >= cq->depth) blame("a completion queue is overrun");
  ibv_wc wc{};
  wc.wr_id = wr_id;
  wc.status = status;
  wc.byte_len = bytes;
  cq->done.emplace_back(wc, &q);
  if (!std::exchange(cq->armed, false)) return;
  Calls::own<Channel>(cq->base.channel)->events.push_back(cq);
}

// ---- arrival of one item

inline bool HandVerbs::write(Line& line, int from, Item& item) {
  Id* const to = line.end[1 - from];
  Mr* const mr = region(item.key);
  const bool right = to != nullptr && mr != nullptr && mr->base.rkey == item.key &&
                     mr->base.pd == to->base.pd && (mr->access & IBV_ACCESS_REMOTE_WRITE) != 0 &&
                     mr->holds(item.address, item.bytes.size());
  if (right && !item.bytes.empty()) {
    std::memcpy(reinterpret_cast<void*>(item.address), item.bytes.data(), item.bytes.size());
  }
  return right;
}

inline bool HandVerbs::deliver(Line& line, int from, const Item& item) {
  Id* const to = line.end[1 - from];
  if (to == nullptr || to->qp == nullptr) return false;
  Qp& q = *to->qp;
  if (q.receives.empty()) {
    blame("a message finds no receive");
    return false;
  }
  const ibv_sge place = q.places.front();
  const std::uint64_t wr_id = q.receives.front().wr_id;
  q.places.pop_front();
  q.receives.pop_front();
  if (place.length < item.bytes.size()) blame("a receive is too small");
  std::memcpy(reinterpret_cast<void*>(place.addr), item.bytes.data(), item.bytes.size());
  complete(q, true, wr_id, IBV_WC_SUCCESS, static_cast<std::uint32_t>(item.bytes.size()));
  return true;
}

inline Id* HandVerbs::listener_at(const sockaddr_in& to) {
  for (const auto& [id, of] : ids_) {
    const sockaddr_in& a = source_of(&of->base);
    const bool here = a.sin_addr.s_addr == INADDR_ANY || a.sin_addr.s_addr == to.sin_addr.s_addr;
    if (of->listens && here && a.sin_port == to.sin_port) return of.get();
  }
  return nullptr;
}

inline void HandVerbs::arrive_request(Line& line, Item item) {
  rdma_cm_id& active = line.end[0]->base;
  Id* const listener = listener_at(destination_of(&active));
  if (listener == nullptr) {
    line.way[1].push_back({Item::reject, {}, 0, 0, 0, {}, {}});
    return;
  }
  rdma_cm_id* id = nullptr;
  refuse = refuse > 0 ? refuse + 1 : 0;  // not a call of the program, so it does not count
  Calls::create_id(listener->base.channel, &id, listener->base.context, RDMA_PS_TCP);
  Id* const child = Calls::own<Id>(id);
  source_of(id) = destination_of(&active);
  destination_of(id) = source_of(&active);
  Calls::give_device(id, ntohl(source_of(id).sin_addr.s_addr));
  child->line = &line;
  child->side = 1;
  line.end[1] = child;
  tell(child, RDMA_CM_EVENT_CONNECT_REQUEST, 0, std::move(item.said), listener);
}

inline void HandVerbs::arrive(Line& line, int from) {
  Item item = std::move(line.way[from].front());
  line.way[from].pop_front();
  Id *const own = line.end[from], *const to = line.end[1 - from];
  bool good = true;
  switch (item.kind) {
    case Item::request:
      if (own == nullptr) return break_down(line, true);
      return arrive_request(line, std::move(item));
    case Item::reply:
      if (to != nullptr) tell(to, RDMA_CM_EVENT_ESTABLISHED, 0, std::move(item.said));
      if (to != nullptr) to->established = true;
      line.ready = true;
      return;
    case Item::reject:
      if (to != nullptr) tell(to, RDMA_CM_EVENT_REJECTED, 28);
      return break_down(line, true);
    case Item::fin:
      return break_down(line, false);
    case Item::write:
      if (own != nullptr && own->qp != nullptr) gather(*own->qp, &item);
      good = write(line, from, item);
      break;
    case Item::send:
      good = deliver(line, from, item);
      break;
  }
  if (own != nullptr && own->qp != nullptr) {
    line.acks[from].emplace_back(item.wr_id, good ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
  }
  if (!good) break_down(line, false);
}

// Flushes both ends' queues; each end with a connection gets its disconnect event.
inline void HandVerbs::break_down(Line& line, bool quietly) {
  if (std::exchange(line.down, true)) return;
  for (int side : {0, 1}) {
    Id* const id = line.end[side];
    auto work = std::exchange(line.way[side], {});
    if (id == nullptr) continue;
    if (id->qp != nullptr) {
      for (auto& [wr_id, status] : std::exchange(line.acks[side], {})) {
        complete(*id->qp, false, wr_id, status, 0);
      }
      for (const Item& i : work) {
        if (i.kind == Item::write || i.kind == Item::send) {
          complete(*id->qp, false, i.wr_id, IBV_WC_WR_FLUSH_ERR, 0);
        }
      }
      for (const ibv_recv_wr& r : std::exchange(id->qp->receives, {})) {
        complete(*id->qp, true, r.wr_id, IBV_WC_WR_FLUSH_ERR, 0);
      }
      id->qp->places.clear();
    }
    if (quietly) continue;
    if (id->established) {
      tell(id, RDMA_CM_EVENT_DISCONNECTED, 0);
    } else if (side == 0) {
      tell(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    } else if (id->answered) {
      tell(id, RDMA_CM_EVENT_CONNECT_ERROR, -ECONNRESET);
    }
  }
}

// ---- destroying

inline void HandVerbs::forget_events(const Id* id) {
  for (std::size_t i = 0; i < events_.size();) {
    const rdma_cm_event& e = events_[i]->base;
    if (e.id != &id->base && e.listen_id != &id->base) {
      ++i;
      continue;
    }
    Id* const child = e.listen_id == &id->base ? Calls::own<Id>(e.id) : nullptr;
    events_.erase(events_.begin() + static_cast<std::ptrdiff_t>(i));
    if (child != nullptr) drop(child);
  }
}

inline void HandVerbs::drop(Id* id) {
  forget_events(id);
  if (Line* const line = id->line; line != nullptr) {
    line->end[id->side] = nullptr;
    if (id->side == 1 && !id->answered && !line->down) {
      line->way[1].push_back({Item::reject, {}, 0, 0, 0, {}, {}});
    } else if (line->way[id->side].empty() && !line->down) {
      line->way[id->side].push_back({});
    }
  }
  ids_.erase(&id->base);
  sweep();
}

inline void HandVerbs::sweep() {
  lines_.remove_if(
      [](const Line& l) { return l.down && l.end[0] == nullptr && l.end[1] == nullptr; });
}

// ---- scheduling

inline bool HandVerbs::move(std::uint32_t n) {
  std::vector<std::pair<Line*, int>> all;  // also 2: an acknowledgement; 4: the end becomes ready
  for (Line& l : lines_) {
    if (l.ready && !holds_ready && !l.down && l.end[1] != nullptr) all.emplace_back(&l, 4);
    for (int side : {0, 1}) {
      if (!l.way[side].empty()) all.emplace_back(&l, side);
      if (!l.acks[side].empty()) all.emplace_back(&l, 2 + side);
    }
  }
  if (all.empty()) return false;
  const auto [line, what] = all[n % all.size()];
  if (what == 4) {
    line->ready = false;
    line->end[1]->established = true;
    tell(line->end[1], RDMA_CM_EVENT_ESTABLISHED, 0);
    return true;
  }
  if (what < 2) {
    arrive(*line, what);
    sweep();
    return true;
  }
  const auto [wr_id, status] = line->acks[what - 2].front();
  line->acks[what - 2].pop_front();
  complete(*line->end[what - 2]->qp, false, wr_id, status, 0);
  return true;
}

inline void HandVerbs::settle() {
  for (int quiet = 0; quiet < 2;) {
    bool moved = false;
    for (std::uint32_t n = 0; move(n); ++n) moved = true;
    for (const auto& c : channels_) moved = moved || !c->events.empty();
    moved = moved || !events_.empty();
    serve();
    test::VirtualTime::pass(2'000'000);  // time for a socket that is left to its polling program
    quiet = moved ? 0 : quiet + 1;
  }
}

inline bool HandVerbs::cut(int from, int to) {
  for (Line& l : lines_) {
    Id* const id = l.end[0] != nullptr ? l.end[0] : l.end[1];
    if (l.down || id == nullptr) continue;
    int ports[2] = {ntohs(source_of(&id->base).sin_port),
                    ntohs(destination_of(&id->base).sin_port)};
    if (id->side == 1) std::swap(ports[0], ports[1]);
    if (ports[0] != from || ports[1] != to) continue;
    break_down(l, false);
    sweep();
    return true;
  }
  return false;
}

}  // namespace urnic::rsockets::hand
