// Both halves of UD: packets that a responder accepts and where it places them, and the packets of
// a requester.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "base/rng.h"
#include "ib/check.h"
#include "ib/icrc.h"
#include "ib/requester_bench.h"
#include "ib/responder_fixture.h"
#include "ib/ud.h"
#include "roce_capture.h"

namespace urnic::ib {
namespace {

using test::Bytes;
using test::counting;
using urnic::test::to_hex;
using verbs::Status;
using verbs::WrOp;

// ---- responder

struct UdResponding : test::ResponderFixture {
  UdResponding() {
    qp.service = ServiceType::Ud;
    qp.qkey = 0x11111111;
    ipv4 = counting(28, 9);
    ipv4[0] = 0x45;
    ipv6 = counting(48, 5);
    ipv6[0] = 0x60;
  }
  ParsedPacket datagram(std::uint32_t at, Bytes payload, Operation o = Operation::SendOnly) {
    ParsedPacket p = packet(o, Psn(at), std::move(payload));
    p.header.bth.opcode = Opcode(ServiceType::Ud, o);
    p.header.deth = {qp.qkey, 0x4567};
    return p;
  }
  Verdict come(const ParsedPacket& p, ByteView ip) {
    verbs::Completion c;
    const UdReceived r = ud.take(p, ip, &c);
    source = r.source_qp;
    if (r.received.completed) completions.push_back(c);
    return r.received.verdict;
  }
  Verdict come(const ParsedPacket& p) { return come(p, ipv4); }
  Bytes received(std::uint64_t wr_id, std::size_t n) {
    const std::uint8_t* const at = inbox() + 1000 * wr_id;
    return Bytes(at, at + n);
  }

