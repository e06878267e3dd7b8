// The steps of a walk over UD: datagrams by all kinds of address handles, to several queue pairs of
// two devices, valid and invalid.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/device/walk_world.h"

namespace urnic::test {

inline constexpr std::uint32_t kMost = 1024;  // bytes of a datagram
// stands for the Q_Key of the sending queue pair
inline constexpr std::uint32_t kOwnQkey = 1u << 31;

struct WalkHandle {
  WalkEnd* end;
  AddressHandle handle;
  QpPath path;
  bool v6() const { return path.remote.find(':') != std::string::npos; }
};

class DatagramSteps {
 public:
  explicit DatagramSteps(WalkWorld& world) : world_(world) {}

  // A queue pair in rts, or one that is reset and gets another Q_Key.
  void ready(Dice& dice) {
    WalkPair* p = any(dice, QpState::reset);
    WalkEnd& at = *world_.ends[dice.below(2)];
    if (p == nullptr) p = world_.make(at, dice, Transport::roce, Service::ud);
    if (p == nullptr) return;
    QpAttributes a;
    a.qkey = dice.below(4) | (dice.one_in(4) ? kOwnQkey : 0u) | 0x100;
    world_.tell("ready " + WalkWorld::name(*p) + " with Q_Key " + std::to_string(*a.qkey));
    agree(p->qp.modify(QpState::init, a).ok(), "a queue pair of UD has a Q_Key");
    agree(p->qp.modify(QpState::rtr).ok(), "it takes datagrams");
    p->state = QpState::rtr;
    p->attributes = a;
    QpAttributes to;
    to.sq_psn = dice.below(1u << 24);
    if (dice.one_in(2)) agree(p->qp.modify(QpState::rts, to).ok(), "it sends"), sends(*p);
  }
  void change(Dice& dice) {
    auto& all = world_.pairs;
    if (all.empty()) return;
    WalkPair& p = *all[dice.below(all.size())];
    switch (dice.below(4)) {
      case 0:
        world_.drop(dice.below(all.size()));
        return;
      case 1:
        world_.tell("reset " + WalkWorld::name(p));
        agree(p.qp.modify(QpState::reset).ok(), "a queue pair is reset");
        p.state = QpState::reset;
        p.forget();
        return;
      case 2:
        if (p.state == QpState::reset || p.state == QpState::error) return;
        world_.tell("error of " + WalkWorld::name(p));
        agree(p.qp.modify(QpState::error).ok(), "a queue pair ends");
        p.state = QpState::error;
        p.flush_receives();
        return;
      default: {
        if (p.state != QpState::rts) return;
        QpAttributes a;
        a.qkey = dice.below(4) | 0x100;
        world_.tell("another Q_Key for " + WalkWorld::name(p));
        agree(p.qp.modify(QpState::rts, a).ok(), "a Q_Key changes");
        p.attributes.qkey = a.qkey;
        return;
      }
    }
  }
  void change_handles(Dice& dice) {
    if (handles_.size() > 2 && dice.one_in(2)) {
      handles_.erase(handles_.begin() + dice.below(handles_.size()));
      return;
    }
    WalkHandle h;
    h.end = world_.ends[dice.below(2)].get();
    const unsigned to = h.end->which ^ (dice.one_in(5) ? 0u : 1u);  // sometimes to itself
    const bool v6 = dice.one_in(2), second = dice.one_in(2);
    const auto host = [&](unsigned which) {
      return v6 ? "fd77::" + std::to_string(which + 1)
                : "10.77.0." + std::to_string(which + (second ? 11 : 1));
    };
    h.path.remote = host(to);
    if (dice.one_in(2)) h.path.local = host(h.end->which);
    h.path.traffic_class = dice.between(1, 60) * 4;
    h.path.hop_limit = dice.between(2, 250);
    h.path.source_port = dice.between(0xc001, 0xffff);
    auto made = h.end->device.create_address_handle(h.end->pd, h.path);
    agree(made.ok(), "an address handle is made");
    h.handle = std::move(*made);
    handles_.push_back(std::make_unique<WalkHandle>(std::move(h)));
    world_.settle(5);
  }
  // An invalid path.
  void refuse_handle(Dice& dice) {
    WalkEnd& e = *world_.ends[dice.below(2)];
    QpPath path;
    path.remote = "10.77.0.2";
    Errc code = Errc::invalid_argument;
    switch (dice.below(4)) {
      case 0:
        path.hop_limit = 256;
        break;
      case 1:
        path.source_port = 0xbfff;
        break;
      case 2:
        path.traffic_class = 256;
        break;
      default:
        path.remote = "192.0.2.1";
        code = Errc::unreachable;
        break;
    }
    const auto made = e.device.create_address_handle(e.pd, path);
    agree(!made.ok() && made.error().code == code, "a way that cannot be");
  }

