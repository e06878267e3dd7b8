// Two RoCE sides that get the same frames, only one of which may use the fast path of Writes, and
// their observable state.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>

#include "base/rng.h"
#include "tests/roce/side_end.h"

namespace urnic::roce::both_ways {

using namespace test;
using ib::Operation;
using verbs::QpState;

constexpr std::uint32_t kPmtu = 256, kMemory = 12 * kPmtu;

// A packet as made by the peer, and its changes on the way.
struct Packet {
  Operation op = Operation::WriteOnly;
  std::uint32_t psn = 0, offset = 0, dma_length = 0, payload = 0;
  bool ack = false;
  std::uint32_t key_error = 0, number_error = 0;
  std::uint16_t pkey = ib::kDefaultPkey;
  std::uint8_t version = 0, marks = 0;  // of the BTH
  ib::ServiceType service = ib::ServiceType::Rc;
  std::uint8_t tos = 0, ttl = 64, host = 2;
  std::uint16_t identification = 0, port = 0;  // of UDP; 0: the usual one
  int udp_length_error = 0;
  std::size_t flipped_bit = 0;  // of the finished frame; 0: none
  std::size_t cut = 0;          // bytes missing at the end
};

class End {
 public:
  struct Kind {
    bool v6 = false, fast = false;
  };
  End(bool short_way, Kind kind) : memory(kMemory + kPmtu, 0), end_(0, options_of(kind)), peer_(1) {
    end_.like_last = short_way;
    pairing_.mtu = ib::PathMtu::k256;
    pairing_.v6 = kind.v6;
    qp = end_.queue_pair();
    key = end_.memory.register_memory(kPd, memory.data(), kMemory,
                                      verbs::kLocalWrite | verbs::kRemoteWrite);
    up();
  }
  void up() {
    connect(end_, *qp, pairing_, 0, 0x123456, now_);
    while (!context_of(*qp).path.found()) talk();
    for (std::uint64_t id = 0; id < 8; ++id) qp->rq.post({id, {}});
  }
  void up_anew() {
    move_to(QpState::Reset);
    up();
  }
  void move_to(QpState to) {
    QpChange change;
    change.to = to;
    ASSERT_EQ(end_.side.modify(*qp, change, now_), Modified::Ok);
  }
  void modify(const QpChange& change) {
    ASSERT_EQ(end_.side.modify(*qp, change, now_), Modified::Ok);
  }
  // A queue pair whose peer is that host.
  void another(int host) {
    other = end_.queue_pair();
    QpChange rtr = to_rtr(pairing_, 0, 0x123457);
    rtr.av.remote = address_of(host - 1, pairing_.v6);
    for (const QpChange& c : {to_init(pairing_), rtr, to_rts(pairing_, 0)}) {
      ASSERT_EQ(end_.side.modify(*other, c, now_), Modified::Ok);
    }
  }
  std::uint32_t first_psn() const { return pairing_.psn[1]; }

  Bytes frame_of(const Packet& p, Rng rng) const {
    FrameConfig config{MacAddress{{2, 9, 9, 9, 9, 9}}, end_.wire.interface().mac(), 0};
    config.av.local = address_of(p.host - 1, pairing_.v6);
    config.av.remote = address_of(0, pairing_.v6);
    config.av.traffic_class = p.tos;
    config.av.hop_limit = p.ttl;
    if (p.port != 0) config.av.source_port = p.port;
    const FrameHeaders headers(config);
    ib::PacketHeader h;
    h.bth.opcode = ib::Opcode(p.service, p.op);
    h.bth.psn = ib::Psn(p.psn);
    h.bth.ack_request = p.ack;
    h.bth.dest_qp = qp->number() ^ p.number_error;
    h.bth.pkey = p.pkey;
    h.bth.version = p.version;
    h.bth.fecn = (p.marks & 1) != 0;
    h.bth.becn = (p.marks & 2) != 0;
    h.reth = {reinterpret_cast<std::uint64_t>(memory.data()) + p.offset, key ^ p.key_error,
              p.dma_length};
    Bytes payload(p.payload);
    for (auto& b : payload) b = static_cast<std::uint8_t>(rng.next());
    Bytes frame(headers.size() + ib::packet_bytes(h.bth.opcode, p.payload));
    ib::emit_packet(h, payload, frame.data() + headers.size());
    headers.finish(frame.data(), frame.size() - headers.size(), p.identification);
    if (p.udp_length_error != 0) {
      std::uint8_t* const at = frame.data() + headers.size() - 4;
      store_be16(at, static_cast<std::uint16_t>(load_be16(at) + p.udp_length_error));
    }
    if (p.flipped_bit != 0) {
      frame[p.flipped_bit / 8 % frame.size()] ^= static_cast<std::uint8_t>(1u << p.flipped_bit % 8);
    }
    frame.resize(frame.size() - p.cut);
    return frame;
  }
  void give(const Packet& p, const Rng& payload) {
    end_.arrive(frame_of(p, payload));
    talk();
  }
  // As one burst: nothing is sent in between.
  void give(const std::vector<Packet>& burst, Rng payload) {
    for (const Packet& p : burst) {
      end_.arrive(frame_of(p, payload));
      payload.next();
    }
    talk();
  }
  void give(const Packet& one, const Packet& two, const Rng& payload) {
    end_.arrive(frame_of(one, payload));
    end_.arrive(frame_of(two, payload));
    talk();
  }

