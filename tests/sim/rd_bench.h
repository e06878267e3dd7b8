// One end of RD with memory, two EE contexts and three queue pairs; the test plays its peer.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "sim/rd/rd_host.h"
#include "support/golden.h"

namespace urnic::sim::test {

using namespace ib;
using urnic::test::Bytes;

struct RdBench : ::testing::Test {
  static constexpr verbs::PdId kPd = 7;
  static constexpr std::uint32_t kRdd = 5, kQkey = 0x11112222, kPmtu = 256;
  static constexpr std::uint32_t kEe = 0x50, kPeerEe = 0x60, kOtherEe = 0x51;
  static constexpr std::uint32_t kPeerQp = 0x901;
  static constexpr std::uint64_t kTarget = 0x10000;
  static constexpr std::uint32_t kBytes = 8192;

  struct Told {
    std::uint32_t qp;
    verbs::Completion c;
  };

  RdBench() {
    ee.number = kEe;
    ee.rdd = kRdd;
    ee.dest_ee = kPeerEe;
    ee.av.local = IpAddress::v4(10, 0, 0, 1);
    ee.av.remote = peer_address;
    ee.path_mtu = PathMtu::k256;
    ee.sq_psn = Psn(100);
    ee.rq_psn = Psn(0xfffffd);  // wraps around soon
    ee.ack_timeout = 10;        // 4.19 ms
    qp.service = ServiceType::Rd;
    qp.pd = kPd;
    qp.qkey = kQkey;
    qp.access = verbs::kRemoteWrite | verbs::kRemoteRead | verbs::kRemoteAtomic;
    qp.responder_depth = qp.initiator_depth = 1;  // equal: RD has at most one outstanding request
    qp.min_rnr_timer = 12;                        // 0.64 ms
    for (std::size_t i = 0; i < memory.size(); ++i) {
      memory[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
    }
    lkey = table.register_memory(kPd, memory.data(), memory.size(), verbs::kLocalWrite);
    rkey = table.register_memory(
        kPd, {target(), kTarget, kBytes},
        verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kRemoteRead | verbs::kRemoteAtomic);
  }

  // ---- objects; created at first use with the settings of the test until then
  RdHost& host() {
    if (made_) return *made_;
    RdHooks hooks;
    hooks.context = this;
    hooks.completion = [](void* self, const RdQueuePair& of, const verbs::Completion& c) {
      static_cast<RdBench*>(self)->told.push_back({of.attributes.number, c});
    };
    hooks.queue_pair_moved = [](void* self, const RdQueuePair& of) {
      static_cast<RdBench*>(self)->moved.emplace_back(of.attributes.number, of.state);
    };
    hooks.ee_context_moved = [](void* self, const EeContext& of) {
      static_cast<RdBench*>(self)->moved.emplace_back(of.attributes.number, of.state);
    };
    made_ = std::make_unique<RdHost>(&table, hooks);
    EeAttributes other = ee;
    other.number = kOtherEe;
    other.dest_ee = 0x61;
    for (const EeAttributes& a : {ee, other}) to_rts(*made_->make_context(a));
    for (std::uint32_t i = 0; i < 3; ++i) add(0x11 + i, kRdd);
    return *made_;
  }
  void to_rts(EeContext& of) {
    for (const auto to : {verbs::QpState::Init, verbs::QpState::Rtr, verbs::QpState::Rts}) {
      EXPECT_TRUE(made_->modify(of, to).ok());
    }
  }
  RdQueuePair& add(std::uint32_t number, std::uint32_t rdd,
                   verbs::QpState to = verbs::QpState::Rts) {
    Queues& q = queues_.emplace_back();
    QpAttributes a = qp;
    a.number = number;
    RdQueuePair& made = *made_->make_queue_pair(a, rdd, &q.sq, &q.rq);
    bring(made, to);
    return made;
  }
  void bring(RdQueuePair& of, verbs::QpState to) {
    using enum verbs::QpState;
    for (const auto s : {Init, Rtr, Rts}) {
      if (of.state == to) return;
      const std::uint32_t mask = rd_attributes(of.state, s).required | verbs::kQpAttrState;
      EXPECT_TRUE(made_->modify(of, s, mask).ok());
    }
  }
  EeContext& context(std::uint32_t number = kEe) { return *host().context(number); }
  RdQueuePair& pair(std::uint32_t number = 0x11) { return *host().queue_pair(number); }
  RdRequester& asks() { return context().requester; }
  RdResponder& serves() { return context().responder; }

  std::uint8_t* target() { return memory.data() + kBytes; }
  ByteView written(std::uint64_t offset, std::size_t n) { return {target() + offset, n}; }

  // ---- own requests
  void post(verbs::WrOp op, std::uint32_t length, std::uint32_t from = 0x11,
            std::uint64_t wr_id = 0, std::uint32_t over = kEe, std::uint32_t qkey = kQkey) {
    verbs::SendWr wr;
    wr.wr_id = wr_id;
    wr.op = op;
    wr.flags = verbs::kSignaled;
    wr.remote_address = 0x2000;
    wr.rkey = 0xabcd;
    wr.immediate = 0x55667788;
    wr.atomic.data = 3;
    const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(memory.data()), length, sge_key()};
    wr.sges = {&sge, 1};
    ASSERT_EQ(pair(from).sender.post(wr, {over, kPeerQp, qkey}), verbs::Post::Ok);
  }
  std::uint32_t sge_key() const { return bad_lkey ? 0 : lkey; }
  void post_receive(std::uint64_t wr_id, std::uint32_t bytes = 1000, std::uint32_t to = 0x11) {
    const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(memory.data() + 1000 * wr_id), bytes,
                         lkey};
    ASSERT_EQ(pair(to).rq->post({wr_id, {&sge, 1}}), verbs::ReceiveQueue::Post::Ok);
  }

