// Our engine and a peer that behaves like rxe (rxe_peer.h), with a faulty line in each direction,
// in virtual time.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fault/fault_port.h"
#include "ib/icrc.h"
#include "net/arp.h"
#include "net/classify.h"
#include "net/ethernet.h"
#include "port/memory_port.h"
#include "roce/frame.h"
#include "sim/node.h"
#include "tests/support/rxe_peer.h"

namespace urnic::test {

class RxeWire {
 public:
  using Bytes = RxePeer::Bytes;
  static constexpr std::uint32_t kNumber = 0x77;                // the peer's queue pair
  static constexpr std::uint32_t kPsn[2] = {0xffffc0, 0x2000};  // the peer's, ours

  // `line`: the plan of both directions during ARP; faults() sets later ones.
  RxeWire(const engine::Options& options, const std::string& line, Duration peer_timer,
          std::size_t bytes)
      : ours(bytes), theirs(bytes), line_(line) {
    port::MemoryPairOptions ports;
    ports.max_frame = 1518;
    auto [a, b] = port::make_memory_pair(ports);
    fault::FaultyPort one = faulty(std::move(a)), two = faulty(std::move(b));
    to_peer_ = one.control;
    to_us_ = two.control;
    port_ = std::move(two.port);
    engine::Options o = options;
    o.addresses = {"10.0.0.2/24"};
    o.mtu = 1500;
    o.speaks_roce = true;
    node_ = std::make_unique<sim::Node>(o, std::move(one.port));
    qp = node_->make_roce_qp();
    key = node_->register_memory(
        ours.data(), ours.size(),
        verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kRemoteRead | verbs::kZeroBased);
    RxePeer::Config c;
    c.dest_qp = qp->number();
    c.sq_psn = kPsn[0];
    c.rq_psn = kPsn[1];
    c.timer = peer_timer;
    peer = std::make_unique<RxePeer>(c, &theirs);
    connect();
    send_arp(net::kArpRequest, {});
    run([] { return false; }, Duration::ms(10));
  }

  // Sets additional faults for both directions from now on.
  void faults(const std::string& more) {
    const auto plan = fault::FaultPlan::parse(line_ + "," + more);
    ASSERT_TRUE(plan.ok());
    to_peer_->set_plan(fault::Direction::Tx, *plan);
    to_us_->set_plan(fault::Direction::Tx, *plan);
  }
  void post(verbs::WrOp op, std::uint64_t id, std::uint64_t at, std::uint32_t length) {
    const verbs::Sge sge{at, length, key};
    verbs::SendWr wr;
    wr.wr_id = id;
    wr.op = op;
    wr.flags = verbs::kSignaled;
    wr.sges = {&sge, 1};
    wr.remote_address = at;
    wr.rkey = 1;  // the peer ignores it
    ASSERT_EQ(node_->post_send(*qp, wr, now), verbs::Post::Ok);
  }
  sim::Node& node() { return *node_; }
  RoceStats stats() { return node_->engine().roce_control().stats_of(*qp).roce; }

  bool run(const std::function<bool()>& done, Duration limit) {
    const Instant until = now + limit;
    while (!done()) {
      const bool worked = node_->engine().poll(now) | step();
      if (worked) {
        now = now + Duration::us(1);
        continue;
      }
      const Instant wires = earlier(to_peer_->next_release(), to_us_->next_release());
      const Instant ends = earlier(node_->engine().next_deadline(), peer->due());
      const Instant next = std::max(earlier(wires, ends), now + Duration::ns(1));
      if (next > until) {
        now = until;
        return done();
      }
      now = next;
    }
    return true;
  }

  Bytes ours, theirs;
  std::uint32_t key = 0;
  verbs::QueuePair* qp = nullptr;
  std::unique_ptr<RxePeer> peer;
  Instant now = Instant::from_ns(1000000000);

 private:
  static constexpr MacAddress kMac{{2, 0, 0, 0, 0, 9}};
  static IpAddress address(int last) {
    return IpAddress::v4(10, 0, 0, static_cast<std::uint8_t>(last));
  }