  // All observable state.
  struct View {
    QpState state;
    std::uint64_t received, requests, acks, duplicates, gaps, refusals, naks, marked;
    std::uint32_t expected, msn;
    bool due;
    std::array<std::uint64_t, ib::kDrops> drops;
    std::vector<Bytes> sent;
    Bytes memory;
    std::size_t completions;
    bool operator==(const View&) const = default;
  };
  View look() {
    const Statistics s = end_.side.statistics();
    const ib::Responder* const half = context_of(*qp).responder.rc();
    View v{};
    v.state = qp->state;
    v.received = s.received;
    v.requests = s.responders.requests;
    v.acks = s.responders.acks;
    v.duplicates = s.responders.duplicates;
    v.gaps = s.responders.out_of_sequence;
    v.refusals = s.responders.refusals;
    v.naks = s.responders.sequence_naks;
    v.marked = context_of(*qp).marks.marked();
    if (half != nullptr) {
      v.expected = half->state().expected.value();
      v.msn = half->state().msn.value();
      v.due = half->due();
    }
    v.drops = s.drops.by_reason;
    v.sent = std::move(sent_);
    sent_.clear();
    v.memory = memory;
    v.completions = end_.completions().size();
    return v;
  }
  int short_ways() const { return end_.short_ways; }

  Bytes memory;
  std::uint32_t key = 0;

  // True if the last frame of a burst, in two pieces, may use the fast path; all others may.
  bool takes_in_pieces(const std::vector<Packet>& burst, std::size_t first) {
    struct Came {
      Bytes one, two;
      port::Frame frame{};
      net::FrameHead head;
      Arrived arrived;
    };
    std::vector<Came> all(burst.size());
    for (std::size_t i = 0; i < burst.size(); ++i) {
      Came& c = all[i];
      c.one = frame_of(burst[i], Rng(1));
      if (i + 1 == burst.size()) {
        c.two.assign(c.one.begin() + static_cast<std::ptrdiff_t>(first), c.one.end());
        c.one.resize(first);
      }
      c.frame.data[0] = c.one.data();
      c.frame.len[0] = static_cast<std::uint32_t>(c.one.size());
      c.frame.data[1] = c.two.data();
      c.frame.len[1] = static_cast<std::uint32_t>(c.two.size());
      c.head.copy(c.frame);
      EXPECT_TRUE(end_.side.plain().stage(c.frame, c.head, &c.arrived));
    }
    for (std::size_t i = 0; i + 1 < all.size(); ++i) {
      EXPECT_TRUE(end_.side.plain().take(all[i].head, all[i].arrived)) << i;
    }
    return end_.side.plain().take(all.back().head, all.back().arrived);
  }

 private:
  static Options options_of(Kind kind) {
    Options o = SideEnd::keyed(1);
    o.send.congestion = ib::CongestionRule::Window;
    o.loss.type = kind.fast ? ib::ConnectionType::Fast : ib::ConnectionType::Slow;
    return o;
  }

  // Collects the RoCE frames sent; other frames, ARP requests, are answered by the peer's station.
  void talk() {
    end_.poll(now_);
    for (Bytes& frame : end_.sent()) {
      const net::Classified c = net::classify(frame, static_cast<std::uint32_t>(frame.size()));
      if (is_ours(c, frame)) {
        sent_.push_back(std::move(frame));
      } else {
        peer_.arrive(frame);
      }
    }
    peer_.poll(now_);
    for (const Bytes& frame : peer_.sent()) end_.arrive(frame);
    now_ = now_ + Duration::us(1);
    end_.poll(now_);
  }

  Pairing pairing_;
  SideEnd end_, peer_;
  std::vector<Bytes> sent_;

 public:
  std::unique_ptr<verbs::QueuePair> qp, other;