  // ---- outgoing packets, as the receiver sees them
  struct Seen {
    PacketHeader h;
    Bytes payload;
    Operation operation() const { return h.bth.opcode.operation(); }
    std::uint32_t psn() const { return h.bth.psn.value(); }
    Syndrome syndrome() const { return h.aeth.syndrome; }
  };
  std::vector<Seen> requests() {
    std::vector<Seen> all;
    RequestPacket p;
    for (const EeContext* whose = nullptr; all.size() < 1000;) {
      if (!host().next_request(now, &p, &whose)) break;
      Bytes payload(p.length);
      p.copy_payload(payload.data());
      all.push_back(over_the_wire(p.header, payload));
    }
    return all;
  }
  std::vector<Seen> responses() {
    std::vector<Seen> all;
    ResponsePacket p;
    for (const EeContext* whose = nullptr; all.size() < 1000;) {
      if (!host().next_response(&p, &whose)) break;
      all.push_back(over_the_wire(p.header, p.payload));
    }
    return all;
  }
  Seen only_request() {
    const auto all = requests();
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? Seen{} : all[0];
  }
  Seen only_response() {
    const auto all = responses();
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? Seen{} : all[0];
  }
  static Seen over_the_wire(const PacketHeader& h, ByteView payload) {
    Bytes bytes(packet_bytes(h.bth.opcode, payload.size()));
    emit_packet(h, payload, bytes.data());
    const auto p = parse_packet(bytes);
    EXPECT_TRUE(p.ok());
    return {p->header, Bytes(p->payload.begin(), p->payload.end())};
  }

  // ---- packets of the peer
  ParsedPacket packet(Operation o, Psn psn, Bytes payload = {}) {
    payloads_.push_back(std::move(payload));
    ParsedPacket p;
    p.header.bth.opcode = ib::Opcode(ServiceType::Rd, o);
    p.header.bth.psn = psn;
    p.header.bth.dest_qp = 0x11;
    p.header.bth.ack_request = p.header.row().ends();
    p.header.bth.pad = pad_of(payloads_.back().size());
    p.header.ee_context = kEe;
    p.header.deth = {kQkey, kPeerQp};
    p.payload = payloads_.back();
    return p;
  }
  ParsedPacket send(Operation o, Psn psn, std::size_t bytes) {
    Bytes b(bytes);
    for (std::size_t i = 0; i < bytes; ++i) b[i] = static_cast<std::uint8_t>(psn.value() + i * 3);
    return packet(o, psn, std::move(b));
  }
  ParsedPacket write(Operation o, Psn psn, std::uint64_t offset, std::uint32_t length, Bytes b) {
    ParsedPacket p = packet(o, psn, std::move(b));
    p.header.reth = {kTarget + offset, rkey, length};
    return p;
  }
  ParsedPacket read(Psn psn, std::uint64_t offset, std::uint32_t length) {
    ParsedPacket p = packet(Operation::ReadRequest, psn);
    p.header.reth = {kTarget + offset, rkey, length};
    return p;
  }
  ParsedPacket resync(Psn psn) { return packet(Operation::Resync, psn); }
  ParsedPacket answer(Operation o, std::uint32_t psn, Syndrome s = Syndrome::ack(0),
                      Bytes payload = {}) {
    ParsedPacket p = packet(o, Psn(psn), std::move(payload));
    p.header.aeth = {s, peer_msn};
    return p;
  }
  ParsedPacket ack(std::uint32_t psn) { return answer(Operation::Acknowledge, psn); }
  ParsedPacket nak(std::uint32_t psn, NakCode code) {
    return answer(Operation::Acknowledge, psn, Syndrome::nak(code));
  }
  ParsedPacket rnr(std::uint32_t psn, std::uint8_t timer = 12) {
    return answer(Operation::Acknowledge, psn, Syndrome::rnr_nak(timer));
  }
  void come(const ParsedPacket& p) { host().take(p, peer_address, now); }
  // Advances time to the next deadline.
  void wait() {
    ASSERT_FALSE(host().due().is_never());
    now = std::max(now, host().due());
    host().on_time(now);
  }

  // Starts again with a new end.
  void again() {
    made_.reset();
    queues_.clear();
    told.clear();
    moved.clear();
  }

  // ---- completions
  std::vector<verbs::Status> statuses() const {
    std::vector<verbs::Status> all;
    for (const Told& t : told) all.push_back(t.c.status);
    return all;
  }

  Msn peer_msn;  // in the peer's answers
  IpAddress peer_address = IpAddress::v4(10, 0, 0, 2);
  alignas(64) std::array<std::uint8_t, 2 * kBytes> memory{};
  verbs::MemoryTable table;
  std::uint32_t lkey = 0, rkey = 0;
  bool bad_lkey = false;
  EeAttributes ee;
  QpAttributes qp;
  Instant now = Instant::from_ns(1000);
  std::vector<Told> told;
  std::vector<std::pair<std::uint32_t, verbs::QpState>> moved;

 private:
  struct Queues {
    verbs::SendQueue sq{16, 2, 0, sizeof(RdTo)};
    verbs::ReceiveQueue rq{16, 2, 0};
  };
  std::deque<Queues> queues_;
  std::deque<Bytes> payloads_;
  std::unique_ptr<RdHost> made_;
};

}  // namespace urnic::sim::test
