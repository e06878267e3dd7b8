// A random walk over rsockets, which checks their data and that nothing leaks.
#pragma once

#include "rsockets/rsocket_moves.h"

namespace urnic::rsockets::model {

class RsocketWalk : public Moves {
 public:
  // Starts with two connected rsockets.
  explicit RsocketWalk(Dice& d) {
    for (int i = 0; i < 2; ++i) make(d);
    listen_on(ends_[0], d);
    begin_connect(ends_[1], ends_[0], static_cast<int>(d.below(2)), ends_[0]->port, false);
    settle();
    accept(d);
  }
  void step(Dice& d) override {
    for (unsigned n = d.one_in(3) ? d.between(2, 5) : 1; n > 0; --n) {
      act(d);
      if (d.one_in(3)) nudge(d);
    }
    settle();
  }
  // All created objects must be released, whatever the order of closing.
  void finish() override {
    Dice d(ends_.size());
    while (!ends_.empty()) close(d);
    settle();
    const hand::Left left = net_->left();
    agree_on(left.ids, 0u, "identifiers left");
    agree_on(left.queues, 0u, "completion queues left");
    agree_on(left.regions, 0u, "regions left");
    agree_on(left.events + left.unacknowledged, 0u, "events left");
    agree_on(left.lines, 0u, "connections left");
    agree_on(left.sockets, 0u, "rsockets the service knows");
    agree_on(open_descriptors(), descriptors_, "descriptors");
  }

 private:
  void act(Dice& d) {
    if (d.one_in(40)) return send_early(d);
    if (d.one_in(60)) return connect_without_memory(d);
    if (d.one_in(50)) return d.one_in(2) ? cut(d) : cut_connecting(d);
    const unsigned what = d.below(100);
    if (what < 8) return make(d);
    if (what < 13) return set_option(d);
    if (what < 16) return bind(d);
    if (what < 20) return listen(d);
    if (what < 30) return connect(d);
    if (what < 37) return accept(d);
    if (what < 40) return send_many(d);
    if (what < 57) return send(d);
    if (what < 77) return receive(d);
    if (what < 80) return shutdown(d);
    if (what < 83) return close(d);
    if (what < 85) return another_number(d);
    if (what < 89) return map(d);
    if (what < 91) return unmap(d);
    if (what < 97) return write_to_mapping(d);
    return wait_in_vain(d);
  }
  // Some of the items in flight arrive.
  void nudge(Dice& d) {
    for (unsigned n = d.below(30); n > 0; --n) net_->move(d.below(1000));
    if (d.one_in(2)) net_->serve();
  }
  // Usually a connected one.
  Held pick_connected(Dice& d) {
    const Held e = d.one_in(12) ? pick(d) : pick(d, Stage::connected);
    if (e != nullptr && e->stage == Stage::connecting) calm();
    return e;
  }
  static bool may_have_ended(const End& e) {
    return !e.heard.empty() || e.torn || e.may_be_both || e.is_short;
  }
  // True if all data was read, so that there is room again.
  bool has_room(const End& e) const {
    const Held peer = e.peer.lock();
    return is_settled_ && peer != nullptr && peer->unread.empty();
  }