  UdResponder ud{qp, &rq, &table};
  Bytes ipv4, ipv6;
  std::uint32_t source = 0;
};

// proves: IB-101
TEST_F(UdResponding, ADatagramIsAcceptedAtAnyPsn) {
  for (std::uint64_t i = 1; i < 4; ++i) post(i);
  for (const std::uint32_t at : {5u, 5u, 0xffffffu}) {
    EXPECT_EQ(come(datagram(at, counting(8))), Verdict::Accept);
  }
  EXPECT_EQ(completions.size(), 3u);
}

// proves: IB-102
TEST_F(UdResponding, ADatagramTooLongOfAnotherOperationOrWithoutAReceiveIsDropped) {
  EXPECT_EQ(come(datagram(1, counting(8))), Verdict::NotReady);
  post(1, 100);
  EXPECT_EQ(come(datagram(2, counting(61))), Verdict::NotReady);
  EXPECT_EQ(come(datagram(3, counting(kPmtu + 1))), Verdict::InvalidRequest);
  for (unsigned o = 0; o < 32; ++o) {
    const auto operation = static_cast<Operation>(o);
    if (operation == Operation::SendOnly || operation == Operation::SendOnlyImm) continue;
    EXPECT_EQ(come(datagram(4, counting(8), operation)), Verdict::InvalidRequest);
  }
  EXPECT_TRUE(completions.empty());
  EXPECT_FALSE(ud.failed());
  EXPECT_EQ(ud.counters().refused, 33u);
  EXPECT_EQ(come(datagram(5, counting(60))), Verdict::Accept);
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(completions[0].byte_len, 100u);
}

// proves: IB-103
TEST_F(UdResponding, AWrongQkeyIsDroppedAndTheSenderIsReported) {
  ParsedPacket p = datagram(1, counting(8));
  const IpAddress anybody = *IpAddress::parse("192.0.2.9");
  EXPECT_TRUE(check(p.header, anybody, &qp, verbs::QpState::Rtr).ok());
  p.header.deth.qkey ^= 1;
  const auto half = check(p.header, anybody, &qp, verbs::QpState::Rtr);
  ASSERT_FALSE(half.ok());
  EXPECT_EQ(half.error(), Drop::BadQkey);
}

// proves: IB-103, IB-144
TEST_F(UdResponding, TheIpHeaderPrecedesThePayload) {
  post(1), post(2);
  std::fill_n(inbox() + 1000, 40, std::uint8_t{0xaa});
  ParsedPacket p = datagram(1, counting(30, 3), Operation::SendOnlyImm);
  p.header.immediate = 0x55667788;
  p.header.bth.solicited = true;
  EXPECT_EQ(come(p, ipv4), Verdict::Accept);
  EXPECT_EQ(source, 0x4567u);
  EXPECT_EQ(received(1, 20), Bytes(20, 0xaa));
  EXPECT_EQ(to_hex(received(1, 70)).substr(40),
            to_hex(ByteView(ipv4).first(20)) + to_hex(p.payload));
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(completions[0].byte_len, 70u);
  EXPECT_TRUE(completions[0].with_immediate && completions[0].solicited);
  EXPECT_EQ(completions[0].immediate, 0x55667788u);
  EXPECT_EQ(come(datagram(2, {}), ipv6), Verdict::Accept);
  EXPECT_EQ(received(2, 40), Bytes(ipv6.begin(), ipv6.begin() + 40));
  EXPECT_EQ(completions[1].byte_len, 40u);
}

TEST_F(UdResponding, AReceiveThatCannotBeWrittenFailsAndEndsTheQueuePair) {
  post(1), post(2);
  EXPECT_TRUE(table.deregister(lkey));
  EXPECT_EQ(come(datagram(1, counting(8))), Verdict::Operational);
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(completions[0].status, Status::LocalProtection);
  EXPECT_TRUE(ud.failed());
  EXPECT_EQ(come(datagram(2, counting(8))), Verdict::Ignored);
}

TEST_F(UdResponding, ReceivesMayBeThoseOfASharedQueue) {
  verbs::SharedReceiveQueue shared(kPd + 1, 8, 1);  // in another protection domain
  const std::uint32_t theirs =
      table.register_memory(kPd + 1, {inbox(), 0, kBytes}, verbs::kLocalWrite);
  BufferPool pool;
  verbs::ReceiveQueue mine(&shared, &pool, 0);
  UdResponder on_shared(qp, &mine, &table);
  const verbs::Sge sge{1000, 500, theirs};
  shared.post({6, {&sge, 1}});
  verbs::Completion c;
  EXPECT_TRUE(on_shared.take(datagram(1, counting(8)), ipv4, &c).received.completed);
  EXPECT_EQ(c.wr_id, 6u);
  EXPECT_EQ(c.status, Status::Success);
  EXPECT_EQ(on_shared.take(datagram(2, counting(8)), ipv4, &c).received.verdict, Verdict::NotReady);
}

TEST_F(UdResponding, AHostileSenderOnlyFillsReceives) {
  Rng rng(101);
  const Bytes bytes(4096, 0xee), ip(64, 0x45);
  for (int i = 0; i < 50'000; ++i) {
    if (rq.posted() == 0) post(1 + rng.below(6), 1 + static_cast<std::uint32_t>(rng.below(1000)));
    ParsedPacket p = datagram(0, {});
    payloads.clear();
    p.header.bth.opcode =
        Opcode(ServiceType::Ud, static_cast<Operation>(rng.chance(0.7) ? 4 : rng.below(32)));
    p.header.bth.psn = Psn(static_cast<std::uint32_t>(rng.next()));
    p.payload = ByteView(bytes).first(rng.below(rng.chance(0.5) ? 300 : 4097));
    const Verdict v = come(p, ByteView(ip).first(rng.below(65)));
    // A receive that is too small for any packet blocks the queue: the consumer's choice.
    if (v == Verdict::NotReady) rq.pop();
    EXPECT_NE(v, Verdict::Operational);
  }
  EXPECT_GT(completions.size(), 1000u);
  for (const verbs::Completion& c : completions) EXPECT_LE(c.byte_len, kPmtu + kGrhBytes);
}

// ---- requester

class UdRequesting : public RequesterBench {
 protected:
  UdRequesting() {
    qp.service = ServiceType::Ud;
    qp.qkey = 0x80010203;
    qp.dest_qp = 0;
  }
  UdRequester& ud() {
    if (!ud_) ud_ = std::make_unique<UdRequester>(qp, &sq, &table);
    return *ud_;
  }
  void post_to(const DatagramTo& to, std::uint32_t length, WrOp op = WrOp::Send) {
    verbs::SendWr wr = request(op, length);
    set_destination(&wr, to);
    post(wr);
  }
  std::vector<SentPacket> send(bool may_begin = true) {
    std::vector<SentPacket> out;
    RequestPacket p;
    std::uint32_t handle = 0;
    while (ud().next_packet(may_begin, &p, &handle)) {
      handles.push_back(handle);
      out.push_back({p.header, std::vector<std::uint8_t>(p.length)});
      p.copy_payload(out.back().payload.data());
    }
    return out;
  }
  std::size_t done() {
    std::size_t n = 0;
    ud().report([&n](const verbs::Completion& c) {
      EXPECT_EQ(c.status, Status::Success);
      ++n;
    });
    return n;
  }

  std::vector<std::uint32_t> handles;