  fault::FaultyPort faulty(port::Port inner) {
    fault::FaultOptions o;
    o.tx = *fault::FaultPlan::parse(line_);
    o.log_capacity = 0;
    o.clock.now_ns = [](void* self) {
      return static_cast<std::uint64_t>(static_cast<RxeWire*>(self)->now.ns());
    };
    o.clock.context = this;
    return fault::wrap_faults(std::move(inner), o);
  }
  void connect() {
    roce::QpChange init, rtr, rts;
    init.to = verbs::QpState::Init;
    init.mask |= verbs::kQpAttrPkeyIndex | verbs::kQpAttrPort | verbs::kQpAttrAccess;
    init.access = verbs::kRemoteWrite | verbs::kRemoteRead;
    rtr.to = verbs::QpState::Rtr;
    rtr.mask |= verbs::kQpAttrAv | verbs::kQpAttrPathMtu | verbs::kQpAttrDestQpn |
                verbs::kQpAttrRqPsn | verbs::kQpAttrMaxDestRdAtomic | verbs::kQpAttrMinRnrTimer;
    rtr.av.local = address(2);
    rtr.av.remote = address(1);
    rtr.dest_qp = kNumber;
    rtr.rq_psn = kPsn[0];
    rtr.responder_depth = 16;
    rtr.min_rnr_timer = 12;
    rts.to = verbs::QpState::Rts;
    rts.mask |= verbs::kQpAttrTimeout | verbs::kQpAttrRetryCount | verbs::kQpAttrRnrRetry |
                verbs::kQpAttrSqPsn | verbs::kQpAttrMaxRdAtomic;
    rts.sq_psn = kPsn[1];
    rts.ack_timeout = 14;
    rts.initiator_depth = 16;
    for (const roce::QpChange& c : {init, rtr, rts}) {
      ASSERT_EQ(node_->engine().roce_control().move(*qp, c, now), roce::Modified::Ok);
    }
  }

  // One turn of the peer: checks its port and its clock.
  bool step() {
    bool worked = receive();
    peer->on_time(now);
    ib::PacketHeader h;
    Bytes payload;
    for (int i = 0; i < 16 && peer->next_packet(now, &h, &payload); ++i) {
      Bytes f(headers_.size() + ib::packet_bytes(h.bth.opcode, payload.size()));
      const std::size_t n = ib::emit_packet(h, payload, f.data() + headers_.size());
      f.resize(headers_.finish(f.data(), n, 0));
      transmit(f);
      worked = true;
    }
    return worked;
  }
  bool receive() {
    port::Frame frames[port::kBurst];
    const unsigned n = port_.rx_burst(0, frames, port::kBurst);
    std::vector<Bytes> copies;
    for (unsigned i = 0; i < n; ++i) {
      Bytes f(frames[i].data[0], frames[i].data[0] + frames[i].len[0]);
      f.insert(f.end(), frames[i].data[1], frames[i].data[1] + frames[i].len[1]);
      copies.push_back(std::move(f));
    }
    port_.rx_release(0, frames, n);
    for (const Bytes& f : copies) take(f);
    return n != 0;
  }
  void take(const Bytes& f) {
    const auto c = net::classify(f, static_cast<std::uint32_t>(f.size()));
    if (c.kind == net::FrameKind::Arp) {
      const auto arp = net::parse_arp(ByteView(f).subspan(c.l3_offset));
      if (arp) learn(*arp);
      return;
    }
    if (!roce::is_ours(c, f)) return;
    const auto d = roce::find_packet(c, f);
    ASSERT_TRUE(d.has_value());
    const ByteView packet = ByteView(f).subspan(d->offset, d->bytes);
    if (!ib::icrc_good(d->ip_udp, packet)) return;  // damaged by the wire
    const auto p = ib::parse_packet(packet);
    ASSERT_TRUE(p.ok());
    if (p->header.bth.dest_qp == kNumber) peer->take(*p, now);
  }
  void learn(const net::ArpPacket& arp) {
    roce::FrameConfig c;
    c.source = kMac;
    c.destination = arp.sender_mac;
    c.av.local = address(1);
    c.av.remote = address(2);
    headers_ = roce::FrameHeaders(c);
    if (arp.operation == net::kArpRequest) send_arp(net::kArpReply, arp.sender_mac);
  }
  void send_arp(std::uint16_t operation, const MacAddress& to) {
    Bytes f(net::kEthernetHeader + net::kArpPacket);
    const MacAddress everybody{{255, 255, 255, 255, 255, 255}};
    net::emit_ethernet({operation == net::kArpReply ? to : everybody, kMac, 0, net::kEtherTypeArp},
                       f.data());
    net::ArpPacket p;
    p.operation = operation;
    p.sender_mac = kMac;
    p.sender_ip = address(1);
    p.target_mac = to;
    p.target_ip = address(2);
    net::emit_arp(p, f.data() + net::kEthernetHeader);
    transmit(f);
  }
  void transmit(const Bytes& bytes) {
    port::Frame f{};
    ASSERT_EQ(port_.tx_reserve(0, static_cast<std::uint32_t>(bytes.size()), &f, 1), 1u);
    std::memcpy(f.data[0], bytes.data(), bytes.size());
    f.len[0] = static_cast<std::uint32_t>(bytes.size());
    f.len[1] = 0;
    port_.tx_commit(0, &f, 1);
  }

  const std::string line_;
  port::Port port_;
  std::shared_ptr<fault::FaultControl> to_peer_, to_us_;
  std::unique_ptr<sim::Node> node_;
  roce::FrameHeaders headers_;
};

}  // namespace urnic::test