  void send(Dice& d) {
    const Held e = pick_connected(d);
    if (e == nullptr) return;
    static constexpr std::uint32_t kMost[] = {1, 80, 3000, 20'000, 150'000};
    const auto bytes = d.bytes(d.between(1, kMost[d.below(5)]));
    const long got = send_by(*e, bytes, d);
    tell(name(*e) + "sends " + std::to_string(bytes.size()) + ": " + std::to_string(got));
    check_sent(*e, got, static_cast<long>(bytes.size()));
    const Held peer = e->peer.lock();
    if (got > 0 && peer != nullptr) {
      if (!peer->in_open && !peer->out_open) peer->is_short = true;
      peer->unread.insert(peer->unread.end(), bytes.begin(), bytes.begin() + got);
      agree(peer->unread.size() <= static_cast<std::size_t>(peer->in_force.receive_buffer),
            name(*e) + "more is sent than the peer has room for");
    }
    tell_mappings(*e, got > 0);
    is_settled_ = false;
  }
  static long send_by(const End& e, const std::vector<std::uint8_t>& bytes, Dice& d) {
    const std::size_t size = bytes.size(), half = d.below(size + 1);
    auto* const at = const_cast<std::uint8_t*>(bytes.data());
    switch (d.below(3)) {
      case 0: {
        const iovec parts[] = {{at, half}, {nullptr, 0}, {at + half, size - half}};
        return result(urnic_rwritev(e.fd(), parts, 3));
      }
      case 1:
        return result(urnic_rsend(e.fd(), at, size, MSG_NOSIGNAL));
      default:
        return result(urnic_rwrite(e.fd(), at, size));
    }
  }
  // Sends from an end that has its answer, when the other end is not established yet.
  void send_early(Dice& d) {
    if (d.one_in(2)) connect(d);
    const Held e = pick(d, Stage::connecting);
    if (e == nullptr || e->listener.lock() == nullptr || e->is_uncertain) return;
    for (unsigned n = 0; n < 3; ++n) {
      net_->move(d.below(1000));
      net_->serve();
    }
    const auto bytes = d.bytes(d.between(1, 2000));
    const long got = result(urnic_rsend(e->fd(), bytes.data(), bytes.size(), 0));
    tell(name(*e) + "sends early: " + std::to_string(got));
    agree(got == -EAGAIN || got > 0, name(*e) + "an early rsend");
    if (got > 0) e->early.insert(e->early.end(), bytes.begin(), bytes.begin() + got);
    net_->holds_ready = true;
    nudge(d);
    net_->serve();
    net_->holds_ready = false;
  }
  // Sends small messages until there is no credit or no slot in the send queue.
  void send_many(Dice& d) {
    const Held e = pick(d, Stage::connected);
    const Held peer = e == nullptr ? nullptr : e->peer.lock();
    if (peer == nullptr || e->send_error() != 0) return;
    const bool was_empty = has_room(*e), certain = !may_have_ended(*e);
    const bool lives = peer->in_open || peer->out_open;
    int n = 0;
    long got = 1;
    for (; n < 400; ++n) {
      const std::uint8_t byte = static_cast<std::uint8_t>(d.number());
      got = result(urnic_rsend(e->fd(), &byte, 1, 0));
      if (got != 1) break;
      peer->unread.push_back(byte);
    }
    tell(name(*e) + "sends 1 byte " + std::to_string(n) + " times: " + std::to_string(got));
    tell_mappings(*e, n > 0);
    peer->is_short = peer->is_short || !lives;
    is_settled_ = false;
    if (certain) agree(got == 1 || got == -EAGAIN, name(*e) + "rsend of little");
    const int credits = peer->in_force.receive_queue, places = e->in_force.send_queue / 2;
    if (!was_empty || !certain || n == 400) return;
    agree(n <= std::min(credits, places), name(*e) + "more than the queues hold");
    agree(n >= std::min(credits / 2, places) - 6, name(*e) + "less than the queues hold");
  }
  void check_sent(const End& e, long got, long size) const {
    const int why = e.send_error();
    if (got == -EPIPE || got == -ECONNRESET) {
      agree(got == -why || may_have_ended(e), name(e) + "cannot send");
      return;
    }
    if (why != 0 || got < 0) {
      agree_on(got, why != 0 ? -why : -EAGAIN, name(e) + "rsend");
      agree(why != 0 || !has_room(e), name(e) + "no room though all was read");
      return;
    }
    agree(got > 0 && got <= size, name(e) + "so much is sent");
    const Held peer = e.peer.lock();
    if (!has_room(e)) return;
    const long room = std::min(peer->in_force.receive_buffer / 2, e.in_force.send_buffer - 2048);
    agree(got >= std::min(size, room), name(e) + "less is sent than there is room for");
  }
  // Buffers are announced to the peer before any data; without room, perhaps only some.
  void tell_mappings(End& e, bool surely) {
    const Held peer = e.peer.lock();
    for (const auto& m : e.mapped) {
      if (m->place < 0 || m->told == Mapped::Told::yes || !e.out_open) continue;
      m->told = surely ? Mapped::Told::yes : Mapped::Told::maybe;
      if (peer == nullptr) continue;
      Place& p = peer->places[static_cast<std::size_t>(m->place)];
      p = {m->offset, m->memory.size(), m, false, surely};
      if (!surely) p.is_doubtful = true;
    }
  }

