// Makes every event happen that the RoCE counters count.
#pragma once

#include <gtest/gtest.h>

#include "roce/frame.h"
#include "sim/roce_setup.h"
#include "tests/engine/moved_counters.h"
#include "tests/roce/engine_ends.h"

namespace urnic::test {

// ---- RoCE

// Two engines and a faulty wire between them.
struct Lossy : RoceEnds {
  void TestBody() override {}
  void work(Moved* moved) {
    ByHand h;
    h.retry_count = 7;
    up(both(), h);
    rooms(512 << 10);
    pair->run_for(Duration::ms(10));  // neighbors are resolved
    pair->set_faults_left("loss=0.1,dup=0.1,reorder=0.1");
    pair->set_faults_right("loss=0.1,dup=0.1,reorder=0.1");
    for (std::uint64_t i = 0; i < 60; ++i) {
      post(*left, i % 2 == 0 ? verbs::WrOp::Read : verbs::WrOp::Write, i, 6000, i * 8000);
    }
    ASSERT_TRUE(run(60));
    pair->set_faults_left("");
    pair->set_faults_right("");
    post(*left, verbs::WrOp::Send, 60, 100, 0);
    ASSERT_FALSE(run(61, 1, Duration::ms(5)));  // RNR NAKs
    receive(*right, 1, 0, 100);
    ASSERT_TRUE(run(61, 1));
    moved->add(pair->left().engine());
    moved->add(pair->right().engine());
    theirs->key ^= 0x7700;
    post(*left, verbs::WrOp::Write, 61, 100, 0);  // requests_refused
    ASSERT_TRUE(run(62, 1));
    moved->add(pair->right().engine());
  }
  // No receive is ever posted.
  void without_receive(Moved* moved) {
    ByHand h;
    h.rnr_retry = 1;
    up(both(), h);
    rooms(8192);
    post(*left, verbs::WrOp::Send, 1, 100, 0);
    ASSERT_TRUE(run(1));
    moved->add(pair->left().engine());  // rnr_retries_exhausted
  }
  // UC loses messages; UD has requests that are too long and datagrams without a receive.
  void unreliable(Moved* moved) {
    up_unreliable(verbs::Service::Uc);
    rooms(512 << 10);
    pair->run_for(Duration::ms(10));
    pair->set_faults_left("loss=0.2");
    for (std::uint64_t i = 0; i < 60; ++i) post(*left, verbs::WrOp::Write, i, 6000, i * 8000);
    ASSERT_TRUE(run(60));  // messages_lost
    pair->run_for(Duration::ms(10));
    moved->add(pair->right().engine());
    up_unreliable(verbs::Service::Ud);
    rooms(8000);
    const std::uint32_t way = handle_to(pair->left(), 0, 1, pair->now());
    const auto send = [&](std::uint32_t length, std::uint32_t qkey) {
      const verbs::Sge sge{ours->at(), length, ours->key};
      verbs::SendWr wr = request(verbs::WrOp::Send, 1, sge, 0, 0);
      ib::set_destination(&wr, {way, right->number(), qkey});
      ASSERT_EQ(pair->left().post_send(*left, wr, pair->now()), verbs::Post::Ok);
    };
    send(6000, kQkey);    // requests_too_long
    send(10, kQkey);      // requests_dropped: no receive
    send(10, kQkey + 1);  // rx_bad_qkey
    ASSERT_TRUE(run(3));
    pair->run_for(Duration::ms(10));
    moved->add(pair->left().engine());
    moved->add(pair->right().engine());
  }
  // XRC: a request for an unknown queue, and one for a queue of another domain.
  void xrc(Moved* moved) {
    for (const bool foreign : {false, true}) {
      pair = std::make_unique<sim::Pair>(both());
      left = pair->left().make_roce_qp({}, verbs::Service::XrcSend);
      right = pair->right().make_roce_qp({}, verbs::Service::XrcReceive);
      sim::RocePlan plan;
      plan.service = verbs::Service::XrcSend;
      ASSERT_TRUE(sim::connect_roce(*pair, *left, *right, plan, Duration::s(1)));
      rooms(8000);
      verbs::CompletionQueue cq(1);
      verbs::SharedReceiveQueue* const queue =
          pair->right().engine().roce_control().create_xrc_queue(pair->right().pd, 1, 1,
                                                                 sim::Node::kXrcDomain + 1, &cq);
      const verbs::Sge sge{ours->at(), 10, ours->key};
      verbs::SendWr wr = request(verbs::WrOp::Send, 1, sge, 0, 0);
      wr.remote_srq = foreign ? queue->xrc.number : 0;
      ASSERT_EQ(pair->left().post_send(*left, wr, pair->now()), verbs::Post::Ok);
      ASSERT_TRUE(run(1));
      moved->add(pair->right().engine());
    }
  }
  // The transport timer is half a second, a round trip much less: probes and their results.
  void probe(Moved* moved) {
    sim::PairOptions o = both();
    o.left.roce.probe = true;
    ByHand h;
    h.ack_timeout = 17;
    h.retry_count = 7;
    up(o, h);
    rooms(512 << 10);
    pair->run_for(Duration::ms(10));
    pair->set_faults_left("loss=0.2");
    pair->set_faults_right("loss=0.2");
    for (std::uint64_t i = 0; i < 60; ++i) {
      post(*left, verbs::WrOp::Write, i, 6000, i * 8000);
      pair->run_for(Duration::ms(3));
    }
    ASSERT_TRUE(run(60));
    moved->add(pair->left().engine());
  }
  // Both repeat selectively, and Writes are placed early; late packets are repeated needlessly.
  void selective(Moved* moved) {
    sim::PairOptions o = both();
    for (engine::Options* e : {&o.left, &o.right}) {
      e->roce.selective = e->roce.probe = true;
      e->roce.loss.type = ib::ConnectionType::Fast;
      e->roce.loss.out_of_order = ib::OutOfOrder::Place;
    }
    ByHand h;
    h.ack_timeout = 14;
    h.retry_count = 7;
    up(o, h);
    rooms(1 << 20);
    pair->run_for(Duration::ms(200));
    // Late by less than a round trip: repeated packets are answered too early to be the repetition.
    pair->set_faults_left("delay=200us,loss=0.03,reorder=0.1:300us");
    pair->set_faults_right("delay=200us,loss=0.03,reorder=0.1:300us");
    for (std::uint64_t i = 0; i < 120; ++i) {
      post(*left, i % 2 == 0 ? verbs::WrOp::Read : verbs::WrOp::Write, i, 6000, i * 8000);
    }
    ASSERT_TRUE(run(120));
    moved->add(pair->left().engine());
    moved->add(pair->right().engine());
  }
  // A line that marks: more CNPs than round trips.
  void congested(Moved* moved) {
    sim::PairOptions o = both();
    for (engine::Options* e : {&o.left, &o.right}) {
      e->roce.send.congestion = ib::CongestionRule::Window;
    }
    up(o);
    rooms(512 << 10);
    pair->run_for(Duration::ms(10));
    pair->set_faults_left("rate=1gbit,delay=300us,mark=10us");
    for (std::uint64_t i = 0; i < 8; ++i) post(*left, verbs::WrOp::Write, i, 60000, i * 60000);
    ASSERT_TRUE(run(8));
    moved->add(pair->left().engine());
    moved->add(pair->right().engine());
  }
  // FAST: packets past a gap are kept, requests without a receive wait, and one gap more than
  // allowed makes it SLOW for a while.
  void kept(Moved* moved) {
    sim::PairOptions o = both();
    o.right.roce.loss.type = ib::ConnectionType::Fast;
    up(o);
    rooms(8192);
    pair->run_for(Duration::ms(10));
    pair->set_faults_left("at=loss:1");
    post(*left, verbs::WrOp::Write, 0, 4096, 0);
    ASSERT_FALSE(pair->run_until(
        [&] {
          moved->add(pair->right().engine());  // held_bytes
          return false;
        },
        Duration::ms(100)));
    ASSERT_TRUE(run(1));
    o.right.roce.loss.upgrade_after = 50;
    o.right.roce.loss.rnr_park = 64;
    for (const bool store_full : {false, true}) {
      o.right.roce.loss.max_recovery_attempts = 1;
      o.right.roce.loss.store_packets = store_full ? 1 : 512;
      up(o);
      rooms(65536);
      pair->run_for(Duration::ms(10));
      pair->set_faults_left(store_full ? "at=loss:1" : "at=loss:1;loss:3;loss:5");
      post(*left, verbs::WrOp::Write, 0, 60000, 0);
      ASSERT_TRUE(run(1));
      for (std::uint64_t i = 0; i < 20; ++i) post(*left, verbs::WrOp::Write, i + 1, 60000, 0);
      ASSERT_TRUE(run(21));  // roce_upgrades
      post(*left, verbs::WrOp::Send, 60, 100, 0);
      pair->run_for(Duration::ms(1));  // requests_parked
      receive(*right, 1, 0, 100);
      ASSERT_TRUE(run(22, 1));
      moved->add(pair->right().engine());
    }
  }
};

// Packets that our own code does not send, to one connected queue pair whose peer is the test.
struct Crafted {
  Crafted() {
    auto [a, b] = port::make_memory_pair({.max_frame = 1518});
    engine::Options o;
    o.speaks_roce = o.roce.selective = true;
    o.addresses = {"10.0.0.1/24"};
    o.mtu = 1500;
    wire = std::move(b);
    node = std::make_unique<sim::Node>(o, std::move(a));
    node->engine().poll(now);
    qp = node->make_roce_qp();
    connect(*node, *qp, {}, 0, 0x55, 1, now);
  }
  static ib::PacketHeader header(ib::Operation op, std::uint32_t psn) {
    ib::PacketHeader h;
    h.bth.opcode = ib::Opcode(ib::ServiceType::Rc, op);
    h.bth.psn = ib::Psn(psn);
    return h;
  }
  template <class Spoil>
  void arrive_spoiled(ib::PacketHeader h, Spoil&& spoil, std::uint32_t to = 0, int from = 1) {
    roce::FrameConfig config;
    config.source = MacAddress{{2, 9, 9, 9, 9, 9}};
    config.destination = node->engine().interface().mac();
    config.av.local = address_of(from);
    config.av.remote = address_of(0);
    const roce::FrameHeaders headers(config);
    h.bth.dest_qp = to != 0 ? to : qp->number();
    port::Frame f;
    ASSERT_EQ(wire.tx_reserve(0, 200, &f, 1), 1u);
    const std::size_t n = ib::emit_packet(h, payload, f.data[0] + headers.size());
    f.len[0] = static_cast<std::uint32_t>(headers.finish(f.data[0], n, 0));
    f.len[1] = 0;
    spoil(f);
    wire.tx_commit(0, &f, 1);
    node->engine().poll(now);
  }
  void arrive(const ib::PacketHeader& h, std::uint32_t to = 0, int from = 1) {
    arrive_spoiled(
        h, [](port::Frame&) {}, to, from);
  }
  // A message of connection management from the peer arrives.
  void arrive(ib_cm::Mad mad) {
    roce::FrameConfig config;
    config.source = MacAddress{{2, 9, 9, 9, 9, 9}};
    config.destination = node->engine().interface().mac();
    config.av.local = address_of(1);
    config.av.remote = address_of(0);
    const roce::FrameHeaders headers(config);
    port::Frame f;
    ASSERT_EQ(wire.tx_reserve(0, 512, &f, 1), 1u);
    const std::size_t n =
        ib::emit_packet(ib_cm::gsi_header(ib::Psn(1)), mad, f.data[0] + headers.size());
    f.len[0] = static_cast<std::uint32_t>(headers.finish(f.data[0], n, 0));
    f.len[1] = 0;
    wire.tx_commit(0, &f, 1);
    node->engine().poll(now);
  }
  void pass(Duration d) {
    for (const Instant until = now + d; now < until; now = now + Duration::ms(1)) {
      node->engine().poll(now);
    }
  }
  Bytes payload;  // of the packets that arrive
  Instant now = Instant::from_ns(1000);
  port::Port wire;
  std::unique_ptr<sim::Node> node;
  verbs::QueuePair* qp = nullptr;
};

inline void packets_of_roce(Moved* moved) {
  using Op = ib::Operation;
  Crafted c;
  const ib::PacketHeader good = Crafted::header(Op::SendOnly, 77);
  c.arrive_spoiled(good, [](port::Frame& f) { f.data[0][f.len[0] - 1] ^= 1; });  // rx_bad_icrc
  c.arrive_spoiled(good, [](port::Frame& f) { f.data[0][39] ^= 4; });  // rx_roce_malformed
  ib::PacketHeader h = good;
  h.bth.version = 1;
  c.arrive(h);                                       // rx_bad_version
  c.arrive(good, 0x777777);                          // rx_no_queue_pair
  c.arrive(good, c.node->make_roce_qp()->number());  // rx_wrong_state
  h = good;
  h.bth.opcode = ib::Opcode(ib::ServiceType::Uc, Op::SendOnly);
  c.arrive(h);  // rx_wrong_service
  h = good;
  h.bth.pkey = 0x1234;
  c.arrive(h);           // rx_bad_pkey
  c.arrive(good, 0, 2);  // rx_wrong_address
  h = Crafted::header(Op::ReadRequest, 70);
  c.arrive(h);  // requests_too_late
  h = Crafted::header(Op::Acknowledge, 0x123);
  c.arrive(h);  // responses_ghost
  h = Crafted::header(Op::Acknowledge, 0xfffffa);
  h.aeth.syndrome.byte = 0x40;
  c.arrive(h);  // responses_malformed
  h = Crafted::header(Op::Acknowledge, 0xfffff9);
  h.bth.opcode = ib::kSackOpcode;
  c.payload = Bytes(8, 0xff);
  c.arrive(h);  // sacks_invalid
  h.bth.opcode = ib::kHelloOpcode;
  c.arrive(h);  // hellos_refused
  c.payload.clear();
  // No neighbor answers for the peer: tx_unroutable.
  Room room(*c.node, 4096, 1);
  const verbs::Sge sge{room.at(), 100, room.key};
  verbs::SendWr wr;
  wr.op = verbs::WrOp::Write;
  wr.sges = {&sge, 1};
  ASSERT_EQ(c.node->post_send(*c.qp, wr, c.now), verbs::Post::Ok);
  c.pass(Duration::ms(3500));
  moved->add(c.node->engine());
}

// ---- connections of RoCE

inline void connections_of_roce(Moved* moved) {
  Crafted c;
  roce::Connections& ours = c.node->engine().roce_control().connections();
  auto bound = ours.listeners().bind({{IpAddress::any_v6(), 7000}, false, false});
  ASSERT_TRUE(bound);
  ASSERT_TRUE(ours.listeners().listen(bound.value(), 8));
  ib_cm::Options options;
  options.key = {1, 2};
  ib_cm::Manager peer(options);
  ib_cm::Connect what;
  what.addresses = {address_of(1), address_of(0)};
  what.service = ib_cm::service_of(ib_cm::PortSpace::Tcp, 7000);
  what.qp.qpn = 0x77;
  ib_cm::Outgoing first, second;
  ASSERT_TRUE(peer.connections().connect(what, {}, c.now).ok());
  ASSERT_TRUE(peer.connections().connect(what, {}, c.now).ok());
  ASSERT_TRUE(peer.next_mad(&first) && peer.next_mad(&second));
  c.arrive(first.mad);  // cm_received
  ASSERT_EQ(c.node->roce_requests.size(), 1u);
  verbs::QueuePair* const qp = c.node->make_roce_qp();
  ASSERT_TRUE(ours.accept(c.node->roce_requests[0].id, *qp, {}, c.now).ok());  // cm_sent
  c.arrive(first.mad);         // cm_resent_on_request
  c.pass(Duration::ms(9000));  // cm_resent_on_timeout
  c.arrive(second.mad);        // cm_stale: that queue pair has a connection
  first.mad[0] = 9;
  c.arrive(first.mad);              // cm_dropped
  qp->control->destroy(qp, c.now);  // numbers_in_time_wait
  moved->add(c.node->engine());
}

}  // namespace urnic::test