 private:
  Instant now_ = Instant::from_ns(1);
};

class PlainReceive : public ::testing::TestWithParam<End::Kind> {
 protected:
  // True as long as nothing differs.
  bool give(const Packet& p) {
    const Rng payload(rng_.next());
    for (End* e : {&with_, &without_}) e->give(p, payload);
    return same();
  }
  bool give(const std::vector<Packet>& burst) {
    const Rng payload(rng_.next());
    for (End* e : {&with_, &without_}) e->give(burst, payload);
    return same();
  }
  bool same() {
    const End::View a = with_.look(), b = without_.look();
    EXPECT_EQ(a.state, b.state);
    EXPECT_EQ(a.received, b.received);
    EXPECT_EQ(a.requests, b.requests);
    EXPECT_EQ(a.expected, b.expected);
    EXPECT_EQ(a.msn, b.msn);
    EXPECT_EQ(a.drops, b.drops);
    EXPECT_EQ(a.sent.size(), b.sent.size());
    EXPECT_TRUE(a == b);
    view_ = a;
    return a == b;
  }
  void both(const std::function<void(End&)>& f) {
    f(with_);
    f(without_);
  }
  // The next packet of Writes with one to `most_packets_` packets.
  Packet next() {
    Packet p;
    if (left_ == 0) {
      length_ = left_ = 1 + static_cast<std::uint32_t>(rng_.below(most_packets_ * kPmtu));
      offset_ = static_cast<std::uint32_t>(rng_.below(kMemory - length_ + 1));
    }
    const bool first = left_ == length_, last = left_ <= kPmtu;
    p.op = first ? (last ? Operation::WriteOnly : Operation::WriteFirst)
                 : (last ? Operation::WriteLast : Operation::WriteMiddle);
    p.payload = std::min(left_, kPmtu);
    p.offset = offset_;
    p.dma_length = length_;
    p.psn = psn_;
    p.ack = last || rng_.below(8) == 0;
    return p;
  }
  void taken(const Packet& p) {
    left_ -= p.payload;
    psn_ = (psn_ + 1) & 0xffffff;
  }
  void start_anew() {
    left_ = 0;
    psn_ = with_.first_psn();
  }

  Rng rng_{11};
  End with_{true, GetParam()}, without_{false, GetParam()};
  std::uint32_t most_packets_ = 4, left_ = 0, length_ = 0, offset_ = 0, psn_ = with_.first_psn();
  End::View view_;
};
INSTANTIATE_TEST_SUITE_P(All, PlainReceive,
                         ::testing::Values(End::Kind{false, false}, End::Kind{true, false},
                                           End::Kind{false, true}, End::Kind{true, true}));

// Makes one thing wrong, or just unusual.
inline void spoil(Packet* p, Rng* rng) {
  switch (rng->below(20)) {
    case 0:
      p->psn = (p->psn + 1) & 0xffffff;
      break;
    case 1:
      p->psn = (p->psn - 1) & 0xffffff;
      break;
    case 2:
      p->pkey = 0x7fff;
      break;
    case 3:
      p->pkey = 0xfffe;
      break;
    case 4:
      p->number_error = 1u << rng->below(24);
      break;
    case 5:
      p->version = 1;
      break;
    case 6:
      p->marks = static_cast<std::uint8_t>(1 + rng->below(3));
      break;
    case 7:
      p->service = ib::ServiceType::Uc;
      break;
    case 8:
      p->tos = static_cast<std::uint8_t>(rng->next());
      break;
    case 9:
      p->ttl = static_cast<std::uint8_t>(1 + rng->below(255));
      break;
    case 10:
      p->host = 3;
      break;
    case 11:
      p->identification = static_cast<std::uint16_t>(rng->next());
      break;
    case 12:
      p->udp_length_error = rng->below(2) == 0 ? 4 : -4;
      break;
    case 13:
      p->cut = 1 + rng->below(20);
      break;
    case 14:
      p->payload -= static_cast<std::uint32_t>(rng->below(std::min(p->payload, 5u)));
      break;
    case 15:
      p->payload += 1 + static_cast<std::uint32_t>(rng->below(9));
      break;
    case 16:
      // Usually of a Write: in sequence or not is what matters.
      p->op = static_cast<Operation>(rng->below(4) == 0 ? rng->below(0x18) : 6 + rng->below(6));
      break;
    case 17:
      p->key_error = 1u << rng->below(32);
      break;
    case 18:
      p->dma_length += static_cast<std::uint32_t>(rng->below(3)) - 1;
      break;
    default:
      p->flipped_bit = 1 + rng->next() % 4096;
      break;
  }
}

}  // namespace urnic::roce::both_ways