 private:
  std::unique_ptr<UdRequester> ud_;
};

// proves: IB-101, IB-98
TEST_F(UdRequesting, EachRequestIsOnePacketToItsDestinationWithTheNextPsn) {
  qp.sq_psn = Psn(0xffffff);
  post_to({7, 0x123, 0x42}, 10);
  post_to({0xffffffff, 0xffffff, 0x80000000}, 0, WrOp::SendImm);
  const auto packets = send();
  ASSERT_EQ(packets.size(), 2u);
  EXPECT_EQ(packets[0].psn(), 0xffffffu);
  EXPECT_EQ(packets[1].psn(), 0u);
  EXPECT_EQ(packets[0].h.bth.dest_qp, 0x123u);
  EXPECT_EQ(packets[0].h.deth.qkey, 0x42u);
  EXPECT_EQ(packets[0].h.deth.source_qp, kQpn);
  EXPECT_EQ(packets[0].payload.size(), 10u);
  EXPECT_EQ(packets[1].h.bth.dest_qp, 0xffffffu);
  EXPECT_EQ(packets[1].h.deth.qkey, qp.qkey);
  EXPECT_EQ(packets[1].operation(), Operation::SendOnlyImm);
  EXPECT_THAT(handles, ::testing::ElementsAre(7u, 0xffffffffu));
  EXPECT_EQ(done(), 2u);
}

// proves: IB-100
TEST_F(UdRequesting, NothingIsSentOfARequestLongerThanThePathMtu) {
  post_to({1, 2, 3}, kPmtu + 1);
  post_to({1, 2, 3}, kPmtu);
  const auto packets = send();
  ASSERT_EQ(packets.size(), 1u);
  EXPECT_EQ(packets[0].payload.size(), kPmtu);
  EXPECT_EQ(packets[0].psn(), 100u);
  EXPECT_EQ(done(), 2u);
  EXPECT_EQ(ud().too_long(), 1u);
}

// proves: IB-130
TEST_F(UdRequesting, ThePsnDoesNotAdvanceWhenNothingIsSent) {
  post_to({1, 2, 3}, 4);
  EXPECT_TRUE(send(false).empty());
  EXPECT_EQ(ud().psn(), Psn(100));
  EXPECT_EQ(send().size(), 1u);
  post(WrOp::Write, 4);
  EXPECT_TRUE(send().empty());
  EXPECT_TRUE(ud().failed());
  std::vector<Status> all;
  ud().flush([&all](const verbs::Completion& c) { all.push_back(c.status); });
  EXPECT_THAT(all, ::testing::ElementsAre(Status::Success, Status::LocalOperation));
  ud().resume();
  post_to({1, 2, 3}, 4);
  EXPECT_EQ(send().at(0).psn(), 101u);
}

// ---- captured packets

void replay(const char* file, std::uint32_t qkey) {
  SCOPED_TRACE(file);
  std::size_t seen = 0;
  std::map<std::uint32_t, std::uint32_t> psns;  // by source
  for (const test::Captured& c : test::roce_capture(file)) {
    const ParsedPacket p = *parse_packet(c.datagram);
    if (p.header.deth.qkey != qkey) continue;  // connection management
    Bytes memory(4096);
    verbs::MemoryTable table;
    const std::uint32_t key =
        table.register_memory(1, {memory.data(), 0, memory.size()}, verbs::kLocalWrite);
    QpAttributes qp;
    qp.service = ServiceType::Ud;
    qp.pd = 1;
    qp.number = p.header.bth.dest_qp;
    qp.qkey = qkey;
    verbs::ReceiveQueue rq{1, 1, 0};
    const verbs::Sge in{0, 4096, key};
    rq.post({1, {&in, 1}});
    UdResponder responder(qp, &rq, &table);
    verbs::Completion done;
    ASSERT_TRUE(check(p.header, IpAddress(), &qp, verbs::QpState::Rtr).ok());
    const UdReceived r = responder.take(p, c.ip_udp, &done);
    ASSERT_TRUE(r.received.completed);
    EXPECT_EQ(done.byte_len, p.payload.size() + kGrhBytes);
    EXPECT_TRUE(std::equal(p.payload.begin(), p.payload.end(), memory.begin() + kGrhBytes));
    // Sent by our requester.
    qp.number = r.source_qp;
    if (!psns.contains(qp.number)) psns[qp.number] = p.header.bth.psn.value();
    qp.sq_psn = Psn(psns[qp.number]++);
    verbs::SendQueue sq{1, 1, 0, sizeof(SendPart)};
    UdRequester requester(qp, &sq, &table);
    const verbs::Sge out{kGrhBytes, done.byte_len - kGrhBytes, key};
    verbs::SendWr wr;
    wr.op = done.with_immediate ? WrOp::SendImm : WrOp::Send;
    wr.immediate = done.immediate;
    wr.sges = {&out, 1};
    set_destination(&wr, {0, p.header.bth.dest_qp, qkey});
    sq.post(wr);
    RequestPacket ours;
    std::uint32_t handle = 0;
    ASSERT_TRUE(requester.next_packet(true, &ours, &handle));
    ours.header.bth.migrated = false;  // Linux does not set it
    Bytes payload(ours.length);
    ours.copy_payload(payload.data());
    Bytes bytes(packet_bytes(ours.header.bth.opcode, payload.size()));
    emit_packet(ours.header, payload, bytes.data());
    seal(c.ip_udp, bytes);
    EXPECT_EQ(to_hex(bytes), to_hex(c.datagram));
    ++seen;
  }
  EXPECT_GE(seen, 6u);
}

// proves: IB-101, IB-144
TEST(UdReplay, DatagramsOfLinuxArriveAndAreSentAsLinuxSendsThem) {
  replay("rxe-rxe-ud_pingpong-700.pcap", 0x11111111);
  replay("rxe-rxe-udaddy-sidr-ud-imm.pcap", 0x01234567);
}

}  // namespace
}  // namespace urnic::ib