  // Sends some datagrams from one queue pair, each to the destination of its handle.
  void send(Dice& dice) {
    WalkPair* const p = any(dice, QpState::rts);
    std::vector<WalkHandle*> own;
    for (auto& h : handles_) {
      if (p != nullptr && h->end == &p->end) own.push_back(h.get());
    }
    if (own.empty()) return;
    slot_ = dice.below(kSharedSlots);
    for (std::uint32_t many = dice.between(1, p->o.max_send); many != 0; --many) {
      const WalkHandle& h = **dice.any(own);
      one(*p, h, target(h, dice), dice);
    }
  }

  // Checks the headers before the payloads after each step, before memories are compared.
  void adopt_headers() {
    for (const Came& c : came_) check_header(c);
    came_.clear();
  }
  void drop_handles() {
    while (!handles_.empty()) handles_.erase(handles_.begin() + handles_.size() / 2);
  }
  std::uint64_t wrong_keys[2] = {0, 0};

 private:
  struct Came {
    WalkEnd* end;
    std::size_t at;
    QpPath path;
    std::uint32_t bytes;  // of payload
  };
  static void sends(WalkPair& p) { p.state = QpState::rts; }

  WalkPair* any(Dice& dice, QpState state) {
    std::vector<WalkPair*> found;
    for (auto& p : world_.pairs) {
      if (p->state == state) found.push_back(p.get());
    }
    WalkPair** const p = dice.any(found);
    return p == nullptr ? nullptr : *p;
  }
  WalkEnd& led_to(const WalkHandle& h) {
    const char last = h.path.remote.back();
    return *world_.ends[last == '1' ? 0 : 1];
  }
  // Null: a number that does not exist.
  WalkPair* target(const WalkHandle& h, Dice& dice) {
    std::vector<WalkPair*> there;
    for (auto& q : world_.pairs) {
      if (&q->end == &led_to(h)) there.push_back(q.get());
    }
    WalkPair** const q = dice.any(there);
    return q == nullptr || dice.one_in(10) ? nullptr : *q;
  }
  void one(WalkPair& p, const WalkHandle& h, WalkPair* q, Dice& dice) {
    const bool fits = !dice.one_in(6);
    const std::uint32_t length = fits ? dice.between(0, kMost) : dice.between(kMost + 1, 3000);
    const std::size_t at = slot_++ % kSharedSlots * kSlot;
    if (fits) p.end.write(at, dice.bytes(length));
    const Sge sge = p.end.sge(at, length);
    SendRequest r;
    r.wr_id = world_.next_id();
    r.opcode = dice.one_in(2) ? Opcode::send_with_immediate : Opcode::send;
    r.flags = (dice.one_in(2) ? send_signaled : 0u) | (dice.one_in(3) ? send_solicited : 0u) |
              (length <= p.o.max_inline && dice.one_in(2) ? send_inline : 0u);
    r.sges = {&sge, length == 0 ? 0u : 1u};
    r.immediate = dice.number() & 0xffffffff;
    r.address_handle = &h.handle;
    r.remote_qp = q == nullptr ? 0xabcdef : q->qp.number();
    const bool right = !dice.one_in(4);
    const std::uint32_t key = q == nullptr || !right ? dice.below(4) | 0x100 : *key_of(*q);
    r.remote_qkey = (key & kOwnQkey) != 0 || dice.one_in(5) ? kOwnQkey | dice.below(9) : key;
    world_.tell("a datagram of " + std::to_string(length) + " bytes by " + WalkWorld::name(p));
    const auto posted = p.qp.post_send(r);
    if (!fits) {
      agree(!posted.ok() && posted.error().code == Errc::invalid_argument, "longer than a packet");
      return;
    }
    agree(posted.ok(), "a datagram is taken");
    if ((r.flags & send_signaled) != 0 || p.o.signal_all) {
      p.want_send(r.wr_id, r.opcode, WcStatus::success);
    }
    ++p.counts.sends_sent;
    p.counts.send_bytes_sent += length;
    if (q != nullptr) arrives(p, h, *q, r, at, length);
    world_.settle(1);
  }
  static const std::uint32_t* key_of(const WalkPair& q) {
    static const std::uint32_t kNone = 0x1ff;
    return q.attributes.qkey ? &*q.attributes.qkey : &kNone;
  }
  void arrives(WalkPair& p, const WalkHandle& h, WalkPair& q, const SendRequest& r, std::size_t at,
               std::uint32_t length) {
    if (q.state != QpState::rtr && q.state != QpState::rts) return;
    const bool own = (r.remote_qkey & kOwnQkey) != 0;
    if ((own ? *p.attributes.qkey : r.remote_qkey) != *q.attributes.qkey) {
      ++wrong_keys[q.end.which];
      return;
    }
    if (q.queue().empty() || q.queue().front().room < 40 + length) return;
    const WalkReceive into = q.queue().front();
    q.queue().pop_front();
    if (q.has_srq) q.end.look_at_limit();
    Completion& c = q.want_receive(into.id, WcStatus::success);
    c.byte_len = 40 + length;
    c.has_grh = true;
    c.grh_is_ipv4 = !h.v6();
    c.source_qp = p.qp.number();
    c.with_immediate = r.opcode == Opcode::send_with_immediate;
    c.immediate = c.with_immediate ? r.immediate : 0;
    if ((r.flags & send_solicited) != 0) q.last_receive_is_solicited();
    ++q.counts.sends_received;
    q.counts.send_bytes_received += length;
    q.counts.payload_placed += length;
    ++q.counts.completion_cqe_writes;
    std::copy_n(p.end.model.begin() + static_cast<std::ptrdiff_t>(at), length,
                q.end.model.begin() + static_cast<std::ptrdiff_t>(into.at + 40));
    came_.push_back({&q.end, into.at, h.path, length});
  }
  // The header of the received datagram is there, with the correct fields.
  static void check_header(const Came& c) {
    const bool v6 = c.path.remote.find(':') != std::string::npos;
    const std::uint8_t* const ip = c.end->memory.data() + c.at + (v6 ? 0 : 20);
    agree_on(ip[0] >> 4, v6 ? 6 : 4, "the version of the header of a datagram");
    const unsigned tos = v6 ? (ip[0] << 4 | ip[1] >> 4) & 0xffu : ip[1];
    agree_on(tos & 0xfc, c.path.traffic_class & 0xfcu, "the traffic class of a datagram");
    agree_on(std::uint32_t{ip[v6 ? 7 : 8]}, c.path.hop_limit, "the hop limit of a datagram");
    const unsigned ip_length = ip[v6 ? 4 : 2] << 8 | ip[v6 ? 5 : 3];
    agree(ip_length >= c.bytes + 8 + 12 + 8 + 4, "the length of a datagram");
    const char last = c.path.remote.back();
    const unsigned host =
        last - '0' + (c.path.remote.ends_with(".11") || c.path.remote.ends_with(".12") ? 10 : 0);
    agree_on(unsigned{ip[v6 ? 39 : 19]}, host, "the destination of a datagram");
    std::copy_n(c.end->memory.begin() + static_cast<std::ptrdiff_t>(c.at + (v6 ? 0 : 20)),
                v6 ? 40 : 20,
                c.end->model.begin() + static_cast<std::ptrdiff_t>(c.at + (v6 ? 0 : 20)));
  }

  WalkWorld& world_;
  std::vector<std::unique_ptr<WalkHandle>> handles_;
  std::vector<Came> came_;
  std::size_t slot_ = 0;
};

}  // namespace urnic::test