  void receive(Dice& d) {
    const Held e = pick_connected(d);
    if (e == nullptr) return;
    std::vector<std::uint8_t> in(d.one_in(2) ? 200'000 : d.between(1, 5000));
    const bool looks = d.one_in(6);
    const long got = receive_by(*e, in, looks, d);
    tell(name(*e) + (looks ? "looks at " : "receives ") + std::to_string(in.size()) + ": " +
         std::to_string(got));
    check_received(*e, got, in);
    if (got <= 0 || looks) return;
    e->unread.erase(e->unread.begin(), e->unread.begin() + got);
    is_settled_ = false;
  }
  static long receive_by(const End& e, std::vector<std::uint8_t>& in, bool looks, Dice& d) {
    const std::size_t half = d.between(1, static_cast<std::uint32_t>(in.size()));
    const iovec parts[] = {{in.data(), half}, {in.data() + half, in.size() - half}};
    if (looks) return result(urnic_rrecv(e.fd(), in.data(), in.size(), MSG_PEEK));
    switch (d.below(4)) {
      case 0:
        return result(urnic_rreadv(e.fd(), parts, 2));
      case 1:
        return result(urnic_rrecv(e.fd(), in.data(), in.size(), MSG_WAITALL));
      case 2: {
        msghdr m{};
        m.msg_iov = const_cast<iovec*>(parts);
        m.msg_iovlen = 2;
        return result(urnic_rrecvmsg(e.fd(), &m, 0));
      }
      default:
        return result(urnic_rread(e.fd(), in.data(), in.size()));
    }
  }
  void check_received(const End& e, long got, const std::vector<std::uint8_t>& in) const {
    const auto most = static_cast<long>(std::min(in.size(), e.unread.size()));
    if (got > 0) {
      agree(got <= most, name(e) + "more comes than was sent");
      agree(std::equal(in.begin(), in.begin() + got, e.unread.begin()),
            name(e) + "other bytes come");
    }
    if (is_settled_ && !e.torn) {
      agree_on(got, most > 0 ? most : -long{e.receive_error()}, name(e) + "rrecv");
    } else if (got <= 0 && got != -EAGAIN) {
      agree(got == -e.receive_error() || may_have_ended(e), name(e) + "the end of input");
      agree(e.unread.empty() || may_have_ended(e) || !e.in_open,
            name(e) + "an end before what was sent");
    }
  }
  // A blocking call that must wait for its whole time-out.
  void wait_in_vain(Dice& d) {
    const Held e = pick(d, Stage::connected);
    if (e == nullptr || e->options.receive_ms < 0) return;
    calm();
    if (!e->unread.empty() || e->receive_error() != EAGAIN) return;
    urnic_rfcntl(e->fd(), F_SETFL, long{O_RDWR});
    const std::int64_t before = test::VirtualTime::now_ns();
    std::uint8_t byte;
    const long got = result(urnic_rrecv(e->fd(), &byte, 1, 0));
    const long ms = (test::VirtualTime::now_ns() - before) / 1'000'000;
    urnic_rfcntl(e->fd(), F_SETFL, long{O_RDWR | O_NONBLOCK});
    tell(name(*e) + "waits for " + std::to_string(ms) + " ms");
    agree_on(got, -EAGAIN, name(*e) + "a receive that waits");
    agree(ms >= e->options.receive_ms && ms <= e->options.receive_ms + 5,
          name(*e) + "another time");
  }

  // ---- mapped buffers of the program

  void map(Dice& d) {
    const Held e = pick(d, d.one_in(8) ? Stage::bound : Stage::connected);
    if (e == nullptr) return;
    const auto m = std::make_shared<Mapped>();
    m->memory = m->expected = d.bytes(d.between(1, 9000));
    m->offset = last_offset_ += 100'000;
    const bool for_peer = !d.one_in(5), lacks = d.one_in(8);
    if (for_peer) m->place = e->free_place(e->of_peer);
    const bool connected = e->stage == Stage::connected;
    net_->refuse = lacks ? 1 : 0;
    const long want = !connected                            ? -ENOTCONN
                      : lacks || (for_peer && m->place < 0) ? -ENOMEM
                                                            : static_cast<long>(m->offset);
    const long got =
        result(urnic_riomap(e->fd(), m->memory.data(), m->memory.size(),
                            for_peer ? PROT_WRITE : PROT_NONE, 0, static_cast<off_t>(m->offset)));
    net_->refuse = 0;
    tell(name(*e) + "maps at " + std::to_string(m->offset) + ": " + std::to_string(got));
    agree_on(got, want, name(*e) + "riomap");
    if (got < 0) return;
    e->mapped.push_back(m);
    kept_.push_back(m);
  }
  void unmap(Dice& d) {
    const Held e = pick(d, Stage::connected);
    if (e == nullptr || e->mapped.empty()) return;
    calm();
    const std::size_t at = d.below(e->mapped.size());
    const auto m = e->mapped[at];
    agree_on(result(urnic_riounmap(e->fd(), m->memory.data(), m->memory.size() + 1)), -EINVAL,
             "riounmap");
    tell(name(*e) + "unmaps " + std::to_string(m->offset));
    agree_on(result(urnic_riounmap(e->fd(), m->memory.data(), m->memory.size())), 0, "riounmap");
    agree_on(result(urnic_riounmap(e->fd(), m->memory.data(), m->memory.size())), -EINVAL,
             "riounmap");
    m->is_mapped = false;
    e->mapped.erase(e->mapped.begin() + static_cast<std::ptrdiff_t>(at));
  }
  void write_to_mapping(Dice& d) {
    const Held e = pick(d, Stage::connected);
    if (e == nullptr) return;
    calm();
    const bool anywhere = e->places.empty() || d.one_in(10);
    const Place p = anywhere ? Place{} : e->places[d.below(e->places.size())];
    if (p.is_doubtful) return;
    const std::uint64_t inside = p.is_known ? d.below(p.length) : 7;
    const auto bytes = d.bytes(d.between(1, 12'000));
    const auto expected =
        static_cast<long>(std::min<std::uint64_t>(bytes.size(), p.length - inside));
    const bool room = has_room(*e);
    const auto at = static_cast<off_t>((p.is_known ? p.offset : 50'000'000'000) + inside);
    const long got = result(static_cast<ssize_t>(
        urnic_riowrite(e->fd(), bytes.data(), bytes.size(), at, MSG_DONTWAIT)));
    tell(name(*e) + "writes " + std::to_string(bytes.size()) + " to " + std::to_string(at) + ": " +
         std::to_string(got));
    tell_mappings(*e, got > 0);
    is_settled_ = false;
    is_written_ = true;
    const int why = e->send_error();
    if (why != 0) return agree_on(got, -why, name(*e) + "riowrite of what has ended");
    if (got == -EAGAIN) return agree(!room, name(*e) + "riowrite has no room");
    if (!p.is_known) return agree_on(got, -EINVAL, name(*e) + "riowrite to nowhere");
    const auto m = p.of.lock();
    if (m == nullptr || !m->is_mapped) return break_by_write(*e);
    agree(got > 0 && got <= expected, name(*e) + "so much is written");
    if (room)
      agree(got >= std::min(expected, 2000L), name(*e) + "less is written than there is room for");
    std::copy_n(bytes.begin(), got, m->expected.begin() + static_cast<std::ptrdiff_t>(inside));
  }
  // Writes to a buffer that the peer has unmapped, which ends the connection.
  void break_by_write(End& e) {
    const Held peer = e.peer.lock();
    for (End* h : {&e, peer.get()}) {
      if (h == nullptr || h->over) continue;
      h->torn = true;
      h->heard.push_back(Said::lost);
    }
    settle();
  }

  std::uint64_t last_offset_ = 0;
  std::vector<std::shared_ptr<Mapped>> kept_;
};

}  // namespace urnic::rsockets::model
