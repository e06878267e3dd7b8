// Captured UC requests of Linux rxe go to our responder, and our requester must send the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "ib/icrc.h"
#include "ib/uc.h"
#include "roce_capture.h"

namespace urnic::ib {
namespace {

using urnic::test::Bytes;
using urnic::test::to_hex;

constexpr verbs::PdId kPd = 1;
constexpr std::uint32_t kBytes = 4096;

// A queue pair of the capture that receives messages, and one of ours that could have sent them.
struct Ends {
  explicit Ends(const Bth& first) : inbox(kBytes), outbox(kBytes) {
    qp.service = ServiceType::Uc;
    qp.pd = kPd;
    qp.path_mtu = PathMtu::k1024;
    qp.dest_qp = first.dest_qp;
    qp.sq_psn = first.psn;
    in = table.register_memory(kPd, {inbox.data(), 0, kBytes}, verbs::kLocalWrite);
    out = table.register_memory(kPd, {outbox.data(), 0, kBytes}, 0);
    responder = std::make_unique<UcResponder>(qp, &rq, &table);
    requester = std::make_unique<UcRequester>(qp, &sq, &table);
  }
  void expect_message() {
    const verbs::Sge sge{0, kBytes, in};
    rq.post({7, {&sge, 1}});
  }
  // The same message, as our requester sends it.
  std::vector<RequestPacket> resend(std::uint32_t length) {
    std::copy(inbox.begin(), inbox.end(), outbox.begin());
    const verbs::Sge sge{0, length, out};
    verbs::SendWr wr;
    wr.sges = {&sge, 1};
    sq.post(wr);
    std::vector<RequestPacket> packets;
    for (RequestPacket p; requester->next_packet(true, &p);) packets.push_back(p);
    requester->report([](const verbs::Completion&) {});
    return packets;
  }

  Bytes inbox, outbox;
  std::uint32_t in = 0, out = 0;
  QpAttributes qp;
  verbs::MemoryTable table;
  verbs::ReceiveQueue rq{8, 1, 0};
  verbs::SendQueue sq{8, 1, 0, sizeof(SendPart)};
  std::unique_ptr<UcResponder> responder;
  std::unique_ptr<UcRequester> requester;
};

Bytes on_the_wire(RequestPacket p, const test::Captured& like) {
  p.header.bth.migrated = false;  // Linux does not set it
  Bytes payload(p.length);
  p.copy_payload(payload.data());
  Bytes bytes(packet_bytes(p.header.bth.opcode, payload.size()));
  emit_packet(p.header, payload, bytes.data());
  seal(like.ip_udp, bytes);
  return bytes;
}

// proves: IB-91, IB-92
TEST(UcReplay, MessagesOfLinuxArriveAndAreSentAsLinuxSendsThem) {
  std::map<std::uint32_t, std::unique_ptr<Ends>> ends;
  std::map<std::uint32_t, std::vector<test::Captured>> message;
  std::size_t messages = 0;
  for (const test::Captured& c : test::roce_capture("rxe-rxe-uc_pingpong-3000-first.pcap")) {
    const ParsedPacket p = *parse_packet(c.datagram);
    const std::uint32_t to = p.header.bth.dest_qp;
    if (!ends.contains(to)) ends[to] = std::make_unique<Ends>(p.header.bth);
    Ends& e = *ends[to];
    if (p.header.row().begins()) e.expect_message();
    message[to].push_back(c);
    verbs::Completion completion;
    const Received r = e.responder->take(p, &completion);
    ASSERT_EQ(r.verdict, Verdict::Accept);
    ASSERT_EQ(r.completed, p.header.row().ends());
    if (!r.completed) continue;
    EXPECT_EQ(completion.byte_len, 3000u);
    const auto ours = e.resend(completion.byte_len);
    ASSERT_EQ(ours.size(), message[to].size());
    for (std::size_t i = 0; i < ours.size(); ++i) {
      EXPECT_EQ(to_hex(on_the_wire(ours[i], message[to][i])), to_hex(message[to][i].datagram));
    }
    message[to].clear();
    ++messages;
  }
  EXPECT_GE(messages, 2u);
}

}  // namespace
}  // namespace urnic::ib
